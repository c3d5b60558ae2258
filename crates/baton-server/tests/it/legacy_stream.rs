//! S-13. `tasks/sendSubscribe` and `tasks/resubscribe` in 0.1: named events, `final`, and when the stream closes.

use baton_protocol::domain::{AgentCard, AgentSkill};
use baton_server::{AgentError, Asked, Server, Turn};
use http::Method;
use serde_json::{Value, json};

use crate::agents::obedient;
use crate::fixtures::{Gate, agent_with};
use crate::harness::{TestServer, serve, serve_agent};
use crate::speakers::{
    Events, StreamEvent, envelope, legacy, read, request, task, wait_for_state, with_card,
};

const PATHS: [&str; 3] = ["/", "/subscribe", "/subscribe/"];

async fn subscribe(server: &TestServer, path: &str, id: &str, text: &str) -> Events {
    let opened = Events::of(server, path, &[], "tasks/sendSubscribe", task(id, text)).await;
    opened.unwrap_or_else(|answer| panic!("no stream: {}", answer.body))
}

async fn again(server: &TestServer, id: &str, after: Option<u64>) -> Events {
    let after = after.map(|after| after.to_string());
    let headers: Vec<_> = after.iter().map(|after| ("last-event-id", after.as_str())).collect();
    let opened = Events::of(server, "/", &headers, "tasks/resubscribe", json!({"id": id})).await;
    opened.unwrap_or_else(|answer| panic!("no stream: {}", answer.body))
}

/// `status working`, `artifact 0`: short lines for comparing orders. A final event ends with an exclamation mark.
fn line(event: &StreamEvent) -> String {
    let (name, result) = (event.name.as_deref().unwrap_or("unnamed"), event.result());
    let what = match name {
        "artifact" => result["artifact"]["index"].to_string(),
        _ => result["status"]["state"].as_str().unwrap_or("?").to_owned(),
    };
    let last = if result["final"] == true { "!" } else { "" };
    format!("{name} {what}{last}")
}

fn lines(events: &[StreamEvent]) -> Vec<String> {
    events.iter().map(line).collect()
}

/// Rules that hold for every stream.
#[track_caller]
fn check(events: &[StreamEvent], id: &str) {
    for (n, event) in events.iter().enumerate() {
        assert_eq!((&event.data["jsonrpc"], &event.data["id"]), (&json!("2.0"), &json!("r")));
        let result = event.result();
        assert_eq!(result["id"], id);
        assert!(event.id.is_some(), "every event can be resumed from: {result}");
        match event.name.as_deref() {
            Some("status") => assert_eq!(result["final"], n + 1 == events.len(), "{result}"),
            Some("artifact") => assert_eq!(result.get("final"), None),
            other => panic!("an event named {other:?}"),
        }
        for newer in ["kind", "taskId", "contextId"] {
            assert_eq!(result.get(newer), None);
        }
    }
    assert!(["submitted", "working"].contains(&events[0].result()["status"]["state"].as_str().unwrap()));
    let numbers: Vec<_> = events.iter().map(|event| event.id).collect();
    assert!(numbers.is_sorted(), "{numbers:?}");
}

async fn writes_two(turn: Turn) -> Result<(), AgentError> {
    turn.text_artifact("plan", "a").await?;
    turn.progress("half way").await?;
    turn.text_artifact("report", "b").await?;
    Ok(())
}

#[tokio::test]
async fn s13_a_stream_tells_a_task_from_beginning_to_end_at_both_doors() {
    let server = serve_agent(writes_two).await;
    for (n, path) in PATHS.into_iter().enumerate() {
        let id = format!("t{n}");
        let mut stream = subscribe(&server, path, &id, "write").await;
        for (name, value) in [
            ("content-type", "text/event-stream"),
            ("cache-control", "no-cache, no-store"),
            ("connection", "keep-alive"),
        ] {
            assert_eq!(stream.headers[name], value, "{path}");
        }
        // The server closes the stream: `rest` returns.
        let events = stream.rest().await;
        check(&events, &id);
        assert_eq!(
            lines(&events),
            [
                "status submitted",
                "status working",
                "artifact 0",
                "status working",
                "artifact 1",
                "status completed!"
            ],
            "{path}"
        );
        let artifact = &events[2].result()["artifact"];
        assert_eq!((&artifact["name"], &artifact["append"]), (&json!("plan"), &json!(false)));
        assert_eq!(artifact["parts"], json!([{"type": "text", "text": "a"}]));
        assert_eq!(artifact.get("artifactId"), None);
        let said = &events[3].result()["status"]["message"];
        assert_eq!(*said, json!({"role": "agent", "parts": [{"type": "text", "text": "half way"}]}));
        assert_eq!(wait_for_state(&server, &id, "completed").await["artifacts"].as_array().unwrap().len(), 2);
    }
}

