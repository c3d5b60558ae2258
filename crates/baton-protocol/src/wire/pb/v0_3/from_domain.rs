//! Domain values to messages of 0.3.

use prost::Message as _;

use super::messages as pb;
use crate::domain::json::JsonKind;
use crate::domain::{
    AgentCard, AgentInterface, JsonText, Part, PartContent, PushAuthentication, PushConfig, TaskState,
};
use crate::error::{Error, ErrorKind};
use crate::operation::{Call, CancelTask, GetTask, HistoryLength, Reply, SendMessage, SubscribeToTask};
use crate::wire::objects::SchemeStyle;
use crate::wire::pb::card::{
    write_extension, write_provider, write_requirement, write_schemes, write_signature, write_skill,
};
use crate::wire::pb::objects::objects_from_domain;
use crate::wire::pb::{count, role};
use crate::wire::v0_3::card::{PROTOCOL_VERSION, is_ours};
use crate::wire::v0_3::from_domain::{resource_name, write_marked};
use crate::wire::v0_3::names::is_final;

objects_from_domain!(parts: content, message: update Msg, final: r#final);

const STYLE: SchemeStyle =
    SchemeStyle { typed: false, several_flows: false, device_code: false, pkce: false };

/// The media type and name of text and data parts are left out, since 0.3 has no members for them.
fn part(part: &Part) -> pb::Part {
    use pb::file_part::File;
    use pb::part::Part as Content;
    let file = |file| {
        Content::File(pb::FilePart {
            file: Some(file),
            mime_type: part.media_type.clone().unwrap_or_default(),
            name: part.filename.clone().unwrap_or_default(),
        })
    };
    let mut encoded = metadata(part.metadata.as_ref());
    let content = match &part.content {
        PartContent::Text(text) => Content::Text(text.clone()),
        PartContent::Raw(bytes) => file(File::FileWithBytes(bytes.clone().into())),
        PartContent::Url(url) => file(File::FileWithUri(url.clone())),
        PartContent::Data(data) if data.kind() == JsonKind::Object => data_part(data.as_str()),
        PartContent::Data(data) => {
            let mut marked = Vec::new();
            write_marked(&mut marked, part.metadata.as_ref());
            encoded = Some(json::struct_of(&String::from_utf8_lossy(&marked)));
            data_part(&format!("{{\"value\":{}}}", JsonText::as_str(data)))
        }
    };
    pb::Part { part: Some(content), metadata: encoded }
}

fn data_part(object: &str) -> pb::part::Part {
    pb::part::Part::Data(pb::DataPart { data: Some(json::struct_of(object)) })
}

/// Refuses what the messages cannot say.
pub(in crate::wire::pb) fn write_call(call: &Call) -> Result<Vec<u8>, Error> {
    Ok(match call {
        Call::SendMessage(it) | Call::SendStreamingMessage(it) => send(it).encode_to_vec(),
        Call::GetTask(GetTask { id, history_length }) => {
            let (name, history_length) = (task_name(id), most(*history_length));
            pb::GetTaskRequest { name, history_length }.encode_to_vec()
        }
        Call::ListTasks(_) => return Err(no_list()),
        Call::CancelTask(CancelTask { id, .. }) => {
            pb::CancelTaskRequest { name: task_name(id) }.encode_to_vec()
        }
        Call::SubscribeToTask(SubscribeToTask { id }) => {
            pb::TaskSubscriptionRequest { name: task_name(id) }.encode_to_vec()
        }
        Call::CreatePushConfig(it) => pb::CreateTaskPushNotificationConfigRequest {
            parent: it.task_id.as_ref().map(task_name).unwrap_or_default(),
            config_id: it.id.as_ref().map(ToString::to_string).unwrap_or_default(),
            config: Some(push_config(it)),
        }
        .encode_to_vec(),
        Call::GetPushConfig { task_id, id } => {
            let name = resource_name(task_id.as_str(), id.as_ref().map(|id| id.as_str()));
            pb::GetTaskPushNotificationConfigRequest { name }.encode_to_vec()
        }
        Call::ListPushConfigs { task_id, page_size, page_token } => {
            pb::ListTaskPushNotificationConfigRequest {
                parent: task_name(task_id),
                page_size: page_size.unwrap_or_default(),
                page_token: page_token.clone().unwrap_or_default(),
            }
            .encode_to_vec()
        }
        Call::DeletePushConfig { task_id, id } => {
            let name = resource_name(task_id.as_str(), Some(id.as_str()));
            pb::DeleteTaskPushNotificationConfigRequest { name }.encode_to_vec()
        }
        Call::GetExtendedCard => pb::GetAgentCardRequest {}.encode_to_vec(),
    })
}

fn no_list() -> Error {
    Error::new(ErrorKind::UnsupportedOperation, "0.3 cannot list tasks by gRPC")
}

fn task_name(id: &TaskId) -> String {
    resource_name(id.as_str(), None)
}

fn most(length: HistoryLength) -> i32 {
    match length {
        HistoryLength::All => 0,
        HistoryLength::Last(most) => count(most),
    }
}

fn send(send: &SendMessage) -> pb::SendMessageRequest {
    let configuration = pb::SendMessageConfiguration {
        accepted_output_modes: send.accepted_output_modes.clone(),
        push_notification: send.push_config.as_ref().map(settings),
        history_length: most(send.history_length),
        blocking: !send.return_immediately,
    };
    pb::SendMessageRequest {
        request: Some(message(&send.message)),
        configuration: Some(configuration),
        metadata: metadata(send.metadata.as_ref()),
    }
}

/// A webhook with the task it belongs to.
fn push_config(config: &PushConfig) -> pb::TaskPushNotificationConfig {
    let id = config.id.as_ref().map(|id| id.as_str());
    pb::TaskPushNotificationConfig {
        name: config.task_id.as_ref().map(|task| resource_name(task.as_str(), id)).unwrap_or_default(),
        push_notification_config: Some(settings(config)),
    }
}

/// A webhook alone.
fn settings(config: &PushConfig) -> pb::PushNotificationConfig {
    let authentication = config.authentication.as_ref();
    pb::PushNotificationConfig {
        id: config.id.as_ref().map(ToString::to_string).unwrap_or_default(),
        url: config.url.clone(),
        token: config.token.clone().unwrap_or_default(),
        authentication: authentication.map(|PushAuthentication { scheme, credentials }| {
            pb::AuthenticationInfo {
                schemes: vec![scheme.clone()],
                credentials: credentials.clone().unwrap_or_default(),
            }
        }),
    }
}

/// The answer of a call that does not stream.
pub(in crate::wire::pb) fn write_reply(reply: &Reply) -> Result<Vec<u8>, Error> {
    Ok(match reply {
        Reply::SentTask(it) => sent_task(it).encode_to_vec(),
        Reply::SentMessage(it) => sent_message(it).encode_to_vec(),
        Reply::Task(it) => task(it).encode_to_vec(),
        Reply::Tasks(_) => return Err(no_list()),
        Reply::PushConfig(it) => push_config(it).encode_to_vec(),
        Reply::PushConfigs { configs, next_page_token } => {
            let (configs, next_page_token) =
                (configs.iter().map(push_config).collect(), next_page_token.clone());
            pb::ListTaskPushNotificationConfigResponse { configs, next_page_token }.encode_to_vec()
        }
        Reply::PushConfigDeleted => Vec::new(),
        Reply::Card(it) => card(it).encode_to_vec(),
    })
}

/// Contains only the interfaces of 0.3.
fn card(card: &AgentCard) -> pb::AgentCard {
    let interface = |it: &AgentInterface| pb::AgentInterface {
        url: it.url.clone(),
        transport: it.protocol_binding.clone(),
    };
    let interfaces: Vec<_> = card.interfaces.iter().filter(|it| is_ours(it)).map(interface).collect();
    let preferred = interfaces.first().cloned().unwrap_or_default();
    let capabilities = &card.capabilities;
    pb::AgentCard {
        name: card.name.clone(),
        description: card.description.clone(),
        url: preferred.url,
        provider: card.provider.as_ref().map(write_provider),
        version: card.version.clone(),
        documentation_url: card.documentation_url.clone().unwrap_or_default(),
        capabilities: Some(pb::AgentCapabilities {
            streaming: capabilities.streaming == Some(true),
            push_notifications: capabilities.push_notifications == Some(true),
            extensions: capabilities.extensions.iter().map(write_extension).collect(),
        }),
        security_schemes: write_schemes(&card.security_schemes, &STYLE),
        security: card.security_requirements.iter().map(write_requirement).collect(),
        default_input_modes: card.default_input_modes.clone(),
        default_output_modes: card.default_output_modes.clone(),
        skills: card.skills.iter().map(write_skill).collect(),
        supports_authenticated_extended_card: capabilities.extended_agent_card == Some(true),
        preferred_transport: preferred.transport,
        additional_interfaces: interfaces,
        protocol_version: PROTOCOL_VERSION.to_owned(),
        signatures: card.signatures.iter().map(write_signature).collect(),
        icon_url: card.icon_url.clone().unwrap_or_default(),
    }
}
