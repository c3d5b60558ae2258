//! The methods and the request parameters of the eleven operations.

use std::marker::PhantomData;

use serde::Deserialize;

use super::Dialect;
use super::from_domain::{resource_name, write_push_config, write_settings};
use super::to_domain::{CONFIG_RESOURCE, Resource, Settings};
use crate::domain::{JsonObject, Message, PushConfig, PushConfigId, TaskId};
use crate::error::Error;
use crate::operation::{
    Call, CancelTask, FACTS, GetTask, HistoryLength, Operation, SendMessage, SubscribeToTask,
};
use crate::wire::Decoded;
use crate::wire::objects::{
    list_tasks, present, write_history_length, write_list, write_message, write_metadata, write_page_request,
};
use crate::wire::read::{Subject, Twin, one, optional, or_default, read, text};
use crate::wire::scalars::maybe_id;
use crate::wire::write::Object;

/// Other names of methods: from the protocol guide, and from a mistake in the specification.
const ALIASES: &[(&str, Operation)] = &[
    ("tasks/subscribe", Operation::SubscribeToTask),
    ("tasks/pushNotificationConfig/create", Operation::CreatePushConfig),
    ("agent/getExtendedCard", Operation::GetExtendedCard),
    ("agent/authenticatedExtendedCard", Operation::GetExtendedCard),
];

/// The operation of a 0.3 JSON-RPC method.
pub fn operation_of(method: &str) -> Option<Operation> {
    let named = FACTS.iter().find(|facts| facts.v0_3 == Some(method)).map(|facts| facts.operation);
    named.or_else(|| ALIASES.iter().find(|(alias, _)| *alias == method).map(|(_, operation)| *operation))
}

pub(super) fn decode_call<G: Dialect>(operation: Operation, params: Option<&str>) -> Result<Decoded, Error> {
    let params = present(params);
    let call = match operation {
        Operation::SendMessage => Call::SendMessage(send::<G>(params)?),
        Operation::SendStreamingMessage => Call::SendStreamingMessage(send::<G>(params)?),
        Operation::ListTasks => list_tasks::<G>(params)?.call,
        Operation::GetTask => {
            let target = Target::read::<G>(params, "name")?;
            Call::GetTask(GetTask { id: target.task_id, history_length: target.history_length })
        }
        Operation::CancelTask => {
            let target = Target::read::<G>(params, "name")?;
            Call::CancelTask(CancelTask { id: target.task_id, metadata: target.metadata })
        }
        Operation::SubscribeToTask => {
            Call::SubscribeToTask(SubscribeToTask { id: Target::read::<G>(params, "name")?.task_id })
        }
        Operation::CreatePushConfig => {
            let config: PushConfig = read::<G, _>(params, Subject::PARAMS)?;
            // Under `/v1` the path names the task.
            if !G::PROTO && config.task_id.is_none() {
                return Err(Subject::PARAMS.refuse("taskId", "is required"));
            }
            Call::CreatePushConfig(config)
        }
        Operation::GetPushConfig => {
            let Target { task_id, config_id, .. } = Target::read::<G>(params, "name")?;
            Call::GetPushConfig { task_id, id: config_id }
        }
        Operation::ListPushConfigs => {
            let target = Target::read::<G>(params, "parent")?;
            // The JSON-RPC reply is a bare list, which cannot have a token for the next page.
            let (page_size, page_token) =
                if G::PROTO { (target.page_size, target.page_token) } else { (None, None) };
            Call::ListPushConfigs { task_id: target.task_id, page_size, page_token }
        }
        Operation::DeletePushConfig => {
            let Target { task_id, config_id, .. } = Target::read::<G>(params, "name")?;
            let id = config_id.ok_or_else(|| no_config_id::<G>())?;
            Call::DeletePushConfig { task_id, id }
        }
        Operation::GetExtendedCard => {
            let Twin(NothingTwin {}) = read::<G, _>(params, Subject::PARAMS)?;
            Call::GetExtendedCard
        }
    };
    Ok(Decoded { tenant: None, call })
}

