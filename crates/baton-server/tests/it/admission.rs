use std::sync::Arc;

use baton_server::Options;
use baton_server::store::memory::MemoryStore;
use baton_server::{AgentError, Turn};
use serde_json::{Value, json};

use crate::faults::FaultyStore;
use crate::fixtures::{Backend, Calls, Gate, agent_with};
use crate::harness::{TestServer, id, kinds, message, message_to, serve, state, with_agent};

fn one_and_two() -> Options {
    let mut options = Options::default();
    options.max_running = 1;
    options.max_queued = 2;
    options
}

/// One turn may run and two may wait. Every turn waits at the gate; for "ask" it then asks a question.
async fn small_server(backend: &Backend, gate: &Gate, calls: &Calls) -> TestServer {
    let agent = agent_with(&(gate.clone(), calls.clone()), |(gate, calls), turn| async move {
        let _call = calls.enter();
        gate.pass().await;
        if turn.text() == "ask" {
            turn.ask("which?");
        }
        Ok(())
    });
    serve(with_agent(agent).options(one_and_two()).store(backend.open().await)).await
}

fn at_once(mut params: Value) -> Value {
    params["configuration"] = json!({"returnImmediately": true});
    params
}

#[tokio::test]
async fn s12_beyond_its_places_a_server_refuses_and_says_when_to_come_back() {
    for backend in Backend::each() {
        let (gate, calls) = (Gate::new(), Calls::default());
        let server = small_server(&backend, &gate, &calls).await;
        let running = at_once(message("running"));
        let first = server.call("SendMessage", running.clone()).await.result()["task"].clone();
        let queued = [server.start("queued one").await, server.start("queued two").await];
        for task in &queued {
            assert_eq!(state(&server.get(id(task)).await), "SUBMITTED");
        }
        let params = message("one too many");
        for method in ["SendMessage", "SendStreamingMessage"] {
            let refused = server.call(method, params.clone()).await;
            assert_eq!((refused.status, refused.error_code()), (503, -32050));
            assert_eq!(refused.header("retry-after"), Some("1"));
        }
        // A repeat of an accepted message is still answered.
        let again = server.call("SendMessage", running).await;
        assert_eq!(again.header("a2a-idempotent-replay"), Some("true"));
        assert_eq!(again.result()["task"]["id"], first["id"]);
        assert_eq!(calls.count(), 1);

        gate.let_pass(1);
        server.eventually(id(&first), "COMPLETED").await;
        server.eventually(id(&queued[0]), "WORKING").await;
        assert_eq!(state(&server.get(id(&queued[1])).await), "SUBMITTED", "first come, first served");
        let late = server.call("SendMessage", at_once(params)).await.result()["task"].clone();
        gate.let_pass(3);
        for task in queued.iter().chain([&late]) {
            server.eventually(id(task), "COMPLETED").await;
        }
        assert_eq!((calls.count(), calls.most_at_once()), (4, 1));
        server.stop().await;
    }
}

#[tokio::test]
async fn s12_a_stream_of_a_queued_task_waits_with_it() {
    let (gate, calls) = (Gate::new(), Calls::default());
    let server = small_server(&Backend::each()[0], &gate, &calls).await;
    let first = server.start("running").await;
    let mut stream = server.stream("SendStreamingMessage", message("queued"), None).await.ok().unwrap();
    let task = stream.next().await.unwrap();
    assert_eq!((task.id, state(&task.result()["task"])), (Some(1), "SUBMITTED"));
    gate.let_pass(2);
    assert_eq!(kinds(&stream.rest().await), ["working", "completed"]);
    server.eventually(id(&first), "COMPLETED").await;
}

#[tokio::test]
async fn s12_an_answer_waits_for_a_place_like_anybody() {
    let (gate, calls) = (Gate::new(), Calls::default());
    let server = small_server(&Backend::each()[0], &gate, &calls).await;
    gate.let_pass(1);
    let asked = server.send("ask").await;
    assert_eq!(state(&asked), "INPUT_REQUIRED");
    let running = server.start("running").await;
    let answer = at_once(message_to(&asked, "this"));
    let task = server.call("SendMessage", answer.clone()).await.result()["task"].clone();
    assert_eq!(state(&task), "INPUT_REQUIRED", "accepted, but its turn has not started");
    // Another message to the same task does not take a second place in the queue.
    server.call("SendMessage", at_once(message_to(&asked, "and this"))).await.result();
    let other = server.start("the second place").await;
    assert_eq!(server.call("SendMessage", message("full")).await.status, 503);
    gate.let_pass(4);
    for task in [&running, &asked, &other] {
        server.eventually(id(task), "COMPLETED").await;
    }
    assert_eq!(calls.most_at_once(), 1);
    assert_eq!(server.call("SendMessage", answer).await.header("a2a-idempotent-replay"), Some("true"));
}

/// A repeated message takes a place before it is recognised. Then a turn that waits behind it must get the place at once.
#[tokio::test]
async fn s12_a_place_that_was_not_needed_goes_to_who_waits() {
    async fn nothing(_turn: Turn) -> Result<(), AgentError> {
        Ok(())
    }
    let store = FaultyStore::over(Arc::new(MemoryStore::new()));
    let server = serve(with_agent(nothing).options(one_and_two()).store(store.clone())).await;
    let copied = message("copied");
    let first = server.call("SendMessage", copied.clone()).await.result()["task"].clone();
    assert_eq!(state(&first), "COMPLETED");

    // The repeat holds the only place: its append is done, but the answer of the store is delayed.
    let (gate, appends) = (Gate::new(), store.appends());
    store.slow_appends(Some(&gate));
    let copy = server.call("SendMessage", copied);
    let behind_it = async {
        store.appended(appends + 1).await;
        store.slow_appends(None);
        let other = server.start("other").await;
        assert_eq!(state(&server.get(id(&other)).await), "SUBMITTED");
        gate.let_pass(1);
        other
    };
    let (copy, other) = futures_util::future::join(copy, behind_it).await;
    assert_eq!(copy.header("a2a-idempotent-replay"), Some("true"));
    server.eventually(id(&other), "COMPLETED").await;
}
