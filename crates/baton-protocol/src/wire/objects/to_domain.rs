//! Converts the shared objects to domain values: rules that need more than one member.

use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::{Deserializer, Error as _, SeqAccess, Visitor, value};

use super::types::*;
use super::{EnumValue, Spelling};
use crate::domain::{
    Artifact, ArtifactUpdate, ContextId, Message, Role, Status, StatusUpdate, Task, TaskId, TaskPage,
    TaskState, Timestamp,
};
use crate::operation::Reply;
use crate::wire::read::{FromWire, twin};
use crate::wire::stream_item::{ArtifactEvent, StatusEvent, StreamItem};

impl<G: Spelling> FromWire<G> for Message {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let twin: MessageTwin<G> = twin(deserializer)?;
        let parts = match (twin.parts, twin.content) {
            (Some(parts), None) | (None, Some(parts)) => parts,
            (None, None) => return Err(D::Error::missing_field(G::PARTS)),
            (Some(_), Some(_)) => return Err(D::Error::custom("must not hold both parts and content")),
        };
        Ok(Message {
            id: twin.message_id,
            role: twin.role,
            parts,
            task_id: twin.task_id,
            context_id: twin.context_id,
            metadata: twin.metadata,
            extensions: twin.extensions,
            reference_task_ids: twin.reference_task_ids,
        })
    }
}

impl<G: Spelling> FromWire<G> for Artifact {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let ArtifactTwin::<G> { artifact_id, name, description, parts, metadata, extensions, .. } =
            twin(deserializer)?;
        Ok(Artifact { id: artifact_id, name, description, parts, metadata, extensions })
    }
}

impl<G: Spelling> FromWire<G> for Status {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let StatusTwin::<G> { state, message, timestamp, .. } = twin(deserializer)?;
        Ok(Status { state, message, timestamp: timestamp.unwrap_or(Timestamp::UNKNOWN) })
    }
}

impl<G: Spelling> FromWire<G> for Task {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <ListedTask as FromWire<G>>::from_wire(deserializer).map(|listed| listed.task)
    }
}

/// A task, and whether it had an `artifacts` member at all.
pub(super) struct ListedTask {
    task: Task,
    with_artifacts: bool,
}

impl<G: Spelling> FromWire<G> for ListedTask {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let TaskTwin::<G> { id, context_id, status, artifacts, history, metadata, .. } = twin(deserializer)?;
        let context_id = own_context(context_id, &id);
        let with_artifacts = artifacts.is_some();
        let artifacts = artifacts.unwrap_or_default().into_iter().map(Arc::new).collect();
        let history = history.into_iter().map(Arc::new).collect();
        Ok(ListedTask {
            task: Task { id, context_id, status, artifacts, history, metadata, transitions: Vec::new() },
            with_artifacts,
        })
    }
}

/// Agents need not have contexts. A task without one is treated as a context of its own.
pub(crate) fn own_context(context_id: Option<ContextId>, task_id: &TaskId) -> ContextId {
    context_id.unwrap_or_else(|| ContextId::parse(task_id.as_str()).expect("every id follows the same rules"))
}

impl<G: Spelling> FromWire<G> for StatusEvent {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let StatusUpdateTwin::<G> { task_id, context_id, status, metadata, .. } = twin(deserializer)?;
        Ok(StatusEvent {
            context_id: own_context(context_id, &task_id),
            task_id,
            at: status.timestamp,
            update: StatusUpdate { state: status.state, message: status.message, metadata },
        })
    }
}

impl<G: Spelling> FromWire<G> for ArtifactEvent {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let ArtifactUpdateTwin::<G> { task_id, context_id, artifact, append, last_chunk, metadata, .. } =
            twin(deserializer)?;
        Ok(ArtifactEvent {
            context_id: own_context(context_id, &task_id),
            task_id,
            update: ArtifactUpdate { artifact, append, joins: false, last_chunk, ordinal: 0, metadata },
        })
    }
}

impl<G: Spelling> FromWire<G> for StreamItem {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let StreamTwin::<G> { task, message, status_update, artifact_update, .. } = twin(deserializer)?;
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

/// The reply to a send that does not stream.
pub(crate) struct Sent(pub(crate) Reply);

impl<G: Spelling> FromWire<G> for Sent {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let StreamTwin::<G> { task, message, .. } = twin(deserializer)?;
        match (task, message) {
            (Some(task), None) => Ok(Sent(Reply::SentTask(task))),
            (None, Some(message)) => Ok(Sent(Reply::SentMessage(message))),
            _ => Err(D::Error::custom("must hold exactly one of task and message")),
        }
    }
}

impl<G: Spelling> FromWire<G> for TaskPage {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let PageTwin::<G> { tasks, next_page_token, page_size, total_size, .. } = twin(deserializer)?;
        let with_artifacts = tasks.iter().any(|listed| listed.with_artifacts);
        let tasks = tasks.into_iter().map(|listed| listed.task).collect();
        Ok(TaskPage { tasks, next_page_token, page_size, total_size, with_artifacts })
    }
}

/// An enum value by its name or its protobuf number.
struct EnumName<F>(&'static str, F);

fn by_name<T, F: Fn(EnumValue<'_>) -> Option<T>>(expecting: &'static str, known: F) -> EnumName<F> {
    EnumName(expecting, known)
}

impl<T, F: Fn(EnumValue<'_>) -> Option<T>> Visitor<'_> for EnumName<F> {
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

impl<G: Spelling> FromWire<G> for Role {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(by_name(G::ROLES, G::role))
    }
}

impl<G: Spelling> FromWire<G> for TaskState {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match <AnyState as FromWire<G>>::from_wire(deserializer)? {
            AnyState(Some(state)) => Ok(state),
            AnyState(None) => Err(D::Error::custom(format!("must be {}", G::STATES))),
        }
    }
}

/// A state, or "unspecified" (`None`), which in a filter means any state.
pub(crate) struct AnyState(pub(crate) Option<TaskState>);

impl<G: Spelling> FromWire<G> for AnyState {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(by_name(G::STATES, G::state))
    }
}

impl AnyState {
    /// By protobuf number; 0 is "unspecified".
    pub(crate) fn from_number(number: u64) -> Option<Self> {
        match u8::try_from(number).ok()? {
            0 => Some(AnyState(None)),
            number => TaskState::from_number(number).map(|state| AnyState(Some(state))),
        }
    }
}

/// The `status` filter: one state, or, beyond the specification, a list of them.
#[derive(Default)]
pub(crate) struct States(pub(crate) Vec<TaskState>);

impl<G: Spelling> FromWire<G> for States {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMore<G>(PhantomData<G>);
        impl<'de, G: Spelling> Visitor<'de> for OneOrMore<G> {
            type Value = States;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(G::STATES)
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<States, E> {
                one_state::<G, _>(value::StrDeserializer::new(name))
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<States, E> {
                one_state::<G, _>(value::U64Deserializer::new(number))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<States, A::Error> {
                <Vec<TaskState> as FromWire<G>>::from_wire(value::SeqAccessDeserializer::new(items))
                    .map(States)
            }
        }
        fn one_state<'de, G: Spelling, D: Deserializer<'de>>(deserializer: D) -> Result<States, D::Error> {
            <AnyState as FromWire<G>>::from_wire(deserializer)
                .map(|state| States(state.0.into_iter().collect()))
        }
        deserializer.deserialize_any(OneOrMore(PhantomData::<G>))
    }
}
