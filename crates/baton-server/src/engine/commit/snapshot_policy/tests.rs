//! What all snapshots of a task cost, and what its readers have to read, for tasks of many shapes.

use baton_protocol::domain::{
    Artifact, ArtifactId, ArtifactUpdate, ContextId, EventBody, Message, MessageId, Part, Role, StatusUpdate,
    TaskId, TaskState, Timestamp,
};

use super::*;
use crate::engine::commit::write_event;
use crate::store::{EventBatch, StoredSnapshot};

/// A task that grows, and what was written for it.
struct Growing {
    task: Snapshot,
    since: SinceSnapshot,
    options: Options,
    log: usize,
    snapshots: usize,
    /// Of the last snapshot.
    kept: usize,
    told: u64,
    tail: usize,
}

impl Growing {
    fn new() -> Self {
        let (id, context) = (TaskId::parse("t").unwrap(), ContextId::parse("c").unwrap());
        Growing {
            task: Snapshot::begin(id, context, Timestamp::from_millis(0)),
            since: SinceSnapshot::default(),
            options: Options::default(),
            log: 0,
            snapshots: 0,
            kept: 0,
            told: 0,
            tail: 0,
        }
    }

    /// One append of these.
    fn say(&mut self, bodies: impl IntoIterator<Item = EventBody>) {
        let mut events = EventBatch::with_room_for(1);
        for body in bodies {
            write_event(&mut self.task, Timestamp::from_millis(1), body, &mut events).unwrap();
        }
        let events = events.finish();
        let bytes = bytes(&events);
        self.log += bytes;
        self.tail += bytes;
        let state = self.task.state();
        let rests = state.is_terminal() || state.is_interrupted();
        let next = Next { events: &events, task: &self.task, rests };
        if self.since.is_due(&next, &self.options).is_some() {
            let kept = StoredSnapshot::encode(&self.task).record().len();
            (self.kept, self.told, self.tail) = (kept, self.task.version, 0);
            self.snapshots += kept;
        }
    }

    /// The user says so many bytes, and the agent asks for more.
    fn turn(&mut self, bytes: usize) {
        let id = MessageId::parse(&self.task.version.to_string()).unwrap();
        let said = Message::new(id, Role::User, vec![Part::text("x".repeat(bytes))]);
        self.say([EventBody::said(said), status(TaskState::Working)]);
        self.say([status(TaskState::InputRequired)]);
    }

    fn artifact(&mut self, id: &str, bytes: usize, append: bool) {
        let artifact = Artifact::new(ArtifactId::parse(id).unwrap(), vec![Part::text("y".repeat(bytes))]);
        let ordinal = self.task.ordinal(&artifact.id);
        let (joins, metadata) = (append, None);
        let update = ArtifactUpdate { artifact, append, joins, last_chunk: false, ordinal, metadata };
        self.say([EventBody::Artifact(update)]);
    }

    fn check(&self, what: &str) {
        let written = self.log + self.snapshots;
        assert!(written <= 3 * self.log, "{what}: {written} bytes were written for {}", self.log);
        let (read, whole) = (self.kept + self.tail, StoredSnapshot::encode(&self.task).record().len());
        assert!(read <= 3 * whole + LARGE, "{what}: {read} bytes are read for a task of {whole}");
    }
}

fn status(state: TaskState) -> EventBody {
    EventBody::Status(StatusUpdate { state, message: None, metadata: None })
}

#[test]
fn s22_what_is_written_grows_with_what_was_said_and_so_does_what_is_read() {
    let working = |task: &mut Growing| task.say([status(TaskState::Working)]);
    type Grow = fn(&mut Growing);
    let shapes: &[(&str, Grow)] = &[
        ("a hundred long turns", |task| (0..100).for_each(|_| task.turn(64 * 1024))),
        ("many short turns", |task| (0..400).for_each(|_| task.turn(1024))),
        ("one long message", |task| task.turn(1024 * 1024)),
        ("many artifacts", |task| (0..3_000).for_each(|n| task.artifact(&n.to_string(), 1, false))),
        ("streamed text", |task| (0..3_000).for_each(|n| task.artifact("a", 20, n > 0))),
        ("long pieces", |task| (0..64).for_each(|n| task.artifact("a", 32 * 1024, n > 0))),
        ("one artifact again and again", |task| (0..200).for_each(|_| task.artifact("a", 16 * 1024, false))),
    ];
    for (what, grow) in shapes {
        let mut task = Growing::new();
        working(&mut task);
        grow(&mut task);
        task.check(what);
        if task.task.state() != TaskState::Working {
            working(&mut task);
        }
        task.say([status(TaskState::Completed)]);
        task.check(what);
    }
}

/// Goal of S22: a store that writes everything twice, as SQLite's log does, writes at most three times what was said.
#[test]
fn s22_of_long_turns_half_as_much_again_is_written() {
    let mut task = Growing::new();
    (0..40).for_each(|_| task.turn(512 * 1024));
    let written = task.log + task.snapshots;
    assert!(2 * written <= 3 * task.log, "{written} bytes for {}", task.log);
}

#[test]
fn small_tasks_have_a_snapshot_whenever_they_rest() {
    let mut task = Growing::new();
    for _ in 0..8 {
        task.turn(1024);
        assert_eq!(task.told, task.task.version);
    }
    // Beyond that, once they have ended: then their log can be dropped.
    for _ in 0..30 {
        task.turn(4 * 1024);
    }
    task.say([status(TaskState::Working)]);
    task.say([status(TaskState::Completed)]);
    assert_eq!(task.told, task.task.version);
}
