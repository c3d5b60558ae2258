//! What 0.3 and 0.1 have in common and 1.0 does not: `final` on the last event, and the forms of artifact updates.

pub(super) mod streams;

use serde_json::{Value, json};

use super::shape::fault;
use super::talk::{Say, skip};
use super::{Done, differs, fail};
use crate::acts::assertion::{Mismatch, show};
use crate::acts::stream::{is_terminal, state_of};
use crate::generation::{Binding, Generation};
use crate::run::Bench;
use crate::wire::request::Operation;
use crate::wire::sse::Event;
use crate::wire::{Answer, Probe, Request, WireError};

/// The card as older clients request it: without a version, at the path of their generation. Cards of 0.2 were at the
/// path of 0.1.
pub(super) async fn card(bench: &Bench, probe: &Probe) -> Done<(Answer, Value)> {
    let usual = bench.card_url();
    let earlier = format!("{}/.well-known/agent.json", bench.target().base);
    let mut answer = fetch(probe, &usual).await?;
    if answer.status() == 404 && usual != earlier && bench.target().legacy_card.is_some() {
        bench.note("the card is at /.well-known/agent.json alone, where 0.2 had it");
        answer = fetch(probe, &earlier).await?;
    }
    match &answer {
        Answer::Reply { status: 200, body: Some(card @ Value::Object(_)), .. } => {
            Ok((answer.clone(), card.clone()))
        }
        other => Err(differs("HTTP 200 with the card as a JSON object", other.summary())),
    }
}

async fn fetch(probe: &Probe, url: &str) -> Done<Answer> {
    let (method, url) = ("GET".to_owned(), url.to_owned());
    let request = Request { method, url, headers: Vec::new(), body: None, streams: false };
    // The card is plain JSON, whatever the binding.
    let answer = probe.ask(Generation::V0_1, Binding::Rest, &request).await;
    answer.map_err(|error| fail(format!("no answer to the request for the card: {error}")))
}

pub(super) fn list<'a>(object: &'a Value, member: &str) -> &'a [Value] {
    object[member].as_array().map_or(&[], Vec::as_slice)
}

/// True if the agent refuses the request without an internal error. HTTP+JSON of 0.3 uses 501 for unsupported
/// operations.
pub(super) fn is_refusal(error: &WireError) -> bool {
    (error.status < 500 || error.status == 501) && error.name.as_deref() != Some("InternalError")
}

/// Cancels a task. A server need not support canceling running tasks; then the case is skipped.
pub(super) async fn cancel(bench: &Bench, id: &Value) -> Done<Value> {
    match bench.call(Operation::CancelTask, &json!({ "id": id })).await? {
        Answer::Reply { root: Some(root), .. } => Ok(root),
        Answer::Error(error)
            if ["TaskNotCancelableError", "UnsupportedOperationError"]
                .iter()
                .any(|name| bench.is_named(&error, name)) =>
        {
            Err(skip("the agent does not cancel tasks that are at work, which is allowed"))
        }
        other => Err(differs("the canceled task", other.summary())),
    }
}

/// A stream that was read to its end: the id of the request that opened it, the frames and their objects.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) request_id: Value,
    pub(super) frames: Vec<Event>,
    pub(super) events: Vec<Value>,
}

/// The whole stream of a send; one that does not open or does not close is a failure.
pub(super) async fn streamed(bench: &Bench, say: &Say) -> Done<Seen> {
    let params = say.params(bench);
    let request = bench.request(Operation::SendStreamingMessage, &params).map_err(|none| skip(none.0))?;
    let sent: Value =
        request.body.as_deref().and_then(|body| serde_json::from_slice(body).ok()).unwrap_or_default();
    let asked = bench.ask(Operation::SendStreamingMessage, &request).await;
    match asked.map_err(|error| fail(format!("no answer: {error}")))? {
        Answer::Stream { frames, events, closed: true, error: None, .. } => {
            Ok(Seen { request_id: sent["id"].clone(), frames, events })
        }
        Answer::Stream { error: Some(error), .. } => Err(differs("events", error.summary())),
        other => Err(differs("a stream that closes", other.summary())),
    }
}

