use std::sync::Arc;

use baton_protocol::domain::{AgentCard, AgentSkill};
use baton_server::Options;
use baton_server::store::Store;
use baton_server::store::memory::MemoryStore;
use baton_server::store::sqlite::{self, SqliteStore};
use baton_server::{Agent, AgentError, Server, Turn};
use serde_json::{Value, json};

use crate::fixtures::{Backend, Calls, Gate};
use crate::harness::{TEST_TIMEOUT, TestServer, id, kinds, message, message_to, serve, state, with_agent};

/// "ask" asks; "deaf" notices a cancel and does not stop; anything else waits at the gate and makes an artifact with the
/// number of the attempt.
#[derive(Clone)]
struct Worker {
    gate: Gate,
    heard: Gate,
    calls: Calls,
    rerunnable: bool,
}

#[async_trait::async_trait]
impl Agent for Worker {
    async fn run(&self, turn: Turn) -> Result<(), AgentError> {
        let _call = self.calls.enter();
        if turn.is_first() && turn.text() == "ask" {
            turn.ask("which?");
            return Ok(());
        }
        turn.progress("begun").await?;
        if turn.text() == "deaf" {
            turn.cancellation().cancelled().await;
            self.heard.let_pass(1);
            std::future::pending::<()>().await;
        }
        self.gate.pass().await;
        turn.text_artifact("done", format!("{} by attempt {}", turn.text(), turn.attempt())).await?;
        Ok(())
    }

    fn rerunnable(&self) -> bool {
        self.rerunnable
    }
}

fn worker(rerunnable: bool) -> Worker {
    Worker { gate: Gate::new(), heard: Gate::new(), calls: Calls::default(), rerunnable }
}

/// Serves on a runtime of its own, runs `work`, and then shuts the runtime down, as if the process had been killed.
fn serve_until_killed<F>(backend: &Backend, agent: &Worker, options: Options, work: F)
where
    F: AsyncFnOnce(&TestServer),
{
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let store = backend.open().await;
        let server = serve(with_agent(agent.clone()).store(store).options(options)).await;
        work(&server).await;
    });
    // Waits until all its threads have stopped: a killed process does not go on working.
    runtime.shutdown_timeout(TEST_TIMEOUT);
}

/// Serves on the same store, as another process would.
fn serve_again<F>(backend: &Backend, agent: &Worker, work: F)
where
    F: AsyncFnOnce(&TestServer),
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let server = serve(with_agent(agent.clone()).store(backend.open().await)).await;
        work(&server).await;
        server.stop().await;
    });
}

fn reason(task: &Value) -> &str {
    task["status"]["message"]["parts"][0]["text"].as_str().unwrap_or_default()
}

