//! A fatal store error (durability can no longer be promised) stops the server at once, whichever call gets it first.

use std::sync::Arc;
use std::time::Duration;

use baton_server::Health;
use baton_server::Options;
use baton_server::store::memory::MemoryStore;
use baton_server::store::{Append, StoreError};
use baton_server::{Agent, Server, StartError};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::faults::FaultyStore;
use crate::fixtures::{Gate, agent_with};
use crate::harness::{TEST_TIMEOUT, id, kinds, message, message_to, serve, state, with_agent};

fn lost() -> StoreError {
    StoreError::fatal("a sync failed")
}

/// Asks a question for "ask", else waits at the gate and makes an artifact.
fn gated(gate: &Gate) -> impl Agent + use<> {
    agent_with(gate, |gate, turn| async move {
        if turn.text() == "ask" {
            drop(turn.ask("which?"));
            return Ok(());
        }
        gate.pass().await;
        turn.text_artifact("done", turn.text()).await?;
        Ok(())
    })
}

/// A server whose store will fail, and the result of serving.
struct FailingServer {
    gate: Gate,
    store: Arc<FaultyStore>,
    server: Server,
    url: String,
    ended: JoinHandle<Result<(), StartError>>,
    http: reqwest::Client,
    stop: CancellationToken,
}

impl FailingServer {
    async fn start(options: Options) -> Self {
        let gate = Gate::new();
        let store = FaultyStore::over(Arc::new(MemoryStore::new()));
        // A drain so long that waiting for it would fail the test.
        let builder = with_agent(gated(&gate)).store(store.clone()).options(options).drain(10 * TEST_TIMEOUT);
        let server = builder.build().await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let stop = CancellationToken::new();
        let ended = tokio::spawn(server.clone().serve_until(listener, stop.clone().cancelled_owned()));
        FailingServer { gate, store, server, url, ended, http: reqwest::Client::new(), stop }
    }

    fn lose(&self, when: impl Fn(&str, Option<&Append>) -> bool + Send + 'static) {
        self.store.fail(move |call, append| when(call, append).then(lost));
    }

    async fn post(&self, method: &str, params: serde_json::Value) -> reqwest::Response {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let request = self.http.post(&self.url).header("a2a-version", "1.0").json(&body);
        request.timeout(TEST_TIMEOUT).send().await.unwrap()
    }

    async fn task(&self, text: &str) -> serde_json::Value {
        let mut params = message(text);
        params["configuration"] = json!({"returnImmediately": true});
        let answer: serde_json::Value = self.post("SendMessage", params).await.json().await.unwrap();
        answer["result"]["task"].clone()
    }

    /// Checks that the server stops by itself with the store's error.
    async fn ends(self) {
        let ended = tokio::time::timeout(TEST_TIMEOUT, self.ended).await.expect("it ends at once").unwrap();
        assert!(matches!(&ended, Err(StartError::Fatal(error)) if *error == lost()), "{ended:?}");
        assert_eq!(self.server.fatal().await, lost());
    }
}

#[tokio::test]
async fn a_send_that_loses_the_store_is_refused_and_ends_the_server() {
    let doomed = FailingServer::start(Options::default()).await;
    doomed.lose(|call, _| call == "append");
    let refused = doomed.post("SendMessage", message("go")).await;
    assert_eq!(refused.status(), 503, "the send is refused");
    assert!(refused.headers().contains_key("retry-after"));
    doomed.ends().await;
}

#[tokio::test]
async fn a_turn_that_loses_the_store_ends_the_server() {
    let doomed = FailingServer::start(Options::default()).await;
    let task = doomed.task("go").await;
    doomed.lose(|call, _| call == "append");
    // The stream waits for the turn: it does not hang, and does not show an end of the task.
    let subscribe = doomed.post("SubscribeToTask", json!({"id": id(&task)})).await;
    doomed.gate.let_pass(1);
    let seen = subscribe.text().await.unwrap();
    assert!(!seen.contains("COMPLETED") && !seen.contains("artifactUpdate"), "{seen}");
    doomed.ends().await;
}