fn no_config_id<G: Dialect>() -> Error {
    if G::PROTO {
        Subject::PARAMS.refuse("name", format!("must be {CONFIG_RESOURCE}"))
    } else {
        Subject::PARAMS.refuse("pushNotificationConfigId", "is required")
    }
}

fn send<G: Dialect>(params: &str) -> Result<SendMessage, Error> {
    let Twin(SendMessageTwin::<G> { message, configuration, metadata, .. }) =
        read::<G, _>(params, Subject::PARAMS)?;
    let configuration = configuration.map(|Twin(configuration)| configuration).unwrap_or_default();
    // In JSON-RPC the meaning of an absent flag is undefined, and SDKs wait; in the proto, absent is false.
    let blocking = configuration.blocking.unwrap_or(!G::PROTO);
    Ok(SendMessage {
        message,
        client_task_id: None,
        accepted_output_modes: configuration.accepted_output_modes,
        push_config: configuration.push_notification_config.map(|Settings(config)| config),
        history_length: configuration.history_length,
        return_immediately: !blocking,
        metadata,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "G: Dialect"))]
struct SendMessageTwin<G: Dialect> {
    #[serde(alias = "request", deserialize_with = "one::<G, _, _>")]
    message: Message,
    #[serde(default, deserialize_with = "optional::<G, _, _>")]
    configuration: Option<Twin<ConfigurationTwin<G>>>,
    #[serde(default, deserialize_with = "optional::<G, _, _>")]
    metadata: Option<JsonObject>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "G: Dialect"))]
struct ConfigurationTwin<G> {
    #[serde(default, alias = "accepted_output_modes", deserialize_with = "or_default::<G, _, _>")]
    accepted_output_modes: Vec<String>,
    #[serde(
        default,
        alias = "pushNotification",
        alias = "push_notification",
        deserialize_with = "optional::<G, _, _>"
    )]
    push_notification_config: Option<Settings>,
    #[serde(default, alias = "history_length", deserialize_with = "or_default::<G, _, _>")]
    history_length: HistoryLength,
    #[serde(default, deserialize_with = "optional::<G, _, _>")]
    blocking: Option<bool>,
    #[serde(skip)]
    dialect: PhantomData<G>,
}

impl<G> Default for ConfigurationTwin<G> {
    fn default() -> Self {
        ConfigurationTwin {
            accepted_output_modes: Vec::new(),
            push_notification_config: None,
            history_length: HistoryLength::All,
            blocking: None,
            dialect: PhantomData,
        }
    }
}

/// Parameters of which nothing is needed, also `null`.
#[derive(Deserialize)]
struct NothingTwin {}

/// The parameters of every operation on one task or on its webhooks.
struct Target {
    task_id: TaskId,
    config_id: Option<PushConfigId>,
    history_length: HistoryLength,
    metadata: Option<JsonObject>,
    page_size: Option<i32>,
    page_token: Option<String>,
}

