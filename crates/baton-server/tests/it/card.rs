//! S-02, S-03. Spec 8.2: the card is at a well-known path, public, and has the agent's URL.

use std::sync::Arc;

use async_trait::async_trait;
use baton_protocol::domain::{AgentCard, AgentSkill};
use baton_protocol::{Error, ErrorKind};
use baton_server::auth::{AuthRequest, Authenticator, Challenge, Principal};
use baton_server::{Server, StartError};
use http::Method;
use serde_json::{Value, json};

use crate::agents::obedient;
use crate::harness::{TestServer, message, serve, serve_agent, state, with_agent};

async fn ask(server: &TestServer, method: Method) -> reqwest::Response {
    let url = format!("{}/.well-known/agent-card.json", server.url);
    reqwest::Client::new().request(method, url).header("origin", "https://a.example").send().await.unwrap()
}

async fn card_of(server: &TestServer) -> Value {
    serde_json::from_str(&ask(server, Method::GET).await.text().await.unwrap()).unwrap()
}

#[tokio::test]
async fn s02_the_card_is_served_to_everybody_from_anywhere() {
    let server = serve_agent(obedient).await;
    let response = ask(&server, Method::GET).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_eq!(response.headers()["access-control-allow-origin"], "*");
    let card: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    for (member, expected) in [
        ("name", json!("test")),
        ("description", json!("An agent for tests")),
        ("version", json!("1.0.0")),
        ("defaultInputModes", json!(["*/*"])),
        ("defaultOutputModes", json!(["text/plain"])),
    ] {
        assert_eq!(card[member], expected, "{member}");
    }
    // All members that the spec calls REQUIRED are there, even if empty.
    assert_eq!(
        card["skills"],
        json!([{"id": "test", "name": "test", "description": "test", "tags": [], "inputModes": ["*/*"], "outputModes": ["text/plain"]}])
    );
    // JSON-RPC first, 1.0 before 0.3 at the same URL.
    let interface = |binding: &str, path: &str, version: &str| json!({"url": format!("{}{path}", server.url), "protocolBinding": binding, "protocolVersion": version});
    assert_eq!(
        card["supportedInterfaces"],
        json!([
            interface("JSONRPC", "/", "1.0"),
            interface("JSONRPC", "/", "0.3"),
            interface("HTTP+JSON", "", "1.0"),
            interface("HTTP+JSON", "", "0.3"),
        ])
    );
}

#[tokio::test]
async fn s02_a_browser_may_ask_first() {
    let server = serve_agent(obedient).await;
    let response = ask(&server, Method::OPTIONS).await;
    assert_eq!(response.status(), 204);
    assert_eq!(response.headers()["access-control-allow-origin"], "*");
    let methods = response.headers()["access-control-allow-methods"].to_str().unwrap();
    assert!(methods.contains("GET") && methods.contains("OPTIONS"), "{methods}");
    assert!(response.headers().contains_key("access-control-allow-headers"));

    assert_eq!(ask(&server, Method::HEAD).await.status(), 200);
    for method in [Method::POST, Method::PUT, Method::DELETE] {
        assert_eq!(ask(&server, method.clone()).await.status(), 405, "{method}");
    }
}

#[tokio::test]
async fn s02_the_card_is_public_even_where_everybody_is_refused() {
    #[derive(Debug)]
    struct Nobody;
    #[async_trait]
    impl Authenticator for Nobody {
        async fn authenticate(&self, _request: &AuthRequest<'_>) -> Result<Principal, Challenge> {
            Err(Error::of(ErrorKind::Unauthenticated).into())
        }
    }
    let server = serve(with_agent(obedient).authenticator(Arc::new(Nobody))).await;
    assert_eq!(server.call("ListTasks", json!({})).await.status, 401);
    assert_eq!(ask(&server, Method::GET).await.status(), 200);
    assert_eq!(ask(&server, Method::OPTIONS).await.status(), 204);
    assert_eq!(card_of(&server).await["name"], "test");
}

#[tokio::test]
async fn s02_the_interface_of_the_card_answers() {
    let server = serve_agent(obedient).await;
    let card = card_of(&server).await;
    let url = card["supportedInterfaces"][0]["url"].as_str().unwrap();
    let version = card["supportedInterfaces"][0]["protocolVersion"].as_str().unwrap();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message("hello")});
    let request = reqwest::Client::new().post(url).header("a2a-version", version);
    let response = request.header("content-type", "application/json").body(body.to_string()).send().await;
    let answer: Value = serde_json::from_str(&response.unwrap().text().await.unwrap()).unwrap();
    assert_eq!(state(&answer["result"]["task"]), "COMPLETED");
}

#[tokio::test]
async fn s02_a_public_address_goes_before_the_one_listened_at() {
    for (set, shown) in [
        ("https://agent.example", "https://agent.example/"),
        ("https://agent.example/", "https://agent.example/"),
        ("https://agent.example/path/", "https://agent.example/path/"),
        ("https://agent.example/path", "https://agent.example/path"),
    ] {
        let server = serve(with_agent(obedient).public_url(set)).await;
        assert_eq!(card_of(&server).await["supportedInterfaces"][0]["url"], shown);
    }
}

/// Mounted in another application, the agent's URL is only known from the request.
#[tokio::test]
async fn s02_a_mounted_router_is_where_the_request_found_it() {
    let server = with_agent(obedient).build().await.unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let serving = tokio::spawn(async move { axum::serve(listener, server.router()).await });
    let url = format!("http://{host}/.well-known/agent-card.json");
    let card: Value = serde_json::from_str(&reqwest::get(url).await.unwrap().text().await.unwrap()).unwrap();
    assert_eq!(card["supportedInterfaces"][0]["url"], format!("http://{host}/"));
    serving.abort();
}

#[tokio::test]
async fn s03_a_card_that_promises_too_much_keeps_the_server_from_starting() {
    async fn refusal(change: fn(&mut AgentCard)) -> String {
        let mut card = AgentCard::new("test", "test", "1.0.0");
        change(&mut card);
        let skill = AgentSkill::new("test", "test", "test");
        match Server::builder(card).task_skill(skill, obedient).build().await {
            Err(StartError::Card(reasons)) => reasons.join("\n"),
            other => panic!("it started, or failed otherwise: {other:?}"),
        }
    }
    for (reason, named) in [
        (refusal(|card| card.capabilities.push_notifications = Some(true)).await, "pushNotifications"),
        (refusal(|card| card.capabilities.extended_agent_card = Some(true)).await, "extendedAgentCard"),
        (refusal(|card| card.skills = vec![AgentSkill::new("other", "a", "a")]).await, "`other`"),
    ] {
        assert!(reason.contains(named), "{reason}");
    }
}
