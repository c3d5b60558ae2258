//! P-09: states that are none of the eight do not end a wait, and are shown as they came.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use baton_client::protocol::domain::{TaskId, TaskState};
use baton_client::protocol::operation::{ListTasks, Reply};
use baton_client::protocol::wire::{peer_state, v1};
use baton_client::{Client, Discovered, Ending};

use crate::harness::{card_for, quick, rest, serve_router};

/// Answers of an agent: a stream, and the states that its task has, one for each time that it is read.
#[derive(Clone)]
struct Script {
    stream: Vec<String>,
    states: &'static [&'static str],
    reads: Arc<AtomicUsize>,
}

fn task(status: &str) -> String {
    format!(r#"{{"id":"t","contextId":"c","status":{status}}}"#)
}

async fn answer(State(script): State<Script>, body: String) -> Response {
    let id = body.split("\"id\":").nth(1).and_then(|rest| rest.split(',').next()).unwrap().to_owned();
    let rpc = |member: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},{member}}}"#);
    if body.contains("\"SendStreamingMessage\"") || body.contains("\"message/stream\"") {
        let event = |item: &String| format!("data: {}\n\n", rpc(&format!("\"result\":{item}")));
        let events: String = script.stream.iter().map(event).collect();
        return ([(header::CONTENT_TYPE, "text/event-stream")], events).into_response();
    }
    let read = || {
        let last = script.states.len() - 1;
        task(script.states[script.reads.fetch_add(1, Ordering::Relaxed).min(last)])
    };
    let member = if body.contains("\"GetTask\"") || body.contains("\"tasks/get\"") {
        format!("\"result\":{}", read())
    } else if body.contains("\"ListTasks\"") {
        format!("\"result\":{{\"tasks\":[{},{},{}]}}", read(), read(), read())
    } else if body.contains("\"SendMessage\"") {
        format!("\"result\":{{\"task\":{}}}", read())
    } else {
        // No subscriptions.
        "\"error\":{\"code\":-32004,\"message\":\"no\"}".to_owned()
    };
    ([(header::CONTENT_TYPE, "application/json")], rpc(&member)).into_response()
}

async fn client(
    stream: &[&str],
    states: &'static [&'static str],
    version: &str,
) -> (Client, Arc<AtomicUsize>) {
    let reads = Arc::new(AtomicUsize::new(0));
    let stream = stream.iter().map(|item| (*item).to_owned()).collect();
    let script = Script { stream, states, reads: Arc::clone(&reads) };
    let url = serve_router(Router::new().route("/", post(answer)).with_state(script)).await;
    let card = match version {
        "1.0" => card_for(&url),
        _ => format!(
            r#"{{"name":"scripted","description":"","version":"1","capabilities":{{"streaming":true}},"skills":[],
            "defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],"url":"{url}",
            "preferredTransport":"JSONRPC","protocolVersion":"0.3.0"}}"#
        ),
    };
    (quick().with_card(Discovered::from_json(card).unwrap()).unwrap(), reads)
}

#[tokio::test]
async fn p09_a_wait_goes_on_when_the_state_is_unknown() {
    let states = &[
        r#"{"state":"TASK_STATE_UNSPECIFIED"}"#,
        r#"{"state":"TASK_STATE_DREAMING","timestamp":"2026-01-01T00:00:00Z"}"#,
        r#"{"state":0}"#,
        r#"{"state":99}"#,
        r#"{"state":null}"#,
        // ProtoJSON leaves the default out.
        "{}",
        r#"{"timestamp":"2026-01-01T00:00:00Z"}"#,
        r#"{"state":"TASK_STATE_COMPLETED"}"#,
    ];
    let (client, reads) = client(&[], states, "1.0").await;
    let answered = client.send("go").await.unwrap();
    assert_eq!(answered.task().unwrap().status.state, TaskState::Completed);
    assert_eq!(reads.load(Ordering::Relaxed), states.len());
}

