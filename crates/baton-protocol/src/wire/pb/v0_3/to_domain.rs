//! Messages of 0.3 to domain values. Tasks and webhooks have resource names in requests.

use bytes::Bytes;

use super::messages as pb;
use crate::domain::{
    AgentCapabilities, AgentCard, JsonObject, Part, PartContent, PushAuthentication, PushConfig,
    PushConfigId, PushEvents,
};
use crate::error::{Error, ErrorKind};
use crate::operation::{Call, CancelTask, GetTask, HistoryLength, Operation, SendMessage, SubscribeToTask};
use crate::wire::Decoded;
use crate::wire::pb::card::{
    read_extension, read_provider, read_requirement, read_schemes, read_signatures, read_skill,
};
use crate::wire::pb::fault::{count, missing, number, text};
use crate::wire::pb::json::read_object;
use crate::wire::pb::objects::objects_to_domain;
use crate::wire::pb::{no_single_reply, read_answer, read_request, read_send};
use crate::wire::peer_state::FromPeer;
use crate::wire::v0_3::card::all_interfaces;
use crate::wire::v0_3::to_domain::{CONFIG_RESOURCE, RESOURCE, Resource, undo_compat};

objects_to_domain!(parts: content "content", message: update Msg);

/// 0.3 has no references.
fn references(_: &pb::Message) -> Read<Vec<TaskId>> {
    Ok(Vec::new())
}

fn part(reader: &Reader, part: pb::Part) -> Read<Part> {
    use pb::part::Part as Content;
    let metadata = maybe_object(part.metadata).within("metadata")?;
    let plain = |content| Part { content, filename: None, media_type: None, metadata: metadata.clone() };
    Ok(match part.part {
        Some(Content::Text(text)) => plain(PartContent::Text(text)),
        Some(Content::File(file)) => Part {
            content: file_content(reader, file.file).within("file")?,
            filename: text(file.name),
            media_type: text(file.mime_type),
            metadata,
        },
        Some(Content::Data(data)) => {
            let data = data.data.map(read_object).transpose().within("data").within("data")?;
            let (data, metadata) = undo_compat(data.unwrap_or_else(JsonObject::empty), metadata);
            Part { content: PartContent::Data(data), filename: None, media_type: None, metadata }
        }
        None => plain(reader.no_content("text, file and data")?),
    })
}

fn file_content(reader: &Reader, file: Option<pb::file_part::File>) -> Read<PartContent> {
    match file {
        Some(pb::file_part::File::FileWithUri(url)) => Ok(PartContent::Url(url)),
        Some(pb::file_part::File::FileWithBytes(bytes)) => Ok(PartContent::Raw(bytes.into())),
        None => reader.no_content("fileWithUri and fileWithBytes"),
    }
}

pub(in crate::wire::pb) fn decode_call(operation: Operation, message: Bytes) -> Result<Decoded, Error> {
    let call = match operation {
        Operation::SendMessage => read_send(message, &LISTS, send).map(Call::SendMessage),
        Operation::SendStreamingMessage => read_send(message, &LISTS, send).map(Call::SendStreamingMessage),
        Operation::GetTask => read_request(message, |it: pb::GetTaskRequest| {
            let id = task_name(&it.name).within("name")?;
            Ok(Call::GetTask(GetTask { id, history_length: history_length(it.history_length)? }))
        }),
        Operation::ListTasks => Err(Error::of(ErrorKind::MethodNotFound)),
        Operation::CancelTask => read_request(message, |it: pb::CancelTaskRequest| {
            let id = task_name(&it.name).within("name")?;
            Ok(Call::CancelTask(CancelTask { id, metadata: None }))
        }),
        Operation::SubscribeToTask => read_request(message, |it: pb::TaskSubscriptionRequest| {
            Ok(Call::SubscribeToTask(SubscribeToTask { id: task_name(&it.name).within("name")? }))
        }),
        Operation::CreatePushConfig => read_request(message, create_push_config),
        Operation::GetPushConfig => read_request(message, |it: pb::GetTaskPushNotificationConfigRequest| {
            let Resource { task_id, config_id } = resource(&it.name).within("name")?;
            Ok(Call::GetPushConfig { task_id, id: config_id })
        }),
        Operation::ListPushConfigs => {
            read_request(message, |it: pb::ListTaskPushNotificationConfigRequest| {
                let task_id = task_name(&it.parent).within("parent")?;
                let (page_size, page_token) = (number(it.page_size), text(it.page_token));
                Ok(Call::ListPushConfigs { task_id, page_size, page_token })
            })
        }
        Operation::DeletePushConfig => {
            read_request(message, |it: pb::DeleteTaskPushNotificationConfigRequest| {
                let Resource { task_id, config_id } = resource(&it.name).within("name")?;
                let no_config = || Fault::new(format!("must be {CONFIG_RESOURCE}"));
                let id = config_id.ok_or_else(no_config).within("name")?;
                Ok(Call::DeletePushConfig { task_id, id })
            })
        }
        Operation::GetExtendedCard => {
            read_request(message, |_: pb::GetAgentCardRequest| Ok(Call::GetExtendedCard))
        }
    };
    Ok(Decoded { tenant: None, call: call? })
}

fn resource(name: &str) -> Read<Resource> {
    match name {
        "" => Err(missing()),
        name => Resource::parse(name).ok_or_else(|| Fault::new(format!("must be {RESOURCE}"))),
    }
}

fn task_name(name: &str) -> Read<TaskId> {
    resource(name).map(|resource| resource.task_id)
}

