//! The methods of 0.1 and their parameters.

use serde::Deserialize;
use serde::de::Deserializer;

use super::V0_1;
use super::from_domain::{write_message, write_push_config, write_webhook};
use super::to_domain::{Said, TaskPushConfig, message_id, of_task};
use crate::domain::{ContextId, JsonObject, PushConfig, TaskId};
use crate::error::{Error, ErrorKind};
use crate::operation::{
    Call, CancelTask, FACTS, GetTask, HistoryLength, Operation, SendMessage, SubscribeToTask,
};
use crate::wire::Decoded;
use crate::wire::objects::{present, write_metadata};
use crate::wire::read::{FromWire, Subject, Twin, one, optional, or_default, read};
use crate::wire::scalars::maybe_id;
use crate::wire::write::Object;

/// The operation of a 0.1 method.
pub fn operation_of(method: &str) -> Option<Operation> {
    FACTS.iter().find(|facts| facts.v0_1 == Some(method)).map(|facts| facts.operation)
}

/// The method of an operation, if 0.1 has one.
pub fn method_of(operation: Operation) -> Option<&'static str> {
    operation.facts().v0_1
}

/// Decodes the parameters of a call. Absent or `null` parameters are read as an empty object, so that errors name the
/// missing members. 0.1 has no tenants.
pub fn decode_call(operation: Operation, params: Option<&str>) -> Result<Decoded, Error> {
    let params = present(params);
    let call = match operation {
        Operation::SendMessage => Call::SendMessage(send(params)?),
        Operation::SendStreamingMessage => Call::SendStreamingMessage(send(params)?),
        Operation::GetTask => {
            let Twin(QueryTwin { id, history_length, .. }) = read::<V0_1, _>(params, Subject::PARAMS)?;
            Call::GetTask(GetTask { id, history_length })
        }
        Operation::CancelTask => {
            let Twin(QueryTwin { id, metadata, .. }) = read::<V0_1, _>(params, Subject::PARAMS)?;
            Call::CancelTask(CancelTask { id, metadata })
        }
        Operation::SubscribeToTask => {
            let Twin(QueryTwin { id, .. }) = read::<V0_1, _>(params, Subject::PARAMS)?;
            Call::SubscribeToTask(SubscribeToTask { id })
        }
        Operation::CreatePushConfig => {
            let TaskPushConfig(config) = read::<V0_1, _>(params, Subject::PARAMS)?;
            Call::CreatePushConfig(config)
        }
        Operation::GetPushConfig => {
            let Twin(QueryTwin { id, .. }) = read::<V0_1, _>(params, Subject::PARAMS)?;
            Call::GetPushConfig { task_id: id, id: None }
        }
        Operation::ListTasks
        | Operation::ListPushConfigs
        | Operation::DeletePushConfig
        | Operation::GetExtendedCard => return Err(Error::of(ErrorKind::MethodNotFound)),
    };
    Ok(Decoded { tenant: None, call })
}

fn send(params: &str) -> Result<SendMessage, Error> {
    let Twin(twin) = read::<V0_1, Twin<SendTwin>>(params, Subject::PARAMS)?;
    // A placeholder: the engine gives the stored message an id, since a task has several messages.
    let mut message = twin.message.into_message(message_id(&twin.id));
    message.context_id = twin.session_id;
    Ok(SendMessage {
        message,
        push_config: twin.push_notification.map(|config| of_task(config, &twin.id)),
        client_task_id: Some(twin.id),
        accepted_output_modes: twin.accepted_output_modes,
        history_length: twin.history_length,
        // `tasks/send` answers as soon as the task is stored; the skill runs afterwards.
        return_immediately: true,
        metadata: twin.metadata,
    })
}

/// `TaskSendParams`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SendTwin {
    #[serde(deserialize_with = "one::<V0_1, _, _>")]
    id: TaskId,
    #[serde(default, deserialize_with = "maybe_id")]
    session_id: Option<ContextId>,
    #[serde(deserialize_with = "one::<V0_1, _, _>")]
    message: Said,
    #[serde(default, deserialize_with = "or_default::<V0_1, _, _>")]
    accepted_output_modes: Vec<String>,
    #[serde(default, deserialize_with = "optional::<V0_1, _, _>")]
    push_notification: Option<PushConfig>,
    #[serde(default, deserialize_with = "or_default::<V0_1, _, _>")]
    history_length: HistoryLength,
    #[serde(default, deserialize_with = "optional::<V0_1, _, _>")]
    metadata: Option<JsonObject>,
}

/// `TaskQueryParams`, and `TaskIdParams`, which is a part of it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct QueryTwin {
    #[serde(deserialize_with = "one::<V0_1, _, _>")]
    id: TaskId,
    #[serde(default, deserialize_with = "or_default::<V0_1, _, _>")]
    history_length: HistoryLength,
    #[serde(default, deserialize_with = "optional::<V0_1, _, _>")]
    metadata: Option<JsonObject>,
}

impl FromWire<V0_1> for HistoryLength {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <u32 as FromWire<V0_1>>::from_wire(deserializer).map(HistoryLength::Last)
    }
}

/// Writes the parameters of a call: the client's side of [`decode_call`]. For operations that 0.1 lacks
/// ([`method_of`] tells) that is an empty object.
pub fn write_call(out: &mut Vec<u8>, call: &Call) {
    if let Call::CreatePushConfig(config) = call {
        return write_push_config(out, config);
    }
    let mut object = Object::begin(out);
    match call {
        Call::SendMessage(send) | Call::SendStreamingMessage(send) => write_send(&mut object, send),
        Call::GetTask(GetTask { id, history_length }) => {
            object.string("id", id.as_str());
            write_history_length(&mut object, *history_length);
        }
        Call::CancelTask(CancelTask { id, metadata }) => {
            object.string("id", id.as_str());
            write_metadata(&mut object, metadata.as_ref());
        }
        Call::SubscribeToTask(SubscribeToTask { id }) | Call::GetPushConfig { task_id: id, .. } => {
            object.string("id", id.as_str());
        }
        Call::CreatePushConfig(_)
        | Call::ListTasks(_)
        | Call::ListPushConfigs { .. }
        | Call::DeletePushConfig { .. }
        | Call::GetExtendedCard => {}
    }
    object.end();
}

fn write_send(object: &mut Object<'_>, send: &SendMessage) {
    // The client chooses the task's id. If the call names none, it is a new task, and the message's id is unique
    // enough.
    let task_id = send.client_task_id.as_ref().or(send.message.task_id.as_ref());
    object.string("id", task_id.map_or(send.message.id.as_str(), TaskId::as_str));
    object.optional("sessionId", send.message.context_id.as_ref().map(ContextId::as_str));
    write_message(object.member("message"), &send.message);
    object.strings_unless_empty("acceptedOutputModes", &send.accepted_output_modes);
    if let Some(config) = &send.push_config {
        write_webhook(object.member("pushNotification"), config);
    }
    write_history_length(object, send.history_length);
    write_metadata(object, send.metadata.as_ref());
}

fn write_history_length(object: &mut Object<'_>, length: HistoryLength) {
    if let HistoryLength::Last(most) = length {
        object.number("historyLength", most.min(i32::MAX as u32));
    }
}
