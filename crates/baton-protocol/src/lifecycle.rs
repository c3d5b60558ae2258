//! The lifecycle of a task: which event may follow which state, and how it changes the task.
//!
//! Pure: no clock, no id generation, no storage. [`Snapshot::apply`] is the only function that changes a task, both for
//! the server's log and for a client that folds a stream.

mod artifacts;
mod fold;

use std::sync::Arc;

use crate::domain::{
    ArtifactId, ArtifactUpdate, ContextId, Event, EventBody, Message, SendDetails, Status, StatusUpdate,
    Task, TaskId, TaskState, Timestamp, TraceContext, Transition,
};
use artifacts::Index;
pub use fold::{Fold, say_the_same};

/// A task after all events up to `version`, with data of the log that the task object does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub task: Task,
    /// The number of the last applied event; 0 before the first.
    pub version: u64,
    /// Attempts started so far.
    pub attempts: u32,
    /// The skill that works on the task, once it was chosen.
    pub skill: Option<Arc<str>>,
    /// The trace the task belongs to: that of the first message that had one.
    pub trace: Option<TraceContext>,
    artifacts: Index,
    /// Other members of the request with the user's latest message.
    pub details: SendDetails,
}

/// Why an event may not be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("event {got} does not follow event {last}")]
    OutOfOrder { last: u64, got: u64 },
    #[error("the task has ended ({0:?}) and cannot change any more")]
    Ended(TaskState),
    #[error("a task cannot go from {from:?} to {to:?}")]
    Transition { from: TaskState, to: TaskState },
    #[error("artifact {0} has no parts")]
    EmptyArtifact(ArtifactId),
    #[error("parts were appended to artifact {0}, which does not exist")]
    UnknownArtifact(ArtifactId),
    #[error("parts were appended to artifact {0} after its last chunk")]
    SealedArtifact(ArtifactId),
    #[error("artifact {id} has ordinal {expected}, not {got}")]
    WrongOrdinal { id: ArtifactId, expected: u32, got: u32 },
    #[error("an event of task {got} on the stream of task {expected}")]
    OtherTask { expected: TaskId, got: TaskId },
    #[error("an event of context {got} on the stream of a task of context {expected}")]
    OtherContext { expected: ContextId, got: ContextId },
}

/// The transition table. A status with the state the task already has is a progress report, not a
/// transition, and is allowed while the task is working.
///
/// A task may be rejected before or during its work. `auth-required` follows the same rules as `input-required`.
pub fn may_follow(from: TaskState, to: TaskState) -> bool {
    use TaskState::*;
    match from {
        Submitted => matches!(to, Working | Failed | Canceled | Rejected),
        Working => !matches!(to, Submitted),
        InputRequired | AuthRequired => matches!(to, Working | Failed | Canceled),
        Completed | Failed | Canceled | Rejected => false,
    }
}

impl Snapshot {
    /// A task before its first event. Its state is submitted, at the time of that event.
    pub fn begin(id: TaskId, context_id: ContextId, at: Timestamp) -> Self {
        // Capacity for one message, and for the three states of a task that completes: cheaper than growing later.
        let history = Vec::with_capacity(4);
        let mut transitions = Vec::with_capacity(4);
        transitions.push(Transition { state: TaskState::Submitted, at });
        Snapshot {
            task: Task {
                id,
                context_id,
                status: Status { state: TaskState::Submitted, message: None, timestamp: at },
                artifacts: Vec::new(),
                history,
                metadata: None,
                transitions,
            },
            version: 0,
            attempts: 0,
            skill: None,
            trace: None,
            artifacts: Index::default(),
            details: SendDetails::default(),
        }
    }

    /// Restores a stored snapshot. `sealed` names the artifacts whose last chunk was received.
    pub fn restore(
        task: Task,
        version: u64,
        attempts: u32,
        sealed: &[ArtifactId],
        skill: Option<Arc<str>>,
        trace: Option<TraceContext>,
        details: SendDetails,
    ) -> Self {
        let artifacts = Index::of(&task.artifacts, sealed);
        Snapshot { task, version, attempts, skill, trace, artifacts, details }
    }

    pub fn state(&self) -> TaskState {
        self.task.status.state
    }

