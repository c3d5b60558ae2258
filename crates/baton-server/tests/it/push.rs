//! S-14, P-02: webhooks. A real receiver on this machine, which `development` allows.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use baton_protocol::signature::webhook::{SignedHeaders, WebhookSecret, verify};
use baton_server::{AgentError, Builder, PushOptions, Turn};
use http::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::fixtures::{Backend, Gate, agent_with};
use crate::harness::{TEST_TIMEOUT, TestServer, id, message, message_to, serve, with_agent};
use crate::speakers::{read, request};

/// A call that the receiver got.
#[derive(Clone)]
pub(crate) struct Got {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Got {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

#[derive(Default)]
struct Inbox {
    got: Mutex<Vec<Got>>,
    /// Statuses of the next answers; 200 afterwards.
    answers: Mutex<VecDeque<u16>>,
    more: Notify,
}

pub(crate) struct Receiver {
    pub(crate) url: String,
    inbox: Arc<Inbox>,
}

impl Receiver {
    pub(crate) async fn start(answers: &[u16]) -> Self {
        let inbox =
            Arc::new(Inbox { answers: Mutex::new(answers.iter().copied().collect()), ..Inbox::default() });
        let app = Router::new().fallback(receive).with_state(Arc::clone(&inbox));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Receiver { url, inbox }
    }

    pub(crate) fn all(&self) -> Vec<Got> {
        self.inbox.got.lock().unwrap().clone()
    }

    /// Waits until so many calls have come.
    pub(crate) async fn wait_for(&self, count: usize) -> Vec<Got> {
        let wait = async {
            loop {
                let more = self.inbox.more.notified();
                let got = self.all();
                if got.len() >= count {
                    return got;
                }
                more.await;
            }
        };
        let waited = tokio::time::timeout(TEST_TIMEOUT, wait).await;
        waited.unwrap_or_else(|_| panic!("{} calls of {count}", self.all().len()))
    }

    /// Waits for a call that tells an end.
    pub(crate) async fn wait_for_end(&self) -> Vec<Got> {
        let mut count = 1;
        loop {
            let got = self.wait_for(count).await;
            if got.iter().any(|got| String::from_utf8_lossy(&got.body).to_lowercase().contains("completed")) {
                return got;
            }
            count = got.len() + 1;
        }
    }
}

async fn receive(State(inbox): State<Arc<Inbox>>, headers: HeaderMap, body: Bytes) -> Response {
    inbox.got.lock().unwrap().push(Got { headers, body });
    let status = inbox.answers.lock().unwrap().pop_front().unwrap_or(200);
    inbox.more.notify_waiters();
    StatusCode::from_u16(status).unwrap().into_response()
}

pub(crate) fn options() -> PushOptions {
    let mut options = PushOptions::default();
    options.development = true;
    options.pace = 0.001;
    options
}

/// Says two things and delivers an artifact.
pub(crate) async fn busy(turn: Turn) -> Result<(), AgentError> {
    turn.progress("reading").await?;
    turn.text_artifact("answer", "forty-two").await?;
    turn.progress("checking").await
}

fn pushing() -> Builder {
    with_agent(busy).push(options())
}

pub(crate) fn with_webhook(text: &str, webhook: Value) -> Value {
    let mut params = message(text);
    params["configuration"] = json!({"taskPushNotificationConfig": webhook, "returnImmediately": true});
    params
}

/// What a stream of the task shows from its beginning, as bytes of JSON.
async fn streamed(server: &TestServer, task: &str) -> Vec<Value> {
    let mut stream = server.stream("SubscribeToTask", json!({"id": task}), Some("0")).await.ok().unwrap();
    stream.rest().await.iter().map(|event| event.result().clone()).collect()
}

#[tokio::test]
async fn s14_every_event_of_a_task_reaches_its_webhook_once_and_in_order() {
    let (server, receiver) = (serve(pushing()).await, Receiver::start(&[]).await);
    let asked = with_webhook("go", json!({"url": receiver.url, "token": "tok-1"}));
    let task = server.call("SendMessage", asked).await.result()["task"].clone();
    let got = receiver.wait_for_end().await;
    let bodies: Vec<Value> = got.iter().map(Got::json).collect();
    assert_eq!(bodies[0]["task"]["status"]["state"], "TASK_STATE_SUBMITTED", "its birth");
    assert_eq!(
        bodies[1..],
        streamed(&server, id(&task)).await,
        "then what a stream shows, no more and no less"
    );
    assert_eq!(bodies.len(), 6, "{bodies:?}");
    for call in &got {
        assert_eq!(call.header("content-type"), "application/a2a+json");
        assert_eq!(call.header("a2a-version"), "1.0");
        assert_eq!(
            (call.header("x-a2a-notification-token"), call.header("a2a-notification-token")),
            ("tok-1", "tok-1")
        );
        assert_eq!(call.header("authorization"), "");
    }
    let mut ids: Vec<&str> = got.iter().map(|call| call.header("webhook-id")).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), got.len(), "each event has an id of its own");
}

