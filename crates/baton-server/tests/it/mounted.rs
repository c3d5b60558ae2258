use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::routing::get;
use baton_server::{Builder, Server};
use http::Request;
use serde_json::{Value, json};
use tower::Service as _;

use crate::agents::obedient;
use crate::harness::{TEST_TIMEOUT, message, message_with_id, state, with_agent};

/// An axum application that serves itself.
struct App {
    url: String,
    serving: tokio::task::JoinHandle<()>,
}

impl Drop for App {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn app(router: Router) -> App {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    App { url, serving }
}

async fn agent(change: impl FnOnce(Builder) -> Builder) -> Server {
    change(with_agent(obedient)).build().await.unwrap()
}

async fn card(url: &str) -> Value {
    let found = reqwest::get(format!("{url}/.well-known/agent-card.json")).await.unwrap();
    found.json().await.unwrap()
}

async fn post(url: &str, body: &Value) -> (u16, Value) {
    let request = reqwest::Client::new().post(url).header("a2a-version", "1.0");
    let sent = request.header("content-type", "application/json").body(body.to_string()).send();
    let response = tokio::time::timeout(TEST_TIMEOUT, sent).await.expect("an answer came").unwrap();
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

fn send() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message("hello")})
}

/// Calls every interface of the card at its URL.
async fn card_is_true(card: &Value, from: &str, to: &str) {
    for interface in card["supportedInterfaces"].as_array().unwrap() {
        let url = interface["url"].as_str().unwrap();
        let reached = url.replacen(from, to, 1);
        assert!(url.starts_with(from), "{url} is not at {from}");
        let (url, body) =
            match (interface["protocolBinding"].as_str().unwrap(), &interface["protocolVersion"]) {
                ("JSONRPC", _) => (reached, send()),
                (_, version) if version == "1.0" => (format!("{reached}/message:send"), message("hello")),
                _ => continue,
            };
        let (status, answer) = post(&url, &body).await;
        assert_eq!(status, 200, "{url}: {answer}");
        let result = answer.get("result").unwrap_or(&answer);
        assert_eq!(state(&result["task"]), "COMPLETED", "{url}");
    }
}

#[tokio::test]
async fn p08_a_nested_router_has_a_card_that_is_true() {
    for public in ["https://a.example/agents/x", "https://b.example/else/where"] {
        let server = agent(|builder| builder.public_url(public)).await;
        let app = app(Router::new().nest("/agents/x", server.router())).await;
        let card = card(&format!("{}/agents/x", app.url)).await;
        assert_eq!(card["supportedInterfaces"][0]["url"], public);
        // As a proxy would pass it on.
        card_is_true(&card, public, &format!("{}/agents/x", app.url)).await;
    }
}

#[tokio::test]
async fn p08_a_nested_router_knows_where_it_is_without_being_told() {
    let server = agent(|builder| builder).await;
    let inner = Router::new().nest("/x", server.router());
    let app = app(Router::new().nest("/agents", inner).nest_service("/service", server.router())).await;
    for place in ["/agents/x", "/service"] {
        let own = format!("{}{place}", app.url);
        let card = card(&own).await;
        assert_eq!(card["supportedInterfaces"][0]["url"], own.as_str());
        card_is_true(&card, &own, &own).await;
    }
}

#[tokio::test]
async fn p08_routes_of_ones_own_stay_ones_own() {
    let server = agent(|builder| builder).await;
    let own = Router::new().route("/hello", get(|| async { "mine" })).route("/", get(|| async { "mine" }));
    let app = app(own.merge(server.router())).await;
    for path in ["/hello", "/"] {
        let mine = reqwest::get(format!("{}{path}", app.url)).await.unwrap().text().await.unwrap();
        assert_eq!(mine, "mine", "{path}");
    }
    card_is_true(&card(&app.url).await, &app.url, &app.url).await;
}

#[tokio::test]
async fn p08_a_router_is_a_service_without_any_listener() {
    let server = agent(|builder| builder).await;
    let mut service = server.router();
    let request = Request::post("/").header("content-type", "application/json").header("a2a-version", "1.0");
    let response = service.call(request.body(Body::from(send().to_string())).unwrap()).await.unwrap();
    let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
    let answer: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(state(&answer["result"]["task"]), "COMPLETED");
}

#[tokio::test]
async fn p08_a_mounted_server_is_shut_down_by_its_application() {
    let server = agent(|builder| builder.drain(std::time::Duration::from_millis(10))).await;
    let app = app(server.router()).await;
    let params = message_with_id("hold", "hold");
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": params});
    let request = reqwest::Client::new().post(&app.url).header("a2a-version", "1.0");
    let sent = request.header("content-type", "application/json").body(body.to_string()).send();
    let mut stream = sent.await.unwrap();
    stream.chunk().await.unwrap().expect("it has begun");
    tokio::time::timeout(TEST_TIMEOUT, server.shut_down()).await.unwrap();
    while tokio::time::timeout(TEST_TIMEOUT, stream.chunk())
        .await
        .expect("the stream ends")
        .unwrap()
        .is_some()
    {}
    let (status, refused) = post(&app.url, &send()).await;
    assert_eq!(status, 503, "{refused}");
}

/// `serve_app_until` serves an application with its agent, and stops both in the right order.
#[tokio::test]
async fn p08_an_application_and_its_agent_are_served_and_stopped_together() {
    let server = agent(|builder| builder.drain(std::time::Duration::from_millis(10))).await;
    let caller = |ConnectInfo(peer): ConnectInfo<SocketAddr>| async move { peer.ip().to_string() };
    let app = Router::new().route("/caller", get(caller)).nest("/agent", server.router());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let shutdown = async { stopped.await.unwrap_or_default() };
    let serving = tokio::spawn(server.serve_app_until(app, listener, shutdown));

    let peer = reqwest::get(format!("{url}/caller")).await.unwrap().text().await.unwrap();
    assert_eq!(peer, "127.0.0.1");
    let own = format!("{url}/agent");
    card_is_true(&card(&own).await, &own, &own).await;
    let foreign = reqwest::Client::new().get(format!("{url}/caller")).header("host", "evil.example").send();
    assert_eq!(foreign.await.unwrap().status().as_u16(), 421, "checked for the whole application");

    let params = message_with_id("hold", "hold");
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": params});
    let request = reqwest::Client::new().post(&own).header("a2a-version", "1.0");
    let sent = request.header("content-type", "application/json").body(body.to_string()).send();
    let mut stream = sent.await.unwrap();
    stream.chunk().await.unwrap().expect("it has begun");
    stop.send(()).unwrap();
    while tokio::time::timeout(TEST_TIMEOUT, stream.chunk())
        .await
        .expect("the stream ends")
        .unwrap()
        .is_some()
    {}
    tokio::time::timeout(TEST_TIMEOUT, serving).await.expect("it stops").unwrap().unwrap();
}
