//! Readers whose log is folded or removed while they read it. These tests are inside the crate because they stop a reader
//! between two events; a connection would read ahead.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use baton_protocol::domain::{Artifact, ArtifactId, Part};

use super::*;
use crate::store::memory::MemoryStore;
use crate::{Answer, Server, Turn};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const HANG: Duration = Duration::from_secs(20);

/// A clock that stands still until a test moves it.
#[derive(Debug)]
struct TestClock(AtomicI64);

impl TestClock {
    fn advance(&self, by: Duration) {
        self.0.fetch_add(by.as_millis() as i64, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

/// Produces more in one append than a bell keeps, so readers must read the log. The task itself stays small, so that the
/// log is folded.
async fn wordy(turn: Turn) -> Result<(), crate::AgentError> {
    let long = "x".repeat(300_000);
    for text in [&long, &long, "done"] {
        turn.artifact(Artifact::new(ArtifactId::parse("result").unwrap(), vec![Part::text(text)])).await?;
    }
    turn.complete().await
}

/// The engine, and a task that has ended, for each store.
async fn each_store(check: impl AsyncFn(&Engine, &TestClock, &Scope, &TaskId)) {
    let folder = tempfile::tempdir().unwrap();
    let mut stores: Vec<Arc<dyn Store>> = vec![Arc::new(MemoryStore::new())];
    #[cfg(feature = "sqlite")]
    {
        use crate::store::sqlite::{Options, SqliteStore};
        stores.push(Arc::new(SqliteStore::open(folder.path().join("tasks.db"), Options::default()).unwrap()));
    }
    for store in stores {
        let clock = Arc::new(TestClock(AtomicI64::new(1_763_200_000_000)));
        let builder = Server::agent("wordy", "Says much", wordy).clock(Arc::clone(&clock) as _).store(store);
        let server = builder.build().await.unwrap();
        let Answer::Task(task) = server.send("go").await.unwrap() else { panic!("a task") };
        check(server.engine(), &clock, &Scope::new("default", "", "anonymous"), &task.id).await;
    }
    drop(folder);
}

async fn next(stream: &mut EventStream) -> Option<Result<Frame, Error>> {
    tokio::time::timeout(HANG, stream.next()).await.expect("a stream does not hang")
}

#[tokio::test]
async fn a_reader_whose_log_is_folded_gets_the_task_and_the_end() {
    each_store(async |engine, clock, scope, task| {
        let behind = async || engine.subscribe(scope, task, Some(3), CloseAt::TaskEnd, None).await.unwrap();
        let (mut not_begun, mut under_way) = (behind().await, behind().await);
        assert!(matches!(next(&mut under_way).await, Some(Ok(Frame::Event(event))) if event.number == 4));
        clock.advance(2 * DAY);
        assert_eq!(engine.sweep().await.unwrap().folded, 1);
        for stream in [&mut not_begun, &mut under_way] {
            match next(stream).await {
                Some(Ok(Frame::Task { number, snapshot })) => {
                    assert_eq!((number, snapshot.state().is_terminal()), (snapshot.version, true));
                }
                // It had the rest at hand already.
                Some(Ok(Frame::Event(_))) => while next(stream).await.is_some() {},
                other => panic!("{other:?}"),
            }
            assert!(next(stream).await.is_none(), "and closes");
        }
    })
    .await;
}

#[tokio::test]
async fn a_reader_whose_task_is_removed_is_told_so() {
    each_store(async |engine, clock, scope, task| {
        let mut stream = engine.subscribe(scope, task, Some(3), CloseAt::TaskEnd, None).await.unwrap();
        clock.advance(40 * DAY);
        assert_eq!(engine.sweep().await.unwrap().removed, 1);
        match next(&mut stream).await {
            Some(Err(error)) => assert_eq!(error.kind(), ErrorKind::TaskNotFound),
            other => panic!("{other:?}"),
        }
        assert!(next(&mut stream).await.is_none(), "and closes");
    })
    .await;
}
