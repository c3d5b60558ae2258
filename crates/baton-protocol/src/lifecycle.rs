//! A task's life: which event may follow which state, and what a task becomes by it.
//!
//! Pure. No clock, no ids made here, no storage: [`Snapshot::apply`] is the only thing that changes a
//! task, for the server's log as for a client that folds a stream.

use std::sync::Arc;

use crate::domain::{
    Artifact, ArtifactId, ArtifactUpdate, ContextId, Event, EventBody, Message, Status, StatusUpdate, Task,
    TaskId, TaskState, Timestamp, TraceContext, Transition,
};

/// A task with what its log says beyond the task object: the fold of all events up to `version`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub task: Task,
    /// Number of the last event folded in; 0 before the first.
    pub version: u64,
    /// Attempts started so far.
    pub attempts: u32,
    /// Artifacts that said `lastChunk`: nothing may be appended to them.
    pub sealed: Vec<ArtifactId>,
    /// The skill that works on the task, once it was chosen.
    pub skill: Option<Arc<str>>,
    /// The trace the task belongs to: that of the first message that had one.
    pub trace: Option<TraceContext>,
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
}

/// The transition table. A status with the state the task already has is a progress report, not a
/// transition, and is allowed while the task is working.
///
/// Beyond the seeds' table: a task may be rejected before or during its work, and `auth-required`
/// stands beside `input-required`.
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
    /// A task before its first event. It counts as submitted at the time of that event.
    pub fn begin(id: TaskId, context_id: ContextId, at: Timestamp) -> Self {
        Snapshot {
            task: Task {
                id,
                context_id,
                status: Status { state: TaskState::Submitted, message: None, timestamp: at },
                artifacts: Vec::new(),
                history: Vec::new(),
                metadata: None,
                transitions: vec![Transition { state: TaskState::Submitted, at }],
            },
            version: 0,
            attempts: 0,
            sealed: Vec::new(),
            skill: None,
            trace: None,
        }
    }

    pub fn state(&self) -> TaskState {
        self.task.status.state
    }

    /// Checks an event body against the task as it is, without changing anything.
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
        if update.append {
            if self.position(id).is_none() {
                return Err(Refused::UnknownArtifact(id.clone()));
            }
            if self.sealed.contains(id) {
                return Err(Refused::SealedArtifact(id.clone()));
            }
        }
        let expected = self.ordinal(id);
        if update.ordinal != expected {
            return Err(Refused::WrongOrdinal { id: id.clone(), expected, got: update.ordinal });
        }
        Ok(())
    }

    /// The ordinal an update of this artifact must carry: its place in the task, or the next free one.
    pub fn ordinal(&self, id: &ArtifactId) -> u32 {
        self.position(id).unwrap_or(self.task.artifacts.len()) as u32
    }

    fn position(&self, id: &ArtifactId) -> Option<usize> {
        // Appends nearly always go to the newest artifact.
        self.task.artifacts.iter().rposition(|artifact| artifact.id == *id)
    }

    /// Folds the next event in. What it holds becomes the task's, uncopied; one that is refused is gone.
    pub fn apply(&mut self, event: Event) -> Result<(), Refused> {
        if event.number != self.version + 1 {
            return Err(Refused::OutOfOrder { last: self.version, got: event.number });
        }
        self.check(&event.body)?;
        self.version = event.number;
        match event.body {
            EventBody::UserMessage { message, trace } => {
                self.trace = self.trace.take().or(trace);
                self.take_message(message);
            }
            EventBody::AttemptStarted { attempt, skill } => {
                self.attempts = attempt;
                self.skill = self.skill.take().or(skill);
            }
            EventBody::CancelRequested { .. } => {}
            EventBody::Status(update) => self.take_status(update, event.at),
            EventBody::Artifact(update) => self.take_artifact(update),
        }
        Ok(())
    }

    fn take_message(&mut self, message: Message) {
        // What the agent asked comes before what the user answered.
        self.retire_status_message();
        self.task.history.push(message);
    }

    fn take_status(&mut self, update: StatusUpdate, at: Timestamp) {
        self.retire_status_message();
        if update.state != self.state() {
            self.task.transitions.push(Transition { state: update.state, at });
        }
        self.task.status = Status { state: update.state, message: update.message, timestamp: at };
    }

    /// A status message that is replaced joins the history, so that nothing said is lost.
    fn retire_status_message(&mut self) {
        if let Some(said) = self.task.status.message.take() {
            self.task.history.push(said);
        }
    }

    fn take_artifact(&mut self, update: ArtifactUpdate) {
        let id = update.artifact.id.clone();
        match self.position(&id) {
            None => self.task.artifacts.push(update.artifact),
            Some(at) if update.append => append(&mut self.task.artifacts[at], update.artifact),
            Some(at) => {
                self.task.artifacts[at] = update.artifact;
                self.sealed.retain(|sealed| *sealed != id);
            }
        }
        if update.last_chunk {
            self.sealed.push(id);
        }
    }
}

