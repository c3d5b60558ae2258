//! Converts 0.1 JSON to domain values. What 0.1 lacks is filled in: the task's id is used as the id of its messages,
//! the artifact's position as its id.

use std::sync::Arc;

use serde::de::{Deserializer, Error as _};

use super::types::*;
use super::{V0_1, names};
use crate::domain::{
    Artifact, ArtifactId, ArtifactUpdate, ContextId, JsonObject, Message, MessageId, Part, PartContent,
    PushAuthentication, PushConfig, PushConfigId, Role, Status, StatusUpdate, Task, TaskId, TaskState,
    Timestamp, Transition,
};
use crate::wire::StreamItem;
use crate::wire::read::{FromWire, from_str, twin};

const SAME_RULES: &str = "every id follows the same rules";

/// The task's id as the id of a message, which has none in 0.1.
pub(super) fn message_id(task_id: &TaskId) -> MessageId {
    MessageId::parse(task_id.as_str()).expect(SAME_RULES)
}

/// 0.1 has one webhook per task, so setting it again replaces it.
pub(super) fn push_config_id(task_id: &TaskId) -> PushConfigId {
    PushConfigId::parse(task_id.as_str()).expect(SAME_RULES)
}

fn own_context(context_id: Option<ContextId>, task_id: &TaskId) -> ContextId {
    context_id.unwrap_or_else(|| ContextId::parse(task_id.as_str()).expect(SAME_RULES))
}

fn time(timestamp: Option<Timestamp>) -> Timestamp {
    timestamp.unwrap_or(Timestamp::UNKNOWN)
}

/// A message without an id.
pub(super) struct Said {
    role: Role,
    parts: Vec<Part>,
    metadata: Option<JsonObject>,
}

impl Said {
    pub(super) fn into_message(self, id: MessageId) -> Message {
        Message { metadata: self.metadata, ..Message::new(id, self.role, self.parts) }
    }
}

impl FromWire<V0_1> for Said {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let MessageTwin { role, parts, metadata } = twin(deserializer)?;
        Ok(Said { role, parts, metadata })
    }
}

impl FromWire<V0_1> for Role {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_str(deserializer, "user or agent", |text| {
            names::parse_role(text).ok_or_else(|| "must be user or agent".to_owned())
        })
    }
}

impl FromWire<V0_1> for TaskState {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_str(deserializer, names::STATES, |text| {
            names::parse_state(text).ok_or_else(|| format!("must be {}", names::STATES))
        })
    }
}

impl FromWire<V0_1> for Part {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let PartTwin { kind, text, file, data, metadata } = twin(deserializer)?;
        let inferred = || match (&text, &file, &data) {
            (Some(_), None, None) => Some("text"),
            (None, Some(_), None) => Some("file"),
            (None, None, Some(_)) => Some("data"),
            _ => None,
        };
        let kind = match &kind {
            Some(kind) => kind.as_str(),
            None => inferred().ok_or_else(|| D::Error::custom("must hold one of text, file and data"))?,
        };
        let (content, filename, media_type) = match kind {
            "text" => (PartContent::Text(text.ok_or_else(|| D::Error::missing_field("text"))?), None, None),
            "file" => {
                let File { content, name, mime_type } =
                    file.ok_or_else(|| D::Error::missing_field("file"))?;
                (content, name, mime_type)
            }
            "data" => (PartContent::Data(data.ok_or_else(|| D::Error::missing_field("data"))?), None, None),
            _ => return Err(D::Error::custom("must have the type text, file or data")),
        };
        Ok(Part { content, filename, media_type, metadata })
    }
}

pub(super) struct File {
    content: PartContent,
    name: Option<String>,
    mime_type: Option<String>,
}

impl FromWire<V0_1> for File {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let FileTwin { name, mime_type, bytes, uri } = twin(deserializer)?;
        // Some clients write every member, and the unused one as an empty string.
        let content = match (bytes, uri) {
            (Some(bytes), None) => PartContent::Raw(bytes.0),
            (None, Some(uri)) => PartContent::Url(uri),
            (Some(bytes), Some(uri)) if uri.is_empty() => PartContent::Raw(bytes.0),
            (Some(bytes), Some(uri)) if bytes.0.is_empty() => PartContent::Url(uri),
            _ => return Err(D::Error::custom("must hold exactly one of bytes and uri")),
        };
        Ok(File { content, name, mime_type })
    }
}

/// An artifact with its index, if it has one, and its chunk flags.
pub(super) struct Placed(ArtifactTwin);

impl Placed {
    fn into_artifact(self, place: u32) -> Artifact {
        let ArtifactTwin { name, description, parts, metadata, .. } = self.0;
        let id = ArtifactId::parse(&place.to_string()).expect("digits");
        Artifact { id, name, description, parts, metadata, extensions: Vec::new() }
    }
}

impl FromWire<V0_1> for Placed {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        twin(deserializer).map(Placed)
    }
}

/// Some agents write index 0 on every artifact: if an index occurs twice, the order in the list is used.
fn place(artifacts: Vec<Placed>) -> Vec<Arc<Artifact>> {
    let mut stated: Vec<_> = artifacts.iter().filter_map(|placed| placed.0.index).collect();
    stated.sort_unstable();
    stated.dedup();
    let all_apart = stated.len() == artifacts.len();
    (0..)
        .zip(artifacts)
        .map(|(n, placed)| {
            let place = placed.0.index.filter(|_| all_apart).unwrap_or(n);
            Arc::new(placed.into_artifact(place))
        })
        .collect()
}

