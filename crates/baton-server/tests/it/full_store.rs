//! S-12: turns survive a full disk and continue when there is space. The error answers are tested in `error_rows`.

use std::sync::Arc;
use std::time::Duration;

use baton_protocol::domain::{AgentCard, AgentSkill, EventBody, Scope, TaskId};
use baton_server::Options;
use baton_server::store::memory::MemoryStore;
use baton_server::store::{Store, StoreError};
use baton_server::{Agent, AgentError, Asked, Server, Turn};
use serde_json::{Value, json};

use crate::agents::obedient;
use crate::faults::FaultyStore;
use crate::fixtures::{Backend, Calls, Gate, agent_with};
use crate::harness::{TestServer, id, kinds, message, message_to, message_with_id, serve, state, with_agent};

fn full() -> StoreError {
    StoreError::full("no room")
}

fn away() -> StoreError {
    StoreError::unavailable("gone for lunch")
}

/// Makes three artifacts, and waits at the gate before each.
fn talker(gate: &Gate, calls: &Calls) -> impl Agent + use<> {
    agent_with(&(gate.clone(), calls.clone()), |(gate, calls), turn| async move {
        let _call = calls.enter();
        for word in ["one", "two", "three"] {
            gate.pass().await;
            turn.text_artifact(word, word).await?;
        }
        turn.complete().await?;
        Ok(())
    })
}

async fn over(inner: Arc<dyn Store>, agent: impl Agent, options: Options) -> (Arc<FaultyStore>, TestServer) {
    let store = FaultyStore::over(inner);
    let server = serve(with_agent(agent).store(store.clone()).options(options)).await;
    (store, server)
}

async fn attempts(store: &Arc<FaultyStore>, task: &Value) -> Vec<u32> {
    let (scope, id) = (Scope::new("default", "", "anonymous"), TaskId::parse(id(task)).unwrap());
    let events = store.events(&scope, &id, 0, 100).await.unwrap();
    let bodies = events.iter().map(|event| event.decode().unwrap().body);
    bodies
        .filter_map(|body| match body {
            EventBody::AttemptStarted { attempt, .. } => Some(attempt),
            _ => None,
        })
        .collect()
}

/// What the agent sends while the disk is full is neither lost nor duplicated, and no stream breaks.
#[tokio::test]
async fn s12_a_turn_keeps_what_it_has_to_say_until_there_is_room() {
    for backend in Backend::each() {
        for error in [full(), away()] {
            let (gate, calls) = (Gate::new(), Calls::default());
            let agent = talker(&gate, &calls);
            let (store, server) = over(backend.open().await, agent, Options::default()).await;
            let params = message("go");
            let mut stream = server.stream("SendStreamingMessage", params.clone(), None).await.ok().unwrap();
            let task = stream.next().await.unwrap().result()["task"].clone();
            assert_eq!(stream.next().await.unwrap().kind(), "working");
            store.fail_writes(&error);
            let before = store.refusals();
            gate.let_pass(3);
            // By then the agent has sent everything, and the run has tried to store it several times.
            store.refused(before + 4).await;
            assert_eq!(state(&server.get(id(&task)).await), "WORKING");
            // A new subscriber gets what is stored and then waits like the others.
            let subscribe = json!({"id": id(&task)});
            let mut late = server.stream("SubscribeToTask", subscribe, Some("2")).await.ok().unwrap();
            assert_eq!(late.next().await.unwrap().kind(), "working");
            store.recover();
            let rest = stream.rest().await;
            let said = ["artifactUpdate", "artifactUpdate", "artifactUpdate", "completed"];
            assert_eq!(kinds(&rest), said, "{error}");
            assert_eq!(rest.iter().map(|event| event.id.unwrap()).collect::<Vec<_>>(), [4, 5, 6, 7]);
            // Without the envelope: the other stream's request has another id.
            let same: Vec<_> = late.rest().await.iter().map(|event| event.result().clone()).collect();
            assert_eq!(same, rest.iter().map(|event| event.result().clone()).collect::<Vec<_>>());
            assert_eq!((calls.count(), attempts(&store, &task).await), (1, vec![1]), "{error}");
            let again = server.call("SendMessage", params).await;
            assert_eq!(state(&again.result()["task"]), "COMPLETED");
            server.stop().await;
        }
    }
}

/// A send does not wait until there is space: after its usual time it answers the task as it is.
#[tokio::test]
async fn s12_a_send_that_waits_answers_in_its_usual_time() {
    let (gate, calls) = (Gate::new(), Calls::default());
    let mut options = Options::default();
    options.send_wait = Duration::from_millis(200);
    let (store, server) = over(Arc::new(MemoryStore::new()), talker(&gate, &calls), options).await;
    let params = message("go");
    let task = server.call("SendMessage", params.clone()).await.result()["task"].clone();
    assert_eq!(state(&task), "WORKING");
    store.fail_writes(&full());
    gate.let_pass(3);
    store.refused(1).await;
    // A repeat: it writes nothing, and waits like the first.
    let waited = server.call("SendMessage", params.clone()).await;
    assert_eq!((waited.status, state(&waited.result()["task"])), (200, "WORKING"));
    assert_eq!(waited.header("a2a-idempotent-replay"), Some("true"));
    store.recover();
    server.eventually(id(&task), "COMPLETED").await;
    assert_eq!(calls.count(), 1);
}

