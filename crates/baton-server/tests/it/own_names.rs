//! S-08, rulings 2 and 3. Error texts use the names of the caller's generation: they contain no method, member or value that
//! only other generations have.

use baton_server::Options;
use serde_json::{Value, json};

use crate::agents::obedient;
use crate::asking::{ALL_BINDINGS, Ask, Interface, Sending, answer, ask_with, sending};
use crate::error_rows::rested;
use crate::fixtures::connections;
use crate::harness::{serve, serve_agent, with_agent};
use crate::speakers::{read, request, with_card};

/// Names that only 1.0 has.
const OF_V1: &[&str] = &[
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "ListTasks",
    "CancelTask",
    "SubscribeToTask",
    "TaskPushNotificationConfig",
    "GetExtendedAgentCard",
    "returnImmediately",
];
const OF_V0_3: &[&str] =
    &["message/send", "message/stream", "pushNotificationConfig/", "agent/get", "X-A2A-"];
const OF_V0_1: &[&str] = &["tasks/send", "pushNotification/", "sessionId"];
/// Names of 0.3 and 0.1.
const OLDER: &[&str] = &["tasks/get", "tasks/cancel", "tasks/resubscribe", "tasks/list"];
/// Names of 0.3 and 1.0.
const LATER: &[&str] = &["contextId", "messageId", "taskId", "configuration.", "message.kind"];
/// Prefixes of enum values in 1.0 and in the HTTP+JSON of 0.3.
const PROTO: &[&str] = &["ROLE_", "TASK_STATE_"];

/// Fails on a name of another generation, in the message or in its field violations.
#[track_caller]
pub(crate) fn check(interface: Interface, error: &Value) {
    let foreign: &[&[&str]] = match interface.in_json() {
        Interface::V1Rpc | Interface::V1Rest => &[OF_V0_3, OF_V0_1, OLDER],
        Interface::V03Rpc => &[OF_V1, OF_V0_1, PROTO],
        Interface::V03Rest => &[OF_V1, OF_V0_1],
        _ => &[OF_V1, OF_V0_3, LATER, PROTO],
    };
    let violations =
        ["data", "details"].iter().flat_map(|list| error[*list].as_array().into_iter().flatten());
    let violations = violations.flat_map(|detail| detail["fieldViolations"].as_array().into_iter().flatten());
    let texts = violations.flat_map(|it| [&it["field"], &it["description"]]).chain([&error["message"]]);
    for text in texts.filter_map(Value::as_str) {
        for word in foreign.iter().flat_map(|words| words.iter()) {
            assert!(!text.contains(word), "{interface:?} reads {word:?} in {text:?}");
        }
        assert!(text.chars().all(|it| it != '\u{F8FF}'), "{interface:?} reads a mark in {text:?}");
    }
}

/// Provokes each error text that names a member or a method, in every generation and binding.
#[tokio::test]
async fn s08_errors_speak_the_callers_generation() {
    let server = serve_agent(obedient).await;
    let silent = serve(with_card(|card| card.capabilities.streaming = Some(false), obedient)).await;
    let text_only = serve(with_card(|_| (), obedient)).await;
    let mut options = Options::default();
    options.max_parts = 0;
    let no_parts = serve(with_agent(obedient).options(options)).await;
    let no_streams = with_agent(obedient).connections(connections(|it| it.max_streams = 0));
    let no_streams = serve(no_streams).await;
    for interface in ALL_BINDINGS {
        let ended = rested(&server, interface, "hello").await;
        let asking = rested(&server, interface, "ask").await;
        let to = |task: &str| Sending { task: Some(task.to_owned()), ..sending("more") };
        let elsewhere = Sending { context: Some("another".to_owned()), ..to(&asking) };
        for (server, ask, told) in [
            (&server, Ask::Subscribe(ended.clone()), &["read it with GetTask", "read it with tasks/get"][..]),
            (&server, Ask::Cancel(ended.clone()), &["cannot be canceled"]),
            (&server, Ask::Send(to(&ended)), &["has ended"]),
            (
                &server,
                Ask::Send(elsewhere),
                &["message.contextId is not the context of the task named by message.taskId"],
            ),
            (
                &server,
                Ask::Send(Sending { agent: true, ..sending("x") }),
                &["must be ROLE_USER", "must be user"],
            ),
            (&silent, Ask::Stream(sending("x")), &["use SendMessage", "use message/send", "use tasks/send"]),
            (&silent, Ask::Subscribe("x".to_owned()), &["use GetTask", "use tasks/get"]),
            (
                &text_only,
                Ask::Send(Sending { picture: true, ..sending("x") }),
                &["message.parts[0]", "message.content[0]"],
            ),
            (&no_parts, Ask::Send(sending("x")), &["message.parts holds", "message.content holds"]),
            (&no_streams, Ask::Stream(sending("x")), &["poll with GetTask", "poll with tasks/get"]),
        ] {
            let Some(response) = ask_with(server, interface, &[], &ask).await else { continue };
            let got = read(response).await;
            let error = &got.body["error"];
            if interface == Interface::V01 && error.is_null() {
                // Ruling 3: in 0.1 a different session is ignored.
                assert!(matches!(&ask, Ask::Send(sent) if sent.context.is_some()), "{ask:?}: {}", got.body);
                continue;
            }
            let text =
                error["message"].as_str().unwrap_or_else(|| panic!("{interface:?} {ask:?}: {}", got.body));
            assert!(told.iter().any(|words| text.contains(words)), "{interface:?} {ask:?}: {text}");
            check(interface, error);
        }
        let got = answer(&server, interface, &Ask::Cancel("none".to_owned())).await;
        check(if interface == Interface::V01 { Interface::V03Rpc } else { interface }, &got.body["error"]);
    }
    // Errors of the `/subscribe` path of 0.1.
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {}});
    let headers = [("content-type", "application/json")];
    let got =
        read(request(&server, http::Method::POST, "/subscribe", &headers, body.to_string()).await).await;
    assert!(got.body["error"]["message"].as_str().unwrap().contains("takes tasks/sendSubscribe only"));
    check(Interface::V01, &got.body["error"]);
}
