use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use baton_protocol::domain::{Artifact, ArtifactId, Part, Scope, TaskId, Timestamp};
use baton_server::engine::{CloseAt, EventStream, Frame};
use baton_server::store::Store;
use baton_server::store::memory::MemoryStore;
use baton_server::{AgentError, Turn};
use futures_util::FutureExt as _;
use serde_json::{Value, json};

use crate::faults::FaultyStore;
use crate::harness::{HANG, TestServer, id, kinds, message, serve, state, with_agent};
use crate::stage::{Backend, TestClock};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Says more than a bell keeps, all in one append: everybody must read the log. Of that the task keeps little, so the
/// log is worth folding.
async fn wordy(turn: Turn) -> Result<(), AgentError> {
    let long = "x".repeat(300_000);
    for text in [&long, &long, "done"] {
        turn.artifact(Artifact::new(ArtifactId::parse("result").unwrap(), vec![Part::text(text)])).await?;
    }
    turn.complete().await
}

async fn next(stream: &mut EventStream) -> Option<Result<Frame, baton_protocol::Error>> {
    tokio::time::timeout(HANG, stream.next()).await.expect("a stream does not hang")
}

#[tokio::test]
async fn a_reader_whose_log_is_folded_gets_the_task_and_the_end() {
    for backend in Backend::each() {
        let clock = TestClock::new();
        let builder = with_agent(wordy).clock(Arc::clone(&clock) as _).store(backend.open().await);
        let server = serve(builder).await;
        let engine = server.server.engine();
        let task = TaskId::parse(id(&server.send("folded").await)).unwrap();
        let scope = Scope::new("default", "", "anonymous");
        let behind = async || engine.subscribe(&scope, &task, Some(3), CloseAt::TaskEnd, None).await.unwrap();
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
        server.stop().await;
    }
}

#[tokio::test]
async fn a_reader_whose_task_is_removed_is_told_so() {
    for backend in Backend::each() {
        let clock = TestClock::new();
        let builder = with_agent(wordy).clock(Arc::clone(&clock) as _).store(backend.open().await);
        let server = serve(builder).await;
        let engine = server.server.engine();
        let task = TaskId::parse(id(&server.send("removed").await)).unwrap();
        let scope = Scope::new("default", "", "anonymous");
        let mut stream = engine.subscribe(&scope, &task, Some(3), CloseAt::TaskEnd, None).await.unwrap();
        clock.advance(40 * DAY);
        assert_eq!(engine.sweep().await.unwrap().removed, 1);
        match next(&mut stream).await {
            Some(Err(error)) => assert_eq!(error.kind(), baton_protocol::ErrorKind::TaskNotFound),
            other => panic!("{other:?}"),
        }
        assert!(next(&mut stream).await.is_none(), "and closes");
        server.stop().await;
    }
}

/// A server whose store is swept right before somebody reads a log for the first time.
async fn swept_under_readers(removes: bool) -> (TestServer, impl Fn()) {
    let inner: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let store = FaultyStore::over(Arc::clone(&inner));
    let server = serve(with_agent(wordy).store(Arc::clone(&store) as Arc<dyn Store>)).await;
    let sweep = move || {
        let (inner, swept) = (Arc::clone(&inner), AtomicBool::new(false));
        store.fail(move |call, _| {
            if call == "events" && !swept.swap(true, Ordering::SeqCst) {
                let sweeping = match removes {
                    true => inner.purge_ended(Timestamp::MAX, 10),
                    false => inner.fold_ended(Timestamp::MAX, 10),
                };
                assert_eq!(
                    sweeping.now_or_never(),
                    Some(Ok(1)),
                    "memory does not wait, and the task has ended"
                );
            }
            None
        });
    };
    (server, sweep)
}

#[tokio::test]
async fn a_resume_that_meets_the_sweep_gets_the_task() {
    let subscribe = |task: &Value, _: &Value| ("SubscribeToTask", json!({"id": id(task)}));
    let resend = |_: &Value, params: &Value| ("SendStreamingMessage", params.clone());
    type Ask = fn(&Value, &Value) -> (&'static str, Value);
    let ways: [(Ask, Option<&str>); 4] =
        [(subscribe, Some("1")), (subscribe, Some("4")), (resend, None), (resend, Some("4"))];
    for (way, last) in ways {
        let (server, sweep) = swept_under_readers(false).await;
        let params = message("work");
        let task = server.call("SendMessage", params.clone()).await.result()["task"].clone();
        sweep();
        let (method, params) = way(&task, &params);
        let mut stream = server.stream(method, params, last).await.ok().expect("a stream");
        let events = stream.rest().await;
        assert_eq!(kinds(&events), ["task"], "{method} {last:?}");
        assert_eq!(events[0].result()["task"], task);
        server.stop().await;
    }
}

#[tokio::test]
async fn a_resume_of_a_task_that_is_removed_meanwhile_is_told_so() {
    for last in [Some("1"), Some("4")] {
        let (server, sweep) = swept_under_readers(true).await;
        let task = server.send("work").await;
        sweep();
        let mut stream =
            server.stream("SubscribeToTask", json!({"id": id(&task)}), last).await.ok().expect("a stream");
        let events = stream.rest().await;
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].envelope["error"]["code"], json!(-32001));
        server.stop().await;
    }
}

#[tokio::test]
async fn a_blocking_send_does_not_hang_on_a_folded_log() {
    let (server, sweep) = swept_under_readers(false).await;
    sweep();
    let sent = tokio::time::timeout(HANG, server.send("work")).await.expect("an answer");
    assert_eq!(state(&sent), "COMPLETED");
}
