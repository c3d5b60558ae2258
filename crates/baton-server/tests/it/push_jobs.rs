//! S-14: deliveries that are overtaken by events: the webhook is removed, replaced or switched off, the code panics, the store
//! fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use baton_server::store::memory::MemoryStore;
use baton_server::store::{NewWebhook, Store as _, StoreError, WebhookCursor, WebhookState};
use baton_server::{Builder, WebhookName};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};

use crate::disconnect::hang_up_once;
use crate::faults::FaultyStore;
use crate::fixtures::{Gate, TestClock};
use crate::harness::{TestServer, id, message, serve, with_agent};
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
        Self::answering(StatusCode::OK).await
    }

    async fn answering(status: StatusCode) -> Self {
        let (calls, gate) = (Arc::new(AtomicUsize::new(0)), Gate::new());
        let app = Router::new().fallback(hold).with_state((Arc::clone(&calls), gate.clone(), status));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Held { url, calls, gate }
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

async fn hold(State((calls, gate, status)): State<(Arc<AtomicUsize>, Gate, StatusCode)>) -> StatusCode {
    calls.fetch_add(1, Ordering::SeqCst);
    gate.pass().await;
    status
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

/// A webhook whose end the store does not take stays open, and ends when the store does.
#[tokio::test]
async fn s14_the_end_of_a_webhook_waits_for_a_store_that_fails() {
    for (answer, calls, state, reason) in [
        (200, Some(6), None, None),
        (500, Some(10), Some(WebhookState::Failed), Some("the webhook answered with status 500")),
        // It is asked again, since nobody knows that it has answered.
        (410, None, Some(WebhookState::Disabled), Some("the webhook answered with status 410")),
    ] {
        let inner = Arc::new(MemoryStore::new());
        let store = FaultyStore::over(inner.clone());
        let receiver = Receiver::start(&[answer; 10_000]).await;
        let server = serve(quickly().store(store.clone())).await;
        let is_full = Arc::new(AtomicBool::new(true));
        let fails = Arc::clone(&is_full);
        store.fail(move |call, _| {
            let is_write = call == "move_webhook" || call == "set_aside_webhook";
            (is_write && fails.load(Ordering::SeqCst)).then(|| StoreError::full("no space left"))
        });
        let task = start(&server, &receiver.url).await;
        // More than there are events and attempts.
        store.refused(30).await;
        let open = inner.open_webhooks(None, 10).await.unwrap();
        assert_eq!((open.len(), inner.failed_webhooks(None, 10).await.unwrap().len()), (1, 0), "{answer}");
        is_full.store(false, Ordering::SeqCst);
        let webhooks = server.server.webhooks();
        let name = WebhookName::new(&task);
        until(async || inner.open_webhooks(None, 10).await.unwrap().is_empty().then_some(())).await;
        let found = webhooks.find(&name).await.ok();
        assert_eq!(found.as_ref().map(|found| found.state), state);
        assert_eq!(found.and_then(|found| found.reason).as_deref(), reason);
        assert!(calls.is_none_or(|calls| receiver.all().len() == calls), "{}", receiver.all().len());
        server.stop().await;
    }
}

/// All attempts in a moment.
fn quickly() -> Builder {
    let mut options = options();
    options.pace = 1e-6;
    with_agent(busy).push(options)
}

/// In 0.1 the end is that the webhook is removed.
#[tokio::test]
async fn s14_a_legacy_webhook_that_the_store_does_not_remove_is_removed_later() {
    let inner = Arc::new(MemoryStore::new());
    let store = FaultyStore::over(inner.clone());
    let receiver = Receiver::start(&[500; 10_000]).await;
    let server = serve(quickly().store(store.clone())).await;
    let is_full = Arc::new(AtomicBool::new(true));
    let fails = Arc::clone(&is_full);
    store.fail(move |call, _| {
        let is_removal = call == "remove_webhook" && fails.load(Ordering::SeqCst);
        is_removal.then(|| StoreError::full("no space left"))
    });
    let said = json!({"role": "user", "parts": [{"type": "text", "text": "go"}]});
    let params = json!({"id": "task-1", "message": said, "pushNotification": {"url": receiver.url}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/send", "params": params});
    server.post(&[("content-type", "application/json")], body.to_string()).await.result();
    store.refused(5).await;
    assert_eq!(inner.open_webhooks(None, 10).await.unwrap().len(), 1);
    is_full.store(false, Ordering::SeqCst);
    let get = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/pushNotification/get", "params": {"id": "task-1"}});
    until(async || {
        let got = server.post(&[("content-type", "application/json")], get.to_string()).await;
        got.body.get("error").is_some().then_some(())
    })
    .await;
    assert_eq!(receiver.all().len(), 4);
    server.stop().await;
}

/// Its owner removes or replaces it at the store just when its receiver answers for the last time, before the registry knows.
#[tokio::test]
async fn s14_what_was_removed_or_replaced_during_the_last_call_is_not_kept_as_failed() {
    for is_replaced in [false, true] {
        let inner = Arc::new(MemoryStore::new());
        let (server, held) =
            (serve(one_at_a_time().store(inner.clone())).await, Held::answering(StatusCode::GONE).await);
        let elsewhere = Receiver::start(&[]).await;
        let task = start(&server, &held.url).await;
        until(async || (held.calls() == 1).then_some(())).await;
        let open = inner.open_webhooks(None, 10).await.unwrap().remove(0);
        let id = &open.webhook.id;
        if is_replaced {
            let record = String::from_utf8(open.webhook.record.to_vec()).unwrap();
            let record = record.replace(&held.url, &elsewhere.url).into();
            let new = NewWebhook { id: id.clone(), record, most: 16 };
            inner.put_webhook(&open.scope, &open.task, new).await.unwrap();
        } else {
            assert!(inner.remove_webhook(&open.scope, &open.task, id, None).await.unwrap());
        }
        held.gate.let_pass(1000);
        if is_replaced {
            let of_it = |got: &Got| got.json().to_string().contains(task.as_str());
            let got = elsewhere.wait_for_end().await;
            assert!(got.len() == 6 && got.iter().all(of_it), "{}", got.len());
        }
        // Whoever comes last comes after all that waited.
        let last = start(&server, &held.url).await;
        let webhooks = server.server.webhooks();
        let is_over = async || webhooks.find(&WebhookName::new(&last)).await.ok()?.reason;
        until(is_over).await;
        let failed = inner.failed_webhooks(None, 10).await.unwrap();
        assert!(failed.iter().all(|failed| failed.key != open.key), "{is_replaced}");
        server.stop().await;
    }
}

/// The new one has the id and the first revision of the old one, and it gets only what follows.
#[tokio::test]
async fn s14_the_call_of_a_removed_webhook_changes_none_that_is_created_again() {
    for status in [StatusCode::OK, StatusCode::INTERNAL_SERVER_ERROR, StatusCode::GONE] {
        let inner = Arc::new(MemoryStore::new());
        let (server, held) =
            (serve(one_at_a_time().store(inner.clone())).await, Held::answering(status).await);
        let elsewhere = Receiver::start(&[]).await;
        let task = start(&server, &held.url).await;
        until(async || (held.calls() == 1).then_some(())).await;
        By::Owner.stop(&server, &task, "").await;
        By::Replacing.stop(&server, &task, &elsewhere.url).await;
        held.gate.let_pass(1000);
        // Whoever comes last comes after all that waited.
        let last = start(&server, &elsewhere.url).await;
        let got = elsewhere.wait_for_end().await;
        let of_last = |got: &Got| got.json().to_string().contains(last.as_str());
        assert!(got.iter().all(of_last), "{status}: {}", got.len());
        assert_eq!(held.calls(), 1, "{status}");
        assert!(inner.failed_webhooks(None, 10).await.unwrap().is_empty(), "{status}");
        let left = inner.open_webhooks(None, 10).await.unwrap();
        assert!(left.iter().all(|open| open.task.as_str() != task), "{status}: {left:?}");
        server.stop().await;
    }
}

/// A server that stops lets the calls under way end, and knows afterwards what was delivered.
#[tokio::test]
async fn s14_a_stop_waits_for_the_calls_under_way_and_begins_no_other() {
    let inner = Arc::new(MemoryStore::new());
    let (server, held) = (serve(one_at_a_time().store(inner.clone())).await, Held::start().await);
    let task = start(&server, &held.url).await;
    until(async || (held.calls() == 1).then_some(())).await;
    let address = server.url.trim_start_matches("http://").to_owned();
    let stop = tokio::spawn(server.stop());
    // It has begun to stop once it takes no connections.
    until(async || TcpStream::connect(&address).await.is_err().then_some(())).await;
    held.gate.let_pass(1);
    stop.await.unwrap();
    let cursor = inner.open_webhooks(None, 10).await.unwrap().remove(0).webhook.cursor;
    assert_eq!((held.calls(), cursor.done > 0, cursor.failures), (1, true, 0), "{cursor:?}");
    // The next process goes on with the next event.
    let server = serve(one_at_a_time().store(inner.clone())).await;
    held.gate.let_pass(1000);
    let webhooks = server.server.webhooks();
    until(async || webhooks.find(&WebhookName::new(&task)).await.is_err().then_some(())).await;
    assert_eq!(held.calls(), 6);
    server.stop().await;
}

/// The clock was far ahead when the webhook was put off, or is set back for another reason.
#[tokio::test]
async fn s14_a_clock_that_is_set_back_delays_no_webhook_for_ever() {
    let clock = TestClock::new();
    let receiver = Receiver::start(&[500]).await;
    let mut slow = options();
    slow.pace = 1.0;
    let server = serve(with_agent(busy).push(slow).clock(clock.clone())).await;
    let task = start(&server, &receiver.url).await;
    let webhooks = server.server.webhooks();
    let is_put_off = async || {
        let found = webhooks.find(&WebhookName::new(&task)).await.unwrap();
        (found.attempts == 1 && !found.is_busy).then_some(())
    };
    until(is_put_off).await;
    let hour = Duration::from_secs(3600);
    clock.set_back(10_000 * hour);
    // The worker looks at the clock when it has something to do.
    let other = start(&server, &Receiver::start(&[]).await.url).await;
    until(async || webhooks.find(&WebhookName::new(&other)).await.is_err().then_some(())).await;
    clock.advance(26 * hour);
    start(&server, &Receiver::start(&[]).await.url).await;
    until(async || webhooks.find(&WebhookName::new(&task)).await.is_err().then_some(())).await;
    assert_eq!(receiver.all().len(), 7);
    server.stop().await;
}

/// The message is refused, and nobody is there any more to hear it.
#[tokio::test]
async fn s14_the_webhook_of_a_message_that_is_refused_goes_even_if_its_sender_has_hung_up() {
    let (inner, gate) = (Arc::new(MemoryStore::new()), Gate::new());
    let store = FaultyStore::over(inner.clone());
    store.slow_webhooks(&gate);
    let server = serve(with_agent(busy).push(options()).store(store)).await;
    let task = id(&server.send("go").await).to_owned();
    server.eventually(&task, "COMPLETED").await;
    let mut params = message("more");
    params["message"]["taskId"] = json!(task);
    params["configuration"] = json!({"taskPushNotificationConfig": {"url": "https://hooks.example/"}});
    let listed = json!({"taskId": task});
    let count = async || {
        let listed = server.call("ListTaskPushNotificationConfigs", listed.clone()).await;
        listed.result()["configs"].as_array().map_or(0, Vec::len)
    };
    let stored = until(async || (count().await == 1).then_some(()));
    hang_up_once(&server, "SendMessage", params, stored).await;
    gate.let_pass(1);
    until(async || (count().await == 0).then_some(())).await;
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
