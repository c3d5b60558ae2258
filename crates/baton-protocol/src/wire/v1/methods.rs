//! The request parameters of the eleven operations.

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, SeqAccess, Visitor, value};

use super::from_domain::{
    write_message, write_metadata, write_push_config, write_tenant_push_config, write_time,
};
use super::names::{STATES, state_name};
use super::to_domain::{AnyState, TenantPushConfig};
use super::{Decoded, PARAMS, V1};
use crate::domain::{
    ContextId, JsonObject, ListFilter, Message, PushConfig, PushConfigId, TaskId, TaskState, Timestamp,
};
use crate::error::Error;
use crate::operation::{
    Call, CancelTask, GetTask, HistoryLength, ListTasks, Operation, SendMessage, SubscribeToTask,
};
use crate::wire::read::{FromWire, one, optional, or_default, read, text, twin};
use crate::wire::scalars::maybe_id;
use crate::wire::write::{Object, list, string};

/// Decodes the parameters of a call. Absent or `null` parameters are an empty object, so that what is missing is
/// named member by member.
pub fn decode_call(operation: Operation, params: Option<&str>) -> Result<Decoded, Error> {
    let params = params.map(str::trim).filter(|text| !text.is_empty() && *text != "null").unwrap_or("{}");
    match operation {
        Operation::SendMessage => send(params, Call::SendMessage),
        Operation::SendStreamingMessage => send(params, Call::SendStreamingMessage),
        Operation::GetTask => {
            let Params(GetTaskTwin { tenant, id, history_length }) = read::<V1, _>(params, PARAMS)?;
            Ok(Decoded { tenant, call: Call::GetTask(GetTask { id, history_length }) })
        }
        Operation::ListTasks => list_tasks(params),
        Operation::CancelTask => {
            let Params(CancelTaskTwin { tenant, id, metadata }) = read::<V1, _>(params, PARAMS)?;
            Ok(Decoded { tenant, call: Call::CancelTask(CancelTask { id, metadata }) })
        }
        Operation::SubscribeToTask => {
            let Params(SubscribeTwin { tenant, id }) = read::<V1, _>(params, PARAMS)?;
            Ok(Decoded { tenant, call: Call::SubscribeToTask(SubscribeToTask { id }) })
        }
        Operation::CreatePushConfig => {
            let TenantPushConfig { tenant, config } = read::<V1, _>(params, PARAMS)?;
            Ok(Decoded { tenant, call: Call::CreatePushConfig(config) })
        }
        Operation::GetPushConfig => {
            let Params(OnePushConfigTwin { tenant, task_id, id }) = read::<V1, _>(params, PARAMS)?;
            Ok(Decoded { tenant, call: Call::GetPushConfig { task_id, id: Some(id) } })
        }
        Operation::ListPushConfigs => {
            let Params(ListPushConfigsTwin { tenant, task_id, page_size, page_token }) =
                read::<V1, _>(params, PARAMS)?;
            Ok(Decoded { tenant, call: Call::ListPushConfigs { task_id, page_size, page_token } })
        }
        Operation::DeletePushConfig => {
            let Params(OnePushConfigTwin { tenant, task_id, id }) = read::<V1, _>(params, PARAMS)?;
            Ok(Decoded { tenant, call: Call::DeletePushConfig { task_id, id } })
        }
        Operation::GetExtendedCard => {
            let Params(ExtendedCardTwin { tenant }) = read::<V1, _>(params, PARAMS)?;
            Ok(Decoded { tenant, call: Call::GetExtendedCard })
        }
    }
}

fn send(params: &str, call: impl FnOnce(SendMessage) -> Call) -> Result<Decoded, Error> {
    let Params(SendMessageTwin { tenant, message, configuration, metadata }) = read::<V1, _>(params, PARAMS)?;
    let Params(configuration) = configuration;
    let send = SendMessage {
        message,
        client_task_id: None,
        accepted_output_modes: configuration.accepted_output_modes,
        push_config: configuration.task_push_notification_config,
        history_length: configuration.history_length,
        return_immediately: configuration.return_immediately,
        metadata,
    };
    Ok(Decoded { tenant, call: call(send) })
}

fn list_tasks(params: &str) -> Result<Decoded, Error> {
    let Params(twin) = read::<V1, Params<ListTasksTwin>>(params, PARAMS)?;
    let filter = ListFilter {
        context_id: twin.context_id,
        states: twin.status.0,
        updated_since: twin.status_timestamp_after,
    };
    let list = ListTasks {
        filter,
        page_size: twin.page_size,
        page_token: twin.page_token,
        history_length: twin.history_length,
        include_artifacts: twin.include_artifacts,
    };
    Ok(Decoded { tenant: twin.tenant, call: Call::ListTasks(list) })
}