/// A status whose message has no id.
pub(super) struct SaidStatus {
    state: TaskState,
    message: Option<Said>,
    timestamp: Timestamp,
}

impl FromWire<V0_1> for SaidStatus {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let StatusTwin { state, message, timestamp } = twin(deserializer)?;
        Ok(SaidStatus { state, message, timestamp: time(timestamp) })
    }
}

/// An entry of `history`: a message or a change of state.
pub(super) enum Happened {
    Said(Said),
    Changed(Transition),
}

impl FromWire<V0_1> for Happened {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let HappenedTwin { state, timestamp, role, parts, metadata } = twin(deserializer)?;
        match (state, role) {
            (Some(state), None) => Ok(Happened::Changed(Transition { state, at: time(timestamp) })),
            (None, Some(role)) if !parts.is_empty() => Ok(Happened::Said(Said { role, parts, metadata })),
            _ => Err(D::Error::custom("must hold a state, or the role and parts of a message")),
        }
    }
}

impl FromWire<V0_1> for Task {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let TaskTwin { id, session_id, status, artifacts, history, metadata } = twin(deserializer)?;
        let SaidStatus { state, message, timestamp } = status;
        let message = message.map(|said| said.into_message(message_id(&id)));
        let (mut messages, mut transitions) = (Vec::new(), Vec::new());
        for entry in history {
            match entry {
                Happened::Said(said) => messages.push(Arc::new(said.into_message(message_id(&id)))),
                Happened::Changed(transition) => transitions.push(transition),
            }
        }
        Ok(Task {
            context_id: own_context(session_id, &id),
            id,
            status: Status { state, message, timestamp },
            artifacts: place(artifacts),
            history: messages,
            metadata,
            transitions,
        })
    }
}

impl FromWire<V0_1> for StreamItem {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let StreamTwin { id: task_id, status, artifact, metadata } = twin(deserializer)?;
        match (status, artifact) {
            (Some(status), None) => Ok(status_item(task_id, status, metadata)),
            (None, Some(placed)) => Ok(artifact_item(task_id, placed, metadata)),
            _ => Err(D::Error::custom("must hold exactly one of status and artifact")),
        }
    }
}

fn status_item(task_id: TaskId, status: SaidStatus, metadata: Option<JsonObject>) -> StreamItem {
    let SaidStatus { state, message, timestamp } = status;
    let message = message.map(|said| said.into_message(message_id(&task_id)));
    let update = StatusUpdate { state, message, metadata };
    StreamItem::Status { context_id: own_context(None, &task_id), task_id, at: timestamp, update }
}

fn artifact_item(task_id: TaskId, placed: Placed, metadata: Option<JsonObject>) -> StreamItem {
    let ordinal = placed.0.index.unwrap_or_default();
    let (append, last_chunk) = (placed.0.append, placed.0.last_chunk);
    let artifact = placed.into_artifact(ordinal);
    let update = ArtifactUpdate { artifact, append, joins: false, last_chunk, ordinal, metadata };
    StreamItem::Artifact { context_id: own_context(None, &task_id), task_id, update }
}

/// The body of a webhook call.
pub(super) struct Notified(pub(super) StreamItem);

impl FromWire<V0_1> for Notified {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let NotificationTwin { task_id, _event_type: _, status, artifact, timestamp } = twin(deserializer)?;
        // Only an event about an artifact has one, and some servers send none even then.
        Ok(Notified(match (artifact, status) {
            (Some(placed), _) => artifact_item(task_id, placed, None),
            (None, Some(mut status)) => {
                status.timestamp = timestamp.unwrap_or(status.timestamp);
                status_item(task_id, status, None)
            }
            (None, None) => return Err(D::Error::missing_field("status")),
        }))
    }
}

/// An event kind that a webhook can ask for.
#[derive(PartialEq)]
pub(super) enum EventName {
    Status,
    Artifact,
}

impl FromWire<V0_1> for EventName {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_str(deserializer, "status or artifact", |text| match text {
            super::STATUS_EVENT => Ok(EventName::Status),
            super::ARTIFACT_EVENT => Ok(EventName::Artifact),
            _ => Err("must be status or artifact".to_owned()),
        })
    }
}

impl FromWire<V0_1> for PushConfig {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let PushConfigTwin { url, token, authentication, events } = twin(deserializer)?;
        Ok(PushConfig { id: None, task_id: None, url, token, authentication, events })
    }
}

impl FromWire<V0_1> for PushAuthentication {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let AuthenticationTwin { schemes, credentials } = twin(deserializer)?;
        match schemes.into_iter().next() {
            Some(scheme) => Ok(PushAuthentication { scheme, credentials }),
            None => Err(D::Error::custom("must name a scheme in schemes")),
        }
    }
}

/// A webhook with its task.
pub(super) struct TaskPushConfig(pub(super) PushConfig);

impl FromWire<V0_1> for TaskPushConfig {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let TaskPushConfigTwin { id, push_notification_config } = twin(deserializer)?;
        Ok(TaskPushConfig(of_task(push_notification_config, &id)))
    }
}

pub(super) fn of_task(config: PushConfig, task_id: &TaskId) -> PushConfig {
    PushConfig { id: Some(push_config_id(task_id)), task_id: Some(task_id.clone()), ..config }
}
