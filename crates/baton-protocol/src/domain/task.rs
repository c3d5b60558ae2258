//! Tasks, their states and their artifacts.

use super::{ArtifactId, ContextId, JsonObject, Message, Part, TaskId, Timestamp};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    pub id: TaskId,
    pub context_id: ContextId,
    pub status: Status,
    pub artifacts: Vec<Artifact>,
    pub history: Vec<Message>,
    pub metadata: Option<JsonObject>,
    /// Every change of state with its time, oldest first: the state history of the older generations.
    pub transitions: Vec<Transition>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    pub state: TaskState,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    pub state: TaskState,
    pub message: Option<Message>,
    pub timestamp: Timestamp,
}

/// The eight states of a task's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TaskState {
    Submitted,
    Working,
    InputRequired,
    AuthRequired,
    Completed,
    Failed,
    Canceled,
    Rejected,
}

impl TaskState {
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

    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.number() == number)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    pub id: ArtifactId,
    pub name: Option<String>,
    pub description: Option<String>,
    pub parts: Vec<Part>,
    pub metadata: Option<JsonObject>,
    pub extensions: Vec<String>,
}

impl Artifact {
    pub fn new(id: ArtifactId, parts: Vec<Part>) -> Self {
        Artifact { id, name: None, description: None, parts, metadata: None, extensions: Vec::new() }
    }
}
