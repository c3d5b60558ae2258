//! Errors: names, codes, what they hold.

use serde_json::json;

use super::{Correction, Kind, is_prose, relevel, replace_in_expect};
use crate::acts::document::{Level, Test};

pub(super) const LIST: &[Correction] = &[
    Correction::of(
        Kind::Fix,
        &["CORE-CAP-001", "PUSH-CFG-004"],
        "UnsupportedOperationError where push notifications are off; levels must and may for one rule",
        "PushNotificationNotSupportedError; must",
        push_is_off,
    )
    .named("PUSH-OFF"),
    Correction::of(
        Kind::Fix,
        &["CORE-CAP-002"],
        "level should",
        "must: an agent without streaming must refuse it",
        |test| relevel(test, &[Level::Should], Level::Must),
    ),
    Correction::of(
        Kind::Fix,
        &["CORE-ERR-002"],
        "allows TaskNotCancelableError for a task that is not there",
        "TaskNotFoundError",
        |test| {
            let place = test.steps.first_mut().and_then(|step| step.expect_error.as_mut()?.get_mut("code"));
            let Some(place) = place.filter(|place| place.is_object()) else { return false };
            *place = json!("TaskNotFoundError");
            true
        },
    ),
    Correction::note(
        "CORE-ERR-005",
        &["CORE-ERR-005"],
        "the wording of a message is guessed at",
        "kept, at level should",
    ),
    Correction::note(
        "CORE-ERR-006",
        &["CORE-ERR-006"],
        "allows -32602; a request without `method` is an invalid one, -32600",
        "both are accepted",
    ),
    Correction::of(
        Kind::Fix,
        &["CORE-ERR-007"],
        "`data` must be an object, which other tests of the same file contradict",
        "a list of objects that each have `@type`",
        |test| {
            let place = test.steps.first_mut().and_then(|step| step.expect_error.as_mut()?.get_mut("data"));
            let Some(place) = place.filter(|place| **place == json!({"type": "object"})) else {
                return false;
            };
            *place = json!({"type": "array", "count_gte": 1, "items": {"@type": {"type": "string"}}});
            true
        },
    ),
    Correction::of(
        Kind::Soften,
        &["CORE-ERR-008"],
        "error details must be there, with `@type`",
        "details may be missing (1.0.1 recommends them); each that is there has `@type`",
        |test| {
            let right = json!({"any_of": [{"absent": true}, {"type": "array", "items": {"@type": {"type": "string"}}}]});
            let wrong = json!({"type": "array", "count_gte": 1, "items": [{"@type": {"type": "string"}}]});
            test.steps
                .first_mut()
                .is_some_and(|step| replace_in_expect(step, "/body/error/data", &wrong, right))
        },
    ),
    Correction::of(
        Kind::Soften,
        &["JSONRPC-ERR-003"],
        "an ErrorInfo must be there: so in 1.0.0",
        "should, as in 1.0.1 for JSON-RPC",
        |test| relevel(test, &[Level::Must], Level::Should),
    ),
    Correction::of(
        Kind::Fix,
        &[
            "JSONRPC-ERR-001",
            "JSONRPC-ERR-002",
            "JSONRPC-ERR-003",
            "CORE-ERR-006",
            "CORE-ERR-008",
            "VER-NEG-001",
        ],
        "HTTP 200, though A2A fixes no status for JSON-RPC errors",
        "200 or 4xx, with the right body",
        |test| {
            let right = json!({"any_of": [200, {"gte": 400, "lt": 500}]});
            test.steps.first_mut().is_some_and(|step| replace_in_expect(step, "/status", &json!(200), right))
        },
    )
    .named("RPC-STATUS"),
    Correction::native(
        &["CORE-ERR-009"],
        "looks only whether there is a message",
        "a foreign task and a missing one are compared; needs --var otherUserTaskId=…",
        "acts.foreign-task",
        is_prose,
    ),
];

fn push_is_off(test: &mut Test) -> bool {
    let places = test.steps.iter_mut().filter_map(|step| step.expect_error.as_mut()?.get_mut("code"));
    let mut found = false;
    for place in places.filter(|place| **place == json!("UnsupportedOperationError")) {
        *place = json!("PushNotificationNotSupportedError");
        found = true;
    }
    relevel(test, &[Level::Should, Level::May], Level::Must) || found
}
