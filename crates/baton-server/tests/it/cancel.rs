use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use baton_server::Options;
use baton_server::store::memory::MemoryStore;
use baton_server::store::{Store, StoreError};
use baton_server::{AgentError, Stop, Turn};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::faults::FaultyStore;
use crate::fixtures::{Backend, Gate, agent_with};
use crate::harness::{Answer, TestServer, id, kinds, message, serve, serve_agent, state, with_agent};

async fn cancel(server: &TestServer, task: &Value) -> Answer {
    server.call("CancelTask", json!({"id": task["id"]})).await
}

/// "ask" waits for an answer, "quick" ends, "stubborn" ignores cancellation, anything else works until it is canceled.
async fn worker(turn: Turn) -> Result<(), AgentError> {
    match turn.text().as_str() {
        "ask" => drop(turn.ask("which?")),
        "ask and wait" => drop(turn.ask("which?").await?),
        "quick" => {}
        "stubborn" => std::future::pending().await,
        "chatty" => loop {
            turn.progress("not listening").await?;
            tokio::task::yield_now().await;
        },
        _ => {
            turn.cancellation().cancelled().await;
            assert_eq!(turn.stop_reason(), Some(Stop::Canceled));
            turn.text_artifact("last words", "bye").await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn s11_a_working_task_is_canceled_and_its_agent_told() {
    let server = serve_agent(worker).await;
    let mut stream = server.stream("SendStreamingMessage", message("work"), None).await.ok().unwrap();
    let task = stream.next().await.unwrap().result()["task"].clone();
    let canceled = cancel(&server, &task).await;
    let shown = canceled.result();
    assert_eq!(state(shown), "CANCELED");
    assert_eq!(shown["artifacts"][0]["parts"], json!([{"text": "bye"}]), "it may tidy up");
    assert_eq!(kinds(&stream.rest().await), ["working", "artifactUpdate", "canceled"]);
    assert_eq!(server.get(id(&task)).await, *shown);
    // Canceled again, by twenty callers at once: all get the same task.
    for again in join_all((0..20).map(|_| cancel(&server, &task))).await {
        assert_eq!(again.result(), shown);
    }
}

#[tokio::test]
async fn s11_an_agent_that_does_not_listen_is_left_behind_after_the_grace_time() {
    let mut options = Options::default();
    options.cancel_grace = Duration::from_millis(50);
    let server = serve(with_agent(worker).options(options)).await;
    for text in ["stubborn", "chatty"] {
        let task = server.start(text).await;
        for answer in join_all((0..5).map(|_| cancel(&server, &task))).await {
            assert_eq!(state(answer.result()), "CANCELED", "{text}");
        }
        assert_eq!(state(&server.get(id(&task)).await), "CANCELED");
    }
}

/// Otherwise each cancel request would be stored and read again with all others until the agent has stopped.
#[tokio::test]
async fn s22_however_many_cancel_a_task_one_request_is_noted() {
    let mut options = Options::default();
    options.cancel_grace = Duration::from_millis(300);
    let (store, noted) = (FaultyStore::over(Arc::new(MemoryStore::new())), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&noted);
    store.fail(move |call, _| {
        count.fetch_add(usize::from(call == "request"), Ordering::SeqCst);
        None
    });
    let server = serve(with_agent(worker).options(options).store(store)).await;
    let task = server.start("stubborn").await;
    for answer in join_all((0..30).map(|_| cancel(&server, &task))).await {
        assert_eq!(state(answer.result()), "CANCELED");
    }
    assert_eq!(noted.load(Ordering::SeqCst), 1);
}

/// A cancel request that could not be stored does not count: the next one is stored.
#[tokio::test]
async fn s22_a_cancel_that_failed_can_be_sent_again() {
    let store = FaultyStore::over(Arc::new(MemoryStore::new()));
    let server = serve(with_agent(worker).store(Arc::clone(&store) as Arc<dyn Store>)).await;
    let task = server.start("work").await;
    let mut failures = 1;
    store.fail(move |call, _| {
        let fails = call == "request" && failures > 0;
        failures -= usize::from(fails);
        fails.then(|| StoreError::unavailable("not now"))
    });
    assert_eq!(cancel(&server, &task).await.status, 503);
    assert_eq!(state(cancel(&server, &task).await.result()), "CANCELED");
}

#[tokio::test]
async fn s11_what_has_ended_or_never_was_cannot_be_canceled() {
    let server = serve_agent(worker).await;
    let task = server.send("quick").await;
    assert_eq!(cancel(&server, &task).await.error_code(), -32002);
    assert_eq!(server.get(id(&task)).await, task);
    assert_eq!(cancel(&server, &json!({"id": "nobody"})).await.error_code(), -32001);
}

#[tokio::test]
async fn s11_a_task_that_waits_for_an_answer_is_canceled() {
    for backend in Backend::each() {
        let server = serve(with_agent(worker).store(backend.open().await)).await;
        for text in ["ask", "ask and wait"] {
            let task = server.send(text).await;
            assert_eq!(state(&task), "INPUT_REQUIRED");
            let mut watch =
                server.stream("SubscribeToTask", json!({"id": id(&task)}), None).await.ok().unwrap();
            watch.next().await.unwrap();
            assert_eq!(state(cancel(&server, &task).await.result()), "CANCELED", "{text}");
            assert_eq!(kinds(&watch.rest().await), ["canceled"]);
            assert_eq!(state(cancel(&server, &task).await.result()), "CANCELED");
        }
        server.stop().await;
    }
}

#[tokio::test]
async fn s11_a_task_in_the_queue_is_canceled_without_its_agent() {
    let gate = Gate::new();
    let mut options = Options::default();
    options.max_running = 1;
    let agent = agent_with(&gate, |gate, turn| async move {
        assert_eq!(turn.text(), "first", "a canceled task never runs");
        gate.pass().await;
        Ok(())
    });
    let server = serve(with_agent(agent).options(options)).await;
    let first = server.start("first").await;
    let queued = server.start("queued").await;
    assert_eq!(state(&server.get(id(&queued)).await), "SUBMITTED");
    assert_eq!(state(cancel(&server, &queued).await.result()), "CANCELED");
    gate.let_pass(1);
    server.eventually(id(&first), "COMPLETED").await;
    assert_eq!(state(&server.get(id(&queued)).await), "CANCELED");
}

#[tokio::test]
async fn s11_a_race_with_the_agents_own_end_has_one_winner() {
    for backend in Backend::each() {
        let gate = Gate::new();
        let agent = agent_with(&gate, |gate, turn| async move {
            gate.pass().await;
            turn.complete().await?;
            Ok(())
        });
        let server = serve(with_agent(agent).store(backend.open().await)).await;
        let (mut won, mut lost) = (0, 0);
        for round in 0..200 {
            let mut stream = server.stream("SendStreamingMessage", message("go"), None).await.ok().unwrap();
            let task = stream.next().await.unwrap().result()["task"].clone();
            let (answer, ()) = tokio::join!(cancel(&server, &task), async {
                for _ in 0..round % 8 {
                    tokio::task::yield_now().await;
                }
                if round % 3 == 0 {
                    server.get(id(&task)).await;
                }
                gate.let_pass(1);
            });
            let ended = server.get(id(&task)).await;
            match answer.body.get("result") {
                Some(task) => {
                    assert_eq!((state(task), state(&ended)), ("CANCELED", "CANCELED"));
                    won += 1;
                    // The agent may have been stopped before or after the gate.
                }
                None => {
                    assert_eq!((answer.error_code(), state(&ended)), (-32002, "COMPLETED"));
                    lost += 1;
                }
            }
            let seen = kinds(&stream.rest().await);
            assert_eq!(seen, ["working".to_owned(), state(&ended).to_lowercase()], "one end, shown once");
        }
        assert_eq!(won + lost, 200);
        server.stop().await;
    }
}