#[tokio::test]
async fn s14_calls_are_signed_and_carry_the_credentials_that_were_given() {
    let (server, receiver) = (serve(pushing()).await, Receiver::start(&[]).await);
    let secret = WebhookSecret::new([7; 32]).unwrap();
    let webhook = json!({
        "url": receiver.url,
        "token": secret.to_text(),
        "authentication": {"scheme": "Bearer", "credentials": "s3cret"},
    });
    server.call("SendMessage", with_webhook("go", webhook)).await.result();
    for call in receiver.wait_for_end().await {
        assert_eq!(call.header("authorization"), "Bearer s3cret");
        let signed = SignedHeaders {
            id: call.header("webhook-id"),
            timestamp: call.header("webhook-timestamp"),
            signature: call.header("webhook-signature"),
        };
        let now = signed.timestamp.parse().unwrap();
        let tolerance = std::time::Duration::from_secs(300);
        let verified = verify([&secret], &signed, &call.body, now, tolerance);
        assert!(verified.is_ok(), "{verified:?}");
    }
}

/// A server that records no traces passes on the context that the task was sent with, also to a webhook that was made later.
#[tokio::test]
async fn s14_calls_carry_the_trace_of_their_task() {
    let gate = Gate::new();
    let agent = agent_with(&gate, |gate: Gate, turn: Turn| async move {
        gate.pass().await;
        turn.progress("after").await
    });
    let server = serve(with_agent(agent).push(options())).await;
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let traced = [("traceparent", parent), ("tracestate", "vendor=1")];
    for (headers, expected) in [(&traced[..], (parent, "vendor=1")), (&[], ("", ""))] {
        let (first, later) = (Receiver::start(&[]).await, Receiver::start(&[]).await);
        let asked = with_webhook("go", json!({"url": first.url}));
        let task = server.call_with("SendMessage", asked, headers).await.result()["task"].clone();
        let made = json!({"taskId": id(&task), "url": later.url});
        let other = [("traceparent", "00-ffffffffffffffffffffffffffffffff-ffffffffffffffff-01")];
        server.call_with("CreateTaskPushNotificationConfig", made, &other).await.result();
        gate.let_pass(1);
        for call in [first.wait_for_end().await, later.wait_for_end().await].concat() {
            assert_eq!((call.header("traceparent"), call.header("tracestate")), expected);
        }
    }
}

#[tokio::test]
async fn s14_a_failed_call_is_repeated_with_the_same_id_and_bytes() {
    let receiver = Receiver::start(&[500, 302]).await;
    let server = serve(pushing()).await;
    server.call("SendMessage", with_webhook("go", json!({"url": receiver.url}))).await.result();
    let got = receiver.wait_for_end().await;
    let same = |call: &Got| (call.header("webhook-id").to_owned(), call.body.clone());
    assert!(same(&got[0]) == same(&got[1]) && same(&got[1]) == same(&got[2]));
    assert_ne!(same(&got[2]), same(&got[3]), "then the next event");
}

