//! Where the files leave the published grammar (`F`), and where the draft's own text is wrong (`D`).

use serde_json::{Value, json};

use super::{Correction, Kind, Remedy};
use crate::acts::document::Test;
use crate::acts::reading;
use crate::wire::request::Operation;

pub(super) const LIST: &[Correction] = &[
    Correction::note(
        "F1",
        &[],
        "`set_push_notification_config` and similar names are not operations of the draft",
        "read as create_push_config, get_push_config, list_push_configs, delete_push_config",
    ),
    Correction::note(
        "F2",
        &["CARD-EXT-001", "SEC-EXTCARD-003"],
        "`get_agent_card` with `extended: true`",
        "read as get_extended_agent_card",
    ),
    Correction::note(
        "F3",
        &[],
        "`expect_error` holds the error's name in `code`, or nothing, or `data`",
        "`code` is read like `error_type`, nothing as any error, `data` as the error's details",
    ),
    Correction::note(
        "F4",
        &[],
        "the operator `items` is not in the grammar",
        "a list is compared by position, a map applies to each element",
    ),
    Correction::note(
        "F5",
        &["JSONRPC-SSE-001"],
        "`expect_stream` on a raw step",
        "the events are the JSON of each data line",
    ),
    Correction::note(
        "F6",
        &["STREAM-SUB-001", "STREAM-SUB-003", "CORE-MULTI-006"],
        "`expect` without `body`, with `error: {exists: true}`, with `status: error`",
        "members of the body may be directly under `expect`; the two other forms mean any error",
    ),
    Correction::note(
        "F7",
        &["STREAM-SSE-004"],
        "assertion maps inside `one_of`",
        "a map there is matched as an assertion",
    ),
    Correction::note(
        "F8",
        &[],
        "stream assertions without the name of the event's wrapper",
        "an assertion that names no wrapper applies to the wrapped object",
    ),
    Correction::note(
        "F9",
        &[],
        "`{{SUT_BASE_URL}}` in the master file has no defined form",
        "stands for the agent's address, as `{{env.A2A_BASE_URL}}` does",
    ),
    Correction::note(
        "F10",
        &["SEC-AUTH-002", "SEC-AUTH-003", "SEC-EXTCARD-002", "SEC-PUSH-001", "SEC-PUSH-002"],
        "`insufficientAuthToken`, `otherUserTaskId` and, in one file, `webhookUrl` are never given a value",
        "given with --var NAME=VALUE; skipped otherwise",
    ),
    Correction::note(
        "F11",
        &[],
        "the tag `runner-special` marks a check that is only described in text",
        "native checks, named at each test below",
    ),
    Correction {
        id: "F12",
        kind: Kind::Fix,
        tests: &[],
        wrong: "streaming tests run on agents that declare no streaming",
        right: "they need `capabilities.streaming`",
        remedy: Remedy::Change(needs_streaming),
    },
    Correction::note(
        "F13",
        &["SEC-AUTH-001", "SEC-AUTH-002", "SEC-AUTH-003", "SEC-AUTH-004", "SEC-AUTH-006"],
        "`capabilities.authentication` is not a capability: as written the tests can never run",
        "true when the card's security requirements have no empty alternative",
    ),
    Correction {
        id: "F14",
        kind: Kind::Fix,
        tests: &[],
        wrong: "raw SendMessage bodies without the required `messageId`",
        right: "a new one is added",
        remedy: Remedy::Change(messages_have_ids),
    },
    Correction {
        id: "F15",
        kind: Kind::Fix,
        tests: &[],
        wrong: "`taskId` and `contextId` beside `message`, where A2A has no such members",
        right: "moved into `message`",
        remedy: Remedy::Change(ids_are_in_the_message),
    },
    Correction::note("F16", &[], "the draft is 0.1.0, the files say 1.0", "every 1.x is read"),
    Correction::note(
        "D1",
        &[],
        "methods `CreatePushNotificationConfig` and so on",
        "`…TaskPushNotificationConfig(s)`",
    ),
    Correction::note(
        "D2",
        &[],
        "REST paths `/tasks/{id}/pushNotifications`",
        "`/tasks/{id}/pushNotificationConfigs`",
    ),
    Correction::note(
        "D3",
        &[],
        "no wire form for the extended card",
        "GetExtendedAgentCard, GET /extendedAgentCard",
    ),
    Correction::note("D4", &[], "push parameters are nested", "one flat object, as 1.0 has it"),
    Correction::note("D5", &[], "`cursor`", "`pageToken`"),
    Correction::note("D6", &[], "parts with `file{…}`", "`raw` or `url`, with `filename` and `mediaType`"),
    Correction::note(
        "D7",
        &[],
        "streams end with a Task or with `final: true`",
        "1.0 has no `final`; any event may be the last",
    ),
    Correction::note(
        "D8",
        &[],
        "a closed graph of state changes",
        "two things are refused: a way back to submitted, and leaving a terminal state",
    ),
    Correction::note("D9", &[], "an example of `expect` without `body`", "both forms are read"),
    Correction::note("D10", &[], "section numbers that are not A2A's", "not looked at"),
    Correction::note("D11", &[], "subscribing is GET alone", "GET; POST where the agent does not know GET"),
    Correction::note(
        "D12",
        &[],
        "a variable without a value is a failure, though only the user can know some",
        "those of F10 skip the test, any other is an error",
    ),
];

