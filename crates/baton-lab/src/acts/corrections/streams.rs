//! Streams.

use serde_json::json;

use super::{Correction, Kind, is_prose, step};

pub(super) const LIST: &[Correction] = &[
    Correction::of(
        Kind::Fix,
        &["STREAM-SSE-004"],
        "lets the first event of a subscription be a status update",
        "it is the task",
        |test| {
            let event =
                step(test, "subscribe").and_then(|step| step.expect_stream.as_mut()?.events.first_mut());
            let Some(event) = event.filter(|event| event.contains_key("one_of")) else { return false };
            event.remove("one_of");
            event.insert("task".to_owned(), json!({"status": {"exists": true}}));
            true
        },
    ),
    Correction::note(
        "STREAM-SUB-002",
        &["STREAM-SUB-002"],
        "named after subscribing, but uses SendStreamingMessage",
        "run as it is; our own suites subscribe",
    ),
    Correction::of(
        Kind::Fix,
        &["STREAM-SUB-003"],
        "any error is right",
        "UnsupportedOperationError",
        |test| {
            let Some(step) = step(test, "subscribe").filter(|step| step.expect.is_some()) else {
                return false;
            };
            step.expect = None;
            step.expect_error = Some(json!({"error_type": "UnsupportedOperationError"}));
            true
        },
    ),
    Correction::of(
        Kind::Fix,
        &["STREAM-MSG-001"],
        "at least one event",
        "exactly one: a message, and then the end",
        |test| {
            let stream = step(test, "stream").and_then(|step| step.expect_stream.as_mut());
            let Some(stream) = stream.filter(|stream| stream.max_count.is_none()) else { return false };
            stream.max_count = Some(1);
            true
        },
    ),
    Correction::native(
        &["STREAM-MULTI-001"],
        "the second stream is prose",
        "two subscriptions show the same events",
        "v1.watchers.same-events",
        is_prose,
    ),
    Correction::native(
        &["STREAM-MULTI-002"],
        "the second stream is prose",
        "one of two subscriptions is closed, the other goes on to the end",
        "v1.watchers.one-leaves",
        is_prose,
    ),
    Correction::native(
        &["STREAM-RESUB-001"],
        "the cut is prose",
        "a subscription is cut after its first event; the next starts with the task and goes on to the end",
        "v1.watchers.comes-back",
        is_prose,
    ),
    Correction::note(
        "GRPC-STREAM-002",
        &["GRPC-STREAM-002"],
        "named after a stream, but has none",
        "run as it is",
    ),
];
