//! P-02, S-03. What the card does not declare is refused with the error the spec names for it (3.3.4).

use baton_protocol::domain::{AgentCard, AgentExtension, AgentSkill};
use baton_server::Server;
use serde_json::{Value, json};

use crate::agents::obedient;
use crate::harness::{TestServer, id, message, serve, serve_agent, state};

async fn serve_card(change: impl FnOnce(&mut AgentCard)) -> TestServer {
    let mut card = AgentCard::new("test", "An agent for tests", "1.0.0");
    change(&mut card);
    serve(Server::builder(card).task_skill(AgentSkill::new("test", "test", "test"), obedient)).await
}

async fn capabilities(server: &TestServer) -> Value {
    let url = format!("{}/.well-known/agent-card.json", server.url);
    let text = reqwest::get(url).await.unwrap().text().await.unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["capabilities"].clone()
}

async fn check(server: &TestServer, method: &str, params: Value, code: i64, reason: &str) {
    let answer = server.call(method, params).await;
    assert_eq!((answer.status, answer.error_code()), (200, code), "{method}: {}", answer.body);
    assert_eq!(answer.body["id"], 1, "{method}");
    assert_eq!(answer.body["error"]["data"][0]["reason"], reason, "{method}");
    assert_eq!(answer.body["error"]["data"][0]["domain"], "a2a-protocol.org", "{method}");
}

#[tokio::test]
async fn s03_streaming_that_the_card_leaves_out_is_off() {
    let server = serve_card(|card| card.capabilities.streaming = Some(false)).await;
    assert_eq!(capabilities(&server).await["streaming"], false);
    let task = server.start("hold").await;
    check(&server, "SendStreamingMessage", message("a"), -32004, "UNSUPPORTED_OPERATION").await;
    check(&server, "SubscribeToTask", json!({"id": id(&task)}), -32004, "UNSUPPORTED_OPERATION").await;
    check(&server, "SubscribeToTask", json!({"id": "unknown"}), -32004, "UNSUPPORTED_OPERATION").await;
    // Other calls work, and no task was started.
    assert_eq!(state(&server.send("b").await), "COMPLETED");
    assert_eq!(server.call("ListTasks", json!({})).await.result()["totalSize"], 2);
}

#[tokio::test]
async fn s03_streaming_is_on_unless_told_and_the_card_says_so() {
    let server = serve_agent(obedient).await;
    assert_eq!(capabilities(&server).await["streaming"], true);
    let mut stream = server.stream("SendStreamingMessage", message("a"), None).await.ok().expect("a stream");
    assert_eq!(stream.rest().await.last().unwrap().kind(), "completed");
}

#[tokio::test]
async fn p02_push_configs_are_refused_without_the_capability() {
    let server = serve_agent(obedient).await;
    assert_eq!(capabilities(&server).await["pushNotifications"], false);
    let task = server.send("a").await;
    let task = id(&task);
    for (method, params) in [
        ("CreateTaskPushNotificationConfig", json!({"taskId": task, "url": "https://example.com/hook"})),
        ("GetTaskPushNotificationConfig", json!({"taskId": task, "id": "one"})),
        ("ListTaskPushNotificationConfigs", json!({"taskId": task})),
        ("DeleteTaskPushNotificationConfig", json!({"taskId": task, "id": "one"})),
        ("ListTaskPushNotificationConfigs", json!({"taskId": "unknown"})),
    ] {
        check(&server, method, params, -32003, "PUSH_NOTIFICATION_NOT_SUPPORTED").await;
    }
    for method in ["SendMessage", "SendStreamingMessage"] {
        let mut params = message("a");
        params["configuration"] = json!({"taskPushNotificationConfig": {"url": "https://example.com/hook"}});
        check(&server, method, params, -32003, "PUSH_NOTIFICATION_NOT_SUPPORTED").await;
    }
    assert_eq!(server.call("ListTasks", json!({})).await.result()["totalSize"], 1);
}

/// Spec 3.1.11: without the capability the operation itself is unsupported.
#[tokio::test]
async fn p02_the_extended_card_is_refused_without_the_capability() {
    let server = serve_agent(obedient).await;
    assert_ne!(capabilities(&server).await["extendedAgentCard"], true);
    for params in [json!({}), Value::Null] {
        check(&server, "GetExtendedAgentCard", params, -32004, "UNSUPPORTED_OPERATION").await;
    }
}

/// Spec 3.3.4: a client must request the extensions that the agent requires. Other extensions in the request are ignored.
#[tokio::test]
async fn p02_a_required_extension_must_be_declared() {
    const NEEDED: &str = "https://example.com/ext/needed/v1";
    const OFFERED: &str = "https://example.com/ext/offered/v1";
    let server = serve_card(|card| {
        let extension = |uri: &str, required| AgentExtension {
            uri: uri.to_owned(),
            description: None,
            required,
            params: None,
        };
        card.capabilities.extensions = vec![extension(NEEDED, true), extension(OFFERED, false)];
    })
    .await;
    assert_eq!(capabilities(&server).await["extensions"][0], json!({"uri": NEEDED, "required": true}));

    let both = format!("{OFFERED} , {NEEDED},");
    let longer = format!("{NEEDED}/more");
    for (headers, accepted) in [
        (vec![], false),
        (vec![""], false),
        (vec![OFFERED], false),
        (vec![longer.as_str()], false),
        (vec!["https://example.com/unknown"], false),
        (vec![NEEDED], true),
        (vec![both.as_str()], true),
        (vec!["https://example.com/unknown", NEEDED], true),
    ] {
        let headers: Vec<_> = headers.into_iter().map(|value| ("a2a-extensions", value)).collect();
        let answer = server.call_with("SendMessage", message("a"), &headers).await;
        if accepted {
            assert_eq!(state(&answer.result()["task"]), "COMPLETED", "{headers:?}");
        } else {
            assert_eq!((answer.status, answer.error_code()), (200, -32008), "{headers:?}");
            assert_eq!(answer.body["error"]["data"][0]["reason"], "EXTENSION_SUPPORT_REQUIRED");
            assert!(answer.body["error"]["message"].as_str().unwrap().contains(NEEDED));
        }
    }
    check(&server, "SendStreamingMessage", message("a"), -32008, "EXTENSION_SUPPORT_REQUIRED").await;
    // Reading tasks needs no extension.
    assert_eq!(server.call("ListTasks", json!({})).await.result()["totalSize"], 3);
}

#[tokio::test]
async fn p02_an_unknown_extension_is_ignored() {
    let server = serve_agent(obedient).await;
    for value in ["https://example.com/ext", "nonsense", ",,,", "a,b , c"] {
        let answer = server.call_with("SendMessage", message("a"), &[("a2a-extensions", value)]).await;
        assert_eq!(state(&answer.result()["task"]), "COMPLETED", "{value}");
    }
}