fn artifacts(task: &Value) -> Vec<&str> {
    let all = task["artifacts"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().map(|artifact| artifact["parts"][0]["text"].as_str().unwrap()).collect()
}

/// Starts a task and waits for the agent's first status.
async fn begun(server: &TestServer, text: &str) -> Value {
    let mut stream = server.stream("SendStreamingMessage", message(text), None).await.ok().unwrap();
    let task = stream.next().await.unwrap().result()["task"].clone();
    stream.next().await.unwrap();
    assert_eq!(stream.next().await.unwrap().kind(), "working");
    task
}

#[test]
fn s15_a_turn_that_may_not_be_run_again_fails_with_the_reason() {
    for backend in Backend::each() {
        let agent = worker(false);
        let mut task = json!(null);
        serve_until_killed(&backend, &agent, Options::default(), async |server| {
            task = begun(server, "work").await
        });
        agent.gate.let_pass(10);
        serve_again(&backend, &agent, async |server| {
            let ended = server.eventually(id(&task), "FAILED").await;
            assert!(reason(&ended).contains("server stopped"), "{ended}");
            assert_eq!(ended["artifacts"], json!(null));
            // The stream continues after the crash without a gap.
            let mut rest =
                server.stream("SubscribeToTask", json!({"id": id(&task)}), Some("3")).await.ok().unwrap();
            let rest = rest.rest().await;
            assert_eq!(kinds(&rest), ["working", "failed"]);
            assert_eq!(rest.iter().map(|event| event.id.unwrap()).collect::<Vec<_>>(), [4, 5]);
        });
        assert_eq!(agent.calls.count(), 1, "it never has a second attempt");
    }
}

#[test]
fn s15_a_turn_that_may_be_run_again_has_another_attempt() {
    for backend in Backend::each() {
        let agent = worker(true);
        let params = message("work");
        let mut task = json!(null);
        for life in 1..=2 {
            serve_until_killed(&backend, &agent, Options::default(), async |server| {
                let mut stream =
                    server.stream("SendStreamingMessage", params.clone(), None).await.ok().unwrap();
                task = stream.next().await.unwrap().result()["task"].clone();
                while agent.calls.count() < life {
                    assert_eq!(state(&server.get(id(&task)).await), "WORKING");
                }
            });
        }
        agent.gate.let_pass(10);
        serve_again(&backend, &agent, async |server| {
            let ended = server.eventually(id(&task), "COMPLETED").await;
            assert_eq!(artifacts(&ended), ["work by attempt 3"]);
            let again = server.call("SendMessage", params.clone()).await;
            assert_eq!(again.result()["task"], ended, "the message has one task");
            assert_eq!(server.call("ListTasks", json!({})).await.result()["totalSize"], 1);
        });
        assert_eq!(agent.calls.count(), 3);
        if let Backend::Sqlite(_) = backend {
            // The file can only be opened after the previous process has released it.
            assert_eq!(agent.calls.most_at_once(), 1, "attempts never overlap");
        }
    }
}

/// The turn may be run again, but the new server does not have its skill.
#[test]
fn s08_a_turn_cut_short_whose_skill_is_gone_fails_and_says_so() {
    for backend in Backend::each() {
        let agent = worker(true);
        let mut task = json!(null);
        serve_until_killed(&backend, &agent, Options::default(), async |server| {
            task = begun(server, "work").await
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let card = AgentCard::new("test", "An agent for tests", "2");
            let builder =
                Server::builder(card).task_skill(AgentSkill::new("new", "new", "new"), agent.clone());
            let server = serve(builder.store(backend.open().await)).await;
            let ended = server.eventually(id(&task), "FAILED").await;
            assert!(reason(&ended).contains("`test` is no longer there"), "{ended}");
            server.stop().await;
        });
        assert_eq!(agent.calls.count(), 1);
    }
}

#[test]
fn s12_queued_tasks_run_after_a_crash() {
    for backend in Backend::each() {
        let agent = worker(false);
        let mut options = Options::default();
        options.max_running = 1;
        let mut tasks = Vec::new();
        serve_until_killed(&backend, &agent, options, async |server| {
            tasks.push(begun(server, "running").await);
            for text in ["one", "two", "three"] {
                tasks.push(server.start(text).await);
            }
        });
        agent.gate.let_pass(10);
        serve_again(&backend, &agent, async |server| {
            server.eventually(id(&tasks[0]), "FAILED").await;
            for (task, text) in tasks[1..].iter().zip(["one", "two", "three"]) {
                let ended = server.eventually(id(task), "COMPLETED").await;
                assert_eq!(artifacts(&ended), [format!("{text} by attempt 1")]);
            }
        });
    }
}

#[test]
fn what_was_asked_of_a_task_before_the_crash_is_done_after_it() {
    for backend in Backend::each() {
        let agent = worker(true);
        let (mut canceled, mut followed, mut asked) = (json!(null), json!(null), json!(null));
        serve_until_killed(&backend, &agent, Options::default(), async |server| {
            asked = server.send("ask").await;
            canceled = begun(server, "deaf").await;
            followed = begun(server, "first").await;
            let mut more = message_to(&followed, "second");
            more["configuration"] = json!({"returnImmediately": true});
            server.call("SendMessage", more).await.result();
            // The crash happens within the grace time.
            let cancel = server.call("CancelTask", json!({"id": id(&canceled)}));
            tokio::select! {
                answer = cancel => panic!("not yet: {}", answer.body),
                () = agent.heard.pass() => {}
            }
        });
        agent.gate.let_pass(100);
        let calls = agent.calls.count();
        serve_again(&backend, &agent, async |server| {
            let ended = server.eventually(id(&followed), "COMPLETED").await;
            assert_eq!(artifacts(&ended), ["first by attempt 2", "second by attempt 3"]);
            assert_eq!(state(&server.get(id(&canceled)).await), "CANCELED");
            assert_eq!(state(&server.get(id(&asked)).await), "INPUT_REQUIRED");
            let answered = server.call("SendMessage", message_to(&asked, "this")).await;
            assert_eq!(artifacts(&answered.result()["task"]), ["this by attempt 2"]);
        });
        assert_eq!(agent.calls.count(), calls + 3, "the canceled one is not run again");
    }
}

#[tokio::test]
async fn a_stopping_server_lets_turns_finish_and_takes_nothing_new() {
    for backend in Backend::each() {
        let agent = worker(false);
        let server = serve(with_agent(agent.clone()).store(backend.open().await)).await;
        let task = begun(&server, "work").await;
        let asked = server.send("ask").await;
        let mut watch = server.stream("SubscribeToTask", json!({"id": id(&task)}), None).await.ok().unwrap();
        let mut quiet = server.stream("SubscribeToTask", json!({"id": id(&asked)}), None).await.ok().unwrap();
        quiet.next().await.unwrap();
        let stopping = server.server.shut_down();
        let meanwhile = async {
            for params in [message("new"), message_to(&asked, "this")] {
                let refused = server.call("SendMessage", params).await;
                assert_eq!((refused.status, refused.error_code()), (503, -32603));
                assert_eq!(refused.header("retry-after"), Some("1"));
            }
            assert_eq!(state(&server.get(id(&task)).await), "WORKING", "reads go on");
            agent.gate.let_pass(1);
            assert_eq!(kinds(&watch.rest().await), ["task", "artifactUpdate", "completed"]);
            assert!(quiet.next().await.is_none(), "streams close");
        };
        tokio::join!(stopping, meanwhile);
        assert_eq!(state(&server.get(id(&asked)).await), "INPUT_REQUIRED");
        server.stop().await;
    }
}

#[tokio::test]
async fn a_turn_that_does_not_finish_in_the_drain_is_left_to_the_next_start() {
    async fn hears_it(turn: Turn) -> Result<(), AgentError> {
        turn.cancellation().cancelled().await;
        Err(AgentError::new("told to stop"))
    }
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let server = serve(with_agent(hears_it).store(Arc::clone(&store))).await;
    let task = server.start("work").await;
    let waiting = message_to(&task, "more");
    let blocked = server.call("SendMessage", waiting);
    let (answer, ()) = tokio::join!(blocked, async {
        server.get(id(&task)).await;
        server.server.shut_down().await;
    });
    assert!([200, 503].contains(&answer.status), "whoever waits is answered: {}", answer.body);
    server.stop().await;
    let server = serve(with_agent(hears_it).store(store)).await;
    let ended = server.eventually(id(&task), "FAILED").await;
    assert!(reason(&ended).contains("server stopped"), "{ended}");
}

#[test]
fn s15_one_process_at_a_time_has_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tasks.db");
    let first = SqliteStore::open(&path, sqlite::Options::default()).unwrap();
    assert!(SqliteStore::open(&path, sqlite::Options::default()).is_err());
    drop(first);
    SqliteStore::open(&path, sqlite::Options::default()).unwrap();
}
