//! Sending, reading, listing, histories, conversations, polling.

use serde_json::json;

use super::{Correction, Kind, is_prose, relevel, replace_in_expect, step};
use crate::acts::document::{Level, Test};

pub(super) const LIST: &[Correction] = &[
    Correction::native(
        &["CORE-SEND-004"],
        "the unsupported type is in `metadata.contentType`, which A2A does not use: a correct agent accepts the message",
        "the type is the part's `mediaType`; skipped on agents that accept every type",
        "v1.send.media-type",
        |test| {
            let params = test.steps.first().and_then(|step| step.params.as_ref());
            params.is_some_and(|params| params.pointer("/message/parts/0/metadata/contentType").is_some())
        },
    ),
    Correction::of(
        Kind::Fix,
        &["CORE-LIST-002"],
        "allows `artifacts: null`, and looks at the first task only",
        "`artifacts` is absent, on every task",
        every_task_without_artifacts,
    ),
    Correction::of(
        Kind::Fix,
        &["CORE-LIST-003"],
        "the name says an empty token on the last page, the check takes any text",
        "the token of the last page is empty; `pageSize` and `totalSize` are there",
        last_page,
    ),
    Correction::of(
        Kind::Fix,
        &["CORE-HIST-002"],
        "level should",
        "must: more than historyLength messages must not be returned (3.2.4)",
        |test| relevel(test, &[Level::Should], Level::Must),
    ),
    Correction::of(
        Kind::Fix,
        &["CORE-HIST-003"],
        "demands that `history` is absent",
        "leaving it out is a recommendation: an empty list is right, too",
        |test| {
            let right = json!({"any_of": [{"absent": true}, {"count": 0}]});
            let wrong = json!({"absent": true});
            step(test, "send")
                .is_some_and(|step| replace_in_expect(step, "/body/task/history", &wrong, right))
        },
    ),
    Correction::native(
        &["CORE-HIST-005"],
        "the third message of the history must be the user's third, but agents may keep their own in between",
        "the user's messages that are kept are in the order they were sent",
        "v1.history.order",
        |test| {
            let mut assertions = test.steps.iter().flat_map(|step| &step.assertions);
            assertions.any(|found| found.any.as_ref().is_some_and(|any| any.path == "history[2].parts[*]"))
        },
    ),
    Correction::of(
        Kind::Fix,
        &["CORE-HIST-006"],
        "turn 2 may complete the task, and turn 3 is then sent to an ended one",
        "turn 2 ends in input-required",
        |test| {
            let wrong = json!({"one_of": ["TASK_STATE_INPUT_REQUIRED", "TASK_STATE_COMPLETED"]});
            let right = json!("TASK_STATE_INPUT_REQUIRED");
            step(test, "turn2")
                .is_some_and(|step| replace_in_expect(step, "/body/task/status/state", &wrong, right))
        },
    ),
    Correction::note(
        "CORE-MULTI-003",
        &["CORE-MULTI-003"],
        "the task has ended, and the context is that of another task: two errors would be correct",
        "any error",
    ),
    Correction::note(
        "CORE-MULTI-006",
        &["CORE-MULTI-006"],
        "A2A names no code for a wrong context",
        "any error",
    ),
    Correction::native(
        &["CORE-CTX-001"],
        "demands that a client's contextId is refused, but an agent may accept it",
        "refused, or kept unchanged; a failure only if the agent replaces it by another one",
        "v1.contexts.kept-or-refused",
        is_prose,
    ),
    Correction::note(
        "CORE-EXEC-001",
        &["CORE-EXEC-001"],
        "wants an artifact, which the table of behaviours does not mention",
        "`tck-long-running` ends with at least one artifact",
    ),
    Correction::note(
        "DUPLICATES",
        &[
            "CORE-SEND-002",
            "CORE-ERR-004",
            "CORE-CANCEL-002",
            "CORE-ERR-003",
            "CORE-GET-002",
            "CORE-HIST-001",
            "SEC-PUSH-001",
            "PUSH-DELIV-001",
            "SEC-EXTCARD-001",
            "SEC-EXTCARD-004",
            "CORE-CAP-001",
            "PUSH-CFG-004",
        ],
        "the same thing is tested twice, under two ids",
        "both are run and counted",
    ),
];

fn every_task_without_artifacts(test: &mut Test) -> bool {
    let Some(step) = step(test, "list") else { return false };
    let Some(tasks) = step.expect.as_mut().and_then(|expect| expect.pointer_mut("/body/tasks")) else {
        return false;
    };
    if !tasks["items"].is_array() {
        return false;
    }
    tasks["items"] = json!({"contextId": "{{send.contextId}}", "artifacts": {"absent": true}});
    let listed =
        json!({"source": "{{list.response}}", "any": {"path": "tasks[*].id", "match": "{{send.taskId}}"}});
    step.assertions.extend(serde_json::from_value(listed));
    true
}

fn last_page(test: &mut Test) -> bool {
    let Some(step) = step(test, "list") else { return false };
    let body = step.expect.as_mut().and_then(|expect| expect.pointer_mut("/body"));
    let Some(body) = body.filter(|body| body["nextPageToken"] == json!({"type": "string"})) else {
        return false;
    };
    // The context is new, so all its tasks fit on one page.
    body["nextPageToken"] = json!("");
    body["totalSize"] = json!({"type": "number", "gte": 1});
    body["pageSize"] = json!({"type": "number", "gte": 1});
    true
}
