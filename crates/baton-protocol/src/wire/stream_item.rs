//! An item of a stream, as a client reads it: the same in every generation that has contexts.

use crate::domain::{ArtifactUpdate, ContextId, Message, StatusUpdate, Task, TaskId, Timestamp};

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamItem {
    Task(Task),
    Message(Message),
    Status {
        task_id: TaskId,
        context_id: ContextId,
        at: Timestamp,
        update: StatusUpdate,
    },
    /// The ordinal is not on the wire: it is 0 here, and `lifecycle` sets the right one.
    Artifact {
        task_id: TaskId,
        context_id: ContextId,
        update: ArtifactUpdate,
    },
}

pub(crate) struct StatusEvent {
    pub(crate) task_id: TaskId,
    pub(crate) context_id: ContextId,
    pub(crate) at: Timestamp,
    pub(crate) update: StatusUpdate,
}

impl From<StatusEvent> for StreamItem {
    fn from(StatusEvent { task_id, context_id, at, update }: StatusEvent) -> Self {
        StreamItem::Status { task_id, context_id, at, update }
    }
}

pub(crate) struct ArtifactEvent {
    pub(crate) task_id: TaskId,
    pub(crate) context_id: ContextId,
    pub(crate) update: ArtifactUpdate,
}

impl From<ArtifactEvent> for StreamItem {
    fn from(ArtifactEvent { task_id, context_id, update }: ArtifactEvent) -> Self {
        StreamItem::Artifact { task_id, context_id, update }
    }
}
