use std::sync::Arc;
use std::time::Duration;

use baton_protocol::domain::{Artifact, ArtifactId, EventKind, Part, TaskState};
use baton_server::Options;
use baton_server::store::memory::MemoryStore;
use baton_server::store::{Append, StoreError};
use baton_server::{Agent, AgentError, Turn};
use serde_json::{Value, json};

use crate::faults::FaultyStore;
use crate::fixtures::{Gate, agent_with};
use crate::harness::{TestServer, id, kinds, message, message_to, serve, serve_agent, state, with_agent};

/// Waits at the gate, then ends.
fn gated(gate: &Gate) -> impl Agent + use<> {
    agent_with(gate, |gate, turn| async move {
        gate.pass().await;
        turn.text_artifact("done", turn.text()).await?;
        turn.complete().await?;
        Ok(())
    })
}

/// Store errors that a server survives; fatal ones are in `store_lost`.
fn errors() -> [(StoreError, u16, i64); 3] {
    [
        (StoreError::unavailable("gone for lunch"), 503, -32603),
        (StoreError::full("no room"), 503, -32050),
        (StoreError::damaged("bits rotted"), 200, -32603),
    ]
}

fn ends(append: Option<&Append>) -> bool {
    let ended = |kind| matches!(kind, EventKind::Status(state) if TaskState::is_terminal(state));
    append.is_some_and(|append| append.events.iter().any(|event| ended(event.kind)))
}

fn reason(task: &Value) -> &str {
    task["status"]["message"]["parts"][0]["text"].as_str().unwrap_or_default()
}

fn options(set: impl FnOnce(&mut Options)) -> Options {
    let mut options = Options::default();
    options.cancel_grace = Duration::from_millis(30);
    // The sweeper recovers tasks whose run gave up.
    options.retention.every = Duration::from_millis(20);
    set(&mut options);
    options
}

async fn faulty(gate: &Gate) -> (Arc<FaultyStore>, TestServer) {
    let store = FaultyStore::over(Arc::new(MemoryStore::new()));
    let server = serve(with_agent(gated(gate)).store(store.clone()).options(options(|_| {}))).await;
    (store, server)
}

#[tokio::test]
async fn a_send_that_cannot_be_stored_is_refused_and_starts_nothing() {
    let gate = Gate::new();
    let (store, server) = faulty(&gate).await;
    for (error, status, code) in errors() {
        let cause = error.to_string();
        store.fail(move |call, _| (call == "append").then(|| error.clone()));
        for method in ["SendMessage", "SendStreamingMessage"] {
            let refused = server.call(method, message("go")).await;
            assert_eq!((refused.status, refused.error_code()), (status, code), "{cause}");
            assert_eq!(refused.header("retry-after").is_some(), status == 503);
            assert!(
                !refused.body.to_string().contains(&cause),
                "the text of the store error is only for the log"
            );
        }
        store.recover();
        assert_eq!(server.call("ListTasks", json!({})).await.result()["totalSize"], 0);
    }
}

#[tokio::test]
async fn a_blocking_send_and_a_stream_do_not_hang_on_a_turn_that_is_given_up() {
    let gate = Gate::new();
    let (store, server) = faulty(&gate).await;
    let params = message("go");
    let mut stream = server.stream("SendStreamingMessage", params.clone(), None).await.ok().unwrap();
    let task = stream.next().await.unwrap().result()["task"].clone();
    store.fail(|call, append| (call == "append" && ends(append)).then(|| StoreError::damaged("bits rotted")));
    let (blocking, ()) = tokio::join!(server.call("SendMessage", params), async {
        server.get(id(&task)).await;
        gate.let_pass(1);
    });
    assert_eq!((blocking.status, blocking.error_code()), (200, -32603));
    let last = stream.rest().await.pop().unwrap();
    assert_eq!(last.envelope["error"]["code"], -32603, "the last event says that the stream broke");
    assert_eq!(last.envelope["id"], "s");
    store.recover();
    // The crash rule.
    server.eventually(id(&task), "FAILED").await;
}

#[tokio::test]
async fn a_store_that_does_not_read_does_not_hang_anybody() {
    for call_that_fails in ["head", "load", "events", "message", "requests"] {
        let gate = Gate::new();
        let (store, server) = faulty(&gate).await;
        let task = server.start("go").await;
        store.fail(move |call, _| (call == call_that_fails).then(|| StoreError::unavailable("no")));
        let calls = [
            ("GetTask", json!({"id": id(&task)})),
            ("SubscribeToTask", json!({"id": "nobody"})),
            ("CancelTask", json!({"id": "nobody"})),
            ("SendMessage", message_to(&json!({"id": "nobody"}), "hello")),
        ];
        for (method, params) in calls {
            let answer = server.call(method, params).await;
            assert!([200, 503].contains(&answer.status), "{method} {}", answer.body);
        }
        store.recover();
        gate.let_pass(1);
        server.eventually(id(&task), "COMPLETED").await;
    }
}