/// The task of an event: 0.3 has `taskId`, except in the task itself; 0.1 always has `id`.
pub(super) fn task_id(event: &Value) -> Value {
    event.get("taskId").or_else(|| event.get("id")).cloned().unwrap_or_default()
}

/// True for a status update, but not for a whole task.
pub(super) fn is_status(event: &Value) -> bool {
    event["status"].is_object() && event.get("artifacts").is_none() && event["kind"] != "task"
}

/// A state at which the older generations end a stream.
pub(super) fn ends_a_stream(state: &str) -> bool {
    is_terminal(state) || matches!(state, "INPUT_REQUIRED" | "AUTH_REQUIRED")
}

/// Checks that only the last event has `final`, and that its state ends a stream.
pub(super) fn final_faults(events: &[Value]) -> Vec<Mismatch> {
    let mut found = Vec::new();
    let Some(last) = events.last() else {
        return vec![fault("events", "at least one event", Some(&json!([])))];
    };
    for (index, event) in events.iter().enumerate() {
        if event["final"] == true && index + 1 < events.len() {
            let after =
                format!("nothing after it, since `final` is true; {} more came", events.len() - index - 1);
            found.push(fault(&format!("events[{index}]"), &after, Some(event)));
        }
    }
    let place = format!("events[{}]", events.len() - 1);
    // A single message, or a task that has already ended, is a complete stream.
    let alone = events.len() == 1
        && (last["kind"] == "message"
            || last["kind"] == "task" && state_of(last).is_some_and(|state| ends_a_stream(&state)));
    if alone {
        return found;
    }
    if !is_status(last) {
        found.push(fault(&place, "a status with `final: true` as the last event", Some(last)));
        return found;
    }
    if last["final"] != true {
        found.push(fault(&format!("{place}.final"), "true, since the stream ends here", last.get("final")));
    }
    let state = state_of(last).unwrap_or_default();
    if !ends_a_stream(&state) {
        let wanted = "a terminal state, or one that waits for the client";
        found.push(fault(&format!("{place}.status.state"), wanted, last["status"].get("state")));
    }
    found
}

/// Checks that the events of a stream add up to the artifacts of the task.
pub(super) fn compare_artifacts(events: &[Value], task: &Value) -> Done {
    let folded = contents(&fold(events).map_err(fail)?);
    let kept = contents(task["artifacts"].as_array().map_or(&[][..], Vec::as_slice));
    if folded == kept {
        return Ok(());
    }
    let wanted = format!("the task with what the stream adds up to: {}", show(&json!(folded)));
    Err(differs(wanted, show(&json!(kept))))
}

/// The artifacts after all events. 0.3 has the flags on the event and identifies artifacts by id; 0.1 has flags and
/// index on the artifact.
fn fold(events: &[Value]) -> Result<Vec<Value>, String> {
    let mut artifacts: Vec<Value> = Vec::new();
    for (index, event) in events.iter().enumerate() {
        if event["kind"] == "task" {
            artifacts = event["artifacts"].as_array().cloned().unwrap_or_default();
        }
        let Some(artifact) = event.get("artifact") else { continue };
        let same = |known: &&mut Value| identity(known) == identity(artifact);
        let append = event["append"] == true || artifact["append"] == true;
        match (artifacts.iter_mut().find(same), append) {
            (Some(known), true) => {
                let more = artifact["parts"].as_array().cloned().unwrap_or_default();
                if let Some(parts) = known["parts"].as_array_mut() {
                    parts.extend(more);
                }
            }
            (Some(known), false) => *known = artifact.clone(),
            (None, false) => artifacts.push(artifact.clone()),
            (None, true) => {
                let id = identity(artifact);
                return Err(format!(
                    "events[{index}] appends to the artifact {id}, which no event before it has made"
                ));
            }
        }
    }
    Ok(artifacts)
}

fn identity(artifact: &Value) -> Value {
    let index = || artifact.get("index").filter(|index| !index.is_null()).cloned().unwrap_or(json!(0));
    artifact.get("artifactId").cloned().unwrap_or_else(index)
}