    /// Checks whether an event may be applied, without changing anything.
    pub fn check(&self, body: &EventBody) -> Result<(), Refused> {
        let state = self.state();
        if state.is_terminal() {
            return Err(Refused::Ended(state));
        }
        match body {
            EventBody::UserMessage { .. }
            | EventBody::AttemptStarted { .. }
            | EventBody::CancelRequested { .. } => Ok(()),
            EventBody::Status(update) if may_follow(state, update.state) => Ok(()),
            EventBody::Status(update) => Err(Refused::Transition { from: state, to: update.state }),
            EventBody::Artifact(update) => self.check_artifact(update),
        }
    }

    fn check_artifact(&self, update: &ArtifactUpdate) -> Result<(), Refused> {
        let id = &update.artifact.id;
        if update.artifact.parts.is_empty() {
            return Err(Refused::EmptyArtifact(id.clone()));
        }
        let position = self.position(id);
        if update.append {
            match position {
                None => return Err(Refused::UnknownArtifact(id.clone())),
                Some(at) if self.artifacts.is_sealed(at) => return Err(Refused::SealedArtifact(id.clone())),
                Some(_) => {}
            }
        }
        let expected = position.unwrap_or(self.task.artifacts.len()) as u32;
        if update.ordinal != expected {
            return Err(Refused::WrongOrdinal { id: id.clone(), expected, got: update.ordinal });
        }
        Ok(())
    }

    /// The ordinal that an update of this artifact must have: its position in the task, or the next free one.
    pub fn ordinal(&self, id: &ArtifactId) -> u32 {
        self.position(id).unwrap_or(self.task.artifacts.len()) as u32
    }

    /// Artifacts whose last chunk was received: nothing may be appended to them.
    pub fn sealed(&self) -> impl Iterator<Item = &ArtifactId> {
        let artifacts = self.task.artifacts.iter().enumerate();
        artifacts.filter(|(at, _)| self.artifacts.is_sealed(*at)).map(|(_, artifact)| &artifact.id)
    }

    /// True if the artifact at that position is sealed.
    pub fn is_sealed(&self, at: usize) -> bool {
        self.artifacts.is_sealed(at)
    }

    /// The number of messages so far, including the status message.
    pub fn messages(&self) -> usize {
        self.task.history.len() + usize::from(self.task.status.message.is_some())
    }

    /// The size of all artifacts: text, files and data.
    pub fn artifact_bytes(&self) -> u64 {
        self.artifacts.bytes()
    }

    fn position(&self, id: &ArtifactId) -> Option<usize> {
        self.artifacts.position(&self.task.artifacts, id)
    }

    /// Applies the next event. Its content is moved into the task; a refused event is dropped.
    pub fn apply(&mut self, event: Event) -> Result<(), Refused> {
        if event.number != self.version + 1 {
            return Err(Refused::OutOfOrder { last: self.version, got: event.number });
        }
        self.check(&event.body)?;
        self.version = event.number;
        match event.body {
            EventBody::UserMessage { message, trace, details } => {
                self.trace = self.trace.take().or(trace);
                self.details = details;
                self.take_message(message);
            }
            EventBody::AttemptStarted { attempt, skill } => {
                self.attempts = attempt;
                self.skill = self.skill.take().or(skill);
            }
            EventBody::CancelRequested { .. } => {}
            EventBody::Status(update) => self.take_status(update, event.at),
            EventBody::Artifact(update) => self.artifacts.take(&mut self.task.artifacts, update),
        }
        Ok(())
    }

    fn take_message(&mut self, message: Message) {
        // The agent's question comes before the user's answer.
        self.retire_status_message();
        self.task.history.push(Arc::new(message));
    }

    fn take_status(&mut self, update: StatusUpdate, at: Timestamp) {
        self.retire_status_message();
        if update.state != self.state() {
            self.task.transitions.push(Transition { state: update.state, at });
        }
        self.task.status = Status { state: update.state, message: update.message, timestamp: at };
        // A status has no member for this metadata, so it goes to the task, where later readers find it.
        if update.state.is_terminal() && update.metadata.is_some() {
            self.task.metadata = update.metadata;
        }
    }

    /// A status message that is replaced is added to the history, so that no message is lost.
    fn retire_status_message(&mut self) {
        if let Some(said) = self.task.status.message.take() {
            self.task.history.push(Arc::new(said));
        }
    }
}

#[cfg(test)]
mod tests;
