//! Tasks, their states and their artifacts.

use std::sync::Arc;

use super::{ArtifactId, ContextId, JsonObject, Message, Part, TaskId, Timestamp};

/// A unit of work, computed from its log.
///
/// Messages and artifacts may be large, and several owners hold a task at once (its run, its agent, requests that wait
/// for it), so these are shared by `Arc`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Unique within its scope.
    pub id: TaskId,
    /// The conversation it belongs to.
    pub context_id: ContextId,
    /// The current status.
    pub status: Status,
    /// The artifacts so far.
    pub artifacts: Vec<Arc<Artifact>>,
    /// The messages, oldest first.
    pub history: Vec<Arc<Message>>,
    /// For extensions.
    pub metadata: Option<JsonObject>,
    /// Every change of state with its time, oldest first: the state history of the older generations.
    pub transitions: Vec<Transition>,
}

/// A change of state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// The new state.
    pub state: TaskState,
    /// The time of the change.
    pub at: Timestamp,
}

/// The status of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Its state.
    pub state: TaskState,
    /// The agent's message about it.
    pub message: Option<Message>,
    /// The time of the last change.
    pub timestamp: Timestamp,
}

/// The eight states of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TaskState {
    /// Accepted; the agent has not started yet.
    Submitted,
    /// The agent works on it.
    Working,
    /// The agent waits for an answer.
    InputRequired,
    /// The agent waits for an authorisation.
    AuthRequired,
    /// Ended successfully.
    Completed,
    /// Ended with a failure; the status says why.
    Failed,
    /// Ended because the client canceled it.
    Canceled,
    /// The agent refused it.
    Rejected,
}

impl TaskState {
    /// All states.
    pub const ALL: [TaskState; 8] = [
        TaskState::Submitted,
        TaskState::Working,
        TaskState::InputRequired,
        TaskState::AuthRequired,
        TaskState::Completed,
        TaskState::Failed,
        TaskState::Canceled,
        TaskState::Rejected,
    ];

    /// True for final states: nothing may change a task in such a state.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Rejected)
    }

    /// True for states in which the task waits for the client.
    pub fn is_interrupted(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }

    /// Stable number used in stores; never renumber (it is the protobuf number, too).
    pub fn number(self) -> u8 {
        match self {
            Self::Submitted => 1,
            Self::Working => 2,
            Self::Completed => 3,
            Self::Failed => 4,
            Self::Canceled => 5,
            Self::InputRequired => 6,
            Self::Rejected => 7,
            Self::AuthRequired => 8,
        }
    }

    /// The state with a stored number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.number() == number)
    }
}

/// A result of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// Unique within its task.
    pub id: ArtifactId,
    /// For people.
    pub name: Option<String>,
    /// For people and models.
    pub description: Option<String>,
    /// Its content.
    pub parts: Vec<Part>,
    /// For extensions.
    pub metadata: Option<JsonObject>,
    /// URIs of the extensions that it uses.
    pub extensions: Vec<String>,
}

impl Artifact {
    /// An artifact with nothing optional in it.
    pub fn new(id: ArtifactId, parts: Vec<Part>) -> Self {
        Artifact { id, name: None, description: None, parts, metadata: None, extensions: Vec::new() }
    }
}
