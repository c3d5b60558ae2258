//! S-12: how many requests of one caller are under way. A proxy's connections are shared, so requests and streams are counted,
//! by owner or forwarded address.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use baton_protocol::domain::security::{ApiKeyLocation, SchemeKind, SecurityScheme};
use baton_server::auth::{AuthRequest, Chain, Identity, Refusal, Scheme, Scopes, Verdict};
use baton_server::{AgentError, Builder, Turn};
use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderValue, Request};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::asking::{Ask, INTERFACES, ask_with, sending};
use crate::callers::ByHeader;
use crate::fixtures::{Gate, agent_with, connections};
use crate::harness::{Answer, TEST_TIMEOUT, TestServer, message, message_with_id, serve, with_agent};
use crate::speakers::{Events, envelope, read};

/// Messages that begin with `wait` are answered when the gate opens, others at once.
fn behind_proxy(gate: &Gate, change: impl FnOnce(&mut baton_server::Connections)) -> Builder {
    let agent = agent_with(gate, |gate, turn: Turn| async move {
        if turn.text().starts_with("wait") {
            gate.pass().await;
        }
        Ok::<_, AgentError>(())
    });
    with_agent(agent).trusted_proxies(vec!["127.0.0.1".parse().unwrap()]).connections(connections(change))
}

/// The calls of one caller that are under way.
struct Held {
    calls: JoinSet<Answer>,
}

impl Held {
    /// Calls so often, and waits until all these calls wait for the agent. The next one is refused.
    async fn fill(server: &Arc<TestServer>, who: (&'static str, &'static str), count: usize) -> Self {
        let mut held = Held { calls: JoinSet::new() };
        for _ in 0..count {
            let server = Arc::clone(server);
            held.calls.spawn(async move { server.call_with("SendMessage", message("wait"), &[who]).await });
        }
        let give_up = tokio::time::Instant::now() + TEST_TIMEOUT;
        while server.server.load().running < count {
            tokio::task::yield_now().await;
            assert!(tokio::time::Instant::now() < give_up);
        }
        check_refused(&server.call_with("ListTasks", json!({}), &[who]).await);
        held
    }

    /// How many were under way until now, and answered well.
    async fn end(mut self) -> usize {
        let mut answered = 0;
        while let Some(answer) = self.calls.join_next().await {
            let answer = answer.unwrap();
            assert_eq!(answer.status, 200, "{}", answer.body);
            answered += 1;
        }
        answered
    }
}

#[track_caller]
fn check_refused(answer: &Answer) {
    assert_eq!(answer.status, 429, "{}", answer.body);
    assert!(answer.body.to_string().contains("requests under way"), "{}", answer.body);
    assert!(answer.header("retry-after").unwrap().parse::<u32>().unwrap() > 0);
}

async fn check_served(server: &TestServer, who: (&str, &str)) {
    for _ in 0..3 {
        assert_eq!(server.call_with("ListTasks", json!({}), &[who]).await.status, 200);
        server.call_with("SendMessage", message("now"), &[who]).await.result();
        let streamed = [("content-type", "application/json"), ("a2a-version", "1.0"), who];
        let body = envelope("SendStreamingMessage", &message("now"));
        let response = server.send_raw(&streamed, body).await;
        assert!(Events::open(response).await.ok().expect("a stream").rest().await.len() > 1);
    }
}