impl Target {
    /// `resource` is the proto's member that names the task.
    fn read<G: Dialect>(params: &str, resource: &'static str) -> Result<Self, Error> {
        let Twin(twin) = read::<G, Twin<TargetTwin<G>>>(params, Subject::PARAMS)?;
        let (named_task, named_config) = match twin.name.or(twin.parent) {
            Some(Resource { task_id, config_id }) => (Some(task_id), config_id),
            None => (None, None),
        };
        let missing = if G::PROTO { resource } else { "id" };
        Ok(Target {
            task_id: twin.id.or(named_task).ok_or_else(|| Subject::PARAMS.refuse(missing, "is required"))?,
            config_id: twin.push_notification_config_id.or(named_config),
            history_length: twin.history_length,
            metadata: twin.metadata,
            page_size: twin.page_size,
            page_token: twin.page_token,
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "G: Dialect"))]
struct TargetTwin<G> {
    #[serde(default, deserialize_with = "optional::<G, _, _>")]
    id: Option<TaskId>,
    #[serde(default, deserialize_with = "optional::<G, _, _>")]
    name: Option<Resource>,
    #[serde(default, deserialize_with = "optional::<G, _, _>")]
    parent: Option<Resource>,
    #[serde(default, deserialize_with = "maybe_id")]
    push_notification_config_id: Option<PushConfigId>,
    #[serde(default, alias = "history_length", deserialize_with = "or_default::<G, _, _>")]
    history_length: HistoryLength,
    #[serde(default, deserialize_with = "optional::<G, _, _>")]
    metadata: Option<JsonObject>,
    #[serde(default, alias = "page_size", deserialize_with = "optional::<G, _, _>")]
    page_size: Option<i32>,
    #[serde(default, alias = "page_token", deserialize_with = "text")]
    page_token: Option<String>,
    #[serde(skip)]
    dialect: PhantomData<G>,
}

pub(super) fn write_call<G: Dialect>(out: &mut Vec<u8>, call: &Call) {
    let mut object = Object::begin(out);
    match call {
        Call::SendMessage(send) | Call::SendStreamingMessage(send) => write_send::<G>(&mut object, send),
        Call::ListTasks(list) => write_list::<G>(&mut object, list),
        Call::GetTask(GetTask { id, history_length }) => {
            write_target::<G>(&mut object, "name", id, None);
            write_history_length::<G>(&mut object, *history_length);
        }
        Call::CancelTask(CancelTask { id, metadata }) => {
            write_target::<G>(&mut object, "name", id, None);
            if !G::PROTO {
                write_metadata(&mut object, metadata.as_ref());
            }
        }
        Call::SubscribeToTask(SubscribeToTask { id }) => write_target::<G>(&mut object, "name", id, None),
        Call::CreatePushConfig(config) => write_create::<G>(&mut object, config),
        Call::GetPushConfig { task_id, id } => {
            write_target::<G>(&mut object, "name", task_id, id.as_ref());
        }
        Call::DeletePushConfig { task_id, id } => {
            write_target::<G>(&mut object, "name", task_id, Some(id));
        }
        Call::ListPushConfigs { task_id, page_size, page_token } => {
            write_target::<G>(&mut object, "parent", task_id, None);
            if G::PROTO {
                write_page_request(&mut object, *page_size, page_token.as_deref());
            }
        }
        Call::GetExtendedCard => {}
    }
    object.end();
}

fn write_target<G: Dialect>(
    object: &mut Object<'_>,
    resource: &str,
    task_id: &TaskId,
    config_id: Option<&PushConfigId>,
) {
    let config_id = config_id.map(PushConfigId::as_str);
    if G::PROTO {
        object.string(resource, &resource_name(task_id.as_str(), config_id));
    } else {
        object.string("id", task_id.as_str());
        object.optional("pushNotificationConfigId", config_id);
    }
}

fn write_create<G: Dialect>(object: &mut Object<'_>, config: &PushConfig) {
    if G::PROTO {
        if let Some(task_id) = &config.task_id {
            object.string("parent", &resource_name(task_id.as_str(), None));
        }
        object.optional("configId", config.id.as_ref().map(PushConfigId::as_str));
        write_push_config::<G>(object.member("config"), config);
    } else {
        object.optional("taskId", config.task_id.as_ref().map(TaskId::as_str));
        write_settings(object.member("pushNotificationConfig"), config);
    }
}

fn write_send<G: Dialect>(object: &mut Object<'_>, send: &SendMessage) {
    write_message::<G>(object.member("message"), &send.message);
    let mut inner = Object::begin(object.member("configuration"));
    inner.strings_unless_empty("acceptedOutputModes", &send.accepted_output_modes);
    if let Some(config) = &send.push_config {
        write_settings(
            inner.member(if G::PROTO { "pushNotification" } else { "pushNotificationConfig" }),
            config,
        );
    }
    write_history_length::<G>(&mut inner, send.history_length);
    // Always written: agents interpret its absence differently.
    inner.flag("blocking", !send.return_immediately);
    inner.end();
    write_metadata(object, send.metadata.as_ref());
}
