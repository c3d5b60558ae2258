//! S-14: deliveries that are overtaken by events: the webhook is removed, replaced or switched off, the code panics, the store
//! fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use baton_server::store::memory::MemoryStore;
use baton_server::store::{Store as _, StoreError, WebhookCursor};
use baton_server::{Builder, WebhookName};
use serde_json::json;
use tokio::net::TcpListener;

use crate::faults::FaultyStore;
use crate::fixtures::{Gate, TestClock};
use crate::harness::{TestServer, id, serve, with_agent};
use crate::push::{Got, Receiver, busy, options, with_webhook};
use crate::push_admin::until;

/// A receiver whose answers wait.
struct Held {
    url: String,
    calls: Arc<AtomicUsize>,
    gate: Gate,
}

impl Held {
    async fn start() -> Self {
        let (calls, gate) = (Arc::new(AtomicUsize::new(0)), Gate::new());
        let app = Router::new().fallback(hold).with_state((Arc::clone(&calls), gate.clone()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Held { url, calls, gate }
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

async fn hold(State((calls, gate)): State<(Arc<AtomicUsize>, Gate)>) -> StatusCode {
    calls.fetch_add(1, Ordering::SeqCst);
    gate.pass().await;
    StatusCode::OK
}

/// Calls to a host come one after the other.
fn one_at_a_time() -> Builder {
    let mut options = options();
    options.per_host = 1;
    with_agent(busy).push(options)
}

async fn start(server: &TestServer, url: &str) -> String {
    let webhook = json!({"url": url, "id": "mine"});
    let started = server.call("SendMessage", with_webhook("go", webhook)).await;
    let task = id(&started.result()["task"]).to_owned();
    server.eventually(&task, "COMPLETED").await;
    task
}

/// Waits until the webhook's job is at work or in its host's line.
async fn until_busy(server: &TestServer, task: &str) {
    let webhooks = server.server.webhooks();
    until(async || webhooks.find(&WebhookName::new(task)).await.unwrap().is_busy.then_some(())).await;
}

/// The ways to stop a webhook.
#[derive(Debug, Clone, Copy)]
enum By {
    Owner,
    Operator,
    /// From then on it is called elsewhere.
    Replacing,
}

impl By {
    const ALL: [By; 3] = [By::Owner, By::Operator, By::Replacing];

    async fn stop(self, server: &TestServer, task: &str, elsewhere: &str) {
        let params = json!({"taskId": task, "id": "mine", "url": elsewhere});
        let of_it = json!({"taskId": task, "id": "mine"});
        match self {
            By::Owner => {
                server.call("DeleteTaskPushNotificationConfig", of_it).await.result();
            }
            By::Operator => {
                server.server.webhooks().disable(&WebhookName::new(task)).await.unwrap();
            }
            By::Replacing => {
                server.call("CreateTaskPushNotificationConfig", params).await.result();
            }
        }
    }
}

/// The first webhook's call is held, the second one's job waits behind it.
#[tokio::test]
async fn s14_a_webhook_that_was_stopped_while_its_job_waited_is_not_called() {
    for by in By::ALL {
        let (server, held, elsewhere) =
            (serve(one_at_a_time()).await, Held::start().await, Receiver::start(&[]).await);
        let first = start(&server, &format!("{}/first", held.url)).await;
        until(async || (held.calls() == 1).then_some(())).await;
        let second = start(&server, &format!("{}/second", held.url)).await;
        until_busy(&server, &second).await;
        by.stop(&server, &second, &elsewhere.url).await;
        held.gate.let_pass(1000);
        // Whoever comes last comes after all that waited.
        let third = start(&server, &format!("{}/third", held.url)).await;
        let webhooks = server.server.webhooks();
        for task in [first, third] {
            until(async || webhooks.find(&WebhookName::new(&task)).await.is_err().then_some(())).await;
        }
        assert_eq!(held.calls(), 12, "six of the first and six of the third: {by:?}");
        if matches!(by, By::Replacing) {
            assert_eq!(elsewhere.wait_for_end().await.len(), 6);
        }
        server.stop().await;
    }
}

#[tokio::test]
async fn s14_a_webhook_that_was_stopped_during_a_call_is_not_called_again() {
    for by in By::ALL {
        let (server, held, elsewhere) =
            (serve(one_at_a_time()).await, Held::start().await, Receiver::start(&[]).await);
        let task = start(&server, &held.url).await;
        until(async || (held.calls() == 1).then_some(())).await;
        by.stop(&server, &task, &elsewhere.url).await;
        held.gate.let_pass(1000);
        let last = start(&server, &held.url).await;
        let webhooks = server.server.webhooks();
        until(async || webhooks.find(&WebhookName::new(&last)).await.is_err().then_some(())).await;
        assert_eq!(held.calls(), 7, "one, and six of the other: {by:?}");
        if matches!(by, By::Replacing) {
            elsewhere.wait_for_end().await;
        }
        server.stop().await;
    }
}

#[tokio::test]
async fn s14_a_panic_while_delivering_costs_neither_the_webhook_nor_the_place_at_its_host() {
    let store = FaultyStore::over(Arc::new(MemoryStore::new()));
    let (server, receiver) = (serve(one_at_a_time().store(store.clone())).await, Receiver::start(&[]).await);
    let panicked = Arc::new(AtomicBool::new(false));
    let first = Arc::clone(&panicked);
    store.fail(move |call, _| {
        assert!(call != "events" || first.swap(true, Ordering::SeqCst), "a fault that the test has made");
        None
    });
    let tasks = [start(&server, &receiver.url).await, start(&server, &receiver.url).await];
    let webhooks = server.server.webhooks();
    for task in &tasks {
        until(async || webhooks.find(&WebhookName::new(task)).await.is_err().then_some(())).await;
        let of_it = |got: &&Got| got.json().to_string().contains(task.as_str());
        assert_eq!(receiver.all().iter().filter(of_it).count(), 6);
    }
    assert!(panicked.load(Ordering::SeqCst));
    server.stop().await;
}

/// The webhook is moved by somebody else, and the store fails just when the job wants to read it again.
#[tokio::test]
async fn s14_a_store_that_fails_for_a_moment_costs_no_webhook() {
    let (clock, inner) = (TestClock::new(), Arc::new(MemoryStore::new()));
    let store = FaultyStore::over(inner.clone());
    let builder = one_at_a_time().store(store.clone()).clock(clock.clone());
    let (server, held) = (serve(builder).await, Held::start().await);
    let task = start(&server, &held.url).await;
    until(async || (held.calls() == 1).then_some(())).await;
    let open = inner.open_webhooks(None, 10).await.unwrap().remove(0);
    let cursor = open.webhook.cursor;
    let moved = WebhookCursor { failures: 1, ..cursor };
    assert!(inner.move_webhook(open.key, &open.webhook.id, cursor.revision, moved).await.unwrap());
    let mut left = 1;
    store.fail(move |call, _| {
        let fails = call == "open_webhooks_of" && left > 0;
        left -= u32::from(fails);
        fails.then(|| StoreError::unavailable("for a moment"))
    });
    held.gate.let_pass(1000);
    store.refused(1).await;
    let webhooks = server.server.webhooks();
    until(async || {
        clock.advance(Duration::from_secs(60));
        // The worker looks at the clock when it has something to do.
        start(&server, &held.url).await;
        webhooks.find(&WebhookName::new(&task)).await.is_err().then_some(())
    })
    .await;
    server.stop().await;
}
