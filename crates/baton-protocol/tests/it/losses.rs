//! What does not survive domain to wire to domain, on purpose: the tables of `docs/generations.md` ("1.0 losses",
//! "0.3 losses", "0.3 HTTP+JSON losses") as functions. What is not undone here must come back as it was.

use std::sync::Arc;

use baton_protocol::domain::json::JsonKind;
use baton_protocol::domain::security::{OAuthFlow, OAuthFlows, SchemeKind};
use baton_protocol::domain::{AgentCard, Artifact, JsonObject, Message, Part, PartContent, Task, TaskPage};
use baton_protocol::operation::{Call, HistoryLength, Reply};
use baton_protocol::wire::{Decoded, StreamItem};

use crate::codecs::Dialect;

pub(crate) fn after_part(dialect: Dialect, part: &mut Part) {
    if dialect == Dialect::V1 {
        return;
    }
    if matches!(part.content, PartContent::Text(_) | PartContent::Data(_)) {
        (part.filename, part.media_type) = (None, None);
    }
    if matches!(&part.content, PartContent::Data(data) if data.kind() != JsonKind::Object) {
        part.metadata = part.metadata.take().filter(|metadata| !JsonObject::is_empty(metadata));
    }
}

pub(crate) fn after_message(dialect: Dialect, mut message: Message) -> Message {
    message.parts.iter_mut().for_each(|part| after_part(dialect, part));
    if dialect == Dialect::V0_3Rest {
        message.reference_task_ids.clear();
    }
    message
}

fn after_artifact(dialect: Dialect, artifact: &mut Artifact) {
    artifact.parts.iter_mut().for_each(|part| after_part(dialect, part));
}

pub(crate) fn after_task(dialect: Dialect, mut task: Task) -> Task {
    task.status.message = task.status.message.map(|message| after_message(dialect, message));
    task.history =
        task.history.iter().map(|message| Arc::new(after_message(dialect, (**message).clone()))).collect();
    task.artifacts.iter_mut().for_each(|artifact| after_artifact(dialect, Arc::make_mut(artifact)));
    task
}

fn after_page(dialect: Dialect, mut page: TaskPage) -> TaskPage {
    page.tasks = page.tasks.into_iter().map(|task| after_task(dialect, task)).collect();
    if !page.with_artifacts {
        page.tasks.iter_mut().for_each(|task| task.artifacts.clear());
    }
    page.with_artifacts &= !page.tasks.is_empty();
    page
}

pub(crate) fn after_item(dialect: Dialect, item: StreamItem) -> StreamItem {
    match item {
        StreamItem::Task(task) => StreamItem::Task(after_task(dialect, task)),
        StreamItem::Message(message) => StreamItem::Message(after_message(dialect, message)),
        StreamItem::Status { task_id, context_id, at, mut update } => {
            update.message = update.message.map(|message| after_message(dialect, message));
            StreamItem::Status { task_id, context_id, at, update }
        }
        StreamItem::Artifact { task_id, context_id, mut update } => {
            after_artifact(dialect, &mut update.artifact);
            update.ordinal = 0;
            StreamItem::Artifact { task_id, context_id, update }
        }
    }
}

pub(crate) fn after_reply(dialect: Dialect, reply: Reply) -> Reply {
    match reply {
        Reply::SentTask(task) => Reply::SentTask(after_task(dialect, task)),
        Reply::SentMessage(message) => Reply::SentMessage(after_message(dialect, message)),
        Reply::Task(task) => Reply::Task(after_task(dialect, task)),
        Reply::Tasks(page) => Reply::Tasks(after_page(dialect, page)),
        Reply::Card(card) => Reply::Card(Box::new(after_card(dialect, *card))),
        Reply::PushConfigs { configs, .. } if dialect == Dialect::V0_3 => {
            Reply::PushConfigs { configs, next_page_token: String::new() }
        }
        other => other,
    }
}

pub(crate) fn after_call(dialect: Dialect, tenant: Option<String>, mut call: Call) -> Decoded {
    if dialect == Dialect::V1 {
        return Decoded { tenant, call };
    }
    let rest = dialect == Dialect::V0_3Rest;
    let after_history = |length: &mut HistoryLength| {
        if rest && *length == HistoryLength::Last(0) {
            *length = HistoryLength::All;
        }
    };
    match &mut call {
        Call::SendMessage(send) | Call::SendStreamingMessage(send) => {
            send.message = after_message(dialect, send.message.clone());
            after_history(&mut send.history_length);
            if let Some(config) = &mut send.push_config {
                config.task_id = None;
            }
        }
        Call::GetTask(get) => after_history(&mut get.history_length),
        Call::ListTasks(list) => after_history(&mut list.history_length),
        Call::CancelTask(cancel) if rest => cancel.metadata = None,
        Call::ListPushConfigs { page_size, page_token, .. } if !rest => {
            (*page_size, *page_token) = (None, None);
        }
        _ => {}
    }
    Decoded { tenant: None, call }
}

pub(crate) fn after_card(dialect: Dialect, mut card: AgentCard) -> AgentCard {
    if dialect != Dialect::V0_3 {
        card.capabilities.state_transition_history = None;
    }
    for (_, scheme) in &mut card.security_schemes {
        if let SchemeKind::OAuth2 { flows, .. } = &mut scheme.kind {
            **flows = after_flows(dialect, std::mem::take(flows));
        }
    }
    if dialect != Dialect::V1 {
        card.interfaces.retain(|interface| ["0.2", "0.3"].contains(&interface.protocol_version.as_str()));
        for interface in &mut card.interfaces {
            interface.protocol_version = "0.3".to_owned();
            interface.tenant = None;
        }
    }
    card
}

/// Each flow keeps the members it has; where flows are a oneof the first is told.
fn after_flows(dialect: Dialect, flows: OAuthFlows) -> OAuthFlows {
    let only = |flow: OAuthFlow, authorization: bool, device: bool, token: bool, pkce: bool| OAuthFlow {
        authorization_url: flow.authorization_url.filter(|_| authorization),
        device_authorization_url: flow.device_authorization_url.filter(|_| device),
        token_url: flow.token_url.filter(|_| token),
        pkce_required: flow.pkce_required && pkce,
        ..flow
    };
    let v1 = dialect == Dialect::V1;
    let mut all = OAuthFlows {
        authorization_code: flows.authorization_code.map(|flow| only(flow, true, false, true, v1)),
        client_credentials: flows.client_credentials.map(|flow| only(flow, false, false, true, false)),
        device_code: flows.device_code.filter(|_| v1).map(|flow| only(flow, false, true, true, false)),
        implicit: flows.implicit.map(|flow| only(flow, true, false, false, false)),
        password: flows.password.map(|flow| only(flow, false, false, true, false)),
    };
    if dialect != Dialect::V0_3 {
        let mut told = false;
        let in_order = [
            &mut all.authorization_code,
            &mut all.client_credentials,
            &mut all.device_code,
            &mut all.implicit,
            &mut all.password,
        ];
        for flow in in_order {
            *flow = flow.take().filter(|_| !told);
            told |= flow.is_some();
        }
    }
    all
}