/// The numbers that an operator watches. A call is counted once its answer is read, so they are waited for.
#[tokio::test]
async fn calls_are_counted_by_what_became_of_them() {
    let server = serve(pushing()).await;
    let told = |answers: &'static [u16]| {
        let server = &server;
        async move {
            let receiver = Receiver::start(answers).await;
            server.call("SendMessage", with_webhook("go", json!({"url": receiver.url}))).await.result();
            receiver
        }
    };
    let calls = told(&[500, 302]).await.wait_for_end().await.len();
    told(&[410]).await.wait_for(1).await;
    let expected = [("delivered", calls - 2), ("retried", 2), ("failed", 0), ("gone", 1)];
    let expected =
        expected.map(|(result, count)| format!("baton_webhook_calls_total{{result=\"{result}\"}} {count}"));
    let mut numbers = String::new();
    let settled = async {
        loop {
            numbers = server.server.metrics().await;
            let is_there = |wanted: &String| numbers.lines().any(|line| line == wanted);
            if expected.iter().all(is_there) && is_there(&"baton_webhooks_open 0.0".to_owned()) {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    let settled = tokio::time::timeout(TEST_TIMEOUT, settled).await;
    assert!(settled.is_ok(), "{expected:?}: {numbers}");
}

#[tokio::test]
async fn s14_after_three_failures_the_newest_task_takes_the_place_of_old_events() {
    let receiver = Receiver::start(&[500; 5]).await;
    let server = serve(pushing()).await;
    server.call("SendMessage", with_webhook("go", json!({"url": receiver.url}))).await.result();
    let got = receiver.wait_for_end().await;
    let newest = got.last().unwrap();
    assert_eq!(newest.json()["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    // It was fixed before it was tried: all tries from the fourth on have the same bytes.
    for call in &got[3..] {
        assert_eq!((call.header("webhook-id"), &call.body), (newest.header("webhook-id"), &newest.body));
    }
}

#[tokio::test]
async fn s14_a_receiver_that_is_gone_gets_no_more() {
    let receiver = Receiver::start(&[410]).await;
    let (server, gate) = (serve(pushing()).await, Gate::new());
    let task = server.call("SendMessage", with_webhook("go", json!({"url": receiver.url}))).await;
    server.eventually(id(&task.result()["task"]), "COMPLETED").await;
    // A second task's calls come after, and nothing of the first is among them.
    server.call("SendMessage", with_webhook("go", json!({"url": receiver.url}))).await.result();
    let got = receiver.wait_for_end().await;
    let first = got[0].json()["task"]["id"].clone();
    assert_eq!(
        got.iter()
            .filter(|call| call.body.windows(36).any(|w| w == first.as_str().unwrap().as_bytes()))
            .count(),
        1
    );
    drop(gate);
}

/// The server is stopped while the receiver fails; the next one delivers the rest.
#[tokio::test]
async fn s14_what_was_not_delivered_is_delivered_after_a_restart() {
    for backend in Backend::each() {
        let receiver = Receiver::start(&[500]).await;
        let mut slow = options();
        slow.pace = 1.0;
        let server = serve(with_agent(busy).push(slow).store(backend.open().await)).await;
        let asked = with_webhook("go", json!({"url": receiver.url}));
        let task = server.call("SendMessage", asked).await.result()["task"].clone();
        receiver.wait_for(1).await;
        server.eventually(id(&task), "COMPLETED").await;
        server.stop().await;
        let server = serve(pushing().store(backend.open().await)).await;
        let got = receiver.wait_for_end().await;
        assert_eq!(got[0].body, got[1].body, "the one that failed, again");
        let bodies: Vec<Value> = got[2..].iter().map(Got::json).collect();
        assert_eq!(bodies, streamed(&server, id(&task)).await);
        server.stop().await;
    }
}

#[tokio::test]
async fn s14_a_webhook_made_later_gets_what_follows() {
    let gate = Gate::new();
    let agent = agent_with(&gate, |gate: Gate, turn: Turn| async move {
        turn.progress("before").await?;
        gate.pass().await;
        turn.progress("after").await
    });
    let (server, receiver) = (serve(with_agent(agent).push(options())).await, Receiver::start(&[]).await);
    let task = server.start("go").await;
    let made = server
        .call(
            "CreateTaskPushNotificationConfig",
            json!({"taskId": id(&task), "id": "mine", "url": receiver.url}),
        )
        .await;
    assert_eq!((&made.result()["id"], &made.result()["url"]), (&json!("mine"), &json!(receiver.url)));
    gate.let_pass(1);
    let got = receiver.wait_for_end().await;
    let shown = streamed(&server, id(&task)).await;
    let bodies: Vec<Value> = got.iter().map(Got::json).collect();
    assert_eq!(bodies[..], shown[shown.len() - bodies.len()..], "the end of the stream");
    assert!(bodies.len() < shown.len());
}

#[tokio::test]
async fn p02_configurations_are_made_read_listed_and_removed() {
    let server = serve(pushing()).await;
    let gate = Gate::new();
    let task = server.send("go").await;
    let call = |method: &'static str, params: Value| server.call(method, params);
    let secret = json!({"taskId": id(&task), "id": "b", "url": "https://example.org/hook", "token": "t",
        "authentication": {"scheme": "Bearer", "credentials": "s3cret"}});
    let made = call("CreateTaskPushNotificationConfig", secret).await.result().clone();
    assert_eq!(made["authentication"], json!({"scheme": "Bearer", "credentials": "********"}));
    let nameless = json!({"taskId": id(&task), "url": "https://example.org/other"});
    let nameless = call("CreateTaskPushNotificationConfig", nameless).await.result()["id"].clone();
    assert!(nameless.as_str().is_some_and(|id| !id.is_empty()));
    let of = |webhook: &Value| json!({"taskId": id(&task), "id": webhook});
    assert_eq!(*call("GetTaskPushNotificationConfig", of(&json!("b"))).await.result(), made);
    let listed = call("ListTaskPushNotificationConfigs", json!({"taskId": id(&task)})).await;
    assert_eq!(listed.result()["configs"].as_array().unwrap().len(), 2);
    for _ in 0..2 {
        let removed = call("DeleteTaskPushNotificationConfig", of(&json!("b"))).await;
        assert!(removed.body.get("error").is_none(), "again, too: {}", removed.body);
    }
    assert_eq!(call("GetTaskPushNotificationConfig", of(&json!("b"))).await.error_code(), -32001);
    assert_eq!(
        call("GetTaskPushNotificationConfig", json!({"taskId": "none", "id": "b"})).await.error_code(),
        -32001
    );
    drop(gate);
}

#[tokio::test]
async fn s14_urls_and_credentials_that_cannot_be_used_are_refused_when_they_are_given() {
    let server = serve(with_agent(busy).push(PushOptions::default())).await;
    let task = server.send("go").await;
    for (webhook, code) in [
        (json!({"url": "http://example.org/"}), -32602),
        (json!({"url": "https://127.0.0.1/"}), -32602),
        (json!({"url": "https://localhost/"}), -32602),
        (json!({"url": "https://example.org/", "token": "a b"}), -32602),
        (json!({"url": "https://example.org/", "token": "whsec_c2hvcnQ="}), -32602),
        (json!({"url": "https://example.org/", "id": "."}), -32602),
        (json!({"url": "https://example.org/", "id": ".."}), -32602),
        (json!({"url": "https://example.org/", "authentication": {"scheme": "Bearer\r\nX: y"}}), -32602),
    ] {
        let mut params = webhook.clone();
        params["taskId"] = json!(id(&task));
        let made = server.call("CreateTaskPushNotificationConfig", params).await;
        assert_eq!(made.error_code(), code, "{webhook}");
        let inline = server.call("SendMessage", with_webhook("go", webhook.clone())).await;
        assert_eq!(inline.error_code(), code, "{webhook}");
    }
    for (member, value, said) in [
        ("token", "whsec_c2hvcnQ=", "token begins with whsec_, so base64 of 24 to 64 bytes has to follow"),
        ("token", "a b", "token must be visible ASCII"),
        ("id", "..", "id must not be `.`, `..`"),
        ("id", ".%2e", "id must not be `.`, `..`"),
        ("id", "a\\b", "id must not be `.`, `..`"),
        (
            "url",
            "https://localhost/",
            "must lead to a host on the internet, not to this server's own machine",
        ),
    ] {
        let mut webhook = json!({"url": "https://example.org/"});
        webhook[member] = json!(value);
        let path = format!("/tasks/{}/pushNotificationConfigs", id(&task));
        let headers = [("content-type", "application/json"), ("a2a-version", "1.0")];
        let rest = request(&server, Method::POST, &path, &headers, webhook.to_string()).await;
        let rest = read(rest).await;
        let old = json!({"taskId": id(&task), "pushNotificationConfig": webhook});
        let old =
            json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/pushNotificationConfig/set", "params": old});
        let old = server.post(&[("content-type", "application/json")], old.to_string()).await;
        webhook["taskId"] = json!(id(&task));
        let rpc = server.call("CreateTaskPushNotificationConfig", webhook).await;
        assert_eq!(rest.status, 400, "{}", rest.body);
        for answer in [&rest, &old, &rpc] {
            let error = answer.body["error"]["message"].as_str().unwrap_or_default();
            assert!(error.contains(said) && !error.contains("c2hvcnQ"), "{member} {value}: {}", answer.body);
        }
    }
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/pushNotification/set",
        "params": {"id": id(&task), "pushNotificationConfig": {"url": "http://example.org/"}}});
    let legacy = server.post(&[("content-type", "application/json")], body.to_string()).await;
    assert_eq!(legacy.error_code(), -32004);
}

#[tokio::test]
async fn s14_a_task_has_a_bounded_number_of_webhooks() {
    let mut few = options();
    (few.max_per_task, few.max_per_owner) = (2, 3);
    let gate = Gate::new();
    let agent = agent_with(&gate, |gate: Gate, _: Turn| async move {
        gate.pass().await;
        Ok(())
    });
    let server = serve(with_agent(agent).push(few)).await;
    let make = async |task: &Value, webhook: &str| {
        let params = json!({"taskId": id(task), "id": webhook, "url": "https://example.org/"});
        server.call("CreateTaskPushNotificationConfig", params).await
    };
    let (one, other) = (server.start("go").await, server.start("go").await);
    for webhook in ["a", "b", "a"] {
        make(&one, webhook).await.result();
    }
    let full = make(&one, "c").await;
    assert_eq!((full.status, full.error_code()), (429, -32050));
    make(&other, "a").await.result();
    assert_eq!(make(&other, "b").await.status, 429);
    gate.let_pass(2);
}

/// 0.3: the task at every change of its status and every whole artifact.
#[tokio::test]
async fn s14_clients_of_0_3_get_the_task() {
    let (server, receiver) = (serve(pushing()).await, Receiver::start(&[]).await);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {
        "message": {"kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "go"}]},
        "configuration": {"blocking": false, "pushNotificationConfig": {"url": receiver.url, "token": "t"}},
    }});
    let sent = server.post(&[("content-type", "application/json")], body.to_string()).await;
    let got = receiver.wait_for_end().await;
    let states: Vec<String> =
        got.iter().map(|call| call.json()["status"]["state"].as_str().unwrap().to_owned()).collect();
    assert_eq!(states.last().unwrap(), "completed");
    for call in &got {
        assert_eq!((&call.json()["kind"], call.header("content-type")), (&json!("task"), "application/json"));
        assert_eq!(call.json()["id"], sent.result()["id"]);
    }
    assert_eq!(got.last().unwrap().json()["artifacts"][0]["parts"][0]["text"], "forty-two");
    let body = json!({"jsonrpc": "2.0", "id": 2, "method": "tasks/pushNotificationConfig/get", "params": {"id": sent.result()["id"]}});
    let config = server.post(&[("content-type", "application/json")], body.to_string()).await;
    assert_eq!(config.result()["pushNotificationConfig"]["id"], sent.result()["id"], "the default id of 0.3");
}

/// 0.1, as the guide has it.
#[tokio::test]
async fn s14_legacy_clients_get_what_happened() {
    for (events, wanted) in [(json!(null), &["status", "artifact"][..]), (json!(["artifact"]), &["artifact"])]
    {
        let (server, receiver) = (serve(pushing()).await, Receiver::start(&[]).await);
        let mut webhook = json!({"url": receiver.url, "token": "t0k"});
        if events.is_array() {
            webhook["events"] = events;
        }
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/send", "params": {
            "id": "task-1", "message": {"role": "user", "parts": [{"type": "text", "text": "go"}]},
            "pushNotification": webhook,
        }});
        server.post(&[("content-type", "application/json")], body.to_string()).await.result();
        let got = match wanted.len() {
            2 => receiver.wait_for_end().await,
            _ => receiver.wait_for(1).await,
        };
        for call in &got {
            let body = call.json();
            assert_eq!((&body["taskId"], call.header("authorization")), (&json!("task-1"), "Bearer t0k"));
            assert!(wanted.contains(&body["eventType"].as_str().unwrap()), "{body}");
            assert!(body["status"]["state"].is_string() && body["timestamp"].is_string(), "{body}");
        }
        assert!(got.iter().any(|call| call.json()["eventType"] == "artifact"));
    }
}