#[tokio::test]
async fn s13_every_end_is_final_and_nothing_comes_after_it() {
    let server = serve_agent(obedient).await;
    for (text, expected) in [
        ("hello", &["status submitted", "status working", "artifact 0", "status completed!"][..]),
        ("fail", &["status submitted", "status working", "status failed!"]),
        ("reject", &["status submitted", "status working", "status failed!"]),
        ("ask", &["status submitted", "status working", "status input-required!"]),
    ] {
        let events = subscribe(&server, "/subscribe", text, text).await.rest().await;
        check(&events, text);
        assert_eq!(lines(&events), expected, "{text}");
    }
    // A cancel ends the stream.
    let mut stream = subscribe(&server, "/", "held", "hold").await;
    stream.next().await.expect("it has begun");
    legacy(&server, "tasks/cancel", json!({"id": "held"})).await.result();
    assert_eq!(lines(&stream.rest().await).last().map(String::as_str), Some("status canceled!"));
}

/// 0.1 has no auth-required: to its clients it is input-required, and the stream closes there, too.
#[tokio::test]
async fn s13_a_stream_closes_where_credentials_are_asked_for() {
    async fn agent(turn: Turn) -> Result<(), AgentError> {
        if turn.is_first() {
            drop(turn.require_auth("sign in"));
        }
        Ok(())
    }
    let server = serve_agent(agent).await;
    let events = subscribe(&server, "/", "t", "open").await.rest().await;
    check(&events, "t");
    assert_eq!(lines(&events), ["status submitted", "status working", "status input-required!"]);
}

/// The stream of an answer begins with `working`: showing the task's old state, input-required, would look final.
#[tokio::test]
async fn s13_an_answer_streams_its_own_turn() {
    async fn agent(turn: Turn) -> Result<(), AgentError> {
        if turn.is_first() {
            drop(turn.ask("Which colour?"));
        }
        Ok(())
    }
    let server = serve_agent(agent).await;
    subscribe(&server, "/", "t", "a shirt").await.rest().await;
    let events = subscribe(&server, "/subscribe", "t", "blue").await.rest().await;
    check(&events, "t");
    assert_eq!(lines(&events), ["status working", "status completed!"]);
}

#[tokio::test]
async fn s13_another_method_at_subscribe_is_a_bad_request_that_says_so() {
    let server = serve_agent(obedient).await;
    let headers = [("content-type", "application/json")];
    for method in
        ["tasks/send", "tasks/get", "tasks/resubscribe", "message/stream", "SendStreamingMessage", "nonsense"]
    {
        let body = envelope(method, &task("t", "hello"));
        let answer = read(request(&server, Method::POST, "/subscribe", &headers, body).await).await;
        assert_eq!((answer.status, answer.error_code()), (400, -32600), "{method}");
        let message = answer.body["error"]["message"].as_str().unwrap();
        assert!(message.contains("tasks/sendSubscribe"), "{message}");
        assert_eq!((&answer.body["id"], &answer.body["jsonrpc"]), (&json!("r"), &json!("2.0")));
    }
    let answer = read(request(&server, Method::POST, "/subscribe", &headers, "{").await).await;
    assert_eq!((answer.status, answer.error_code(), &answer.body["id"]), (400, -32700, &Value::Null));
    let answer = read(request(&server, Method::GET, "/subscribe", &[], "").await).await;
    assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")));
    assert_eq!(server.call("ListTasks", json!({})).await.result()["totalSize"], 0, "nothing was started");
}

#[tokio::test]
async fn s13_a_reader_that_leaves_does_not_touch_the_task() {
    let gate = Gate::new();
    let server = serve_agent(agent_with(&gate, |gate, turn| async move {
        gate.pass().await;
        turn.text_artifact("echo", turn.text()).await?;
        Ok(())
    }))
    .await;
    let mut stream = subscribe(&server, "/subscribe", "t", "hello").await;
    stream.next().await.expect("it has begun");
    drop(stream);
    wait_for_state(&server, "t", "working").await;
    gate.let_pass(1);
    let ended = wait_for_state(&server, "t", "completed").await;
    assert_eq!(ended["artifacts"][0]["parts"][0]["text"], "hello");
}