/// The content of each artifact, in a fixed order. Adjacent texts are joined, since an agent may join chunks in its
/// store. Names, types and metadata are ignored: they may come once or with each chunk.
fn contents(artifacts: &[Value]) -> Vec<Value> {
    let one = |artifact: &Value| {
        let mut parts: Vec<Value> = Vec::new();
        for part in artifact["parts"].as_array().into_iter().flatten() {
            match (parts.last_mut().map(|last| &mut last["text"]), part["text"].as_str()) {
                (Some(Value::String(last)), Some(text)) => last.push_str(text),
                _ => {
                    let content =
                        ["text", "file", "data"].into_iter().find_map(|name| Some((name, part.get(name)?)));
                    parts.extend(content.map(|(name, value)| json!({ name: value })));
                }
            }
        }
        Value::Array(parts)
    };
    let mut all: Vec<Value> = artifacts.iter().map(one).collect();
    all.sort_by_key(ToString::to_string);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(state: &str, last: bool) -> Value {
        json!({"kind": "status-update", "status": {"state": state}, "final": last})
    }

    #[test]
    fn the_final_mark_is_on_the_last_event_alone() {
        let task = |state: &str| json!({"kind": "task", "id": "t", "status": {"state": state}});
        let artifact = json!({"kind": "artifact-update", "artifact": {}});
        let places = |events: &[Value]| -> Vec<String> {
            final_faults(events).into_iter().map(|fault| fault.path).collect()
        };
        let none: Vec<String> = Vec::new();
        let good = [task("submitted"), status("working", false), artifact.clone(), status("completed", true)];
        assert_eq!(places(&good), none);
        assert_eq!(places(&[task("working"), status("input-required", true)]), none);
        assert_eq!(places(&[task("completed")]), none);
        assert_eq!(places(&[json!({"kind": "message"})]), none);
        // 0.1 has no kinds.
        assert_eq!(places(&[json!({"id": "t", "status": {"state": "failed"}, "final": true})]), none);
        for (bad, place) in [
            (vec![], "events"),
            (vec![task("working")], "events[0]"),
            (vec![status("completed", true), artifact.clone(), status("completed", true)], "events[0]"),
            (vec![status("working", false), artifact], "events[1]"),
            (vec![status("completed", false)], "events[0].final"),
            (vec![json!({"id": "t", "status": {"state": "completed"}})], "events[0].final"),
            (vec![status("working", true)], "events[0].status.state"),
        ] {
            assert_eq!(places(&bad), [place], "{bad:?}");
        }
    }

    #[test]
    fn chunks_add_up_in_both_spellings() {
        let part = |text: &str| json!([{"kind": "text", "text": text}]);
        let newer = |id: &str, text: &str, append: bool| json!({"kind": "artifact-update", "append": append, "artifact": {"artifactId": id, "parts": part(text)}});
        let older = |index: u32, text: &str, append: bool| json!({"id": "t", "artifact": {"index": index, "append": append, "parts": part(text)}});
        let task = json!({"artifacts": [{"artifactId": "a", "parts": [{"text": "1"}, {"text": "2"}]},
            {"artifactId": "b", "parts": [{"text": "x"}]}]});
        for events in [
            [newer("a", "1", false), newer("b", "x", false), newer("a", "2", true)],
            [older(0, "1", false), older(1, "x", false), older(0, "2", true)],
        ] {
            compare_artifacts(&events, &task).unwrap();
            compare_artifacts(&events[..2], &task).unwrap_err();
        }
        compare_artifacts(&[newer("a", "1", false), newer("a", "12", false), newer("b", "x", false)], &task)
            .unwrap();
        fold(&[newer("a", "1", true)]).unwrap_err();
        // Without an index it is the first.
        fold(&[json!({"artifact": {"parts": []}}), older(0, "1", true)]).unwrap();
        let file = |name: &str| json!([{"parts": [{"file": {"bytes": name}}]}]);
        assert_ne!(contents(file("a").as_array().unwrap()), contents(file("b").as_array().unwrap()));
    }
}