#[tokio::test]
async fn a_cancel_is_noticed_though_the_requests_could_not_be_read_at_first() {
    async fn obedient(turn: Turn) -> Result<(), AgentError> {
        turn.cancellation().cancelled().await;
        Ok(())
    }
    let store = FaultyStore::over(Arc::new(MemoryStore::new()));
    let server = serve(with_agent(obedient).store(store.clone())).await;
    let task = server.start("go").await;
    let mut left = 1;
    store.fail(move |call, _| {
        let fails = call == "requests" && left > 0;
        left -= usize::from(fails);
        fails.then(|| StoreError::unavailable("no"))
    });
    let canceled = server.call("CancelTask", json!({"id": id(&task)})).await;
    assert_eq!(state(canceled.result()), "CANCELED");
}

#[tokio::test]
async fn s09_an_agent_that_says_nothing_for_too_long_fails() {
    async fn silent(_turn: Turn) -> Result<(), AgentError> {
        std::future::pending().await
    }
    async fn attentive(turn: Turn) -> Result<(), AgentError> {
        turn.cancellation().cancelled().await;
        turn.progress("one moment").await?;
        Err(AgentError::new("told to stop"))
    }
    let short = || options(|options| options.turn_idle = Duration::from_millis(30));
    for server in [
        serve(with_agent(silent).options(short())).await,
        serve(with_agent(attentive).options(short())).await,
    ] {
        let task = server.send("go").await;
        assert_eq!((state(&task), reason(&task)), ("FAILED", "The agent took too long"));
    }
}

#[tokio::test]
async fn s09_a_turn_has_a_deadline_however_much_it_says() {
    async fn chatty(turn: Turn) -> Result<(), AgentError> {
        loop {
            turn.progress("still at it").await?;
            tokio::task::yield_now().await;
        }
    }
    let server =
        serve(with_agent(chatty).options(options(|o| o.turn_deadline = Duration::from_millis(50)))).await;
    let mut stream = server.stream("SendStreamingMessage", message("go"), None).await.ok().unwrap();
    let events = stream.rest().await;
    assert_eq!(kinds(&events).last().unwrap(), "failed");
    let task = server.get(id(&events[0].result()["task"])).await;
    assert_eq!(reason(&task), "The agent took too long");
}

#[tokio::test]
async fn s05_what_an_agent_may_not_say_fails_its_task() {
    async fn wrong(turn: Turn) -> Result<(), AgentError> {
        let artifact = |parts| Ok::<_, AgentError>(Artifact::new(ArtifactId::parse("a")?, parts));
        turn.text_artifact("before", "kept").await?;
        match turn.text().as_str() {
            "submitted" => turn.status(TaskState::Submitted, None).await?,
            "unknown artifact" => turn.artifact_update(artifact(vec![Part::text("x")])?, true, false).await?,
            "empty artifact" => turn.artifact(artifact(vec![])?).await?,
            "sealed" => {
                turn.artifact(artifact(vec![Part::text("x")])?).await?;
                turn.artifact_update(artifact(vec![Part::text("y")])?, true, false).await?;
            }
            "ask twice" => {
                drop(turn.ask("one?"));
                drop(turn.ask("two?"));
            }
            _ => unreachable!(),
        }
        turn.cancellation().cancelled().await;
        turn.complete().await?;
        Ok(())
    }
    let server = serve_agent(wrong).await;
    for text in ["submitted", "unknown artifact", "empty artifact", "sealed", "ask twice"] {
        let task = server.send(text).await;
        assert_eq!(state(&task), "FAILED", "{text}");
        assert!(reason(&task).contains("invalid response"), "{}", reason(&task));
        assert_eq!(task["artifacts"][0]["parts"], json!([{"text": "kept"}]));
    }
}

#[tokio::test]
async fn s05_nothing_follows_the_end_of_a_task() {
    let (go_on, went_on) = (Gate::new(), Gate::new());
    let agent = agent_with(&(go_on.clone(), went_on.clone()), |(go_on, went_on), turn| async move {
        turn.text_artifact("result", "kept").await?;
        turn.complete().await?;
        // Directly after the end, and when the end has long been stored.
        let _ = turn.progress("and another thing").await;
        go_on.pass().await;
        assert!(turn.text_artifact("more", "lost").await.is_err());
        assert!(turn.fail("no, wait").await.is_err());
        assert!(turn.cancellation().is_cancelled());
        went_on.let_pass(1);
        Err(AgentError::new("too late to fail"))
    });
    let server = serve_agent(agent).await;
    let mut stream = server.stream("SendStreamingMessage", message("go"), None).await.ok().unwrap();
    let events = stream.rest().await;
    assert_eq!(kinds(&events), ["task", "working", "artifactUpdate", "completed"]);
    go_on.let_pass(1);
    went_on.pass().await;
    let task = server.get(id(&events[0].result()["task"])).await;
    assert_eq!((state(&task), task["artifacts"].as_array().unwrap().len()), ("COMPLETED", 1));
    assert_eq!(server.call("SendMessage", message_to(&task, "more")).await.error_code(), -32004);
}