#[tokio::test]
async fn s13_resubscribe_follows_a_task_to_its_end() {
    let gate = Gate::new();
    let server = serve_agent(agent_with(&gate, |gate, turn| async move {
        turn.text_artifact("plan", "a").await?;
        gate.pass().await;
        turn.text_artifact("report", "b").await?;
        Ok(())
    }))
    .await;
    let mut first = subscribe(&server, "/", "t", "write").await;
    while first.next().await.is_some_and(|event| line(&event) != "artifact 0") {}
    let mut second = again(&server, "t", None).await;
    let opening = second.next().await.expect("the task as it is");
    assert_eq!(line(&opening), "status working");
    gate.let_pass(1);
    assert_eq!(lines(&second.rest().await), ["artifact 1", "status completed!"]);
    assert_eq!(
        lines(&first.rest().await),
        ["artifact 1", "status completed!"],
        "both streams have the same events"
    );

    // For an ended task there is no stream; for a waiting one there is one event, and the stream closes.
    let ended = legacy(&server, "tasks/resubscribe", json!({"id": "t"})).await;
    assert_eq!(
        (ended.error_code(), &ended.body["error"]["data"]["reason"]),
        (-32004, &json!("UNSUPPORTED_OPERATION"))
    );
    let server = serve_agent(obedient).await;
    subscribe(&server, "/", "asking", "ask").await.rest().await;
    assert_eq!(lines(&again(&server, "asking", None).await.rest().await), ["status input-required!"]);
}

#[tokio::test]
async fn s13_a_stream_is_resumed_after_the_last_event_seen() {
    let server = serve_agent(writes_two).await;
    let all = subscribe(&server, "/", "t", "write").await.rest().await;
    for (n, event) in all.iter().enumerate() {
        let after = event.id.unwrap().to_string();
        let headers = [("last-event-id", after.as_str())];
        for (method, params) in
            [("tasks/resubscribe", json!({"id": "t"})), ("tasks/sendSubscribe", task("t", "write"))]
        {
            match Events::of(&server, "/", &headers, method, params).await {
                Ok(mut stream) => assert_eq!(stream.rest().await, all[n + 1..], "{method} after {after}"),
                Err(answer) => {
                    assert_eq!(
                        (n + 1, answer.error_code()),
                        (all.len(), -32004),
                        "{method}: nothing is left"
                    );
                }
            }
        }
    }
    let headers = [("last-event-id", "yesterday")];
    let answer = Events::of(&server, "/", &headers, "tasks/resubscribe", json!({"id": "t"})).await;
    assert_eq!(answer.err().map(|answer| answer.error_code()), Some(-32602));
}

/// A repeated request gets the same task's events from the beginning, and the agent runs once.
#[tokio::test]
async fn s13_a_repeated_send_streams_the_same_task() {
    let server = serve_agent(writes_two).await;
    let once = subscribe(&server, "/", "t", "write").await.rest().await;
    let twice = subscribe(&server, "/subscribe", "t", "write").await.rest().await;
    assert_eq!(once, twice);
    let other = Events::of(&server, "/subscribe", &[], "tasks/sendSubscribe", task("t", "more")).await;
    let refused = other.err().expect("an ended task takes no more");
    assert_eq!((refused.status, refused.error_code()), (200, -32002));
}

#[tokio::test]
async fn s13_streaming_that_the_card_leaves_out_is_off() {
    let server = serve(with_card(|card| card.capabilities.streaming = Some(false), obedient)).await;
    legacy(&server, "tasks/send", task("t", "hold")).await.result();
    for (path, method, params) in [
        ("/", "tasks/sendSubscribe", task("u", "hello")),
        ("/subscribe", "tasks/sendSubscribe", task("u", "hello")),
        ("/", "tasks/resubscribe", json!({"id": "t"})),
    ] {
        let answer = Events::of(&server, path, &[], method, params).await.err().expect("no stream");
        assert_eq!(answer.error_code(), -32004, "{path} {method}");
        assert_eq!(answer.body["error"]["data"], json!({"reason": "UNSUPPORTED_OPERATION"}));
    }
}

/// The reply of a message skill is in the last status.
#[tokio::test]
async fn s13_a_message_in_answer_is_the_final_status() {
    async fn parrot(asked: Asked) -> Result<String, AgentError> {
        Ok(format!("{}!", asked.text()))
    }
    let card = AgentCard::new("test", "An agent for tests", "1.0.0");
    let server = serve(Server::builder(card).message_skill(AgentSkill::new("p", "p", "p"), parrot)).await;
    for path in PATHS {
        let events = subscribe(&server, path, "t", "hello").await.rest().await;
        assert_eq!(lines(&events), ["status submitted", "status working", "status completed!"], "{path}");
        let result = events[2].result();
        assert_eq!(result["id"], "t");
        let said = json!({"role": "agent", "parts": [{"type": "text", "text": "hello!"}]});
        assert_eq!(result["status"]["message"], said);
    }
}