/// Ten connections: without the limit the first caller would have all of them.
#[tokio::test]
async fn s12_one_owner_behind_a_proxy_leaves_connections_to_another() {
    let gate = Gate::new();
    let builder = behind_proxy(&gate, |all| all.max_connections = 10);
    let server = Arc::new(serve(builder.authenticator(Arc::new(ByHeader))).await);
    let (greedy, calm) = (("x-owner", "greedy"), ("x-owner", "calm"));
    let held = Held::fill(&server, greedy, 5).await;
    check_served(&server, calm).await;
    // In every binding and generation, and before anything is stored.
    for interface in INTERFACES {
        for ask in [
            Ask::Send(sending("now")),
            Ask::Stream(sending("now")),
            Ask::Get { id: "x".to_owned(), history: None },
        ] {
            let refused = read(ask_with(&server, interface, &[greedy], &ask).await.unwrap()).await;
            check_refused(&refused);
        }
    }
    let limited = server.server.metrics().await;
    assert!(limited.contains("baton_limited_total{limit=\"requests\"} 16"), "{limited}");
    gate.let_pass(5);
    assert_eq!(held.end().await, 5);
    // Their places are free again.
    check_served(&server, greedy).await;
    assert_eq!(server.call_with("ListTasks", json!({}), &[greedy]).await.result()["totalSize"], 5 + 6);
}

#[tokio::test]
async fn s12_one_forwarded_address_behind_a_proxy_leaves_connections_to_another() {
    let gate = Gate::new();
    let builder = behind_proxy(&gate, |all| (all.max_connections, all.max_requests_per_owner) = (10, 3));
    let server = Arc::new(serve(builder).await);
    let held = Held::fill(&server, ("x-forwarded-for", "2001:db8::1"), 3).await;
    check_served(&server, ("x-forwarded-for", "192.0.2.1")).await;
    let neighbour = server.call_with("ListTasks", json!({}), &[("x-forwarded-for", "2001:db8::2")]).await;
    check_refused(&neighbour);
    gate.let_pass(3);
    assert_eq!(held.end().await, 3);
}

/// An open stream is a request under way; its end is the end of it.
#[tokio::test]
async fn s12_streams_count_as_requests_under_way() {
    let gate = Gate::new();
    let builder = behind_proxy(&gate, |all| all.max_requests_per_owner = 2);
    let server = Arc::new(serve(builder.authenticator(Arc::new(ByHeader))).await);
    let headers = [("content-type", "application/json"), ("a2a-version", "1.0"), ("x-owner", "greedy")];
    let mut streams = Vec::new();
    for _ in 0..2 {
        let body = envelope("SendStreamingMessage", &message("wait"));
        streams.push(Events::open(server.send_raw(&headers, body).await).await.ok().expect("a stream"));
    }
    let list = async || server.call_with("ListTasks", json!({}), &[("x-owner", "greedy")]).await;
    check_refused(&list().await);
    gate.let_pass(1);
    let give_up = tokio::time::Instant::now() + TEST_TIMEOUT;
    while list().await.status != 200 {
        assert!(tokio::time::Instant::now() < give_up, "a stream that has ended is not counted");
    }
    // One that its client leaves is not counted any more, either.
    drop(streams);
    let (mut one, mut other) = (list().await, list().await);
    while (one.status, other.status) != (200, 200) {
        assert!(tokio::time::Instant::now() < give_up);
        (one, other) = tokio::join!(list(), list());
    }
    gate.let_pass(1);
}

/// The status and the body of a call on an HTTP/2 connection.
async fn call(client: &SendRequest<Bytes>, owner: &str, method: &str, params: &Value) -> (u16, String) {
    let request = Request::post("http://localhost/")
        .header("content-type", "application/json")
        .header("a2a-version", "1.0")
        .header("x-owner", owner)
        .body(())
        .unwrap();
    let mut client = client.clone().ready().await.unwrap();
    let (response, mut body) = client.send_request(request, false).unwrap();
    body.send_data(envelope(method, params).into(), true).unwrap();
    let response = tokio::time::timeout(TEST_TIMEOUT, response).await.expect("an answer").unwrap();
    let (status, mut body) = (response.status().as_u16(), response.into_body());
    let mut text = String::new();
    while let Some(part) = body.data().await {
        text += &String::from_utf8_lossy(&part.unwrap());
    }
    (status, text)
}

