//! Domain values to messages of 1.0.

use prost::Message as _;

use super::messages as pb;
use crate::domain::{
    AgentCapabilities, AgentCard, AgentInterface, ListFilter, Part, PartContent, PushAuthentication,
    PushConfig, TaskPage, TaskState,
};
use crate::error::Error;
use crate::operation::{
    Call, CancelTask, GetTask, HistoryLength, ListTasks, Reply, SendMessage, SubscribeToTask,
};
use crate::wire::pb::card::{
    write_extension, write_provider, write_requirement, write_schemes, write_signature, write_skill,
};
use crate::wire::pb::objects::objects_from_domain;
use crate::wire::pb::{count, role, several_states};
use crate::wire::v1::security::STYLE;

objects_from_domain!(parts: parts, message: message Message, references: reference_task_ids);

fn part(part: &Part) -> pb::Part {
    use pb::part::Content;
    let content = match &part.content {
        PartContent::Text(text) => Content::Text(text.clone()),
        PartContent::Raw(bytes) => Content::Raw(bytes.clone().into()),
        PartContent::Url(url) => Content::Url(url.clone()),
        PartContent::Data(data) => Content::Data(json::value(data)),
    };
    pb::Part {
        content: Some(content),
        metadata: metadata(part.metadata.as_ref()),
        filename: part.filename.clone().unwrap_or_default(),
        media_type: part.media_type.clone().unwrap_or_default(),
    }
}

/// Refuses what the messages cannot say.
pub(in crate::wire::pb) fn write_call(tenant: Option<&str>, call: &Call) -> Result<Vec<u8>, Error> {
    let tenant = tenant.unwrap_or_default().to_owned();
    Ok(match call {
        Call::SendMessage(it) | Call::SendStreamingMessage(it) => send(tenant, it).encode_to_vec(),
        Call::GetTask(GetTask { id, history_length }) => {
            let (id, history_length) = (id.to_string(), most(*history_length));
            pb::GetTaskRequest { tenant, id, history_length }.encode_to_vec()
        }
        Call::ListTasks(it) => list_tasks(tenant, it)?.encode_to_vec(),
        Call::CancelTask(CancelTask { id, metadata: it }) => {
            let (id, metadata) = (id.to_string(), metadata(it.as_ref()));
            pb::CancelTaskRequest { tenant, id, metadata }.encode_to_vec()
        }
        Call::SubscribeToTask(SubscribeToTask { id }) => {
            pb::SubscribeToTaskRequest { tenant, id: id.to_string() }.encode_to_vec()
        }
        Call::CreatePushConfig(it) => {
            pb::TaskPushNotificationConfig { tenant, ..push_config(it) }.encode_to_vec()
        }
        Call::GetPushConfig { task_id, id } => {
            let task_id = task_id.to_string();
            // The id is required; a config that was created without an id has the task's id.
            let id = id.as_ref().map_or_else(|| task_id.clone(), ToString::to_string);
            pb::GetTaskPushNotificationConfigRequest { tenant, task_id, id }.encode_to_vec()
        }
        Call::ListPushConfigs { task_id, page_size, page_token } => {
            pb::ListTaskPushNotificationConfigsRequest {
                tenant,
                task_id: task_id.to_string(),
                page_size: page_size.unwrap_or_default(),
                page_token: page_token.clone().unwrap_or_default(),
            }
            .encode_to_vec()
        }
        Call::DeletePushConfig { task_id, id } => {
            let (task_id, id) = (task_id.to_string(), id.to_string());
            pb::DeleteTaskPushNotificationConfigRequest { tenant, task_id, id }.encode_to_vec()
        }
        Call::GetExtendedCard => pb::GetExtendedAgentCardRequest { tenant }.encode_to_vec(),
    })
}

fn send(tenant: String, send: &SendMessage) -> pb::SendMessageRequest {
    let configuration = pb::SendMessageConfiguration {
        accepted_output_modes: send.accepted_output_modes.clone(),
        task_push_notification_config: send.push_config.as_ref().map(push_config),
        history_length: most(send.history_length),
        return_immediately: send.return_immediately,
    };
    pb::SendMessageRequest {
        tenant,
        message: Some(message(&send.message)),
        configuration: Some(configuration).filter(|it| *it != pb::SendMessageConfiguration::default()),
        metadata: metadata(send.metadata.as_ref()),
    }
}