#[tokio::test]
async fn p09_a_stream_shows_unknown_states_as_they_came() {
    let update = |state: &str| {
        format!(r#"{{"statusUpdate":{{"taskId":"t","contextId":"c","status":{{"state":"{state}"}}}}}}"#)
    };
    let items = [
        format!(r#"{{"task":{}}}"#, task(r#"{"state":"TASK_STATE_UNSPECIFIED"}"#)),
        update("TASK_STATE_WORKING"),
        update("TASK_STATE_\\u0044REAMING"),
        update("TASK_STATE_COMPLETED"),
    ];
    let items: Vec<&str> = items.iter().map(String::as_str).collect();
    let (client, _) = client(&items, &["{}"], "1.0").await;
    let mut stream = client.stream("go").await.unwrap();
    let mut shown = Vec::new();
    while let Some(event) = stream.next().await {
        assert_eq!(event.unwrap().unknown_state.as_deref(), stream.unknown_state());
        shown.push((stream.task().unwrap().status.state, stream.unknown_state().map(str::to_owned)));
    }
    let named = |state, name: &str| (state, Some(name.to_owned()));
    assert_eq!(
        shown,
        [
            named(TaskState::Working, "TASK_STATE_UNSPECIFIED"),
            (TaskState::Working, None),
            named(TaskState::Working, "TASK_STATE_DREAMING"),
            (TaskState::Completed, None),
        ]
    );
    assert_eq!((stream.ending(), stream.reconnects()), (Some(Ending::Terminal), 0));
}

/// 0.3 has a name for it. The stream ends early, and the task is read until it has ended.
#[tokio::test]
async fn p09_unknown_of_0_3_is_no_end() {
    let item = r#"{"kind":"task","id":"t","contextId":"c","status":{"state":"unknown"}}"#;
    let states = &[r#"{"state":"unknown"}"#, r#"{"state":"paused"}"#, r#"{"state":"TASK_STATE_COMPLETED"}"#];
    let (client, _) = client(&[item], states, "0.3").await;
    let mut stream = client.stream("go").await.unwrap();
    let names: Vec<_> = rest(&mut stream).await.into_iter().map(|event| event.unknown_state).collect();
    // The second look showed nothing new. The last name is that of another generation, and means the same.
    assert_eq!(names, [Some("unknown".to_owned()), Some("paused".to_owned()), None]);
    assert_eq!(stream.ending(), Some(Ending::Terminal));
}

#[tokio::test]
async fn p09_lists_show_unknown_states_as_they_came() {
    let states = &[r#"{"state":"TASK_STATE_DREAMING"}"#, r#"{"state":"TASK_STATE_FAILED"}"#, "{}"];
    let (client, _) = client(&[], states, "1.0").await;
    let mut pages = client.tasks(ListTasks::default());
    let page = pages.next_page().await.unwrap().unwrap();
    let known: Vec<TaskState> = page.tasks.iter().map(|task| task.status.state).collect();
    assert_eq!(known, [TaskState::Working, TaskState::Failed, TaskState::Working]);
    let names = pages.unknown_states();
    let expected = [Some("TASK_STATE_DREAMING"), None, Some("TASK_STATE_UNSPECIFIED")];
    assert_eq!(names.iter().map(Option::as_deref).collect::<Vec<_>>(), expected);

    let mut json = Vec::new();
    v1::write_reply(&mut json, &Reply::Tasks(page));
    let shown = peer_state::put_back(std::str::from_utf8(&json).unwrap(), names);
    let at = |name: &str| shown.find(name).unwrap_or_else(|| panic!("no {name} in {shown}"));
    assert!(at("DREAMING") < at("FAILED") && at("FAILED") < at("UNSPECIFIED"), "{shown}");
    assert!(!shown.contains("WORKING"), "{shown}");
}

/// A state that is no name at all makes no sense.
#[tokio::test]
async fn p09_a_status_that_is_no_status_is_malformed() {
    for states in [&[r#"{"state":["a"]}"#][..], &[r#"{"state":true}"#], &["\"working\""], &["{}", "[]"][1..]]
    {
        let (client, _) = client(&[], states, "1.0").await;
        let error = client.get(&TaskId::parse("t").unwrap()).await.unwrap_err();
        assert!(error.transport().is_some(), "{error}");
    }
}
