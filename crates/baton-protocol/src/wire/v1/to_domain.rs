//! From 1.0 JSON to domain values: the rules that one member alone cannot decide.

use serde::de::{Deserializer, Error as _, Visitor};

use super::types::*;
use super::{ArtifactEvent, StatusEvent, StreamItem, V1, names};
use crate::domain::{
    Artifact, ArtifactUpdate, ContextId, Message, Part, PartContent, PushAuthentication, PushConfig, Role,
    Status, StatusUpdate, Task, TaskId, TaskPage, TaskState, Timestamp,
};
use crate::operation::Reply;
use crate::wire::read::{FromWire, twin};

/// The time of a status that came without one: the domain has no clock to ask.
const NO_TIME: i64 = 0;

impl FromWire<V1> for Message {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let MessageTwin {
            message_id,
            context_id,
            task_id,
            role,
            parts,
            metadata,
            extensions,
            reference_task_ids,
        } = twin(deserializer)?;
        Ok(Message {
            id: message_id,
            role,
            parts,
            task_id,
            context_id,
            metadata,
            extensions,
            reference_task_ids,
        })
    }
}

impl FromWire<V1> for Part {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let PartTwin { text, raw, url, data, metadata, filename, media_type } = twin(deserializer)?;
        let content = match (text, raw, url, data) {
            (Some(text), None, None, None) => PartContent::Text(text),
            (None, Some(raw), None, None) => PartContent::Raw(raw.0),
            (None, None, Some(url), None) => PartContent::Url(url),
            (None, None, None, Some(data)) => PartContent::Data(data),
            _ => return Err(D::Error::custom("must hold exactly one of text, raw, url and data")),
        };
        Ok(Part { content, filename, media_type, metadata })
    }
}

impl FromWire<V1> for Artifact {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let ArtifactTwin { artifact_id, name, description, parts, metadata, extensions } =
            twin(deserializer)?;
        Ok(Artifact { id: artifact_id, name, description, parts, metadata, extensions })
    }
}

impl FromWire<V1> for Status {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let StatusTwin { state, message, timestamp } = twin(deserializer)?;
        Ok(Status { state, message, timestamp: timestamp.unwrap_or(Timestamp::from_millis(NO_TIME)) })
    }
}

impl FromWire<V1> for Task {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ListedTask::from_wire(deserializer).map(|listed| listed.task)
    }
}

/// A task, and whether it had an `artifacts` member at all.
pub(super) struct ListedTask {
    task: Task,
    with_artifacts: bool,
}

impl FromWire<V1> for ListedTask {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let TaskTwin { id, context_id, status, artifacts, history, metadata } = twin(deserializer)?;
        let context_id = own_context(context_id, &id);
        let with_artifacts = artifacts.is_some();
        let artifacts = artifacts.unwrap_or_default();
        Ok(ListedTask {
            task: Task { id, context_id, status, artifacts, history, metadata, transitions: Vec::new() },
            with_artifacts,
        })
    }
}

/// An agent need not have contexts. A task without one is taken as a context of its own.
fn own_context(context_id: Option<ContextId>, task_id: &TaskId) -> ContextId {
    context_id.unwrap_or_else(|| ContextId::parse(task_id.as_str()).expect("every id follows the same rules"))
}

impl FromWire<V1> for StatusEvent {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let StatusUpdateTwin { task_id, context_id, status, metadata } = twin(deserializer)?;
        Ok(StatusEvent {
            context_id: own_context(context_id, &task_id),
            task_id,
            at: status.timestamp,
            update: StatusUpdate { state: status.state, message: status.message, metadata },
        })
    }
}

impl FromWire<V1> for ArtifactEvent {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let ArtifactUpdateTwin { task_id, context_id, artifact, append, last_chunk, metadata } =
            twin(deserializer)?;
        Ok(ArtifactEvent {
            context_id: own_context(context_id, &task_id),
            task_id,
            update: ArtifactUpdate { artifact, append, last_chunk, ordinal: 0, metadata },
        })
    }
}