fn list_tasks(tenant: String, list: &ListTasks) -> Result<pb::ListTasksRequest, Error> {
    let ListFilter { context_id, states, updated_since } = &list.filter;
    let status = match states.as_slice() {
        [] => 0,
        [state] => state.number().into(),
        _ => return Err(several_states()),
    };
    Ok(pb::ListTasksRequest {
        tenant,
        context_id: context_id.as_ref().map(ToString::to_string).unwrap_or_default(),
        status,
        page_size: list.page_size,
        page_token: list.page_token.clone().unwrap_or_default(),
        history_length: most(list.history_length),
        status_timestamp_after: updated_since.and_then(timestamp),
        include_artifacts: list.include_artifacts.then_some(true),
    })
}

fn most(length: HistoryLength) -> Option<i32> {
    match length {
        HistoryLength::All => None,
        HistoryLength::Last(most) => Some(count(most)),
    }
}

fn push_config(config: &PushConfig) -> pb::TaskPushNotificationConfig {
    let authentication = config.authentication.as_ref();
    pb::TaskPushNotificationConfig {
        tenant: String::new(),
        id: config.id.as_ref().map(ToString::to_string).unwrap_or_default(),
        task_id: config.task_id.as_ref().map(ToString::to_string).unwrap_or_default(),
        url: config.url.clone(),
        token: config.token.clone().unwrap_or_default(),
        authentication: authentication.map(|PushAuthentication { scheme, credentials }| {
            pb::AuthenticationInfo {
                scheme: scheme.clone(),
                credentials: credentials.clone().unwrap_or_default(),
            }
        }),
    }
}

/// The answer of a call that does not stream.
pub(in crate::wire::pb) fn write_reply(reply: &Reply) -> Vec<u8> {
    match reply {
        Reply::SentTask(it) => sent_task(it).encode_to_vec(),
        Reply::SentMessage(it) => sent_message(it).encode_to_vec(),
        Reply::Task(it) => task(it).encode_to_vec(),
        Reply::Tasks(it) => page(it).encode_to_vec(),
        Reply::PushConfig(it) => push_config(it).encode_to_vec(),
        Reply::PushConfigs { configs, next_page_token } => {
            let (configs, next_page_token) =
                (configs.iter().map(push_config).collect(), next_page_token.clone());
            pb::ListTaskPushNotificationConfigsResponse { configs, next_page_token }.encode_to_vec()
        }
        Reply::PushConfigDeleted => Vec::new(),
        Reply::Card(it) => card(it).encode_to_vec(),
    }
}

fn page(page: &TaskPage) -> pb::ListTasksResponse {
    let listed = |it: &Task| match page.with_artifacts {
        true => task(it),
        false => pb::Task { artifacts: Vec::new(), ..task(it) },
    };
    pb::ListTasksResponse {
        tasks: page.tasks.iter().map(listed).collect(),
        next_page_token: page.next_page_token.clone(),
        page_size: count(page.page_size),
        total_size: count(page.total_size),
    }
}

fn card(card: &AgentCard) -> pb::AgentCard {
    let interface = |it: &AgentInterface| pb::AgentInterface {
        url: it.url.clone(),
        protocol_binding: it.protocol_binding.clone(),
        tenant: it.tenant.clone().unwrap_or_default(),
        protocol_version: it.protocol_version.clone(),
    };
    let AgentCapabilities { streaming, push_notifications, extended_agent_card, extensions, .. } =
        &card.capabilities;
    pb::AgentCard {
        name: card.name.clone(),
        description: card.description.clone(),
        supported_interfaces: card.interfaces.iter().map(interface).collect(),
        provider: card.provider.as_ref().map(write_provider),
        version: card.version.clone(),
        documentation_url: card.documentation_url.clone(),
        capabilities: Some(pb::AgentCapabilities {
            streaming: *streaming,
            push_notifications: *push_notifications,
            extensions: extensions.iter().map(write_extension).collect(),
            extended_agent_card: *extended_agent_card,
        }),
        security_schemes: write_schemes(&card.security_schemes, &STYLE),
        security_requirements: card.security_requirements.iter().map(write_requirement).collect(),
        default_input_modes: card.default_input_modes.clone(),
        default_output_modes: card.default_output_modes.clone(),
        skills: card.skills.iter().map(write_skill).collect(),
        signatures: card.signatures.iter().map(write_signature).collect(),
        icon_url: card.icon_url.clone(),
    }
}
