//! The events of a task's log, numbered 1, 2, 3… A task is computed from its events (folded).

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
    /// A message from the user; the first one creates the task.
    UserMessage {
        /// The message.
        message: Message,
        /// The trace that the message was sent in.
        trace: Option<TraceContext>,
        /// Other members of the request.
        details: SendDetails,
    },
    /// The agent is about to be called for the k-th time.
    AttemptStarted {
        /// k. 0 if the task is queued and the agent has not been called: the event only says which skill was chosen.
        attempt: u32,
        /// The skill that was chosen. Later turns use the same skill, even if routing would choose another by then.
        skill: Option<Arc<str>>,
    },
    /// A client asked to cancel the task.
    CancelRequested {
        /// As the caller sent it.
        metadata: Option<JsonObject>,
    },
    /// The task's state changed, or the agent reported progress.
    Status(StatusUpdate),
    /// An artifact was created, replaced or extended.
    Artifact(ArtifactUpdate),
}

/// A change of state, or a progress report in the same state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusUpdate {
    /// The new state.
    pub state: TaskState,
    /// The agent's message about it.
    pub message: Option<Message>,
    /// For extensions.
    pub metadata: Option<JsonObject>,
}

/// An artifact or a piece of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactUpdate {
    /// The artifact; its parts are those of this piece.
    pub artifact: Artifact,
    /// Adds the parts to the artifact of that id; otherwise the artifact is created or replaced.
    pub append: bool,
    /// With `append`: the first part is a text that continues the artifact's last part. Stored in the log, never sent
    /// in a frame.
    pub joins: bool,
    /// No more parts will be added.
    pub last_chunk: bool,
    /// Position of the artifact in the task, stamped by `lifecycle`: the legacy `index`.
    pub ordinal: u32,
    /// For extensions.
    pub metadata: Option<JsonObject>,
}

/// The kind of an event. Stored next to each event, so that code can skip events without decoding them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// See [`EventBody::UserMessage`].
    UserMessage,
    /// See [`EventBody::AttemptStarted`].
    AttemptStarted,
    /// See [`EventBody::CancelRequested`].
    CancelRequested,
    /// With the new state.
    Status(TaskState),
    /// See [`EventBody::Artifact`].
    Artifact,
}

impl EventKind {
    /// Internal events have a number but are not sent: they are the only gaps in a stream's numbers.
    pub fn is_internal(self) -> bool {
        matches!(self, Self::UserMessage | Self::AttemptStarted | Self::CancelRequested)
    }
}

impl EventBody {
    /// A user's message without a trace or other details.
    pub fn said(message: Message) -> Self {
        Self::UserMessage { message, trace: None, details: SendDetails::default() }
    }

    /// The event's kind.
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
