//! The body of a webhook call, in any generation.

use super::dialect::Dialect;
use super::members::Members;
use super::peer_state::{self, FromPeer};
use super::{StreamItem, v0_1};
use crate::error::Error;
use crate::generation::Generation;

/// What a webhook was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadNotification {
    /// The generation that the body is written in.
    pub generation: Generation,
    pub item: FromPeer<StreamItem>,
}

/// Reads the body of a webhook call. Nothing else of the call says which generation it is in, so its members do:
///
/// - 1.0 has one member that names the kind of the event, `task` or `statusUpdate`;
/// - 0.3 has a task, or an event of a stream, with `kind`;
/// - 0.1 leaves the body to the server: `{taskId, eventType, …}` as [`v0_1::read_notification`] reads it, or a task.
pub fn read_notification(text: &str) -> Result<ReadNotification, Error> {
    let members = Members::of(text);
    let has = |name: &str| members.as_ref().is_some_and(|members| members.get(name).is_some());
    let (generation, item) = if has("kind") {
        (Generation::V0_3, Dialect::V0_3.read_stream_item(text))
    } else if has("taskId") && has("eventType") {
        (Generation::V0_1, peer_state::read(Dialect::V0_1, text, v0_1::read_notification))
    } else if has("id") && has("status") {
        let read = |text: &str| v0_1::read_task(text).map(StreamItem::Task);
        (Generation::V0_1, peer_state::read(Dialect::V0_1, text, read))
    } else {
        (Generation::V1, Dialect::V1.read_stream_item(text))
    };
    Ok(ReadNotification { generation, item: item? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::TaskState;

    fn read(text: &str) -> (Generation, StreamItem) {
        let ReadNotification { generation, item } = read_notification(text).unwrap();
        (generation, item.value)
    }

    #[test]
    fn the_generation_is_told_by_the_members() {
        let status = r#""status":{"state":"working","timestamp":"2026-01-02T03:04:05Z"}"#;
        let v1_status = r#""status":{"state":"TASK_STATE_WORKING","timestamp":"2026-01-02T03:04:05Z"}"#;
        for (text, expected, kind) in [
            (format!(r#"{{"task":{{"id":"t","contextId":"c",{v1_status}}}}}"#), Generation::V1, "task"),
            (format!(r#"{{"statusUpdate":{{"taskId":"t","contextId":"c",{v1_status}}}}}"#), Generation::V1, "status"),
            (
                r#"{"artifactUpdate":{"taskId":"t","contextId":"c","artifact":{"artifactId":"a","parts":[{"text":"x"}]}}}"#.to_owned(),
                Generation::V1,
                "artifact",
            ),
            (
                r#"{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"x"}]}}"#.to_owned(),
                Generation::V1,
                "message",
            ),
            (format!(r#"{{"kind":"task","id":"t","contextId":"c",{status}}}"#), Generation::V0_3, "task"),
            (
                format!(r#"{{"kind":"status-update","taskId":"t","contextId":"c","final":false,{status}}}"#),
                Generation::V0_3,
                "status",
            ),
            (format!(r#"{{"taskId":"t","eventType":"status",{status},"timestamp":"2026-01-02T03:04:06Z"}}"#), Generation::V0_1, "status"),
            (
                format!(r#"{{"taskId":"t","eventType":"artifact",{status},"artifact":{{"parts":[{{"type":"text","text":"x"}}],"index":2,"append":true,"lastChunk":true}},"timestamp":"2026-01-02T03:04:06Z"}}"#),
                Generation::V0_1,
                "artifact",
            ),
            // The artifact is mentioned, not sent.
            (format!(r#"{{"taskId":"t","eventType":"artifact",{status}}}"#), Generation::V0_1, "status"),
            (format!(r#"{{"id":"t","sessionId":"s",{status}}}"#), Generation::V0_1, "task"),
        ] {
            let (generation, item) = read(&text);
            let found = match item {
                StreamItem::Task(_) => "task",
                StreamItem::Message(_) => "message",
                StreamItem::Status { .. } => "status",
                StreamItem::Artifact { .. } => "artifact",
            };
            assert_eq!((generation, found), (expected, kind), "{text}");
        }
    }

    #[test]
    fn legacy_events_keep_what_they_say() {
        let text = r#"{"taskId":"t","eventType":"artifact","status":{"state":"working"},"artifact":{"parts":[{"type":"text","text":"x"}],"index":2,"append":true,"lastChunk":false},"timestamp":"2026-01-02T03:04:06Z"}"#;
        let (_, StreamItem::Artifact { task_id, update, .. }) = read(text) else { panic!() };
        assert_eq!(
            (task_id.as_str(), update.ordinal, update.append, update.last_chunk),
            ("t", 2, true, false)
        );
        let text = r#"{"taskId":"t","eventType":"status","status":{"state":"completed"},"timestamp":"1970-01-01T00:00:01Z"}"#;
        let (_, StreamItem::Status { at, update, .. }) = read(text) else { panic!() };
        assert_eq!((at.as_millis(), update.state), (1000, TaskState::Completed));
    }

    #[test]
    fn a_state_that_nobody_knows_is_kept_by_name() {
        let text = r#"{"kind":"task","id":"t","contextId":"c","status":{"state":"paused"}}"#;
        let read = read_notification(text).unwrap();
        assert_eq!(read.item.unknown_state(), Some("paused"));
    }

    #[test]
    fn other_bodies_are_refused() {
        for bad in [
            "",
            "null",
            "[]",
            "{}",
            "{",
            r#"{"hello":1}"#,
            r#"{"taskId":"t","eventType":"status"}"#,
            r#"{"taskId":"t","eventType":"party","status":{"state":"working"}}"#,
            r#"{"kind":"party"}"#,
            r#"{"task":{}}"#,
        ] {
            read_notification(bad).unwrap_err();
        }
    }
}
