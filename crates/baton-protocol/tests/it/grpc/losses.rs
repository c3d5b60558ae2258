//! What does not survive domain → message → domain, beside the losses of the JSON dialect with the same members:
//! `docs/generations.md`, "gRPC losses".

use std::sync::Arc;

use baton_protocol::domain::security::SchemeKind;
use baton_protocol::domain::{AgentCard, Artifact, JsonObject, JsonText, Message, Part, PartContent, Task};
use baton_protocol::operation::{Call, Reply};
use baton_protocol::signature::jcs::{Numbers, write_canonical};
use baton_protocol::wire::pb::Package;
use baton_protocol::wire::{Decoded, StreamItem};

use crate::codecs::Dialect;
use crate::losses;

pub(super) fn dialect(package: Package) -> Dialect {
    match package {
        Package::V1 => Dialect::V1,
        Package::V0_3 => Dialect::V0_3Rest,
    }
}

pub(super) fn after_reply(package: Package, reply: Reply) -> Reply {
    let reply = match losses::after_reply(dialect(package), reply) {
        Reply::Card(card) => Reply::Card(Box::new(after_card(package, *card))),
        Reply::Tasks(mut page) => {
            // An empty list is the same as none.
            page.with_artifacts = page.tasks.iter().any(|task| !task.artifacts.is_empty());
            Reply::Tasks(page)
        }
        reply => reply,
    };
    same_json(reply)
}

pub(super) fn after_item(package: Package, item: StreamItem) -> StreamItem {
    same_item_json(losses::after_item(dialect(package), item))
}

pub(super) fn after_call(package: Package, tenant: Option<String>, call: Call) -> Decoded {
    let mut decoded = losses::after_call(dialect(package), tenant, call);
    if let Call::ListPushConfigs { page_size, .. } = &mut decoded.call {
        *page_size = page_size.filter(|size| *size != 0);
    }
    decoded.call = same_call_json(decoded.call);
    decoded
}

fn after_card(package: Package, mut card: AgentCard) -> AgentCard {
    // Maps are sorted.
    card.security_schemes.sort_by(|(one, _), (other, _)| one.cmp(other));
    let requirements = card.skills.iter_mut().flat_map(|skill| &mut skill.security_requirements);
    for requirement in requirements.chain(&mut card.security_requirements) {
        requirement.schemes.sort();
    }
    for (_, scheme) in &mut card.security_schemes {
        if let SchemeKind::OAuth2 { flows, .. } = &mut scheme.kind {
            let all = [
                &mut flows.authorization_code,
                &mut flows.client_credentials,
                &mut flows.device_code,
                &mut flows.implicit,
                &mut flows.password,
            ];
            all.into_iter().flatten().for_each(|flow| flow.scopes.sort());
        }
    }
    if package == Package::V0_3 {
        // No presence.
        let flags = &mut card.capabilities;
        for flag in [&mut flags.streaming, &mut flags.push_notifications, &mut flags.extended_agent_card] {
            *flag = flag.filter(|flag| *flag);
        }
        for url in [&mut card.documentation_url, &mut card.icon_url] {
            *url = url.take().filter(|url| !url.is_empty());
        }
    }
    card
}

/// The value with its free-form JSON in canonical form: numbers as doubles, members sorted.
pub(super) fn same_json(reply: Reply) -> Reply {
    match reply {
        Reply::SentTask(task) => Reply::SentTask(same_task_json(task)),
        Reply::SentMessage(message) => Reply::SentMessage(same_message_json(message)),
        Reply::Task(task) => Reply::Task(same_task_json(task)),
        Reply::Tasks(mut page) => {
            page.tasks = page.tasks.into_iter().map(same_task_json).collect();
            Reply::Tasks(page)
        }
        Reply::Card(mut card) => {
            card.capabilities.extensions.iter_mut().for_each(|extension| canonical(&mut extension.params));
            card.signatures.iter_mut().for_each(|signature| canonical(&mut signature.header));
            Reply::Card(card)
        }
        reply => reply,
    }
}

pub(super) fn same_item_json(item: StreamItem) -> StreamItem {
    match item {
        StreamItem::Task(task) => StreamItem::Task(same_task_json(task)),
        StreamItem::Message(message) => StreamItem::Message(same_message_json(message)),
        StreamItem::Status { task_id, context_id, at, mut update } => {
            update.message = update.message.map(same_message_json);
            canonical(&mut update.metadata);
            StreamItem::Status { task_id, context_id, at, update }
        }
        StreamItem::Artifact { task_id, context_id, mut update } => {
            canonical_artifact(&mut update.artifact);
            canonical(&mut update.metadata);
            StreamItem::Artifact { task_id, context_id, update }
        }
    }
}

pub(super) fn same_call_json(mut call: Call) -> Call {
    match &mut call {
        Call::SendMessage(send) | Call::SendStreamingMessage(send) => {
            send.message = same_message_json(send.message.clone());
            canonical(&mut send.metadata);
        }
        Call::CancelTask(cancel) => canonical(&mut cancel.metadata),
        _ => {}
    }
    call
}

fn same_task_json(mut task: Task) -> Task {
    task.status.message = task.status.message.map(same_message_json);
    task.artifacts.iter_mut().for_each(|artifact| canonical_artifact(Arc::make_mut(artifact)));
    let history = task.history.iter().map(|message| Arc::new(same_message_json((**message).clone())));
    task.history = history.collect();
    canonical(&mut task.metadata);
    task
}

fn same_message_json(mut message: Message) -> Message {
    message.parts.iter_mut().for_each(canonical_part);
    canonical(&mut message.metadata);
    message
}

fn canonical_artifact(artifact: &mut Artifact) {
    artifact.parts.iter_mut().for_each(canonical_part);
    canonical(&mut artifact.metadata);
}

fn canonical_part(part: &mut Part) {
    canonical(&mut part.metadata);
    if let PartContent::Data(data) = &mut part.content {
        *data = canonical_text(data);
    }
}

fn canonical(object: &mut Option<JsonObject>) {
    if let Some(some) = object {
        *some = canonical_text(&some.clone().into()).try_into().unwrap();
    }
}

fn canonical_text(json: &JsonText) -> JsonText {
    let mut out = Vec::new();
    write_canonical(&mut out, json, Numbers::Doubles);
    JsonText::parse(std::str::from_utf8(&out).unwrap()).unwrap()
}