/// Adds parts; the other members are replaced when the chunk states them.
fn append(artifact: &mut Artifact, chunk: Artifact) {
    artifact.parts.extend(chunk.parts);
    artifact.name = chunk.name.or(artifact.name.take());
    artifact.description = chunk.description.or(artifact.description.take());
    artifact.metadata = chunk.metadata.or(artifact.metadata.take());
    if !chunk.extensions.is_empty() {
        artifact.extensions = chunk.extensions;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{MessageId, Part, Role};

    fn time(n: i64) -> Timestamp {
        Timestamp::from_millis(n)
    }

    fn begin() -> Snapshot {
        Snapshot::begin(TaskId::parse("t").unwrap(), ContextId::parse("c").unwrap(), time(0))
    }

    fn status(state: TaskState) -> EventBody {
        EventBody::Status(StatusUpdate { state, message: None, metadata: None })
    }

    fn said(state: TaskState, text: &str) -> EventBody {
        EventBody::Status(StatusUpdate { state, message: Some(message(Role::Agent, text)), metadata: None })
    }

    fn message(role: Role, text: &str) -> Message {
        Message::new(MessageId::parse(text).unwrap(), role, vec![Part::text(text)])
    }

    fn chunk(id: &str, text: &str, append: bool, last_chunk: bool, ordinal: u32) -> EventBody {
        let artifact = Artifact::new(ArtifactId::parse(id).unwrap(), vec![Part::text(text)]);
        EventBody::Artifact(ArtifactUpdate { artifact, append, last_chunk, ordinal, metadata: None })
    }

    fn fold(bodies: impl IntoIterator<Item = EventBody>) -> Result<Snapshot, Refused> {
        let mut snapshot = begin();
        for (n, body) in (1..).zip(bodies) {
            snapshot.apply(Event { number: n, at: time(n as i64), body })?;
        }
        Ok(snapshot)
    }

    fn texts(artifact: &Artifact) -> Vec<&Part> {
        artifact.parts.iter().collect()
    }

    /// The seeds' table, row by row, plus `rejected` and `auth-required`.
    #[test]
    fn s05_transition_table() {
        use TaskState::*;
        let table = [
            (Submitted, vec![Working, Failed, Canceled, Rejected]),
            (Working, vec![Working, Completed, Failed, Canceled, InputRequired, AuthRequired, Rejected]),
            (InputRequired, vec![Working, Failed, Canceled]),
            (AuthRequired, vec![Working, Failed, Canceled]),
            (Completed, vec![]),
            (Failed, vec![]),
            (Canceled, vec![]),
            (Rejected, vec![]),
        ];
        assert_eq!(table.len(), TaskState::ALL.len());
        for (from, allowed) in table {
            for to in TaskState::ALL {
                assert_eq!(may_follow(from, to), allowed.contains(&to), "{from:?} -> {to:?}");
            }
        }
    }

    #[test]
    fn s04_every_state_is_reached_and_numbered_apart() {
        use TaskState::*;
        for state in TaskState::ALL {
            assert_eq!(TaskState::from_number(state.number()), Some(state));
            if !matches!(state, Submitted | Working) {
                assert_eq!(fold([status(Working), status(state)]).unwrap().state(), state);
            }
        }
        assert_eq!(begin().state(), Submitted);
    }

    #[test]
    fn s05_an_ended_task_takes_nothing() {
        for end in TaskState::ALL.into_iter().filter(|state| state.is_terminal()) {
            let ended = fold([status(TaskState::Working), status(end)]).unwrap();
            for body in [
                status(TaskState::Working),
                status(end),
                chunk("a", "x", false, false, 0),
                EventBody::said(message(Role::User, "more")),
                EventBody::AttemptStarted { attempt: 2, skill: None },
                EventBody::CancelRequested { metadata: None },
            ] {
                assert_eq!(ended.check(&body), Err(Refused::Ended(end)), "{body:?}");
            }
        }
    }

    #[test]
    fn s07_every_change_of_state_is_kept_with_its_time() {
        use TaskState::*;
        let snapshot = fold([
            status(Working),
            said(Working, "half way"),
            status(InputRequired),
            status(Working),
            status(Completed),
        ])
        .unwrap();
        let kept: Vec<_> = snapshot.task.transitions.iter().map(|t| (t.state, t.at.as_millis())).collect();
        assert_eq!(kept, [(Submitted, 0), (Working, 1), (InputRequired, 3), (Working, 4), (Completed, 5)]);
    }

    #[test]
    fn a_replaced_status_message_joins_the_history_before_the_answer() {
        let snapshot = fold([
            EventBody::said(message(Role::User, "go")),
            status(TaskState::Working),
            said(TaskState::InputRequired, "which one?"),
            EventBody::said(message(Role::User, "the blue one")),
            status(TaskState::Working),
        ])
        .unwrap();
        let history: Vec<_> = snapshot.task.history.iter().map(Message::text).collect();
        assert_eq!(history, ["go", "which one?", "the blue one"]);
        assert_eq!(snapshot.task.status.message, None);
    }

    #[test]
    fn artifacts_are_created_appended_replaced_and_sealed() {
        let working = || status(TaskState::Working);
        let snapshot = fold([
            working(),
            chunk("a", "1", false, false, 0),
            chunk("b", "x", false, true, 1),
            chunk("a", "2", true, true, 0),
        ])
        .unwrap();
        assert_eq!(texts(&snapshot.task.artifacts[0]), [&Part::text("1"), &Part::text("2")]);
        assert_eq!(texts(&snapshot.task.artifacts[1]), [&Part::text("x")]);
        assert_eq!(
            snapshot.check(&chunk("a", "3", true, false, 0)),
            Err(Refused::SealedArtifact(ArtifactId::parse("a").unwrap()))
        );

        let replaced =
            fold([working(), chunk("a", "1", false, true, 0), chunk("a", "new", false, false, 0)]).unwrap();
        assert_eq!(texts(&replaced.task.artifacts[0]), [&Part::text("new")]);
        assert_eq!(replaced.check(&chunk("a", "more", true, false, 0)), Ok(()));
    }

    #[test]
    fn artifact_faults_are_named() {
        let id = |text: &str| ArtifactId::parse(text).unwrap();
        let empty = EventBody::Artifact(ArtifactUpdate {
            artifact: Artifact::new(id("a"), Vec::new()),
            append: false,
            last_chunk: false,
            ordinal: 0,
            metadata: None,
        });
        for (body, refused) in [
            (empty, Refused::EmptyArtifact(id("a"))),
            (chunk("a", "x", true, false, 0), Refused::UnknownArtifact(id("a"))),
            (chunk("a", "x", false, false, 3), Refused::WrongOrdinal { id: id("a"), expected: 0, got: 3 }),
        ] {
            assert_eq!(fold([status(TaskState::Working), body]), Err(refused));
        }
    }

    #[test]
    fn numbers_have_no_gap() {
        let mut snapshot = begin();
        let event = |number| Event { number, at: time(1), body: status(TaskState::Working) };
        assert_eq!(snapshot.apply(event(2)), Err(Refused::OutOfOrder { last: 0, got: 2 }));
        assert_eq!(snapshot.apply(event(1)), Ok(()));
        assert_eq!(snapshot.apply(event(1)), Err(Refused::OutOfOrder { last: 1, got: 1 }));
    }
}