impl FromWire<V1> for StreamItem {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let StreamTwin { task, message, status_update, artifact_update } = twin(deserializer)?;
        match (task, message, status_update, artifact_update) {
            (Some(task), None, None, None) => Ok(StreamItem::Task(task)),
            (None, Some(message), None, None) => Ok(StreamItem::Message(message)),
            (None, None, Some(event), None) => Ok(event.into()),
            (None, None, None, Some(event)) => Ok(event.into()),
            _ => Err(D::Error::custom(
                "must hold exactly one of task, message, statusUpdate and artifactUpdate",
            )),
        }
    }
}

/// What a send that does not stream answers.
pub(super) struct Sent(pub(super) Reply);

impl FromWire<V1> for Sent {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let StreamTwin { task, message, .. } = twin(deserializer)?;
        match (task, message) {
            (Some(task), None) => Ok(Sent(Reply::SentTask(task))),
            (None, Some(message)) => Ok(Sent(Reply::SentMessage(message))),
            _ => Err(D::Error::custom("must hold exactly one of task and message")),
        }
    }
}

impl FromWire<V1> for TaskPage {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let PageTwin { tasks, next_page_token, page_size, total_size } = twin(deserializer)?;
        let with_artifacts = tasks.iter().any(|listed| listed.with_artifacts);
        let tasks = tasks.into_iter().map(|listed| listed.task).collect();
        Ok(TaskPage { tasks, next_page_token, page_size, total_size, with_artifacts })
    }
}

/// A webhook with the tenant its wire form carries beside it.
pub(super) struct TenantPushConfig {
    pub(super) tenant: Option<String>,
    pub(super) config: PushConfig,
}

impl FromWire<V1> for TenantPushConfig {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let PushConfigTwin { tenant, id, task_id, url, token, authentication } = twin(deserializer)?;
        Ok(TenantPushConfig { tenant, config: PushConfig { id, task_id, url, token, authentication } })
    }
}

impl FromWire<V1> for PushConfig {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        TenantPushConfig::from_wire(deserializer).map(|tenanted| tenanted.config)
    }
}

impl FromWire<V1> for PushAuthentication {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let AuthenticationTwin { scheme, credentials } = twin(deserializer)?;
        Ok(PushAuthentication { scheme, credentials })
    }
}

/// All webhooks of a task.
pub(super) struct PushConfigs(pub(super) Reply);

impl FromWire<V1> for PushConfigs {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let PushConfigsTwin { configs, next_page_token } = twin(deserializer)?;
        Ok(PushConfigs(Reply::PushConfigs { configs, next_page_token }))
    }
}

/// An enum value by its name or its protobuf number.
struct EnumName<F>(&'static str, F);

fn by_name<T, F: Fn(Result<&str, u64>) -> Option<T>>(expecting: &'static str, known: F) -> EnumName<F> {
    EnumName(expecting, known)
}

impl<T, F: Fn(Result<&str, u64>) -> Option<T>> Visitor<'_> for EnumName<F> {
    type Value = T;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<T, E> {
        (self.1)(Ok(name)).ok_or_else(|| E::custom(format!("must be {}", self.0)))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<T, E> {
        (self.1)(Err(number)).ok_or_else(|| E::custom(format!("must be {}", self.0)))
    }
}

impl FromWire<V1> for Role {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(by_name("ROLE_USER or ROLE_AGENT", |value| match value {
            Ok(name) => names::parse_role(name),
            Err(1) => Some(Role::User),
            Err(2) => Some(Role::Agent),
            Err(_) => None,
        }))
    }
}

impl FromWire<V1> for TaskState {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match AnyState::from_wire(deserializer)? {
            AnyState(Some(state)) => Ok(state),
            AnyState(None) => Err(D::Error::custom(format!("must be {}", names::STATES))),
        }
    }
}

/// A state, or `TASK_STATE_UNSPECIFIED`, which as a filter means any.
pub(super) struct AnyState(pub(super) Option<TaskState>);

impl FromWire<V1> for AnyState {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(by_name(names::STATES, |value| match value {
            Ok(names::STATE_UNSPECIFIED) | Err(0) => Some(AnyState(None)),
            Ok(name) => names::parse_state(name).map(|state| AnyState(Some(state))),
            Err(number) => {
                u8::try_from(number).ok().and_then(TaskState::from_number).map(|state| AnyState(Some(state)))
            }
        }))
    }
}