/// A turn gives up at its deadline, and only then its readers get an error.
#[tokio::test]
async fn a_turn_without_time_gives_up() {
    let (gate, calls) = (Gate::new(), Calls::default());
    let mut options = Options::default();
    options.turn_deadline = Duration::from_millis(300);
    options.store_patience = Duration::from_millis(300);
    options.cancel_grace = Duration::from_millis(10);
    options.retention.every = Duration::from_millis(20);
    let (store, server) = over(Arc::new(MemoryStore::new()), talker(&gate, &calls), options).await;
    let mut stream = server.stream("SendStreamingMessage", message("go"), None).await.ok().unwrap();
    let task = stream.next().await.unwrap().result()["task"].clone();
    store.fail_writes(&full());
    gate.let_pass(3);
    let last = stream.rest().await.pop().unwrap();
    assert_eq!(last.envelope["error"]["code"], -32050, "{last:?}");
    store.recover();
    // The crash rule: this agent does not allow its turn to be run again.
    server.eventually(id(&task), "FAILED").await;
    assert_eq!(calls.count(), 1);
}

/// An agent that waits for the store does not count as silent.
#[tokio::test]
async fn the_silence_of_a_turn_does_not_count_while_nothing_can_be_written() {
    async fn wordy(turn: Turn) -> Result<(), AgentError> {
        for _ in 0..3 {
            // Close to the largest size of an event, so the second waits until the first is stored.
            turn.progress(&"x".repeat(900 * 1024)).await?;
        }
        Ok(())
    }
    let mut options = Options::default();
    options.turn_idle = Duration::from_millis(300);
    let (store, server) = over(Arc::new(MemoryStore::new()), wordy, options).await;
    let mut left = 4;
    store.fail(move |call, append| {
        let fails = call == "append" && append.is_some_and(|append| append.birth.is_none()) && left > 0;
        left -= usize::from(fails);
        fails.then(full)
    });
    // Four retries take 750 ms, longer than `turn_idle`.
    assert_eq!(state(&server.send("go").await), "COMPLETED");
}

/// A message skill has no task, so its reply is kept in memory until it can be stored.
#[tokio::test]
async fn s12_a_reply_that_could_not_be_stored_is_not_made_again() {
    let calls = Calls::default();
    let counted = calls.clone();
    let answers = move |asked: Asked| {
        let _call = counted.enter();
        async move { Ok::<_, AgentError>(format!("{} to you, too", asked.text())) }
    };
    let store = FaultyStore::over(Arc::new(MemoryStore::new()));
    let card = AgentCard::new("test", "An agent for tests", "1.0.0");
    let skill = AgentSkill::new("m", "m", "m");
    let server = serve(Server::builder(card).message_skill(skill, answers).store(store.clone())).await;
    store.fail_writes(&full());
    let params = message_with_id("m", "hello");
    for _ in 0..3 {
        let refused = server.call("SendMessage", params.clone()).await;
        assert_eq!((refused.status, refused.error_code()), (503, -32050));
        assert!(refused.header("retry-after").is_some());
    }
    store.recover();
    let answer = loop {
        let answer = server.call("SendMessage", params.clone()).await;
        if answer.status == 200 {
            break answer;
        }
        assert_eq!((answer.status, answer.error_code()), (503, -32050), "as long as it is being stored");
    };
    assert_eq!(answer.result()["message"]["parts"][0]["text"], "hello to you, too");
    assert_eq!(calls.count(), 1, "the agent was asked once");
}

/// Tasks that could not be started are started as soon as there is space, not at the next sweep a minute later.
#[tokio::test]
async fn s12_what_waits_goes_on_when_there_is_room() {
    let gate = Gate::new();
    let agent = agent_with(&gate, |gate, turn| async move {
        gate.pass().await;
        turn.complete().await?;
        Ok(())
    });
    let mut options = Options::default();
    options.max_running = 1;
    let (store, server) = over(Arc::new(MemoryStore::new()), agent, options).await;
    let mut tasks = Vec::new();
    for _ in 0..4 {
        tasks.push(server.start("go").await);
    }
    // The first turn ends, but the second cannot be started, since its first append fails.
    let starts = |append: &baton_server::store::Append| append.head.attempts == 1 && append.expected == 1;
    store.fail(move |call, append| (call == "append" && append.is_some_and(starts)).then(full));
    gate.let_pass(4);
    server.eventually(id(&tasks[0]), "COMPLETED").await;
    store.refused(1).await;
    assert_eq!(state(&server.get(id(&tasks[1])).await), "SUBMITTED");
    store.recover();
    for task in &tasks {
        server.eventually(id(task), "COMPLETED").await;
    }
}

/// A server starts on a full disk: tasks can be read, and open tasks are recovered later.
#[tokio::test]
async fn s12_a_server_starts_without_room() {
    let store = FaultyStore::over(Arc::new(MemoryStore::new()));
    let first = serve(with_agent(obedient).store(store.clone())).await;
    let (done, held) = (first.send("hello").await, first.start("hold").await);
    let mut asking = message("ask");
    asking["configuration"] = json!({"returnImmediately": true});
    let asking = first.call("SendMessage", asking).await.result()["task"].clone();
    first.eventually(id(&asking), "INPUT_REQUIRED").await;
    store.fail_writes(&full());
    // The second server finds the held task as a killed process leaves it, although the first server still runs here.
    let second = serve(with_agent(obedient).store(store.clone())).await;
    assert_eq!(state(&second.get(id(&done)).await), "COMPLETED");
    assert_eq!(second.call("ListTasks", json!({})).await.result()["totalSize"], 3);
    let refused = second.call("SendMessage", message_to(&asking, "more")).await;
    assert_eq!((refused.status, refused.error_code()), (503, -32050));
    store.recover();
    let failed = second.eventually(id(&held), "FAILED").await;
    assert!(failed["status"]["message"]["parts"][0]["text"].as_str().unwrap().contains("server stopped"));
    assert_eq!(state(&second.send("hello").await), "COMPLETED");
}
