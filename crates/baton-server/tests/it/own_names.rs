//! S-08, rulings 2 and 3. Every message a caller reads speaks in the names of the caller's generation: whatever text a
//! server answers with, it holds no method, member or value that only other generations know.

use baton_server::engine::options::Options;
use serde_json::{Value, json};

use crate::agents::obedient;
use crate::asking::{Ask, FACES, Face, Said, answer, ask_with, said};
use crate::error_rows::rested;
use crate::harness::{serve, serve_agent, with_agent};
use crate::speakers::{read, request, with_card};
use crate::stage::connections;

/// Words of 1.0 alone: no caller of an older generation has read them anywhere.
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
/// Of 0.3 and 0.1.
const OLDER: &[&str] = &["tasks/get", "tasks/cancel", "tasks/resubscribe", "tasks/list"];
/// Of 0.3 and 1.0.
const LATER: &[&str] = &["contextId", "messageId", "taskId", "configuration.", "message.kind"];
/// The spelling of values in 1.0 and in the HTTP+JSON of 0.3.
const PROTO: &[&str] = &["ROLE_", "TASK_STATE_"];

/// Fails on a word of another generation, in the message and in the violations told with it.
#[track_caller]
pub(crate) fn check(face: Face, error: &Value) {
    let foreign: &[&[&str]] = match face {
        Face::V1Rpc | Face::V1Rest => &[OF_V0_3, OF_V0_1, OLDER],
        Face::V03Rpc => &[OF_V1, OF_V0_1, PROTO],
        Face::V03Rest => &[OF_V1, OF_V0_1],
        Face::V01 => &[OF_V1, OF_V0_3, LATER, PROTO],
    };
    let violations =
        ["data", "details"].iter().flat_map(|list| error[*list].as_array().into_iter().flatten());
    let violations = violations.flat_map(|detail| detail["fieldViolations"].as_array().into_iter().flatten());
    let texts = violations.flat_map(|it| [&it["field"], &it["description"]]).chain([&error["message"]]);
    for text in texts.filter_map(Value::as_str) {
        for word in foreign.iter().flat_map(|words| words.iter()) {
            assert!(!text.contains(word), "{face:?} reads {word:?} in {text:?}");
        }
        assert!(text.chars().all(|it| it != '\u{F8FF}'), "{face:?} reads a mark in {text:?}");
    }
}

/// Each text that speaks of a member or a method, provoked in every generation and binding.
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
    for face in FACES {
        let ended = rested(&server, face, "hello").await;
        let asking = rested(&server, face, "ask").await;
        let to = |task: &str| Said { task: Some(task.to_owned()), ..said("more") };
        let elsewhere = Said { context: Some("another".to_owned()), ..to(&asking) };
        for (server, ask, told) in [
            (&server, Ask::Subscribe(ended.clone()), &["read it with GetTask", "read it with tasks/get"][..]),
            (&server, Ask::Cancel(ended.clone()), &["cannot be canceled"]),
            (&server, Ask::Send(to(&ended)), &["has ended"]),
            (
                &server,
                Ask::Send(elsewhere),
                &["message.contextId is not the context of the task named by message.taskId"],
            ),
            (&server, Ask::Send(Said { agent: true, ..said("x") }), &["must be ROLE_USER", "must be user"]),
            (&silent, Ask::Stream(said("x")), &["use SendMessage", "use message/send", "use tasks/send"]),
            (&silent, Ask::Subscribe("x".to_owned()), &["use GetTask", "use tasks/get"]),
            (
                &text_only,
                Ask::Send(Said { picture: true, ..said("x") }),
                &["message.parts[0]", "message.content[0]"],
            ),
            (&no_parts, Ask::Send(said("x")), &["message.parts holds", "message.content holds"]),
            (&no_streams, Ask::Stream(said("x")), &["poll with GetTask", "poll with tasks/get"]),
        ] {
            let Some(response) = ask_with(server, face, &[], &ask).await else { continue };
            let got = read(response).await;
            let error = &got.body["error"];
            if face == Face::V01 && error.is_null() {
                // Ruling 3: there a session that differs is ignored.
                assert!(matches!(&ask, Ask::Send(said) if said.context.is_some()), "{ask:?}: {}", got.body);
                continue;
            }
            let text = error["message"].as_str().unwrap_or_else(|| panic!("{face:?} {ask:?}: {}", got.body));
            assert!(told.iter().any(|words| text.contains(words)), "{face:?} {ask:?}: {text}");
            check(face, error);
        }
        let got = answer(&server, face, &Ask::Cancel("none".to_owned())).await;
        check(if face == Face::V01 { Face::V03Rpc } else { face }, &got.body["error"]);
    }
    // What only 0.1's own door says.
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {}});
    let headers = [("content-type", "application/json")];
    let got =
        read(request(&server, http::Method::POST, "/subscribe", &headers, body.to_string()).await).await;
    assert!(got.body["error"]["message"].as_str().unwrap().contains("takes tasks/sendSubscribe only"));
    check(Face::V01, &got.body["error"]);
}
