//! What the demo agent does with each kind of message.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::served::{Served, parts, text, to};

/// Asks for a behaviour by text prefix, by messageId prefix and by a person's words; each gives a task in
/// that state.
async fn check(prefix: &str, words: &str, state: &str, look: impl Fn(&Value)) {
    let server = Served::start();
    for message in [
        text("m-1", &format!("{prefix} please")),
        text(&format!("{prefix}-7f3a"), "anything"),
        text("m-2", words),
    ] {
        let task = server.send(message.clone()).await;
        assert_eq!(task["status"]["state"], state, "{message}: {task}");
        assert!(!task["id"].as_str().unwrap().is_empty());
        assert!(!task["contextId"].as_str().unwrap().is_empty());
        assert!(task["status"]["timestamp"].as_str().unwrap().ends_with('Z'));
        look(&task);
    }
}

fn only_part(task: &Value) -> &Value {
    assert_eq!(task["artifacts"].as_array().unwrap().len(), 1, "{task}");
    assert_eq!(task["artifacts"][0]["parts"].as_array().unwrap().len(), 1, "{task}");
    &task["artifacts"][0]["parts"][0]
}

fn says_why(task: &Value) {
    let message = &task["status"]["message"];
    assert_eq!(message["role"], "ROLE_AGENT");
    assert!(!message["parts"][0]["text"].as_str().unwrap().is_empty(), "{task}");
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

#[tokio::test]
async fn s04_a_task_completes() {
    check("tck-complete-task", "complete", "TASK_STATE_COMPLETED", |task| {
        assert!(is_text(&only_part(task)["text"]));
    })
    .await;
}

#[tokio::test]
async fn s04_a_task_is_rejected() {
    check("tck-reject-task", "refuse", "TASK_STATE_REJECTED", says_why).await;
}

#[tokio::test]
async fn s04_a_task_fails() {
    check("tck-task-failure", "Fail!", "TASK_STATE_FAILED", says_why).await;
}

#[tokio::test]
async fn s04_a_task_asks_for_input() {
    check("tck-input-required", "Ask me something.", "TASK_STATE_INPUT_REQUIRED", says_why).await;
}

#[tokio::test]
async fn s04_a_task_asks_for_a_sign_in() {
    check("tck-auth-required", "ask me to sign in", "TASK_STATE_AUTH_REQUIRED", says_why).await;
}

#[tokio::test]
async fn an_artifact_is_text() {
    check("tck-artifact-text", "write a note", "TASK_STATE_COMPLETED", |task| {
        assert!(is_text(&only_part(task)["text"]));
    })
    .await;
}

#[tokio::test]
async fn an_artifact_is_a_file() {
    check("tck-artifact-file", "make a file", "TASK_STATE_COMPLETED", |task| {
        let part = only_part(task);
        assert!(is_text(&part["raw"]) && is_text(&part["filename"]) && is_text(&part["mediaType"]), "{part}");
    })
    .await;
}

#[tokio::test]
async fn an_artifact_is_a_link() {
    check("tck-artifact-file-url", "link to a file", "TASK_STATE_COMPLETED", |task| {
        let part = only_part(task);
        assert!(is_text(&part["url"]) && is_text(&part["filename"]) && is_text(&part["mediaType"]), "{part}");
    })
    .await;
}

#[tokio::test]
async fn an_artifact_is_data() {
    check("tck-artifact-data", "give me data", "TASK_STATE_COMPLETED", |task| {
        assert!(only_part(task)["data"].is_object());
    })
    .await;
}

#[tokio::test]
async fn work_in_steps_gives_an_artifact() {
    check("tck-stream-basic", "work step by step", "TASK_STATE_COMPLETED", |task| {
        assert!(is_text(&only_part(task)["text"]));
    })
    .await;
}

#[tokio::test]
async fn a_story_is_one_artifact_of_many_parts() {
    check("tck-stream-chunked", "tell me a story", "TASK_STATE_COMPLETED", |task| {
        assert_eq!(task["artifacts"].as_array().unwrap().len(), 1);
        assert!(task["artifacts"][0]["parts"].as_array().unwrap().len() > 1);
    })
    .await;
}

#[tokio::test]
async fn s08_a_message_skill_is_chosen_by_content() {
    let server = Served::start();
    for message in [
        text("m-1", "tck-message-response"),
        text("tck-message-response-1", "hi"),
        text("m-2", "Just answer."),
    ] {
        let result = server.call("SendMessage", json!({"message": message})).await;
        assert!(result["task"].is_null(), "{result}");
        let reply = &result["message"];
        assert_eq!(reply["role"], "ROLE_AGENT");
        assert!(is_text(&reply["messageId"]) && is_text(&reply["contextId"]) && reply["taskId"].is_null());
        assert!(is_text(&reply["parts"][0]["text"]));
    }
}

#[tokio::test]
async fn s08_other_text_is_echoed() {
    let server = Served::start();
    let task = server.send(text("m-1", "Grüße\nan alle")).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(*only_part(&task), json!({"text": "Grüße\nan alle"}));
    assert_eq!(task["history"][0]["messageId"], "m-1");
}

#[tokio::test]
async fn s08_parts_without_text_are_echoed_as_they_are() {
    let server = Served::start();
    let sent = json!([
        {"data": {"b": 1.0, "a": [null]}},
        {"raw": "AAEC", "filename": "x.bin", "mediaType": "application/octet-stream"},
        {"url": "https://example.com/x.png", "filename": "x.png", "mediaType": "image/png"},
    ]);
    let task = server.send(parts("m-1", sent.clone())).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(task["artifacts"][0]["parts"], sent);
}

#[tokio::test]
async fn s08_an_answer_resumes_a_task_that_asked() {
    let server = Served::start();
    for prefix in ["tck-input-required", "tck-auth-required"] {
        let asking = server.send(text(&format!("m-{prefix}"), prefix)).await;
        let done = server.send(to(&asking, text(&format!("{prefix}-2"), "here is more input"))).await;
        assert_eq!(done["id"], asking["id"]);
        assert_eq!(done["contextId"], asking["contextId"]);
        assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
        assert!(is_text(&only_part(&done)["text"]));
    }
}

#[tokio::test]
async fn s08_a_talk_goes_on_until_done() {
    let server = Served::start();
    let first = server.send(text("m-1", "tck-multi-turn")).await;
    assert_eq!(first["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    for (id, said, state) in [
        ("m-2", "here is more input", "TASK_STATE_INPUT_REQUIRED"),
        ("m-3", "tck-multi-turn again", "TASK_STATE_INPUT_REQUIRED"),
        ("m-4", "tck-complete-task", "TASK_STATE_INPUT_REQUIRED"),
        ("m-5", "done", "TASK_STATE_COMPLETED"),
    ] {
        let task = server.send(to(&first, text(id, said))).await;
        assert_eq!(task["status"]["state"], state, "{said}: {task}");
        assert_eq!(task["contextId"], first["contextId"]);
    }
    let task = server.get(&first).await;
    let history = task["history"].as_array().unwrap();
    let said: Vec<_> = history.iter().filter(|m| m["role"] == "ROLE_USER").map(|m| &m["messageId"]).collect();
    assert_eq!(said, ["m-1", "m-2", "m-3", "m-4", "m-5"]);
}

#[tokio::test]
async fn s04_long_work_is_seen_working_and_completes() {
    let server = Served::start();
    let since = Instant::now();
    let started = server.start_task(text("m-1", "tck-long-running")).await;
    let state = started["status"]["state"].as_str().unwrap();
    assert!(["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"].contains(&state), "{started}");
    server.until(&started, "TASK_STATE_WORKING").await;
    // The subscription lasts as long as the work.
    let events = server.stream("SubscribeToTask", json!({"id": started["id"]})).await;
    assert_eq!(events[0]["task"]["status"]["state"], "TASK_STATE_WORKING");
    assert!(since.elapsed() >= Duration::from_secs(5));
    let done = server.get(&started).await;
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED");
    assert!(is_text(&only_part(&done)["text"]));
}

#[tokio::test]
async fn s04_work_stops_when_it_is_canceled() {
    let server = Served::start();
    for (id, words) in [("m-1", "tck-cancel"), ("m-2", "tck-long-running"), ("m-3", "Wait until I cancel")] {
        let started = server.start_task(text(id, words)).await;
        server.until(&started, "TASK_STATE_WORKING").await;
        let since = Instant::now();
        let canceled = server.cancel(&started).await;
        assert_eq!(canceled["status"]["state"], "TASK_STATE_CANCELED", "{canceled}");
        assert!(canceled["artifacts"].is_null());
        // The agent listens; otherwise the engine would give it its grace time of 5 s.
        assert!(since.elapsed() < Duration::from_secs(4), "{words} took {:?}", since.elapsed());
        assert_eq!(server.get(&started).await["status"]["state"], "TASK_STATE_CANCELED");
    }
}

#[tokio::test]
async fn the_card_tells_how_to_see_every_state() {
    let server = Served::start();
    let card: Value = reqwest::get(server.line("card")).await.unwrap().json().await.unwrap();
    assert_eq!(card["capabilities"]["streaming"], true);
    assert_eq!(card["defaultInputModes"], json!(["*/*"]));
    assert_eq!(card["supportedInterfaces"][0]["url"], format!("{}/", server.url));
    let mut seen = Vec::new();
    for (place, example) in card["skills"][0]["examples"].as_array().unwrap().iter().enumerate() {
        let example = example.as_str().unwrap();
        let mut task = server.start_task(text(&format!("m-{place}"), example)).await;
        if example == "wait until I cancel" {
            seen.push(server.until(&task, "TASK_STATE_WORKING").await["status"]["state"].take());
            task = server.cancel(&task).await;
        } else {
            // A repeat of the same message waits with the first.
            task = server.send(text(&format!("m-{place}"), example)).await;
        }
        seen.push(task["status"]["state"].clone());
        assert!(place > 0 || seen[0] == "TASK_STATE_COMPLETED", "the first example simply completes");
    }
    for state in ["COMPLETED", "FAILED", "CANCELED", "REJECTED", "INPUT_REQUIRED", "AUTH_REQUIRED", "WORKING"]
    {
        assert!(seen.contains(&Value::from(format!("TASK_STATE_{state}"))), "no {state} in {seen:?}");
    }
}
