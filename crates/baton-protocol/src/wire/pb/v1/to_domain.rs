//! Messages of 1.0 to domain values.

use bytes::Bytes;

use super::messages as pb;
use crate::domain::{
    AgentCapabilities, AgentCard, AgentInterface, ListFilter, Part, PartContent, PushAuthentication,
    PushConfig, PushConfigId, PushEvents, TaskPage,
};
use crate::error::Error;
use crate::operation::{
    Call, CancelTask, GetTask, HistoryLength, ListTasks, Operation, SendMessage, SubscribeToTask,
};
use crate::wire::Decoded;
use crate::wire::pb::card::{
    read_extension, read_provider, read_requirement, read_schemes, read_signatures, read_skill,
};
use crate::wire::pb::fault::{count, ids, not_before, number, state, text};
use crate::wire::pb::json::read_value;
use crate::wire::pb::objects::objects_to_domain;
use crate::wire::pb::{no_single_reply, read_answer, read_request, read_send};
use crate::wire::peer_state::FromPeer;
use crate::wire::v1::to_domain::CONTENTS;

objects_to_domain!(parts: parts "parts", message: message Message);

fn references(message: &pb::Message) -> Read<Vec<TaskId>> {
    ids(&message.reference_task_ids, TaskId::parse)
}

fn part(reader: &Reader, part: pb::Part) -> Read<Part> {
    use pb::part::Content;
    let content = match part.content {
        Some(Content::Text(text)) => PartContent::Text(text),
        Some(Content::Raw(bytes)) => PartContent::Raw(bytes.into()),
        Some(Content::Url(url)) => PartContent::Url(url),
        Some(Content::Data(data)) => PartContent::Data(read_value(data).within("data")?),
        None => reader.no_content(CONTENTS)?,
    };
    let metadata = maybe_object(part.metadata).within("metadata")?;
    Ok(Part { content, filename: text(part.filename), media_type: text(part.media_type), metadata })
}

pub(in crate::wire::pb) fn decode_call(operation: Operation, message: Bytes) -> Result<Decoded, Error> {
    let decoded = |tenant: String, call: Call| Ok(Decoded { tenant: text(tenant), call });
    match operation {
        Operation::SendMessage => read_send(message, &LISTS, |it| send(it, Call::SendMessage)),
        Operation::SendStreamingMessage => {
            read_send(message, &LISTS, |it| send(it, Call::SendStreamingMessage))
        }
        Operation::GetTask => read_request(message, |it: pb::GetTaskRequest| {
            let id = id(&it.id, TaskId::parse).within("id")?;
            let history_length = history_length(it.history_length)?;
            decoded(it.tenant, Call::GetTask(GetTask { id, history_length }))
        }),
        Operation::ListTasks => read_request(message, list_tasks),
        Operation::CancelTask => read_request(message, |it: pb::CancelTaskRequest| {
            let id = id(&it.id, TaskId::parse).within("id")?;
            let metadata = maybe_object(it.metadata).within("metadata")?;
            decoded(it.tenant, Call::CancelTask(CancelTask { id, metadata }))
        }),
        Operation::SubscribeToTask => read_request(message, |it: pb::SubscribeToTaskRequest| {
            let id = id(&it.id, TaskId::parse).within("id")?;
            decoded(it.tenant, Call::SubscribeToTask(SubscribeToTask { id }))
        }),
        Operation::CreatePushConfig => read_request(message, |mut it: pb::TaskPushNotificationConfig| {
            let tenant = std::mem::take(&mut it.tenant);
            decoded(tenant, Call::CreatePushConfig(push_config(&Reader::default(), it)?))
        }),
        Operation::GetPushConfig => read_request(message, |it: pb::GetTaskPushNotificationConfigRequest| {
            let (task_id, id) = config_ids(&it.task_id, &it.id)?;
            decoded(it.tenant, Call::GetPushConfig { task_id, id: Some(id) })
        }),
        Operation::ListPushConfigs => {
            read_request(message, |it: pb::ListTaskPushNotificationConfigsRequest| {
                let task_id = id(&it.task_id, TaskId::parse).within("taskId")?;
                let (page_size, page_token) = (number(it.page_size), text(it.page_token));
                decoded(it.tenant, Call::ListPushConfigs { task_id, page_size, page_token })
            })
        }
        Operation::DeletePushConfig => {
            read_request(message, |it: pb::DeleteTaskPushNotificationConfigRequest| {
                let (task_id, id) = config_ids(&it.task_id, &it.id)?;
                decoded(it.tenant, Call::DeletePushConfig { task_id, id })
            })
        }
        Operation::GetExtendedCard => read_request(message, |it: pb::GetExtendedAgentCardRequest| {
            decoded(it.tenant, Call::GetExtendedCard)
        }),
    }
}

/// `message` and `configuration` of a send.
const LISTS: [u32; 2] = [2, 3];

