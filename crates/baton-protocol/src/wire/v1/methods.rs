//! The request parameters of the eleven operations.

use serde::Deserialize;

use super::from_domain::{write_message, write_push_config, write_tenant_push_config};
use super::to_domain::TenantPushConfig;
use super::{Decoded, V1};
use crate::domain::{JsonObject, Message, PushConfig, PushConfigId, TaskId};
use crate::error::Error;
use crate::operation::{Call, CancelTask, GetTask, HistoryLength, Operation, SendMessage, SubscribeToTask};
use crate::wire::objects::{
    list_tasks, present, write_history_length, write_list, write_metadata, write_page_request,
};
use crate::wire::read::{Subject, Twin, one, optional, or_default, read, text};
use crate::wire::write::Object;

/// Decodes the parameters of a call.
pub fn decode_call(operation: Operation, params: Option<&str>) -> Result<Decoded, Error> {
    let params = present(params);
    match operation {
        Operation::SendMessage => send(params, Call::SendMessage),
        Operation::SendStreamingMessage => send(params, Call::SendStreamingMessage),
        Operation::GetTask => {
            let Twin(GetTaskTwin { tenant, id, history_length }) = read::<V1, _>(params, Subject::PARAMS)?;
            Ok(Decoded { tenant, call: Call::GetTask(GetTask { id, history_length }) })
        }
        Operation::ListTasks => list_tasks::<V1>(params),
        Operation::CancelTask => {
            let Twin(CancelTaskTwin { tenant, id, metadata }) = read::<V1, _>(params, Subject::PARAMS)?;
            Ok(Decoded { tenant, call: Call::CancelTask(CancelTask { id, metadata }) })
        }
        Operation::SubscribeToTask => {
            let Twin(SubscribeTwin { tenant, id }) = read::<V1, _>(params, Subject::PARAMS)?;
            Ok(Decoded { tenant, call: Call::SubscribeToTask(SubscribeToTask { id }) })
        }
        Operation::CreatePushConfig => {
            let TenantPushConfig { tenant, config } = read::<V1, _>(params, Subject::PARAMS)?;
            Ok(Decoded { tenant, call: Call::CreatePushConfig(config) })
        }
        Operation::GetPushConfig => {
            let Twin(OnePushConfigTwin { tenant, task_id, id }) = read::<V1, _>(params, Subject::PARAMS)?;
            Ok(Decoded { tenant, call: Call::GetPushConfig { task_id, id: Some(id) } })
        }
        Operation::ListPushConfigs => {
            let Twin(ListPushConfigsTwin { tenant, task_id, page_size, page_token }) =
                read::<V1, _>(params, Subject::PARAMS)?;
            Ok(Decoded { tenant, call: Call::ListPushConfigs { task_id, page_size, page_token } })
        }
        Operation::DeletePushConfig => {
            let Twin(OnePushConfigTwin { tenant, task_id, id }) = read::<V1, _>(params, Subject::PARAMS)?;
            Ok(Decoded { tenant, call: Call::DeletePushConfig { task_id, id } })
        }
        Operation::GetExtendedCard => {
            let Twin(ExtendedCardTwin { tenant }) = read::<V1, _>(params, Subject::PARAMS)?;
            Ok(Decoded { tenant, call: Call::GetExtendedCard })
        }
    }
}

fn send(params: &str, call: impl FnOnce(SendMessage) -> Call) -> Result<Decoded, Error> {
    let Twin(SendMessageTwin { tenant, message, configuration, metadata }) =
        read::<V1, _>(params, Subject::PARAMS)?;
    let Twin(configuration) = configuration;
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

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SendMessageTwin {
    #[serde(default, deserialize_with = "text")]
    tenant: Option<String>,
    #[serde(deserialize_with = "one::<V1, _, _>")]
    message: Message,
    #[serde(default, deserialize_with = "or_default::<V1, _, _>")]
    configuration: Twin<ConfigurationTwin>,
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
            write_history_length::<V1>(&mut object, *history_length);
        }
        Call::ListTasks(list) => write_list::<V1>(&mut object, list),
        Call::CancelTask(CancelTask { id, metadata }) => {
            object.string("id", id.as_str());
            write_metadata(&mut object, metadata.as_ref());
        }
        Call::SubscribeToTask(SubscribeToTask { id }) => object.string("id", id.as_str()),
        Call::GetPushConfig { task_id, id } => {
            object.string("taskId", task_id.as_str());
            // 1.0 requires the config's id; a config that was created without an id has the task's id.
            object.string("id", id.as_ref().map_or(task_id.as_str(), |id| id.as_str()));
        }
        Call::DeletePushConfig { task_id, id } => {
            object.string("taskId", task_id.as_str());
            object.string("id", id.as_str());
        }
        Call::ListPushConfigs { task_id, page_size, page_token } => {
            object.string("taskId", task_id.as_str());
            write_page_request(&mut object, *page_size, page_token.as_deref());
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
        write_history_length::<V1>(&mut inner, send.history_length);
        inner.flag_if_set("returnImmediately", send.return_immediately);
        inner.end();
    }
    write_metadata(object, send.metadata.as_ref());
}
