//! A client's fold: computes the task from what a peer's stream shows.
//!
//! More lenient than [`Snapshot::apply`], which guards a log of our own. Peers skip states (submitted, then completed),
//! append to artifacts whose beginning was missed, or repeat a last chunk; a client that refused that would show less
//! than it was told. Only what would change an ended task is refused.

use super::{Refused, Snapshot};
use crate::domain::{ArtifactUpdate, ContextId, Message, SendDetails, StatusUpdate, Task, TaskId, Timestamp};
use crate::wire::StreamItem;

/// What a stream has shown so far: a task, a message, or nothing yet.
#[derive(Debug, Clone, Default)]
pub struct Fold {
    snapshot: Option<Snapshot>,
    message: Option<Message>,
}

impl Fold {
    /// Begins with a task that is already known.
    pub fn of(task: Task) -> Self {
        Fold { snapshot: Some(known(task)), message: None }
    }

    /// The task so far.
    pub fn task(&self) -> Option<&Task> {
        self.snapshot.as_ref().map(|snapshot| &snapshot.task)
    }

    /// The message that answered instead of a task.
    pub fn message(&self) -> Option<&Message> {
        self.message.as_ref()
    }

    pub fn into_task(self) -> Option<Task> {
        self.snapshot.map(|snapshot| snapshot.task)
    }

    /// Takes the next item of the stream.
    pub fn take(&mut self, item: &StreamItem) -> Result<(), Refused> {
        match item {
            StreamItem::Task(task) => self.snapshot = Some(known(task.clone())),
            StreamItem::Message(message) => self.message = Some(message.clone()),
            StreamItem::Status { task_id, context_id, at, update } => {
                self.open(task_id, context_id, *at)?.observe_status(update.clone(), *at);
            }
            StreamItem::Artifact { task_id, context_id, update } => {
                // An artifact has no time of its own.
                let at = self.task().map_or(Timestamp::from_millis(0), |task| task.status.timestamp);
                self.open(task_id, context_id, at)?.observe_artifact(update.clone());
            }
        }
        Ok(())
    }

    /// The task that an update is for. Streams of 0.1, and resumed ones, begin without a task.
    fn open(&mut self, id: &TaskId, context_id: &ContextId, at: Timestamp) -> Result<&mut Snapshot, Refused> {
        let snapshot =
            self.snapshot.get_or_insert_with(|| Snapshot::begin(id.clone(), context_id.clone(), at));
        if snapshot.task.id != *id {
            return Err(Refused::OtherTask { expected: snapshot.task.id.clone(), got: id.clone() });
        }
        match snapshot.state() {
            state if state.is_terminal() => Err(Refused::Ended(state)),
            _ => Ok(snapshot),
        }
    }
}

fn known(task: Task) -> Snapshot {
    Snapshot::restore(task, 0, 0, &[], None, None, SendDetails::default())
}

impl Snapshot {
    fn observe_status(&mut self, update: StatusUpdate, at: Timestamp) {
        self.take_status(update, at);
    }

    fn observe_artifact(&mut self, mut update: ArtifactUpdate) {
        update.ordinal = self.ordinal(&update.artifact.id);
        self.artifacts.take(&mut self.task.artifacts, update);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Artifact, ArtifactId, Part, Status, TaskState};

    fn task(state: TaskState) -> Task {
        Task {
            id: TaskId::parse("t").unwrap(),
            context_id: ContextId::parse("c").unwrap(),
            status: Status { state, message: None, timestamp: Timestamp::from_millis(1) },
            artifacts: Vec::new(),
            history: Vec::new(),
            metadata: None,
            transitions: Vec::new(),
        }
    }

    fn status(id: &str, state: TaskState) -> StreamItem {
        StreamItem::Status {
            task_id: TaskId::parse(id).unwrap(),
            context_id: ContextId::parse("c").unwrap(),
            at: Timestamp::from_millis(2),
            update: StatusUpdate { state, message: None, metadata: None },
        }
    }

    fn chunk(text: &str, append: bool, last_chunk: bool) -> StreamItem {
        let artifact = Artifact::new(ArtifactId::parse("a").unwrap(), vec![Part::text(text)]);
        StreamItem::Artifact {
            task_id: TaskId::parse("t").unwrap(),
            context_id: ContextId::parse("c").unwrap(),
            update: ArtifactUpdate { artifact, append, joins: false, last_chunk, ordinal: 7, metadata: None },
        }
    }

    #[test]
    fn states_may_be_skipped() {
        let mut fold = Fold::of(task(TaskState::Submitted));
        fold.take(&status("t", TaskState::Completed)).unwrap();
        assert_eq!(fold.task().unwrap().status.state, TaskState::Completed);
        let refused = fold.take(&status("t", TaskState::Working));
        assert_eq!(refused, Err(Refused::Ended(TaskState::Completed)));
    }

    #[test]
    fn a_stream_may_begin_without_its_task() {
        let mut fold = Fold::default();
        fold.take(&chunk("one", true, true)).unwrap();
        fold.take(&chunk("two", true, true)).unwrap();
        let task = fold.task().unwrap();
        assert_eq!(task.artifacts[0].parts, [Part::text("one"), Part::text("two")]);
        assert!(matches!(fold.take(&status("another", TaskState::Working)), Err(Refused::OtherTask { .. })));
    }
}