/// Any twin of this file, read as an object.
#[derive(Default)]
struct Params<T>(T);

impl<T: DeserializeOwned> FromWire<V1> for Params<T> {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        twin(deserializer).map(Params)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SendMessageTwin {
    #[serde(default, deserialize_with = "text")]
    tenant: Option<String>,
    #[serde(deserialize_with = "one::<V1, _, _>")]
    message: Message,
    #[serde(default, deserialize_with = "or_default::<V1, _, _>")]
    configuration: Params<ConfigurationTwin>,
    #[serde(default, deserialize_with = "optional::<V1, _, _>")]
    metadata: Option<JsonObject>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConfigurationTwin {
    #[serde(default, alias = "accepted_output_modes", deserialize_with = "or_default::<V1, _, _>")]
    accepted_output_modes: Vec<String>,
    #[serde(default, alias = "task_push_notification_config", deserialize_with = "optional::<V1, _, _>")]
    task_push_notification_config: Option<PushConfig>,
    #[serde(default, alias = "history_length", deserialize_with = "or_default::<V1, _, _>")]
    history_length: HistoryLength,
    #[serde(default, alias = "return_immediately", deserialize_with = "or_default::<V1, _, _>")]
    return_immediately: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GetTaskTwin {
    #[serde(default, deserialize_with = "text")]
    tenant: Option<String>,
    #[serde(deserialize_with = "one::<V1, _, _>")]
    id: TaskId,
    #[serde(default, alias = "history_length", deserialize_with = "or_default::<V1, _, _>")]
    history_length: HistoryLength,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListTasksTwin {
    #[serde(default, deserialize_with = "text")]
    tenant: Option<String>,
    #[serde(default, alias = "context_id", deserialize_with = "maybe_id")]
    context_id: Option<ContextId>,
    #[serde(default, deserialize_with = "or_default::<V1, _, _>")]
    status: States,
    #[serde(default, alias = "page_size", deserialize_with = "optional::<V1, _, _>")]
    page_size: Option<i32>,
    #[serde(default, alias = "page_token", deserialize_with = "text")]
    page_token: Option<String>,
    #[serde(default, alias = "history_length", deserialize_with = "or_default::<V1, _, _>")]
    history_length: HistoryLength,
    #[serde(default, alias = "status_timestamp_after", deserialize_with = "optional::<V1, _, _>")]
    status_timestamp_after: Option<Timestamp>,
    #[serde(default, alias = "include_artifacts", deserialize_with = "or_default::<V1, _, _>")]
    include_artifacts: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CancelTaskTwin {
    #[serde(default, deserialize_with = "text")]
    tenant: Option<String>,
    #[serde(deserialize_with = "one::<V1, _, _>")]
    id: TaskId,
    #[serde(default, deserialize_with = "optional::<V1, _, _>")]
    metadata: Option<JsonObject>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SubscribeTwin {
    #[serde(default, deserialize_with = "text")]
    tenant: Option<String>,
    #[serde(deserialize_with = "one::<V1, _, _>")]
    id: TaskId,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OnePushConfigTwin {
    #[serde(default, deserialize_with = "text")]
    tenant: Option<String>,
    #[serde(alias = "task_id", deserialize_with = "one::<V1, _, _>")]
    task_id: TaskId,
    #[serde(deserialize_with = "one::<V1, _, _>")]
    id: PushConfigId,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListPushConfigsTwin {
    #[serde(default, deserialize_with = "text")]
    tenant: Option<String>,
    #[serde(alias = "task_id", deserialize_with = "one::<V1, _, _>")]
    task_id: TaskId,
    #[serde(default, alias = "page_size", deserialize_with = "optional::<V1, _, _>")]
    page_size: Option<i32>,
    #[serde(default, alias = "page_token", deserialize_with = "text")]
    page_token: Option<String>,
}

#[derive(Deserialize)]
struct ExtendedCardTwin {
    #[serde(default, deserialize_with = "text")]
    tenant: Option<String>,
}

impl FromWire<V1> for HistoryLength {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <u32 as FromWire<V1>>::from_wire(deserializer).map(HistoryLength::Last)
    }
}

/// The `status` filter: one state, or, beyond the specification, a list of them.
#[derive(Default)]
struct States(Vec<TaskState>);

impl FromWire<V1> for States {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMore;
        impl<'de> Visitor<'de> for OneOrMore {
            type Value = States;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(STATES)
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<States, E> {
                one_state(value::StrDeserializer::new(name))
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<States, E> {
                one_state(value::U64Deserializer::new(number))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<States, A::Error> {
                <Vec<TaskState> as FromWire<V1>>::from_wire(value::SeqAccessDeserializer::new(items))
                    .map(States)
            }
        }
        fn one_state<'de, D: Deserializer<'de>>(deserializer: D) -> Result<States, D::Error> {
            AnyState::from_wire(deserializer).map(|state| States(state.0.into_iter().collect()))
        }
        deserializer.deserialize_any(OneOrMore)
    }
}

/// Writes the parameters of a call: the client's side of [`decode_call`].
pub fn write_call(out: &mut Vec<u8>, tenant: Option<&str>, call: &Call) {
    if let Call::CreatePushConfig(config) = call {
        return write_tenant_push_config(out, tenant, config);
    }
    let mut object = Object::begin(out);
    object.optional("tenant", tenant);
    match call {
        Call::SendMessage(send) | Call::SendStreamingMessage(send) => write_send(&mut object, send),
        Call::GetTask(GetTask { id, history_length }) => {
            object.string("id", id.as_str());
            write_history_length(&mut object, *history_length);
        }
        Call::ListTasks(list) => write_list(&mut object, list),
        Call::CancelTask(CancelTask { id, metadata }) => {
            object.string("id", id.as_str());
            write_metadata(&mut object, metadata.as_ref());
        }
        Call::SubscribeToTask(SubscribeToTask { id }) => object.string("id", id.as_str()),
        Call::GetPushConfig { task_id, id } => {
            object.string("taskId", task_id.as_str());
            // 1.0 always names the config; a config made without an id has the task's.
            object.string("id", id.as_ref().map_or(task_id.as_str(), |id| id.as_str()));
        }
        Call::DeletePushConfig { task_id, id } => {
            object.string("taskId", task_id.as_str());
            object.string("id", id.as_str());
        }
        Call::ListPushConfigs { task_id, page_size, page_token } => {
            object.string("taskId", task_id.as_str());
            write_page(&mut object, *page_size, page_token.as_deref());
        }
        Call::CreatePushConfig(_) | Call::GetExtendedCard => {}
    }
    object.end();
}

fn write_send(object: &mut Object<'_>, send: &SendMessage) {
    write_message(object.member("message"), &send.message);
    let configured = !send.accepted_output_modes.is_empty()
        || send.push_config.is_some()
        || send.history_length != HistoryLength::All
        || send.return_immediately;
    if configured {
        let mut inner = Object::begin(object.member("configuration"));
        inner.strings_unless_empty("acceptedOutputModes", &send.accepted_output_modes);
        if let Some(config) = &send.push_config {
            write_push_config(inner.member("taskPushNotificationConfig"), config);
        }
        write_history_length(&mut inner, send.history_length);
        inner.flag_if_set("returnImmediately", send.return_immediately);
        inner.end();
    }
    write_metadata(object, send.metadata.as_ref());
}

fn write_list(object: &mut Object<'_>, call: &ListTasks) {
    let ListFilter { context_id, states, updated_since } = &call.filter;
    object.optional("contextId", context_id.as_ref().map(ContextId::as_str));
    match states.as_slice() {
        [] => {}
        [state] => object.string("status", state_name(*state)),
        // 1.0 has no filter by several states. A peer that refuses the list is better than one that is
        // asked for the wrong tasks.
        several => list(object.member("status"), several, |out, state| string(out, state_name(*state))),
    }
    write_page(object, call.page_size, call.page_token.as_deref());
    write_history_length(object, call.history_length);
    if let Some(since) = updated_since {
        write_time(object.member("statusTimestampAfter"), *since);
    }
    object.flag_if_set("includeArtifacts", call.include_artifacts);
}

fn write_page(object: &mut Object<'_>, page_size: Option<i32>, page_token: Option<&str>) {
    if let Some(page_size) = page_size {
        object.number("pageSize", page_size);
    }
    object.optional("pageToken", page_token);
}

fn write_history_length(object: &mut Object<'_>, length: HistoryLength) {
    if let HistoryLength::Last(most) = length {
        object.number("historyLength", most.min(i32::MAX as u32));
    }
}
