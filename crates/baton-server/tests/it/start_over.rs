use std::sync::Arc;

use baton_protocol::domain::{Artifact, ArtifactId, Part};
use baton_server::Options;
use baton_server::store::memory::MemoryStore;
use baton_server::store::{Store, StoreError};
use baton_server::{Agent, AgentError, Turn};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::faults::FaultyStore;
use crate::harness::{TEST_TIMEOUT, id, message_to, serve, state, with_agent};

type Step = fn(Turn) -> BoxFuture<'static, Result<(), AgentError>>;

/// The first turn, which ends with a question; an attempt at the second turn, which a crash interrupts; the next attempt.
#[derive(Clone)]
struct Steps([Step; 3]);

#[async_trait::async_trait]
impl Agent for Steps {
    async fn run(&self, turn: Turn) -> Result<(), AgentError> {
        let Steps([first, cut_off, again]) = self;
        match turn.attempt() {
            1 => {
                first(turn.clone()).await?;
                turn.ask("go on?");
                Ok(())
            }
            2 => {
                cut_off(turn.clone()).await?;
                turn.progress("made").await?;
                std::future::pending().await
            }
            _ => again(turn).await,
        }
    }

    fn rerunnable(&self) -> bool {
        true
    }
}

/// The task at its end. `crash` is called between the two servers.
fn ended(store: Arc<dyn Store>, options: &Options, steps: [Step; 3], crash: impl FnOnce()) -> Value {
    let agent = || with_agent(Steps(steps)).store(Arc::clone(&store)).options(options.clone());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let task = runtime.block_on(async {
        let server = serve(agent()).await;
        let task = server.send("go").await;
        let mut answer = message_to(&task, "yes");
        answer["configuration"] = json!({"returnImmediately": true});
        server.call("SendMessage", answer).await.result();
        let made =
            async { while server.get(id(&task)).await["status"]["message"]["parts"][0]["text"] != "made" {} };
        tokio::time::timeout(TEST_TIMEOUT, made).await.expect("the attempt goes on");
        task
    });
    runtime.shutdown_timeout(TEST_TIMEOUT);
    crash();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let server = serve(agent()).await;
        let end = async {
            loop {
                let task = server.get(id(&task)).await;
                if ["COMPLETED", "FAILED"].contains(&state(&task)) {
                    break task;
                }
            }
        };
        let task = tokio::time::timeout(TEST_TIMEOUT, end).await.expect("the re-run ends");
        server.stop().await;
        task
    })
}

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}

fn named(id: &str) -> ArtifactId {
    ArtifactId::parse(id).unwrap()
}

fn of(id: &str, texts: &[&str]) -> Artifact {
    Artifact::new(named(id), texts.iter().map(|text| Part::text(*text)).collect())
}

fn texts(task: &Value) -> Vec<Vec<&str>> {
    task["artifacts"].as_array().unwrap().iter().map(texts_of).collect()
}

fn texts_of(artifact: &Value) -> Vec<&str> {
    artifact["parts"].as_array().unwrap().iter().map(|part| part["text"].as_str().unwrap()).collect()
}

/// More than half of a task's limit, and large enough to be processed on another thread.
fn large() -> String {
    "x".repeat(400_000)
}

/// While artifacts are restored, they may exceed the limits for what an agent may send.
#[test]
fn s15_what_is_put_back_was_within_the_limits() {
    let mut options = Options::default();
    (options.max_artifact_bytes, options.max_parts) = (500_000, 2);
    let first: Step = |turn| {
        Box::pin(async move {
            turn.artifact(of("kept", &[&large()])).await?;
            turn.artifact_update(of("parts", &["1", "2"]), false, false).await?;
            turn.artifact_update(of("parts", &["3"]), true, false).await
        })
    };
    let cut_off: Step = |turn| {
        Box::pin(async move {
            turn.artifact(of("kept", &["lost"])).await?;
            turn.artifact_update(of("parts", &["lost"]), true, true).await?;
            turn.artifact(of("new", &[&large()])).await
        })
    };
    let again: Step = |turn| Box::pin(async move { turn.start_over().await.map(drop) });
    let task = ended(memory(), &options, [first, cut_off, again], || {});
    assert_eq!(state(&task), "COMPLETED", "{}", task["status"]);
    assert_eq!(texts(&task), [vec![large().as_str()], vec!["1", "2", "3"], vec![""]]);
}

/// A last chunk without content is undone, too.
#[test]
fn s15_what_was_open_is_open_again() {
    let first: Step =
        |turn| Box::pin(async move { turn.stream_text_as(named("log"), None).write("one").await });
    let cut_off: Step = |turn| Box::pin(async move { turn.more_text(named("log"), None).finish().await });
    let again: Step = |turn| {
        Box::pin(async move {
            assert_eq!(turn.start_over().await?.len(), 1);
            turn.more_text(named("log"), None).write(", two").await
        })
    };
    let task = ended(memory(), &Options::default(), [first, cut_off, again], || {});
    assert_eq!(state(&task), "COMPLETED", "{}", task["status"]);
    assert_eq!(texts(&task), [["one, two"]]);
}

/// The log is only read for an agent that starts over, and reading is retried if it fails.
#[test]
fn s15_the_log_is_read_when_the_agent_starts_over() {
    let make: Step = |turn| {
        Box::pin(async move { turn.artifact(of("a", &[&format!("attempt {}", turn.attempt())])).await })
    };
    let goes_on: Step = |turn| Box::pin(async move { turn.complete().await });
    let starts_over: Step = |turn| Box::pin(async move { turn.start_over().await.map(drop) });
    for (again, failures, expected) in [(goes_on, 0, "attempt 2"), (starts_over, 1, "attempt 1")] {
        let store = FaultyStore::over(memory());
        let crash = || {
            let mut left = 1;
            store.fail(move |call, _| {
                let fails = call == "events" && left > 0;
                left -= usize::from(fails);
                fails.then(|| StoreError::unavailable("away"))
            });
        };
        let task = ended(Arc::clone(&store) as _, &Options::default(), [make, make, again], crash);
        assert_eq!((state(&task), texts(&task)), ("COMPLETED", vec![vec![expected]]));
        assert_eq!(store.refusals(), failures);
    }
}