#[tokio::test]
async fn s14_a_legacy_webhook_that_cannot_be_reached_is_removed() {
    let receiver = Receiver::start(&[500; 4]).await;
    let server = serve(pushing()).await;
    let call = async |method: &str, params: Value| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        server.post(&[("content-type", "application/json")], body.to_string()).await
    };
    let said = json!({"role": "user", "parts": [{"type": "text", "text": "go"}]});
    let sent = json!({"id": "task-1", "message": said, "pushNotification": {"url": receiver.url}});
    call("tasks/send", sent).await.result();
    receiver.wait_for(4).await;
    let give_up = tokio::time::Instant::now() + TEST_TIMEOUT;
    while call("tasks/pushNotification/get", json!({"id": "task-1"})).await.body.get("result").is_some() {
        assert!(tokio::time::Instant::now() < give_up, "it is still there");
    }
    let task = call("tasks/get", json!({"id": "task-1"})).await;
    assert_eq!(task.result()["status"]["state"], "completed", "the task is not affected");
    assert_eq!(receiver.all().len(), 4);
}

/// A message to a task that exists may bring a webhook, too.
#[tokio::test]
async fn s14_a_webhook_that_comes_with_an_answer_gets_the_turn() {
    let (server, receiver) = (
        serve(
            with_agent(async |turn: Turn| {
                let said = turn.ask("which?").await?;
                turn.text_artifact("answer", said.text()).await
            })
            .push(options()),
        )
        .await,
        Receiver::start(&[]).await,
    );
    let task = server.send("go").await;
    let mut answer = message_to(&task, "this");
    answer["configuration"] = json!({"taskPushNotificationConfig": {"url": receiver.url}});
    server.call("SendMessage", answer.clone()).await.result();
    let got = receiver.wait_for_end().await;
    assert!(got.iter().any(|call| call.json().get("artifactUpdate").is_some()));
    // A repeat of the message adds no second webhook.
    server.call("SendMessage", answer).await.result();
    let listed = server.call("ListTaskPushNotificationConfigs", json!({"taskId": id(&task)})).await;
    assert_eq!(listed.result()["configs"].as_array().unwrap().len(), 1);
}

