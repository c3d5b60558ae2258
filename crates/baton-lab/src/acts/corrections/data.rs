//! Parts, names, times; content types and versions.

use serde_json::{Value, json};

use super::{Correction, Kind, is_prose, replace_in_expect, step};
use crate::acts::document::Test;

pub(super) const LIST: &[Correction] = &[
    Correction::of(
        Kind::Fix,
        &["DM-ART-003"],
        "a part `file{name, mediaType}`, which 1.0 does not have",
        "a part with `raw`, `filename` and `mediaType`",
        |test| {
            let text = json!({"type": "string"});
            replace_part(test, "file", json!({"raw": text, "filename": text, "mediaType": text}))
        },
    ),
    Correction::of(
        Kind::Fix,
        &["DM-ART-004"],
        "a part `fileUrl{url, name}`, which 1.0 does not have",
        "a part with `url` and `filename`",
        |test| {
            let text = json!({"type": "string"});
            replace_part(test, "fileUrl", json!({"url": text, "filename": text}))
        },
    ),
    Correction::native(
        &["DM-FMT-001"],
        "looks for snake_case names at the top of the envelope only, where there are never any",
        "looks at every level, except inside `metadata` and `data`, which are the user's",
        "v1.names.answers",
        |test| {
            let expect = test.steps.first().and_then(|step| step.expect.as_ref());
            expect.is_some_and(|expect| expect.pointer("/body/context_id").is_some())
        },
    ),
    Correction::of(
        Kind::Fix,
        &["DM-FMT-003"],
        "a message must have no `contextId`, though a server's messages should carry one",
        "no `taskId`; `contextId` absent or not empty",
        |test| {
            let wrong = json!({"absent": true});
            let right = json!({"any_of": [{"absent": true}, {"matches": ".+"}]});
            step(test, "send")
                .is_some_and(|step| replace_in_expect(step, "/body/message/contextId", &wrong, right))
        },
    ),
    Correction::of(
        Kind::Fix,
        &["DM-SERIAL-001"],
        "lets every time zone through",
        "times end in `Z`",
        |test| {
            let place = step(test, "send").and_then(|step| {
                step.expect.as_mut()?.pointer_mut("/body/task/status/timestamp")?.as_object_mut()
            });
            let Some(place) = place.filter(|place| !place.contains_key("ends_with")) else { return false };
            place.insert("ends_with".to_owned(), json!("Z"));
            true
        },
    ),
    Correction::native(
        &["DM-SERIAL-002"],
        "speaks of a JSON Schema, but the protocol buffers are the rule",
        "names, types and required members are checked by a table made from them",
        "v1.objects.reply",
        is_prose,
    ),
    Correction::native(
        &["VER-NEG-002"],
        "a request without a version must succeed, but it means 0.3, which has no SendMessage",
        "success, VersionNotSupportedError or MethodNotFoundError; a note says which",
        "v1.versions.absent",
        |test| {
            let expect = test.steps.first().and_then(|step| step.expect.as_ref());
            expect.is_some_and(|expect| expect.pointer("/body/result/task").is_some())
        },
    ),
    Correction::of(
        Kind::Fix,
        &["REST-PD-001"],
        "errors as RFC 9457 problem details",
        "`{\"error\": {code, status, message, details}}` with an ErrorInfo",
        google_error,
    ),
    Correction::native(
        &["REST-CT-001"],
        "the header is named only in prose",
        "application/a2a+json; application/json is accepted with a note",
        "v1.rpc.a2a-json",
        is_prose,
    ),
    Correction::of(
        Kind::Fix,
        &["JSONRPC-CT-001"],
        "the content type is never looked at",
        "application/json",
        |test| {
            let Some(expect) = test.steps.first_mut().and_then(|step| step.expect.as_mut()) else {
                return false;
            };
            let Some(members) = expect.as_object_mut().filter(|all| !all.contains_key("headers")) else {
                return false;
            };
            members
                .insert("headers".to_owned(), json!({"content-type": {"starts_with": "application/json"}}));
            true
        },
    ),
];

/// Replaces the description of a kind of part that does not exist.
fn replace_part(test: &mut Test, wrong: &str, right: Value) -> bool {
    let assertions = test.steps.iter_mut().flat_map(|step| &mut step.assertions);
    let mut places = assertions.filter_map(|assertion| assertion.any.as_mut()).map(|any| &mut any.matches);
    match places.find(|matches| matches.get(wrong).is_some()) {
        Some(place) => {
            *place = right;
            true
        }
        None => false,
    }
}

fn google_error(test: &mut Test) -> bool {
    let body = test.steps.first_mut().and_then(|step| step.expect.as_mut()?.pointer_mut("/body"));
    let Some(body) = body.filter(|body| body.get("title").is_some()) else { return false };
    *body = json!({"error": {
        "code": 404,
        "status": "NOT_FOUND",
        "message": {"type": "string"},
        "details": {"count_gte": 1}}});
    let step = test.steps.first_mut().expect("its body was just there");
    let id = step.id.clone().unwrap_or_else(|| "step-1".to_owned());
    let named = json!({"source": format!("{{{{{id}.response}}}}"), "any": {
        "path": "error.details[*]",
        "match": {"@type": {"ends_with": "google.rpc.ErrorInfo"}, "reason": "TASK_NOT_FOUND"}}});
    step.assertions.extend(serde_json::from_value(named));
    true
}
