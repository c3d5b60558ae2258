use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use baton_protocol::domain::{Artifact, ArtifactId, Part, Timestamp};
use baton_server::store::Store;
use baton_server::store::memory::MemoryStore;
use baton_server::{AgentError, Turn};
use futures_util::FutureExt as _;
use serde_json::{Value, json};

use crate::faults::FaultyStore;
use crate::harness::{TEST_TIMEOUT, TestServer, id, kinds, message, serve, state, with_agent};

/// Writes more in one append than the engine keeps in memory for readers, so every reader must read the log. The artifact is
/// replaced each time, so the task is small and the log is worth folding.
async fn wordy(turn: Turn) -> Result<(), AgentError> {
    let long = "x".repeat(300_000);
    for text in [&long, &long, "done"] {
        turn.artifact(Artifact::new(ArtifactId::parse("result").unwrap(), vec![Part::text(text)])).await?;
    }
    turn.complete().await
}

/// A server, and a function after which the first read of a log is preceded by a sweep of the store.
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
                    false => inner.fold_ended(Timestamp::MAX, Timestamp::MAX, 10),
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
    let sent = tokio::time::timeout(TEST_TIMEOUT, server.send("work")).await.expect("an answer");
    assert_eq!(state(&sent), "COMPLETED");
}
