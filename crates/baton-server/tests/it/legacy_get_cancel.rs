//! S-07, S-10, S-11. `tasks/get` and `tasks/cancel` in 0.1: content and length of `history`, how states and artifacts that
//! 0.1 lacks are shown, and what cannot be canceled.

use baton_protocol::domain::TaskState;
use baton_server::{AgentError, Turn};
use serde_json::{Value, json};

use crate::agents::obedient;
use crate::harness::{Answer, TestServer, serve, serve_agent};
use crate::speakers::{legacy, task, wait_for_state, with_card};

async fn get(server: &TestServer, params: Value) -> Value {
    legacy(server, "tasks/get", params).await.result().clone()
}

#[track_caller]
fn refused(answer: &Answer, code: i64, reason: &str) {
    assert_eq!((answer.status, answer.error_code()), (200, code), "{}", answer.body);
    assert_eq!(answer.body["error"]["data"], json!({"reason": reason}));
    let message = answer.body["error"]["message"].as_str().unwrap();
    assert!(!message.is_empty());
}

fn states(history: &Value) -> Vec<&str> {
    history.as_array().expect("a list").iter().map(|entry| entry["state"].as_str().unwrap()).collect()
}

fn texts(history: &Value) -> Vec<&str> {
    let said = history.as_array().expect("a list").iter();
    said.map(|said| said["parts"][0]["text"].as_str().unwrap()).collect()
}

/// Asks once, then completes.
async fn asks_once(turn: Turn) -> Result<(), AgentError> {
    if turn.is_first() {
        turn.progress("thinking").await?;
        drop(turn.ask("Which colour?"));
    }
    Ok(())
}

async fn conversation(server: &TestServer) {
    legacy(server, "tasks/send", task("t", "a shirt")).await.result();
    wait_for_state(server, "t", "input-required").await;
    legacy(server, "tasks/send", task("t", "blue")).await.result();
    wait_for_state(server, "t", "completed").await;
}

