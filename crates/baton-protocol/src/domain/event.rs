//! What a task's log is made of. A task is the fold of its events, numbered 1, 2, 3…

use std::sync::Arc;

use super::{Artifact, JsonObject, Message, SendDetails, TaskState, Timestamp, TraceContext};

/// One entry of a task's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Position in the log: the SSE id, the resume cursor and the task's version.
    pub number: u64,
    /// When it happened.
    pub at: Timestamp,
    /// What happened.
    pub body: EventBody,
}

/// What can happen to a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventBody {
    /// The user said something; the first one brings the task to life.
    UserMessage {
        /// What was said.
        message: Message,
        /// The trace the message was sent in.
        trace: Option<TraceContext>,
        /// What was sent with it.
        details: SendDetails,
    },
    /// An executor is about to be called for the k-th time.
    AttemptStarted {
        /// k.
        attempt: u32,
        /// The skill that was chosen: later turns stay with it, though the choice might fall otherwise by then.
        skill: Option<Arc<str>>,
    },
    /// Somebody asked for the task to be canceled.
    CancelRequested {
        /// As the caller sent it.
        metadata: Option<JsonObject>,
    },
    /// The task's state changed, or something was said about it.
    Status(StatusUpdate),
    /// An artifact came into being, or grew.
    Artifact(ArtifactUpdate),
}

/// A change of state, or a word on the same one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusUpdate {
    /// The state from here on.
    pub state: TaskState,
    /// What the agent says with it.
    pub message: Option<Message>,
    /// For extensions.
    pub metadata: Option<JsonObject>,
}

/// An artifact, whole or a piece of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactUpdate {
    /// Its parts are those of this piece.
    pub artifact: Artifact,
    /// Adds the parts to the artifact of that id; otherwise the artifact is created or replaced.
    pub append: bool,
    /// With `append`: the first part is a text that goes on with the artifact's last one. Told by the log, never by a
    /// frame.
    pub joins: bool,
    /// No more parts will be added.
    pub last_chunk: bool,
    /// Position of the artifact in the task, stamped by `lifecycle`: the legacy `index`.
    pub ordinal: u32,
    /// For extensions.
    pub metadata: Option<JsonObject>,
}

/// The kind alone, as kept next to each stored event so that a reader can skip without decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// See [`EventBody::UserMessage`].
    UserMessage,
    /// See [`EventBody::AttemptStarted`].
    AttemptStarted,
    /// See [`EventBody::CancelRequested`].
    CancelRequested,
    /// With the state it leads to.
    Status(TaskState),
    /// See [`EventBody::Artifact`].
    Artifact,
}

impl EventKind {
    /// Internal kinds have a number but no frame: the only holes a stream may show.
    pub fn is_internal(self) -> bool {
        matches!(self, Self::UserMessage | Self::AttemptStarted | Self::CancelRequested)
    }
}

impl EventBody {
    /// A user's message outside any trace, with nothing beside it.
    pub fn said(message: Message) -> Self {
        Self::UserMessage { message, trace: None, details: SendDetails::default() }
    }

    /// Its kind alone.
    pub fn kind(&self) -> EventKind {
        match self {
            Self::UserMessage { .. } => EventKind::UserMessage,
            Self::AttemptStarted { .. } => EventKind::AttemptStarted,
            Self::CancelRequested { .. } => EventKind::CancelRequested,
            Self::Status(update) => EventKind::Status(update.state),
            Self::Artifact(_) => EventKind::Artifact,
        }
    }
}