/// 0 is the same as absent.
fn history_length(most: i32) -> Read<HistoryLength> {
    match count(most).within("historyLength")? {
        0 => Ok(HistoryLength::All),
        most => Ok(HistoryLength::Last(most)),
    }
}

/// `request` and `configuration` of a send.
const LISTS: [u32; 2] = [1, 2];

fn send(request: pb::SendMessageRequest) -> Read<SendMessage> {
    let reader = Reader::default();
    let configuration = request.configuration.unwrap_or_default();
    let push_config = configuration.push_notification.map(|it| settings(&reader, it));
    let push_config = push_config.transpose().within("pushNotification").within("configuration")?;
    Ok(SendMessage {
        message: present(request.request).and_then(|it| message(&reader, it)).within("message")?,
        client_task_id: None,
        accepted_output_modes: configuration.accepted_output_modes,
        push_config,
        history_length: history_length(configuration.history_length).within("configuration")?,
        return_immediately: !configuration.blocking,
        metadata: maybe_object(request.metadata).within("metadata")?,
    })
}

fn create_push_config(request: pb::CreateTaskPushNotificationConfigRequest) -> Read<Call> {
    let config = present(request.config).and_then(|it| push_config(&Reader::default(), it));
    let mut config = config.within("config")?;
    if config.task_id.is_none() || !request.parent.is_empty() {
        config.task_id = Some(task_name(&request.parent).within("parent")?);
    }
    config.id = config.id.or(maybe_id(&request.config_id, PushConfigId::parse).within("configId")?);
    Ok(Call::CreatePushConfig(config))
}

/// A webhook and the task it belongs to.
fn push_config(reader: &Reader, config: pb::TaskPushNotificationConfig) -> Read<PushConfig> {
    let settings = present(config.push_notification_config).and_then(|it| settings(reader, it));
    let mut settings = settings.within("pushNotificationConfig")?;
    if !config.name.is_empty() {
        let Resource { task_id, config_id } = resource(&config.name).within("name")?;
        settings.task_id = Some(task_id);
        settings.id = settings.id.or(config_id);
    }
    Ok(settings)
}

/// A webhook alone. It is called with one scheme.
fn settings(reader: &Reader, config: pb::PushNotificationConfig) -> Read<PushConfig> {
    let authentication = config.authentication.map(|it| {
        let scheme = it.schemes.into_iter().next().ok_or_else(missing).within("schemes");
        Ok(PushAuthentication { scheme: scheme.within("authentication")?, credentials: text(it.credentials) })
    });
    Ok(PushConfig {
        id: maybe_id(&config.id, PushConfigId::parse).within("id")?,
        task_id: None,
        url: reader.required(config.url).within("url")?,
        token: text(config.token),
        authentication: authentication.transpose()?,
        events: PushEvents::default(),
    })
}

pub(in crate::wire::pb) fn read_reply(
    operation: Operation,
    message: Bytes,
) -> Result<FromPeer<Reply>, Error> {
    match operation {
        Operation::SendMessage => read_answer(message, "reply", sent),
        Operation::GetTask | Operation::CancelTask => {
            read_answer(message, "task", |reader, it| task(reader, it).map(Reply::Task))
        }
        Operation::ListTasks => Err(Error::of(ErrorKind::MethodNotFound)),
        Operation::CreatePushConfig | Operation::GetPushConfig => {
            read_answer(message, "push config", |reader, it| push_config(reader, it).map(Reply::PushConfig))
        }
        Operation::ListPushConfigs => read_answer(message, "push config list", push_configs),
        Operation::DeletePushConfig => read_answer(message, "reply", |_, ()| Ok(Reply::PushConfigDeleted)),
        Operation::GetExtendedCard => {
            read_answer(message, "agent card", |_, it| card(it).map(|card| Reply::Card(Box::new(card))))
        }
        Operation::SendStreamingMessage | Operation::SubscribeToTask => Err(no_single_reply()),
    }
}

fn push_configs(reader: &mut Reader, page: pb::ListTaskPushNotificationConfigResponse) -> Read<Reply> {
    let configs = list(page.configs, |it| push_config(reader, it)).within("configs")?;
    Ok(Reply::PushConfigs { configs, next_page_token: page.next_page_token })
}

fn card(card: pb::AgentCard) -> Read<AgentCard> {
    let flag = |flag: bool| flag.then_some(true);
    let url = text(card.url).ok_or_else(missing).within("url")?;
    let additional = card.additional_interfaces.into_iter().map(|it| (it.url, it.transport)).collect();
    let interfaces =
        all_interfaces(text(card.protocol_version), url, text(card.preferred_transport), additional);
    let capabilities = card.capabilities.unwrap_or_default();
    let extensions = list(capabilities.extensions, read_extension);
    let capabilities = AgentCapabilities {
        streaming: flag(capabilities.streaming),
        push_notifications: flag(capabilities.push_notifications),
        extended_agent_card: flag(card.supports_authenticated_extended_card),
        state_transition_history: None,
        extensions: extensions.within("extensions").within("capabilities")?,
    };
    Ok(AgentCard {
        name: card.name,
        description: card.description,
        version: card.version,
        interfaces,
        provider: card.provider.map(read_provider),
        documentation_url: text(card.documentation_url),
        icon_url: text(card.icon_url),
        capabilities,
        security_schemes: read_schemes(card.security_schemes).within("securitySchemes")?,
        security_requirements: card.security.into_iter().map(read_requirement).collect(),
        default_input_modes: card.default_input_modes,
        default_output_modes: card.default_output_modes,
        skills: card.skills.into_iter().map(read_skill).collect(),
        signatures: read_signatures(card.signatures).within("signatures")?,
    })
}