fn needs_streaming(test: &mut Test) -> bool {
    let streams = test.steps.iter().any(|step| {
        let operation = step.operation.as_deref().and_then(reading::operation);
        let subscribes = operation == Some(Operation::SubscribeToTask);
        step.expect_stream.is_some() || (subscribes && test.id.starts_with("STREAM-"))
    });
    let capabilities = &mut test.preconditions.capabilities;
    if !streams || capabilities.contains_key("streaming") {
        return false;
    }
    capabilities.insert("streaming".to_owned(), json!(true));
    true
}

fn messages_have_ids(test: &mut Test) -> bool {
    let mut found = false;
    for step in &mut test.steps {
        let body = step.raw.as_mut().and_then(|raw| raw.body.as_mut());
        let Some(body) = body.filter(|body| sends(body)) else { continue };
        let message = body.pointer_mut("/params/message").and_then(Value::as_object_mut);
        if let Some(message) = message
            && !message.contains_key("messageId")
        {
            message.insert("messageId".to_owned(), json!("{{$uuid}}"));
            found = true;
        }
    }
    found
}

fn ids_are_in_the_message(test: &mut Test) -> bool {
    let mut found = false;
    for step in &mut test.steps {
        let operation = step.operation.as_deref().and_then(reading::operation);
        let sends_message =
            matches!(operation, Some(Operation::SendMessage | Operation::SendStreamingMessage));
        if let Some(params) = step.params.as_mut().filter(|_| sends_message) {
            found |= move_ids(params);
        }
        let body = step.raw.as_mut().and_then(|raw| raw.body.as_mut());
        if let Some(params) = body.filter(|body| sends(body)).and_then(|body| body.get_mut("params")) {
            found |= move_ids(params);
        }
    }
    found
}

fn sends(body: &Value) -> bool {
    body["method"] == "SendMessage" || body["method"] == "SendStreamingMessage"
}

fn move_ids(params: &mut Value) -> bool {
    let Some(members) = params.as_object_mut().filter(|members| members.contains_key("message")) else {
        return false;
    };
    let ids: Vec<_> =
        ["taskId", "contextId"].into_iter().filter_map(|name| members.remove_entry(name)).collect();
    let found = !ids.is_empty();
    if let Some(message) = members.get_mut("message").and_then(Value::as_object_mut) {
        message.extend(ids);
    }
    found
}