/// Webhooks that are being stored count, so that many callers at once do not get past the limit.
#[tokio::test]
async fn s14_an_owners_limit_holds_for_callers_at_the_same_time() {
    let mut few = options();
    few.max_per_owner = 5;
    let gate = Gate::new();
    let agent = agent_with(&gate, |gate: Gate, _: Turn| async move {
        gate.pass().await;
        Ok(())
    });
    let (server, receiver) = (serve(with_agent(agent).push(few)).await, Receiver::start(&[]).await);
    let hook = json!({"url": receiver.url});
    let inline = (0..30).map(|_| server.call("SendMessage", with_webhook("go", hook.clone())));
    let answers = futures_util::future::join_all(inline).await;
    let accepted = answers.iter().filter(|answer| answer.status == 200).count();
    assert_eq!(accepted, 5);
    assert!(answers.iter().all(|answer| answer.status == 200 || answer.error_code() == -32050));
    // What is refused leaves no place taken.
    let task = answers.iter().find(|answer| answer.status == 200).unwrap().result()["task"].clone();
    let listed = server.call("ListTaskPushNotificationConfigs", json!({"taskId": id(&task)})).await;
    let config = json!({"taskId": id(&task), "id": listed.result()["configs"][0]["id"]});
    server.call("DeleteTaskPushNotificationConfig", config).await.result();
    // A call that is under way keeps its webhook's place until it ends.
    let accepted =
        async { while server.call("SendMessage", with_webhook("go", hook.clone())).await.status != 200 {} };
    assert!(tokio::time::timeout(TEST_TIMEOUT, accepted).await.is_ok());
    gate.let_pass(6);
}

/// At the limit, what needs no further place is still done: a repeat of an accepted message, and another address.
#[tokio::test]
async fn s14_an_owner_at_the_limit_may_repeat_and_replace() {
    let mut few = options();
    few.max_per_owner = 1;
    let gate = Gate::new();
    let agent = agent_with(&gate, |gate: Gate, _: Turn| async move {
        gate.pass().await;
        Ok(())
    });
    let server = serve(with_agent(agent).push(few)).await;
    let mut asked = with_webhook("go", json!({"id": "mine", "url": "https://example.org/a"}));
    asked["message"]["messageId"] = json!("m-1");
    let first = server.call("SendMessage", asked.clone()).await.result()["task"].clone();
    let again = server.call("SendMessage", asked).await.result()["task"].clone();
    assert_eq!(id(&again), id(&first));
    let other = json!({"taskId": id(&first), "id": "mine", "url": "https://example.org/b"});
    let replaced = server.call("CreateTaskPushNotificationConfig", other.clone()).await;
    assert_eq!(replaced.result()["url"], "https://example.org/b");
    let mut second = other;
    second["id"] = json!("second");
    assert_eq!(server.call("CreateTaskPushNotificationConfig", second).await.error_code(), -32050);
    gate.let_pass(1);
}
