//! Domain to 0.1 JSON and back. What does not survive is written out below, value by value, and told in
//! `docs/generations.md`, "0.1 losses".

use std::sync::Arc;

use baton_protocol::domain::json::JsonKind;
use baton_protocol::domain::*;
use baton_protocol::operation::{Call, HistoryLength, Operation, Reply, SendMessage};
use baton_protocol::wire::v0_1::{self, LegacyCardFacts, LegacyOptions};
use baton_protocol::wire::{Decoded, StreamItem};
use proptest::prelude::*;

use crate::strategies;

fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    assert!(!out.contains(&b'\n') && !out.contains(&b'\r'), "a raw line break would end an SSE event");
    String::from_utf8(out).unwrap()
}

fn context(task_id: &TaskId) -> ContextId {
    ContextId::parse(task_id.as_str()).unwrap()
}

/// Legacy messages have no ids and no extensions: the task's id stands for theirs.
fn after_message(message: Message, task_id: &TaskId) -> Message {
    let id = MessageId::parse(task_id.as_str()).unwrap();
    let parts = message.parts.into_iter().map(after_part).collect();
    Message { metadata: message.metadata, ..Message::new(id, message.role, parts) }
}

fn after_part(part: Part) -> Part {
    match part.content {
        PartContent::Raw(_) | PartContent::Url(_) => part,
        PartContent::Text(_) => Part { filename: None, media_type: None, ..part },
        PartContent::Data(data) => {
            let data = match data.kind() {
                JsonKind::Object | JsonKind::Array => data,
                _ => JsonText::parse(&format!(r#"{{"value":{data}}}"#)).unwrap(),
            };
            Part { metadata: part.metadata, ..Part::data(data) }
        }
    }
}

fn after_state(state: TaskState) -> TaskState {
    match state {
        TaskState::Rejected => TaskState::Failed,
        TaskState::AuthRequired => TaskState::InputRequired,
        other => other,
    }
}

fn after_artifact(artifact: Artifact, place: usize) -> Artifact {
    Artifact {
        id: ArtifactId::parse(&place.to_string()).unwrap(),
        parts: artifact.parts.into_iter().map(after_part).collect(),
        extensions: Vec::new(),
        ..artifact
    }
}

fn after_task(task: Task, state_history: bool) -> Task {
    let message = |message| after_message(message, &task.id);
    Task {
        status: Status {
            state: after_state(task.status.state),
            message: task.status.message.map(message),
            ..task.status
        },
        artifacts: task
            .artifacts
            .iter()
            .enumerate()
            .map(|(n, it)| Arc::new(after_artifact((**it).clone(), n)))
            .collect(),
        history: if state_history {
            Vec::new()
        } else {
            task.history
                .iter()
                .map(|message| Arc::new(after_message((**message).clone(), &task.id)))
                .collect()
        },
        transitions: if state_history {
            let after = |it: Transition| Transition { state: after_state(it.state), ..it };
            task.transitions.into_iter().map(after).collect()
        } else {
            Vec::new()
        },
        id: task.id.clone(),
        ..task
    }
}

/// One webhook per task, under the task's id.
fn after_config(config: PushConfig, task_id: &TaskId) -> PushConfig {
    PushConfig {
        id: Some(PushConfigId::parse(task_id.as_str()).unwrap()),
        task_id: Some(task_id.clone()),
        ..config
    }
}

fn after_send(send: SendMessage) -> SendMessage {
    let named = send.client_task_id.or(send.message.task_id.clone());
    let task_id = named.unwrap_or_else(|| TaskId::parse(send.message.id.as_str()).unwrap());
    let context_id = send.message.context_id.clone();
    SendMessage {
        message: Message { context_id, ..after_message(send.message, &task_id) },
        push_config: send.push_config.map(|config| after_config(config, &task_id)),
        client_task_id: Some(task_id),
        return_immediately: true,
        ..send
    }
}

fn after_call(call: Call) -> Option<Call> {
    Some(match call {
        Call::SendMessage(send) => Call::SendMessage(after_send(send)),
        Call::SendStreamingMessage(send) => Call::SendStreamingMessage(after_send(send)),
        Call::CreatePushConfig(config) => {
            let task_id = config.task_id.clone()?;
            Call::CreatePushConfig(after_config(config, &task_id))
        }
        Call::GetPushConfig { task_id, .. } => Call::GetPushConfig { task_id, id: None },
        Call::GetTask(_) | Call::CancelTask(_) | Call::SubscribeToTask(_) => call,
        Call::ListTasks(_)
        | Call::ListPushConfigs { .. }
        | Call::DeletePushConfig { .. }
        | Call::GetExtendedCard => return None,
    })
}

fn transitions() -> impl Strategy<Value = Vec<Transition>> {
    let one = (strategies::state(), strategies::timestamp()).prop_map(|(state, at)| Transition { state, at });
    proptest::collection::vec(one, 0..4)
}

proptest! {
    #[test]
    fn p01_a_legacy_task_survives(
        task in strategies::task(),
        transitions in transitions(),
        state_history in any::<bool>(),
    ) {
        let task = Task { transitions, ..task };
        let options = LegacyOptions { state_history, ..LegacyOptions::default() };
        let text = written(|out| v0_1::write_reply(out, &Reply::Task(task.clone()), &options));
        let read = v0_1::read_reply(Operation::GetTask, &text).unwrap();
        prop_assert_eq!(read, Reply::Task(after_task(task, state_history)), "{}", text);
    }

    #[test]
    fn s10_the_shown_history_is_the_end_of_the_whole(
        task in strategies::task(),
        transitions in transitions(),
        state_history in any::<bool>(),
        most in 0..5u32,
    ) {
        let mut task = Task { transitions, ..task };
        let options = LegacyOptions { state_history, history_length: HistoryLength::Last(most), task_id: None };
        let shown = v0_1::read_task(&written(|out| v0_1::write_task(out, &task, &options))).unwrap();
        HistoryLength::Last(most).trim(&mut task.history);
        let excess = task.transitions.len().saturating_sub(most as usize);
        task.transitions.drain(..excess);
        prop_assert_eq!(shown, after_task(task, state_history));
    }

    #[test]
    fn p01_a_legacy_call_survives(call in strategies::call()) {
        let text = written(|out| v0_1::write_call(out, &call));
        if let Some(expected) = after_call(call.clone()) {
            let decoded = v0_1::decode_call(call.operation(), Some(&text)).unwrap();
            prop_assert_eq!(decoded, Decoded { tenant: None, call: expected });
        } else {
            prop_assert!(v0_1::decode_call(call.operation(), Some(&text)).is_err());
        }
    }

    #[test]
    fn s13_legacy_stream_items_survive(
        task_id in strategies::task_id(),
        at in strategies::timestamp(),
        status in strategies::status_update(),
        artifact in strategies::artifact_update(),
    ) {
        let text = written(|out| v0_1::write_stream_status(out, &task_id, at, &status));
        let update = StatusUpdate {
            state: after_state(status.state),
            message: status.message.map(|message| after_message(message, &task_id)),
            metadata: status.metadata,
        };
        let context_id = context(&task_id);
        prop_assert_eq!(
            v0_1::read_stream_item(&text).unwrap(),
            StreamItem::Status { task_id: task_id.clone(), context_id: context_id.clone(), at, update }
        );
        let text = written(|out| v0_1::write_stream_artifact(out, &task_id, &artifact));
        let place = artifact.ordinal as usize;
        let update = ArtifactUpdate { artifact: after_artifact(artifact.artifact, place), ..artifact };
        prop_assert_eq!(v0_1::read_stream_item(&text).unwrap(), StreamItem::Artifact { task_id, context_id, update });
    }

    /// Most of a card is lost to this generation; what is left must be read again, and then nothing more is lost.
    #[test]
    fn s02_a_legacy_card_is_read_again(card in strategies::card()) {
        let write = |card: &AgentCard| written(|out| v0_1::write_card(out, card, &LegacyCardFacts::default()));
        let once = v0_1::read_card(&write(&card)).unwrap();
        prop_assert_eq!(&once.name, &card.name);
        prop_assert_eq!(&once.default_input_modes, &card.default_input_modes);
        prop_assert_eq!(once.skills.len(), card.skills.len());
        let said = |flag: Option<bool>| Some(flag == Some(true));
        prop_assert_eq!(once.capabilities.streaming, said(card.capabilities.streaming));
        prop_assert_eq!(&v0_1::read_card(&write(&once)).unwrap(), &once);
    }

    /// Whatever is cut out of or put into a valid text, reading answers; it never panics.
    #[test]
    fn damaged_legacy_text_is_answered(
        call in strategies::call(),
        at in any::<prop::sample::Index>(),
        length in 0..4usize,
        junk in "[\\[\\]{}\",:0-9a-z\\\\ ]{0,4}",
    ) {
        let mut bytes = written(|out| v0_1::write_call(out, &call)).into_bytes();
        let at = at.index(bytes.len());
        bytes.splice(at..(at + length).min(bytes.len()), junk.bytes());
        if let Ok(text) = String::from_utf8(bytes) {
            let _ = v0_1::decode_call(call.operation(), Some(&text));
            let _ = v0_1::read_task(&text);
            let _ = v0_1::read_stream_item(&text);
            let _ = v0_1::read_card(&text);
        }
    }
}
