//! Tests of this backend only; what every store must do is tested by `suite`.

mod commits;
mod files;
mod full;
mod golden_file;
mod one_process;
#[cfg(unix)]
mod place;
mod plans;
mod rows;
#[cfg(target_os = "linux")]
mod weighed;

use std::path::Path;
use std::sync::mpsc;

use baton_protocol::Generation;
use baton_protocol::domain::{
    ContextId, Event, EventBody, MessageId, Scope, StatusUpdate, TaskId, TaskState, Timestamp,
};
use tempfile::TempDir;

use super::*;
use crate::store::{Birth, HeadState, StoredSnapshot, Work};

/// An open store in a folder of its own.
fn store() -> (TempDir, SqliteStore) {
    let folder = TempDir::new().unwrap();
    let store = open(&folder.path().join("baton.db"));
    (folder, store)
}

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, Options::default()).unwrap()
}

fn scope(owner: &str) -> Scope {
    Scope::new("agent", "", owner)
}

fn id(text: &str) -> TaskId {
    TaskId::parse(text).unwrap()
}

fn time(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn status(number: u64, state: TaskState) -> StoredEvent {
    let body = EventBody::Status(StatusUpdate { state, message: None, metadata: None });
    let context = ContextId::parse("c").unwrap();
    StoredEvent::encode(&id("t"), &context, &Event { number, at: time(number as i64), body })
}

/// The next append to a task at version `expected`: one status event at a time equal to its number.
fn append(task: &str, expected: u64, state: TaskState) -> Append {
    let birth = || Birth {
        context_id: ContextId::parse("c").unwrap(),
        generation: Generation::V1,
        created_at: time(0),
    };
    let work = if state.is_terminal() { Work::Idle } else { Work::Running };
    Append {
        task: id(task),
        birth: (expected == 0).then(birth),
        expected,
        fence: 0,
        events: vec![status(expected + 1, state)],
        head: HeadState {
            state,
            status_at: time(expected as i64 + 1),
            work,
            attempts: 1,
            holder: None,
            fence: 0,
        },
        snapshot: None,
        message: None,
        settled: Vec::new(),
        webhook: None,
    }
}

/// Blocks the writer until released, so that the writes queued meanwhile share the next commit.
struct HeldWriter<'a> {
    release: mpsc::Sender<()>,
    held: std::pin::Pin<Box<dyn Future<Output = StoreResult<()>> + 'a>>,
}

impl<'a> HeldWriter<'a> {
    fn new(store: &'a SqliteStore) -> Self {
        let (release, wait) = mpsc::channel::<()>();
        let (entered, is_held) = mpsc::channel();
        let mut held = Box::pin(store.writer.run(move |_| {
            entered.send(()).ok();
            wait.recv().ok();
            Ok(())
        }));
        enqueue(held.as_mut());
        is_held.recv().unwrap();
        HeldWriter { release, held }
    }

    async fn release(self) {
        drop(self.release);
        self.held.await.unwrap();
    }
}

/// Polls a call once, which puts it into the queue; it has no answer yet.
fn enqueue<F: Future + ?Sized>(future: std::pin::Pin<&mut F>) {
    let waker = std::task::Waker::noop();
    assert!(future.poll(&mut std::task::Context::from_waker(waker)).is_pending());
}