#[tokio::test]
async fn s12_one_owner_on_a_proxys_http2_connection_leaves_half_of_it_to_others() {
    let gate = Gate::new();
    let builder = behind_proxy(&gate, |all| all.max_concurrent_requests_of_proxy = 8);
    let server = serve(builder.authenticator(Arc::new(ByHeader))).await;
    let socket = crate::socket::connect(&server).await;
    let (client, connection) = h2::client::handshake(socket).await.unwrap();
    let connection = tokio::spawn(connection);
    let sent = message_with_id("the same", "wait");
    let mut held = JoinSet::new();
    for _ in 0..8 {
        let (client, sent) = (client.clone(), sent.clone());
        held.spawn(async move { call(&client, "greedy", "SendMessage", &sent).await });
    }
    for _ in 0..4 {
        let (status, text) = held.join_next().await.unwrap().unwrap();
        assert!(status == 429 && text.contains("requests under way"), "{status} {text}");
    }
    for _ in 0..5 {
        let (status, text) = call(&client, "calm", "SendMessage", &message("now")).await;
        assert!(status == 200 && text.contains("COMPLETED"), "{status} {text}");
    }
    assert_eq!(call(&client, "greedy", "ListTasks", &json!({})).await.0, 429);
    // On another connection it has what the server allows.
    let elsewhere = server.call_with("ListTasks", json!({}), &[("x-owner", "greedy")]).await;
    assert_eq!(elsewhere.status, 200);
    gate.let_pass(1);
    while let Some(answered) = held.join_next().await {
        assert_eq!(answered.unwrap().0, 200);
    }
    connection.abort();
}

/// Verifies nobody before the gate opens.
#[derive(Debug)]
struct Slow {
    gate: Gate,
    asked: AtomicUsize,
}

#[async_trait]
impl Scheme for &'static Slow {
    fn declared(&self) -> SecurityScheme {
        let kind = SchemeKind::ApiKey { location: ApiKeyLocation::Header, name: "x-key".to_owned() };
        SecurityScheme { description: None, kind }
    }

    async fn verify(&self, request: &AuthRequest<'_>) -> Verdict {
        self.asked.fetch_add(1, Ordering::SeqCst);
        match request.headers.get("x-key").map(|key| key.to_str().unwrap()) {
            None => Verdict::Absent,
            Some("known") => Verdict::Verified(Identity::new("calm", Scopes::default(), "known")),
            Some(_) => {
                self.gate.pass().await;
                Verdict::Refused(Refusal::new("unknown"))
            }
        }
    }

    fn challenge(&self, _refused: Option<&Refusal>) -> Option<HeaderValue> {
        None
    }
}

/// Nobody knows yet who they are, and each holds a connection.
#[tokio::test]
async fn s12_callers_whose_credential_is_being_verified_are_counted_by_forwarded_address() {
    let gate = Gate::new();
    let scheme: &'static Slow = Box::leak(Box::new(Slow { gate: gate.clone(), asked: AtomicUsize::new(0) }));
    let builder = behind_proxy(&Gate::new(), |all| all.max_requests_per_owner = 5);
    let server = Arc::new(serve(builder.auth(Chain::new().scheme("key", scheme))).await);
    let mut held = JoinSet::new();
    for _ in 0..20 {
        let server = Arc::clone(&server);
        let headers = [("x-key", "invented"), ("x-forwarded-for", "192.0.2.1")];
        held.spawn(async move { server.call_with("ListTasks", json!({}), &headers).await });
    }
    for _ in 0..15 {
        check_refused(&held.join_next().await.unwrap().unwrap());
    }
    for from in ["192.0.2.2", "192.0.2.1"] {
        // A credential that is verified at once passes, also from there.
        let headers = [("x-key", "known"), ("x-forwarded-for", from)];
        assert_eq!(server.call_with("ListTasks", json!({}), &headers).await.status, 200);
    }
    gate.let_pass(5);
    while let Some(refused) = held.join_next().await {
        assert_eq!(refused.unwrap().status, 401);
    }
    assert_eq!(scheme.asked.load(Ordering::SeqCst), 20 + 2);
}
