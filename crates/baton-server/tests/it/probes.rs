//! `/healthz` says that the process serves, `/readyz` whether work should be sent to it.

use std::sync::Arc;
use std::time::Duration;

use baton_server::store::StoreError;
use baton_server::store::memory::MemoryStore;
use futures_util::future::join_all;
use http::Method;

use crate::agents::obedient;
use crate::callers::ByHeader;
use crate::faults::FaultyStore;
use crate::fixtures::{Gate, agent_with};
use crate::harness::{TEST_TIMEOUT, TestServer, id, serve, serve_agent, with_agent};
use crate::speakers::request;

struct ProbeAnswer {
    status: u16,
    word: String,
    headers: reqwest::header::HeaderMap,
}

async fn ask(server: &TestServer, method: Method, path: &str) -> ProbeAnswer {
    let response = request(server, method, path, &[], "").await;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let word = tokio::time::timeout(TEST_TIMEOUT, response.text()).await.expect("an answer came").unwrap();
    ProbeAnswer { status, word, headers }
}

async fn ready(server: &TestServer) -> (u16, String) {
    let said = ask(server, Method::GET, "/readyz").await;
    (said.status, said.word)
}

fn says(status: u16, word: &str) -> (u16, String) {
    (status, word.to_owned())
}

/// Polls until the answer changes: the store's answer is cached for a second.
async fn ready_becomes(server: &TestServer, status: u16, word: &str) {
    let give_up = tokio::time::Instant::now() + TEST_TIMEOUT;
    while ready(server).await != says(status, word) {
        assert!(tokio::time::Instant::now() < give_up, "never {word}: {:?}", ready(server).await);
        tokio::time::sleep(Duration::from_millis(50)).await; // tidy: allow-sleep asking on would only keep the machine busy
    }
}

#[tokio::test]
async fn probes_are_for_everybody_and_take_get_and_head() {
    let server = serve(with_agent(obedient).authenticator(Arc::new(ByHeader))).await;
    for (path, word) in
        [("/healthz", "ok"), ("/readyz", "ready"), ("/healthz/", "ok"), ("/readyz?a=b", "ready")]
    {
        let said = ask(&server, Method::GET, path).await;
        assert_eq!((said.status, said.word.as_str()), (200, word), "{path}");
        assert_eq!(said.headers["cache-control"], "no-store");
        assert_eq!(said.headers["content-type"], "text/plain; charset=utf-8");
        let said = ask(&server, Method::HEAD, path).await;
        assert_eq!((said.status, said.word.as_str()), (200, ""), "{path}");
        for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS] {
            let said = ask(&server, method, path).await;
            assert_eq!((said.status, &said.headers["allow"]), (405, &"GET, HEAD".parse().unwrap()), "{path}");
            assert_eq!(said.headers["cache-control"], "no-store");
        }
    }
    // Paths below them are not probes, and not tenants either.
    for path in ["/healthz/tasks", "/readyz/tasks", "/metrics/tasks"] {
        let mine =
            request(&server, Method::GET, path, &[("x-owner", "me"), ("a2a-version", "1.0")], "").await;
        assert_eq!(mine.status(), 404, "{path}");
    }
}

#[tokio::test]
async fn probes_are_also_below_the_public_path() {
    let server = serve(with_agent(obedient).public_url("https://a.example/agents/one")).await;
    for path in ["/healthz", "/agents/one/healthz"] {
        assert_eq!(ask(&server, Method::GET, path).await.word, "ok", "{path}");
    }
}

#[tokio::test]
async fn s12_readiness_follows_the_store() {
    let store = FaultyStore::over(Arc::new(MemoryStore::new()));
    let server = serve(with_agent(obedient).store(store.clone())).await;
    assert_eq!(ready(&server).await, says(200, "ready"));
    for (error, word) in [
        (StoreError::full("no room"), "store full"),
        (StoreError::unavailable("gone for lunch"), "store unavailable"),
        (StoreError::damaged("bits rotted"), "store unavailable"),
    ] {
        store.fail_writes(&error);
        ready_becomes(&server, 503, word).await;
        assert_eq!(ask(&server, Method::GET, "/healthz").await.word, "ok", "a restart would not help");
        store.recover();
        ready_becomes(&server, 200, "ready").await;
    }
}

#[tokio::test]
async fn many_questions_cost_the_store_one_write() {
    let store = FaultyStore::over(Arc::new(MemoryStore::new()));
    let server = serve(with_agent(obedient).store(store.clone())).await;
    let gate = Gate::new();
    store.slow_checks(Some(&gate));
    let asked = join_all((0..50).map(|_| ready(&server)));
    let (answers, ()) = tokio::join!(asked, async {
        while store.checks() == 0 {
            tokio::task::yield_now().await;
        }
        gate.let_pass(50);
    });
    assert!(answers.iter().all(|answer| *answer == says(200, "ready")), "{answers:?}");
    // If the machine paused for a second, there may have been another check.
    assert!(store.checks() <= 3, "{} checks for 50 questions", store.checks());
}

#[tokio::test]
async fn a_store_that_hangs_is_not_waited_for() {
    let store = FaultyStore::over(Arc::new(MemoryStore::new()));
    let server = serve(with_agent(obedient).store(store.clone())).await;
    store.slow_checks(Some(&Gate::new()));
    assert_eq!(ready(&server).await, says(503, "store unavailable"));
    assert_eq!(ask(&server, Method::GET, "/healthz").await.word, "ok");
    store.slow_checks(None);
    ready_becomes(&server, 200, "ready").await;
}

#[tokio::test]
async fn a_server_that_stops_says_so_while_it_drains() {
    let gate = Gate::new();
    let agent = agent_with(&gate, |gate, turn| async move {
        gate.pass().await;
        turn.complete().await?;
        Ok(())
    });
    let server = serve_agent(agent).await;
    let task = server.start("go").await;
    let stopped = server.server.clone();
    let stopping = tokio::spawn(async move { stopped.shut_down().await });
    ready_becomes(&server, 503, "stopping").await;
    assert_eq!(ask(&server, Method::GET, "/healthz").await.word, "ok");
    let refused = server.call("SendMessage", crate::harness::message("more")).await;
    assert_eq!(refused.status, 503);
    gate.let_pass(1);
    stopping.await.unwrap();
    assert_eq!(crate::harness::state(&server.get(id(&task)).await), "COMPLETED");
}
