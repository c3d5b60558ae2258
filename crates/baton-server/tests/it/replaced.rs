//! Cards and limits that are replaced while the server serves.

use std::sync::atomic::{AtomicBool, Ordering};

use baton_protocol::domain::{AgentCard, AgentSkill};
use baton_server::Limits;
use baton_server::StartError;
use serde_json::Value;

use crate::agents::obedient;
use crate::harness::{TestServer, message, serve, with_agent};

fn card(version: &str) -> AgentCard {
    let mut card = AgentCard::new("test", "An agent for tests", version);
    card.default_input_modes = vec!["*/*".to_owned()];
    card
}

async fn shown(server: &TestServer, headers: &[(&str, &str)]) -> reqwest::Response {
    let mut request = server.http.get(format!("{}/.well-known/agent-card.json", server.url));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.unwrap()
}

#[tokio::test]
async fn a_new_card_is_served_and_held_to_from_the_next_request_on() {
    let server = serve(with_agent(obedient)).await;
    let control = server.server.control();
    assert_eq!(control.agents().collect::<Vec<_>>(), ["default"]);
    let before = shown(&server, &[]).await;
    let (etag, date) = (before.headers()["etag"].clone(), before.headers()["last-modified"].clone());
    assert_eq!(before.json::<Value>().await.unwrap()["version"], "1.0.0");

    let mut next = card("2.0.0");
    next.capabilities.streaming = Some(false);
    control.replace_card("default", next).unwrap();
    // Caches with the first card do not get a 304.
    for (name, value) in [("if-none-match", &etag), ("if-modified-since", &date)] {
        let after = shown(&server, &[(name, value.to_str().unwrap())]).await;
        assert_eq!(after.status(), 200, "{name}");
        assert_eq!(after.json::<Value>().await.unwrap()["version"], "2.0.0");
    }
    let refused = server.stream("SendStreamingMessage", message("x"), None).await.err().unwrap();
    assert_eq!(refused.error_code(), -32004);
    server.stop().await;
}

#[tokio::test]
async fn s03_a_card_that_is_not_true_replaces_nothing() {
    let server = serve(with_agent(obedient)).await;
    let control = server.server.control();
    let mut liar = card("2.0.0");
    liar.capabilities.push_notifications = Some(true);
    let mut stranger = card("2.0.0");
    stranger.skills = vec![AgentSkill::new("other", "other", "other")];
    for card in [liar, stranger] {
        assert!(matches!(control.replace_card("default", card), Err(StartError::Card(_))));
    }
    assert!(matches!(control.replace_card("nobody", card("2.0.0")), Err(StartError::Mount(_))));
    assert_eq!(shown(&server, &[]).await.json::<Value>().await.unwrap()["version"], "1.0.0");
    server.stop().await;
}

#[tokio::test]
async fn new_limits_count_from_the_next_request_on() {
    let server = serve(with_agent(obedient)).await;
    let large = message(&"x".repeat(5000));
    assert_eq!(server.call("SendMessage", large.clone()).await.status, 200);
    let mut limits = Limits::default();
    limits.max_body_bytes = 4096;
    server.server.control().set_limits("default", limits).unwrap();
    assert_eq!(server.call("SendMessage", large).await.status, 413);
    server.stop().await;
}

#[tokio::test]
async fn no_request_fails_while_cards_are_replaced_under_load() {
    let server = serve(with_agent(obedient)).await;
    let done = AtomicBool::new(false);
    let sender = async {
        let mut sent = 0;
        while !done.load(Ordering::Relaxed) {
            let answer = server.call("SendMessage", message("x")).await;
            assert_eq!(answer.status, 200, "{}", answer.body);
            answer.result();
            sent += 1;
        }
        sent
    };
    let replacer = async {
        for edition in 0..200 {
            server.server.control().replace_card("default", card(&format!("1.0.{edition}"))).unwrap();
            let version = shown(&server, &[]).await.json::<Value>().await.unwrap()["version"].clone();
            assert_eq!(version, format!("1.0.{edition}"));
        }
        done.store(true, Ordering::Relaxed);
    };
    let (sent, ()) = tokio::join!(sender, replacer);
    assert!(sent > 0);
    server.stop().await;
}