#[tokio::test]
async fn s07_the_history_is_the_list_of_states_with_their_times() {
    let server = serve_agent(asks_once).await;
    conversation(&server).await;
    let shown = get(&server, json!({"id": "t"})).await;
    assert_eq!(
        states(&shown["history"]),
        ["submitted", "working", "input-required", "working", "completed"],
        "{shown}"
    );
    let times: Vec<&str> = shown["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["timestamp"].as_str().unwrap())
        .collect();
    assert!(times.is_sorted(), "{times:?}");
    assert!(times.iter().all(|at| at.contains('T') && at.ends_with('Z')), "{times:?}");
    assert_eq!(shown["status"]["timestamp"], *times.last().unwrap());
}

/// If the card switches state history off, `history` has messages, as in v0.1.0.
#[tokio::test]
async fn s07_the_history_is_the_list_of_messages_where_the_card_says_so() {
    let server =
        serve(with_card(|card| card.capabilities.state_transition_history = Some(false), asks_once)).await;
    conversation(&server).await;
    for (params, expected) in [
        (json!({"id": "t"}), &["a shirt", "thinking", "Which colour?", "blue"][..]),
        (json!({"id": "t", "historyLength": 1}), &["blue"]),
        (json!({"id": "t", "historyLength": 2}), &["Which colour?", "blue"]),
        (json!({"id": "t", "historyLength": 99}), &["a shirt", "thinking", "Which colour?", "blue"]),
    ] {
        let shown = get(&server, params.clone()).await;
        assert_eq!(texts(&shown["history"]), expected, "{params}");
        let (first, last) = (&shown["history"][0], shown["history"].as_array().unwrap().last().unwrap());
        assert_eq!(*last, json!({"role": "user", "parts": [{"type": "text", "text": "blue"}]}));
        assert_eq!(first.get("messageId"), None);
    }
    assert_eq!(get(&server, json!({"id": "t", "historyLength": 0})).await.get("history"), None);
}

#[tokio::test]
async fn s10_history_length_keeps_the_last_entries() {
    let server = serve_agent(asks_once).await;
    conversation(&server).await;
    let all = &["submitted", "working", "input-required", "working", "completed"][..];
    for (length, expected) in [
        (Value::Null, all),
        (json!(1), &["completed"]),
        (json!(2), &["working", "completed"]),
        (json!(5), all),
        (json!(1000), all),
    ] {
        let shown = get(&server, json!({"id": "t", "historyLength": length})).await;
        assert_eq!(states(&shown["history"]), expected, "{length}");
    }
    assert_eq!(get(&server, json!({"id": "t", "historyLength": 0})).await.get("history"), None);
    for wrong in [json!(-1), json!(1.5), json!("many"), json!([])] {
        let answer = legacy(&server, "tasks/get", json!({"id": "t", "historyLength": wrong})).await;
        assert_eq!(answer.error_code(), -32602, "{wrong}");
    }
    // The answer of a send is trimmed, too.
    let mut again = task("t", "blue");
    again["historyLength"] = json!(1);
    let answer = legacy(&server, "tasks/send", again).await;
    assert_eq!(states(&answer.result()["history"]), ["completed"]);
}

#[tokio::test]
async fn s10_an_unknown_task_is_not_found() {
    let server = serve_agent(obedient).await;
    for method in ["tasks/get", "tasks/cancel", "tasks/resubscribe"] {
        let answer = legacy(&server, method, json!({"id": "nobody's"})).await;
        assert_eq!((answer.status, answer.error_code()), (200, -32001), "{method}");
        assert_eq!(answer.body["id"], "r");
    }
    for params in [json!({}), Value::Null, json!({"id": null}), json!({"id": ""}), json!([]), json!("t")] {
        assert_eq!(legacy(&server, "tasks/get", params.clone()).await.error_code(), -32602, "{params}");
    }
}

#[tokio::test]
async fn s11_a_task_is_canceled_once() {
    let server = serve_agent(obedient).await;
    for (id, text, waits_in) in [("a", "hold", "working"), ("b", "ask", "input-required")] {
        legacy(&server, "tasks/send", task(id, text)).await.result();
        wait_for_state(&server, id, waits_in).await;
        let answer = legacy(&server, "tasks/cancel", json!({"id": id, "metadata": null})).await;
        let shown = answer.result();
        assert_eq!((&shown["id"], &shown["status"]["state"]), (&json!(id), &json!("canceled")));
        assert_eq!(states(&shown["history"]).last(), Some(&"canceled"));
        let again = legacy(&server, "tasks/cancel", json!({"id": id})).await;
        refused(&again, -32002, "TASK_NOT_CANCELABLE");
        assert_eq!(get(&server, json!({"id": id})).await, *shown, "the second cancel changed nothing");
    }
}

#[tokio::test]
async fn s11_an_ended_task_cannot_be_canceled() {
    let server = serve_agent(obedient).await;
    for (id, text, ends) in [("a", "hello", "completed"), ("b", "fail", "failed"), ("c", "reject", "failed")]
    {
        legacy(&server, "tasks/send", task(id, text)).await.result();
        let before = wait_for_state(&server, id, ends).await;
        refused(&legacy(&server, "tasks/cancel", json!({"id": id})).await, -32002, "TASK_NOT_CANCELABLE");
        assert_eq!(get(&server, json!({"id": id})).await, before, "{text}");
    }
}

/// Spec 2.5: 0.1 has neither state; a rejected task has failed, one that waits for credentials waits for input.
#[tokio::test]
async fn s10_states_that_came_later_are_told_in_older_words() {
    async fn agent(turn: Turn) -> Result<(), AgentError> {
        match turn.text().as_str() {
            "reject" => turn.reject("not my job").await?,
            _ => drop(turn.require_auth("sign in first")),
        }
        Ok(())
    }
    let server = serve_agent(agent).await;
    for (text, state, newer, reason) in [
        ("reject", "failed", TaskState::Rejected, "not my job"),
        ("open", "input-required", TaskState::AuthRequired, "sign in first"),
    ] {
        legacy(&server, "tasks/send", task(text, text)).await.result();
        let shown = wait_for_state(&server, text, state).await;
        assert_eq!(shown["status"]["message"]["parts"], json!([{"type": "text", "text": reason}]));
        assert_eq!(states(&shown["history"]).last(), Some(&state));
        // Newer clients see the real state.
        let seen = server.get(text).await["status"]["state"].as_str().unwrap().to_owned();
        let wanted =
            if newer == TaskState::Rejected { "TASK_STATE_REJECTED" } else { "TASK_STATE_AUTH_REQUIRED" };
        assert_eq!(seen, wanted);
    }
}

#[tokio::test]
async fn s10_artifacts_are_told_by_their_index() {
    async fn agent(turn: Turn) -> Result<(), AgentError> {
        for name in ["plan", "draft", "report"] {
            turn.text_artifact(name, format!("the {name}")).await?;
        }
        Ok(())
    }
    let server = serve_agent(agent).await;
    legacy(&server, "tasks/send", task("t", "write")).await.result();
    let shown = wait_for_state(&server, "t", "completed").await;
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    assert_eq!(
        shown["artifacts"],
        json!([
            {"name": "plan", "parts": text("the plan"), "index": 0},
            {"name": "draft", "parts": text("the draft"), "index": 1},
            {"name": "report", "parts": text("the report"), "index": 2},
        ])
    );
}
