//! Tasks, their states and their artifacts.

use std::sync::Arc;

use super::{ArtifactId, ContextId, JsonObject, Message, Part, TaskId, Timestamp};

/// A unit of work: the fold of its log.
///
/// What was said and what came out may be large, and a task is held by several at once (its run, its agent, whoever
/// waits for it): they share both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Unique within its scope.
    pub id: TaskId,
    /// The conversation it belongs to.
    pub context_id: ContextId,
    /// Where it stands.
    pub status: Status,
    /// What came out of it so far.
    pub artifacts: Vec<Arc<Artifact>>,
    /// What was said, oldest first.
    pub history: Vec<Arc<Message>>,
    /// For extensions.
    pub metadata: Option<JsonObject>,
    /// Every change of state with its time, oldest first: the state history of the older generations.
    pub transitions: Vec<Transition>,
}

/// A change of state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// To this state.
    pub state: TaskState,
    /// At this time.
    pub at: Timestamp,
}

/// Where a task stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Its state.
    pub state: TaskState,
    /// What the agent said with it.
    pub message: Option<Message>,
    /// Since when.
    pub timestamp: Timestamp,
}

/// The eight states of a task's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TaskState {
    /// Taken in; nobody works on it yet.
    Submitted,
    /// Somebody works on it.
    Working,
    /// The agent asked something.
    InputRequired,
    /// The agent waits for an authorisation.
    AuthRequired,
    /// Ended well.
    Completed,
    /// Ended badly; the status says why.
    Failed,
    /// Ended at the client's wish.
    Canceled,
    /// The agent would not do it.
    Rejected,
}

impl TaskState {
    /// Each of them once.
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

    /// Final: nothing may change a task in such a state.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Rejected)
    }

    /// Waiting for the other side.
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

    /// The state of a stored number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.number() == number)
    }
}

/// Something that came out of a task.
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
    /// URIs of the extensions that take part in it.
    pub extensions: Vec<String>,
}

impl Artifact {
    /// An artifact with nothing optional in it.
    pub fn new(id: ArtifactId, parts: Vec<Part>) -> Self {
        Artifact { id, name: None, description: None, parts, metadata: None, extensions: Vec::new() }
    }
}