/// Whichever store call fails: of a message to a busy task, a cancel, a sweep, a probe, or a reader.
#[tokio::test]
async fn wherever_the_store_says_so_the_server_ends() {
    for call in ["request", "requests", "head", "load", "list", "open_tasks", "fold_ended", "check"] {
        let mut options = Options::default();
        options.retention.every = Duration::from_millis(20);
        let doomed = FailingServer::start(options).await;
        let (busy, asking) = (doomed.task("go").await, doomed.task("ask").await);
        doomed.lose(move |name, _| name == call);
        for (method, params) in [
            ("GetTask", json!({"id": id(&asking)})),
            ("ListTasks", json!({})),
            ("SubscribeToTask", json!({"id": "nobody"})),
            ("SendMessage", message_to(&busy, "more")),
        ] {
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            let request = doomed.http.post(&doomed.url).header("a2a-version", "1.0").json(&body);
            // Refused, disconnected, or answered because it does not need that call; it must not hang.
            if let Ok(answer) = request.timeout(Duration::from_millis(500)).send().await {
                assert!([200, 503].contains(&answer.status().as_u16()), "{call} {method}");
            }
        }
        let _ = doomed.http.get(format!("{}/readyz", doomed.url)).send().await;
        doomed.ends().await;
    }
}

/// An application that mounts the router keeps serving and refuses writes; it can wait for `Server::fatal`.
#[tokio::test]
async fn a_mounted_router_shows_a_lost_store() {
    let gate = Gate::new();
    let store = FaultyStore::over(Arc::new(MemoryStore::new()));
    let server = with_agent(gated(&gate)).store(store.clone()).build().await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = server.router();
    tokio::spawn(async move { axum::serve(listener, router).await });
    let fatal = tokio::spawn(server.fatal());
    let http = reqwest::Client::new();
    let ready = || async {
        let said = http.get(format!("{url}/readyz")).send().await.unwrap();
        (said.status().as_u16(), said.text().await.unwrap())
    };
    assert_eq!(ready().await, (200, "ready".to_owned()));
    assert!(!fatal.is_finished());
    store.fail(|call, _| (call == "append").then(lost));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message("go")});
    let send = || http.post(&url).header("a2a-version", "1.0").json(&body).send();
    assert_eq!(send().await.unwrap().status(), 503);
    assert_eq!(tokio::time::timeout(TEST_TIMEOUT, fatal).await.expect("`fatal` resolves").unwrap(), lost());
    // Reported at once, although the last good answer is still cached; and it stays so.
    store.recover();
    assert_eq!(ready().await, (503, "store unavailable".to_owned()));
    let healthy = http.get(format!("{url}/healthz")).send().await.unwrap();
    assert_eq!(healthy.status(), 200);
}

/// Nothing can be written any more, so a running drain is ended early.
#[tokio::test]
async fn a_drain_does_not_outlive_the_store() {
    let doomed = FailingServer::start(Options::default()).await;
    doomed.task("go").await;
    doomed.stop.cancel();
    while doomed.server.health().await != Health::Stopping {
        tokio::task::yield_now().await;
    }
    doomed.lose(|call, _| call == "append");
    doomed.gate.let_pass(1);
    doomed.ends().await;
}

/// The next process finds what was acknowledged, and applies the crash rule to the rest.
#[tokio::test]
async fn the_next_start_goes_on_from_what_was_acknowledged() {
    let inner = Arc::new(MemoryStore::new());
    let gate = Gate::new();
    let store = FaultyStore::over(inner.clone());
    let builder = with_agent(gated(&gate)).store(store.clone()).build().await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let ended = tokio::spawn(builder.serve_until(listener, std::future::pending()));
    let http = reqwest::Client::new();
    let post = |params: serde_json::Value| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params});
        http.post(&url).header("a2a-version", "1.0").json(&body).send()
    };
    let mut first = message("go");
    first["configuration"] = json!({"returnImmediately": true});
    let answer: serde_json::Value = post(first).await.unwrap().json().await.unwrap();
    let task = answer["result"]["task"].clone();
    store.fail(|call, _| (call == "append").then(lost));
    assert_eq!(post(message("lost")).await.unwrap().status(), 503);
    tokio::time::timeout(TEST_TIMEOUT, ended).await.expect("it ends").unwrap().unwrap_err();

    let restarted = serve(with_agent(gated(&gate)).store(inner)).await;
    assert_eq!(restarted.call("ListTasks", json!({})).await.result()["totalSize"], 1);
    assert_eq!(state(&restarted.get(id(&task)).await), "FAILED");
    let mut events =
        restarted.stream("SubscribeToTask", json!({"id": id(&task)}), Some("1")).await.ok().unwrap();
    assert_eq!(kinds(&events.rest().await), ["working", "failed"]);
}
