//! What the demo agent answers to kits that put the behaviour into the messageId and send free text.

use serde_json::{Value, json};

use crate::served::{Served, text, to};

const FILE: &str = "R2VuZXJhdGVkIGZpbGUgY29udGVudAo=";

/// As those kits make them.
fn by_id(prefix: &str) -> Value {
    text(&format!("{prefix}-0a1b2c3d"), "Some free text")
}

#[tokio::test]
async fn s04_a_message_id_asks_for_an_answer_to_the_word() {
    let server = Served::start();
    let file = json!({"raw": FILE, "filename": "output.txt", "mediaType": "text/plain"});
    let link =
        json!({"url": "https://example.com/output.txt", "filename": "output.txt", "mediaType": "text/plain"});
    let words = |text: &str| json!({"text": text});
    for (prefix, part) in [
        ("tck-artifact-text", words("Generated text content")),
        ("tck-artifact-file", file.clone()),
        ("tck-artifact-file-url", link),
        ("tck-artifact-data", json!({"data": {"key": "value", "count": 42}})),
        ("tck-stream-001", words("Stream hello from TCK")),
        ("tck-stream-003", words("Stream task lifecycle")),
        ("tck-stream-ordering-001", words("Ordered output")),
        ("tck-stream-artifact-text", words("Streamed text content")),
        ("tck-stream-artifact-file", file),
        ("tck-complete-task", words("Hello from TCK")),
        ("tck-anything-else", words("Some free text")),
    ] {
        let task = server.send(by_id(prefix)).await;
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{prefix}: {task}");
        assert_eq!(task["artifacts"][0]["parts"], json!([part]), "{prefix}");
    }
    let complete = server.send(text("tck-complete-task-11111111", "Hi")).await;
    assert_eq!(complete["status"]["message"]["parts"][0]["text"], "Hello from TCK", "{complete}");
    assert_eq!(server.send(by_id("tck-reject-task")).await["status"]["state"], "TASK_STATE_REJECTED");
    assert_eq!(server.send(by_id("tck-stream-002")).await["status"]["state"], "TASK_STATE_COMPLETED");
    let reply = server.call("SendMessage", json!({"message": by_id("tck-message-response")})).await;
    assert_eq!(reply["message"]["parts"], json!([{"text": "Direct message response"}]), "{reply}");
    // Where the text names a behaviour, the text wins.
    let task = server.send(text("tck-artifact-text-22222222", "fail")).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_FAILED");
}

#[tokio::test]
async fn s04_a_question_stays_until_a_message_id_completes_it() {
    let server = Served::start();
    for (asked, last) in [
        ("tck-input-required-00000001", text("tck-complete-task-00000001", "Thank you")),
        ("tck-input-required-00000002", text("m-2", "done")),
        ("tck-multi-turn-00000003", text("tck-complete-task-00000003", "Thank you")),
    ] {
        let first = server.send(text(asked, "Hello")).await;
        assert_eq!(first["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
        for more in [format!("{asked}-a"), format!("tck-anything-{asked}")] {
            let mut more = text(&more, "more of it");
            more["taskId"] = first["id"].clone();
            let task = server.send(more).await;
            assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{task}");
        }
        let mut last = to(&first, last);
        last.as_object_mut().unwrap().remove("contextId");
        let done = server.send(last).await;
        assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
        let said = done["history"].as_array().unwrap().iter().filter(|said| said["role"] == "ROLE_USER");
        assert_eq!(said.count(), 4, "{done}");
    }
}

/// Each event by what it is, and the text it brings.
fn told(events: &[Value]) -> Vec<String> {
    let tell = |event: &Value| match event.as_object().unwrap().iter().next().unwrap() {
        (kind, _) if kind == "task" => "task".to_owned(),
        (_, update) if update["artifact"].is_object() => {
            let text = update["artifact"]["parts"][0]["text"].as_str().unwrap_or("file");
            let (append, last) = (update["append"] == true, update["lastChunk"] == true);
            format!("{text:?} append={append} last={last}")
        }
        (_, update) => {
            update["status"]["state"].as_str().unwrap().trim_start_matches("TASK_STATE_").to_owned()
        }
    };
    let mut told: Vec<_> = events.iter().map(tell).collect();
    told.dedup();
    told
}

#[tokio::test]
async fn p04_a_message_id_asks_for_a_stream() {
    let server = Served::start();
    for (prefix, artifacts) in [
        ("tck-stream-001", &["\"Stream hello from TCK\" append=false last=true"][..]),
        ("tck-stream-ordering-001", &["\"Ordered output\" append=false last=true"]),
        ("tck-stream-artifact-file", &["\"file\" append=false last=true"]),
        (
            "tck-stream-artifact-chunked",
            &["\"chunk-1 \" append=false last=false", "\"chunk-2\" append=true last=true"],
        ),
    ] {
        let events = server.send_stream(by_id(prefix)).await;
        let expected = [&["task", "WORKING"][..], artifacts, &["COMPLETED"]].concat();
        assert_eq!(told(&events), expected, "{prefix}");
    }
    for prefix in ["tck-stream-002", "tck-anything-else"] {
        let events = server.send_stream(by_id(prefix)).await;
        assert_eq!(told(&events).last().map(String::as_str), Some("COMPLETED"), "{prefix}");
    }
}

/// Long enough to leave and come back.
#[tokio::test]
async fn p04_slow_work_tells_that_it_goes_on() {
    let server = Served::start();
    let events = server.send_stream(text("test-resubscribe-message-id", "Hello")).await;
    let working = events.iter().filter(|it| it["statusUpdate"]["status"]["state"] == "TASK_STATE_WORKING");
    assert!(working.count() >= 16);
    assert_eq!(told(&events), ["task", "WORKING", "COMPLETED"]);
}
