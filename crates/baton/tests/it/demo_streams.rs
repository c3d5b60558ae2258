//! What the demo agent's streams show, in which order.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::served::{Served, text};

/// `task`, `WORKING`, `artifact`…: one word per event.
fn kinds(events: &[Value]) -> Vec<&str> {
    let kind = |event: &'_ Value| -> Option<&'static str> {
        ["task", "message", "artifactUpdate"].into_iter().find(|kind| event[kind].is_object())
    };
    let state = |event: &'_ Value| -> Option<String> {
        let state = event["statusUpdate"]["status"]["state"].as_str()?;
        Some(state.trim_start_matches("TASK_STATE_").to_owned())
    };
    events
        .iter()
        .map(|event| match (kind(event), state(event)) {
            (Some(kind), None) => kind,
            (None, Some(state)) if state == "WORKING" => "WORKING",
            (None, Some(state)) if state == "COMPLETED" => "COMPLETED",
            _ => panic!("an unexpected event: {event}"),
        })
        .collect()
}

#[tokio::test]
async fn p04_a_basic_stream_works_gives_and_completes() {
    let server = Served::start();
    let since = Instant::now();
    let events = server.send_stream(text("m-1", "tck-stream-basic")).await;
    assert!(since.elapsed() >= Duration::from_secs(1), "too quick for a second stream to join");
    let mut kinds = kinds(&events);
    kinds.dedup();
    assert_eq!(kinds, ["task", "WORKING", "artifactUpdate", "COMPLETED"]);
    let task = &events[0]["task"];
    for event in &events[1..] {
        let update = event.as_object().unwrap().values().next().unwrap();
        assert_eq!(update["taskId"], task["id"]);
        assert_eq!(update["contextId"], task["contextId"]);
    }
}

#[tokio::test]
async fn p04_a_chunked_artifact_grows_and_ends() {
    let server = Served::start();
    let events = server.send_stream(text("tck-stream-chunked-1", "hi")).await;
    let chunks: Vec<_> =
        events.iter().map(|event| &event["artifactUpdate"]).filter(|c| c.is_object()).collect();
    assert!(chunks.len() >= 3, "{events:?}");
    for (place, chunk) in chunks.iter().enumerate() {
        assert_eq!(chunk["append"].as_bool().unwrap_or_default(), place > 0, "{chunk}");
        assert_eq!(chunk["lastChunk"].as_bool().unwrap_or_default(), place + 1 == chunks.len(), "{chunk}");
        assert_eq!(chunk["artifact"]["artifactId"], chunks[0]["artifact"]["artifactId"]);
    }
    assert_eq!(kinds(&events).last(), Some(&"COMPLETED"));
    let told: Vec<_> =
        chunks.iter().flat_map(|chunk| chunk["artifact"]["parts"].as_array().unwrap()).collect();
    let kept = server.get(&events[0]["task"]).await;
    assert_eq!(kept["artifacts"][0]["parts"].as_array().unwrap().iter().collect::<Vec<_>>(), told);
}

#[tokio::test]
async fn p04_an_echo_streams_in_order() {
    let server = Served::start();
    let events = server.send_stream(text("m-1", "hello")).await;
    let mut kinds = kinds(&events);
    kinds.dedup();
    assert!(kinds.starts_with(&["task"]) && kinds.ends_with(&["artifactUpdate", "COMPLETED"]), "{kinds:?}");
}

#[tokio::test]
async fn p04_a_message_is_the_only_event_of_its_stream() {
    let server = Served::start();
    let events = server.send_stream(text("m-1", "tck-message-response")).await;
    assert_eq!(kinds(&events), ["message"]);
    assert_eq!(events[0]["message"]["role"], "ROLE_AGENT");
}

#[tokio::test]
async fn s03_the_minimal_profile_has_no_streams() {
    let args = ["serve", "--listen", "127.0.0.1:0", "--store", "memory:", "--profile", "minimal"];
    let server = Served::with(&args);
    let card: Value = reqwest::get(server.line("card")).await.unwrap().json().await.unwrap();
    assert_eq!(card["capabilities"]["streaming"], false);
    let message = text("m-1", "tck-complete-task");
    let refused = server.ask("SendStreamingMessage", json!({"message": message})).await;
    assert_eq!(refused["error"]["code"], -32004, "{refused}");
    assert_eq!(server.send(message).await["status"]["state"], "TASK_STATE_COMPLETED");
}