fn send(request: pb::SendMessageRequest, call: fn(SendMessage) -> Call) -> Read<Decoded> {
    let reader = Reader::default();
    let configuration = request.configuration.unwrap_or_default();
    let push_config = configuration.task_push_notification_config.map(|it| push_config(&reader, it));
    let push_config = push_config.transpose().within("taskPushNotificationConfig").within("configuration")?;
    let send = SendMessage {
        message: present(request.message).and_then(|it| message(&reader, it)).within("message")?,
        client_task_id: None,
        accepted_output_modes: configuration.accepted_output_modes,
        push_config,
        history_length: history_length(configuration.history_length).within("configuration")?,
        return_immediately: configuration.return_immediately,
        metadata: maybe_object(request.metadata).within("metadata")?,
    };
    Ok(Decoded { tenant: text(request.tenant), call: call(send) })
}

fn list_tasks(request: pb::ListTasksRequest) -> Read<Decoded> {
    let filter = ListFilter {
        context_id: maybe_id(&request.context_id, ContextId::parse).within("contextId")?,
        states: state(request.status).within("status")?.into_iter().collect(),
        updated_since: request
            .status_timestamp_after
            .map(not_before)
            .transpose()
            .within("statusTimestampAfter")?,
    };
    let list = ListTasks {
        filter,
        page_size: request.page_size,
        page_token: text(request.page_token),
        history_length: history_length(request.history_length)?,
        include_artifacts: request.include_artifacts.unwrap_or_default(),
    };
    Ok(Decoded { tenant: text(request.tenant), call: Call::ListTasks(list) })
}

fn history_length(most: Option<i32>) -> Read<HistoryLength> {
    let most = most.map(count).transpose().within("historyLength")?;
    Ok(most.map_or(HistoryLength::All, HistoryLength::Last))
}

fn config_ids(task_id: &str, config_id: &str) -> Read<(TaskId, PushConfigId)> {
    Ok((id(task_id, TaskId::parse).within("taskId")?, id(config_id, PushConfigId::parse).within("id")?))
}

fn push_config(reader: &Reader, config: pb::TaskPushNotificationConfig) -> Read<PushConfig> {
    let authentication = config.authentication.map(|it| {
        let scheme = reader.required(it.scheme).within("scheme").within("authentication")?;
        Ok(PushAuthentication { scheme, credentials: text(it.credentials) })
    });
    Ok(PushConfig {
        id: maybe_id(&config.id, PushConfigId::parse).within("id")?,
        task_id: maybe_id(&config.task_id, TaskId::parse).within("taskId")?,
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
        Operation::ListTasks => read_answer(message, "task list", page),
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

fn page(reader: &mut Reader, page: pb::ListTasksResponse) -> Read<Reply> {
    let tasks = list(page.tasks, |it| task(reader, it)).within("tasks")?;
    let with_artifacts = tasks.iter().any(|task| !task.artifacts.is_empty());
    let page_size = count(page.page_size).within("pageSize")?;
    let total_size = count(page.total_size).within("totalSize")?;
    let next_page_token = page.next_page_token;
    Ok(Reply::Tasks(TaskPage { tasks, next_page_token, page_size, total_size, with_artifacts }))
}

fn push_configs(reader: &mut Reader, page: pb::ListTaskPushNotificationConfigsResponse) -> Read<Reply> {
    let configs = list(page.configs, |it| push_config(reader, it)).within("configs")?;
    Ok(Reply::PushConfigs { configs, next_page_token: page.next_page_token })
}

fn card(card: pb::AgentCard) -> Read<AgentCard> {
    let capabilities = card.capabilities.unwrap_or_default();
    let extensions = list(capabilities.extensions, read_extension);
    let capabilities = AgentCapabilities {
        streaming: capabilities.streaming,
        push_notifications: capabilities.push_notifications,
        extended_agent_card: capabilities.extended_agent_card,
        state_transition_history: None,
        extensions: extensions.within("extensions").within("capabilities")?,
    };
    let interface = |it: pb::AgentInterface| AgentInterface {
        url: it.url,
        protocol_binding: it.protocol_binding,
        protocol_version: it.protocol_version,
        tenant: text(it.tenant),
    };
    Ok(AgentCard {
        name: card.name,
        description: card.description,
        version: card.version,
        interfaces: card.supported_interfaces.into_iter().map(interface).collect(),
        provider: card.provider.map(read_provider),
        documentation_url: card.documentation_url,
        icon_url: card.icon_url,
        capabilities,
        security_schemes: read_schemes(card.security_schemes).within("securitySchemes")?,
        security_requirements: card.security_requirements.into_iter().map(read_requirement).collect(),
        default_input_modes: card.default_input_modes,
        default_output_modes: card.default_output_modes,
        skills: card.skills.into_iter().map(read_skill).collect(),
        signatures: read_signatures(card.signatures).within("signatures")?,
    })
}
