//! A client's fold: computes the task from what a peer's stream shows.
//!
//! More lenient than [`Snapshot::apply`], which guards a log of our own. Peers skip states (submitted, then completed),
//! append to artifacts whose beginning was missed, or repeat a last chunk; a client that refused that would show less
//! than it was told. Only what would change an ended task is refused.

use std::sync::Arc;

use super::artifacts::joined;
use super::{Refused, Snapshot};
use crate::domain::{
    Artifact, ArtifactUpdate, ContextId, Message, SendDetails, StatusUpdate, Task, TaskId, Timestamp,
};
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
            StreamItem::Task(task) => {
                self.check(&task.id, &task.context_id)?;
                self.snapshot = Some(known(task.clone()));
            }
            StreamItem::Message(message) => self.message = Some(message.clone()),
            StreamItem::Status { task_id, context_id, at, update } => {
                self.open(task_id, context_id, *at)?.observe_status(update.clone(), *at);
            }
            StreamItem::Artifact { task_id, context_id, update } => {
                // An artifact has no time of its own.
                let at = self.task().map_or(Timestamp::UNKNOWN, |task| task.status.timestamp);
                self.open(task_id, context_id, at)?.observe_artifact(update.clone());
            }
        }
        Ok(())
    }

    /// Whether an item is about this task.
    fn check(&self, id: &TaskId, context_id: &ContextId) -> Result<(), Refused> {
        let Some(task) = self.task() else { return Ok(()) };
        if task.id != *id {
            return Err(Refused::OtherTask { expected: task.id.clone(), got: id.clone() });
        }
        // Without a context of its own, an item counts as one of the task's own context.
        let is_named = |context: &ContextId| context.as_str() != id.as_str();
        if task.context_id != *context_id && is_named(context_id) && is_named(&task.context_id) {
            let (expected, got) = (task.context_id.clone(), context_id.clone());
            return Err(Refused::OtherContext { expected, got });
        }
        Ok(())
    }

    /// The task that an update is for. Streams of 0.1, and resumed ones, begin without a task.
    fn open(&mut self, id: &TaskId, context_id: &ContextId, at: Timestamp) -> Result<&mut Snapshot, Refused> {
        self.check(id, context_id)?;
        let snapshot =
            self.snapshot.get_or_insert_with(|| Snapshot::begin(id.clone(), context_id.clone(), at));
        match snapshot.state() {
            state if state.is_terminal() => Err(Refused::Ended(state)),
            _ => Ok(snapshot),
        }
    }
}

/// Whether two views of a task say the same. A server knows which pieces of streamed text belong together, and has them as
/// one part; on the wire each piece is a part. Transitions are left out: only events tell them.
pub fn say_the_same(one: &Task, other: &Task) -> bool {
    let Task { id, context_id, status, artifacts, history, metadata, transitions: _ } = one;
    let same_artifact = |(one, other): (&Arc<Artifact>, &Arc<Artifact>)| {
        let Artifact { id, name, description, parts, metadata, extensions } = &**one;
        (id, name, description, metadata, extensions)
            == (&other.id, &other.name, &other.description, &other.metadata, &other.extensions)
            && (*parts == other.parts || joined(parts) == joined(&other.parts))
    };
    (id, context_id, status, history, metadata)
        == (&other.id, &other.context_id, &other.status, &other.history, &other.metadata)
        && artifacts.len() == other.artifacts.len()
        && artifacts.iter().zip(&other.artifacts).all(same_artifact)
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
    use crate::domain::{ArtifactId, Part, Status, TaskState};

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

    #[test]
    fn pieces_of_a_text_say_the_same_as_the_text() {
        let told = |pieces: &[&str]| {
            let mut fold = Fold::of(task(TaskState::Working));
            pieces.iter().for_each(|piece| fold.take(&chunk(piece, true, false)).unwrap());
            fold.take(&status("t", TaskState::Completed)).unwrap();
            fold.into_task().unwrap()
        };
        assert_ne!(told(&["one", "two", ""]), told(&["onetwo"]));
        assert!(say_the_same(&told(&["one", "two", ""]), &told(&["onetwo"])));
        assert!(!say_the_same(&told(&["one", "two"]), &told(&["one"])));
        assert!(!say_the_same(&told(&["one"]), &Fold::of(task(TaskState::Completed)).into_task().unwrap()));
    }

    /// A whole task in the middle of a stream replaces what was known, unless it is another one.
    #[test]
    fn p09_neither_another_task_nor_another_context_is_taken() {
        let mut fold = Fold::of(task(TaskState::Working));
        let mut other = task(TaskState::Completed);
        other.id = TaskId::parse("another").unwrap();
        assert!(matches!(fold.take(&StreamItem::Task(other)), Err(Refused::OtherTask { .. })));
        let mut elsewhere = status("t", TaskState::Completed);
        let StreamItem::Status { context_id, .. } = &mut elsewhere else { unreachable!() };
        *context_id = ContextId::parse("another").unwrap();
        assert!(matches!(fold.take(&elsewhere), Err(Refused::OtherContext { .. })));
        // No context was named: the codecs put the task's id there.
        let StreamItem::Status { context_id, .. } = &mut elsewhere else { unreachable!() };
        *context_id = ContextId::parse("t").unwrap();
        fold.take(&elsewhere).unwrap();
        assert_eq!(fold.task().unwrap().context_id.as_str(), "c");
    }
}
