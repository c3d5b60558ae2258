//! Tasks: created with the client's id, polled to their end, with a history of states or of messages.

use serde_json::{Value, json};

use super::shapes::{self, without_nulls};
use crate::acts::assertion::{Mismatch, show};
use crate::native::older::{self, is_refusal, list};
use crate::native::shape::{fault, faults, judge};
use crate::native::talk::{COMPLETE, Say, fresh_id, has_ended, skip, state};
use crate::native::v1::{cancel, hostile, lifecycle, many};
use crate::native::{Checks, Done, checks, differs, fail};
use crate::run::Bench;
use crate::wire::Answer;
use crate::wire::request::Operation;

pub(in crate::native) const CHECKS: Checks = checks! {
    "v0_1.tasks.reply" => reply,
    "v0_1.tasks.task" => task,
    "v0_1.tasks.own-id" => own_id,
    "v0_1.tasks.session" => session,
    "v0_1.tasks.part" => part,
    "v0_1.tasks.states" => states,
    "v0_1.tasks.refuses-messages" => refuses_messages,
    "v0_1.tasks.state-history" => state_history,
    "v0_1.tasks.history-length" => history_length,
    "v0_1.tasks.examples" => lifecycle::examples,
    "v0_1.tasks.polled" => lifecycle::polled,
    "v0_1.tasks.final" => lifecycle::is_final,
    "v0_1.tasks.many" => many::sends,
    "v0_1.cancel.any-agent" => cancel::any_agent,
    "v0_1.cancel.twice" => cancel_twice,
    "v0_1.rpc.content-type" => content_type,
    "v0_1.rpc.envelope" => envelope,
    "v0_1.rpc.ids" => ids,
    "v0_1.hostile.malformed" => hostile::malformed,
};

async fn reply(bench: &Bench) -> Done {
    let task = without_nulls(&bench.task(&Say::text(COMPLETE)).await?);
    judge(faults(&shapes::TASK, &task, ""))
}

async fn task(bench: &Bench) -> Done {
    let made = bench.ended().await?;
    let now = without_nulls(&bench.get(&made["id"]).await?);
    let mut found = faults(&shapes::TASK, &now, "");
    if now["id"] != made["id"] {
        found.push(fault("id", &made["id"].to_string(), now.get("id")));
    }
    judge(found)
}

/// The client chooses the id, and the server uses it.
async fn own_id(bench: &Bench) -> Done {
    let id = fresh_id();
    let say = Say::text(COMPLETE).member("taskId", json!(id));
    let made = bench.task(&say).await?;
    if made["id"] != id {
        return Err(differs(format!("the task {id}, as the client called it"), made["id"].to_string()));
    }
    let now = bench.get(&json!(id)).await?;
    if now["id"] == id { Ok(()) } else { Err(differs(id, now["id"].to_string())) }
}

async fn session(bench: &Bench) -> Done {
    let session = fresh_id();
    let made = bench.task(&Say::text(COMPLETE).within(&json!(session))).await?;
    match without_nulls(&made).get("sessionId") {
        None => {
            bench.note("the task does not tell its session, which is allowed");
            Ok(())
        }
        Some(told) if *told == session => Ok(()),
        Some(told) => Err(differs(format!("the client's sessionId, {session}"), told.to_string())),
    }
}

/// The case's test phrase determines the kind of part.
async fn part(bench: &Bench) -> Done {
    let prefix = bench.case().test.requires_behaviors.first().map_or(COMPLETE, String::as_str);
    let now = without_nulls(&bench.ended_with(&Say::text(prefix)).await?);
    judge(faults(&shapes::TASK, &now, ""))?;
    let (kind, pointer) = match prefix {
        "tck-artifact-file" => ("file", "/file/bytes"),
        "tck-artifact-file-url" => ("file", "/file/uri"),
        "tck-artifact-data" => ("data", "/data"),
        _ => ("text", "/text"),
    };
    let parts: Vec<&Value> =
        list(&now, "artifacts").iter().flat_map(|artifact| list(artifact, "parts")).collect();
    let both = |part: &&Value| part.pointer("/file/bytes").is_some() && part.pointer("/file/uri").is_some();
    if let Some(part) = parts.iter().find(|part| both(part)) {
        return Err(differs("either `bytes` or `uri` in a file", show(part)));
    }
    let fits = |part: &&Value| part["type"] == kind && part.pointer(pointer).is_some();
    if parts.iter().any(fits) {
        return Ok(());
    }
    let expected = format!("an artifact with a part of type {kind} that has {}", &pointer[1..]);
    Err(differs(expected, show(&now["artifacts"])))
}

/// 0.1 has six states and `unknown`: later states must be written as one of these.
async fn states(bench: &Bench) -> Done {
    for prefix in &bench.case().test.requires_behaviors {
        let task = match bench.call(Operation::SendMessage, &Say::text(prefix).params(bench)).await? {
            Answer::Reply { root: Some(task), .. } => task,
            Answer::Error(error) if is_refusal(&error) => {
                bench.note(format!("{prefix} is refused by an error: {}", error.summary()));
                continue;
            }
            other => return Err(differs("a task", other.summary())),
        };
        let task = bench.settled(&task).await?;
        bench.clean_up(&task).await;
        judge(faults(&shapes::TASK, &without_nulls(&task), ""))?;
    }
    Ok(())
}

/// The documents have two codes for it, and some servers use others: only the refusal is checked.
async fn refuses_messages(bench: &Bench) -> Done {
    let task = bench.ended().await?;
    let params = Say::text("something else").to(&task).params(bench);
    match bench.call(Operation::SendMessage, &params).await? {
        Answer::Error(error) if is_refusal(&error) => {
            if !matches!(error.code, Some(-32002 | -32009)) {
                bench.note(format!("refused with {}; the texts have -32002 and -32009", error.summary()));
            }
            Ok(())
        }
        other => Err(differs("a message to an ended task to be refused", other.summary())),
    }
}

/// A history of states or of messages must be well-formed and in order.
fn history_faults(task: &Value) -> Vec<Mismatch> {
    let history = list(task, "history");
    let of_states = history.iter().any(|entry| entry.get("state").is_some());
    let shape = if of_states { &shapes::STATUS } else { &shapes::MESSAGE };
    let mut found: Vec<Mismatch> = history
        .iter()
        .enumerate()
        .flat_map(|(index, entry)| faults(shape, entry, &format!("history[{index}]")))
        .collect();
    if of_states && let Some(last) = history.last().and_then(|entry| entry["state"].as_str()) {
        if task["status"]["state"] != last {
            let wanted = format!("the current state, {}", task["status"]["state"]);
            found.push(fault(&format!("history[{}].state", history.len() - 1), &wanted, Some(&json!(last))));
        }
        for (index, pair) in history.windows(2).enumerate() {
            let back = matches!(pair[0]["state"].as_str(), Some("completed" | "failed" | "canceled"))
                || pair[1]["state"] == "submitted" && pair[0]["state"] != "submitted";
            if back {
                let wanted = format!("a state that may follow {}", pair[0]["state"]);
                found.push(fault(&format!("history[{}].state", index + 1), &wanted, pair[1].get("state")));
            }
        }
    }
    found
}

async fn state_history(bench: &Bench) -> Done {
    let made = bench.ended().await?;
    let params = json!({"id": made["id"], "historyLength": 100});
    let now = without_nulls(&bench.reply(Operation::GetTask, &params).await?);
    let history = list(&now, "history");
    if history.len() < 2 {
        return Err(differs(
            "a history of at least two entries (submitted and the end)",
            show(&now["history"]),
        ));
    }
    if history.iter().all(|entry| entry.get("state").is_none()) {
        bench.note("the history holds messages, as the text of v0.1.0 has it, not states");
    }
    judge(history_faults(&now))
}

async fn history_length(bench: &Bench) -> Done {
    let made = bench.ended().await?;
    for length in [1, 2] {
        let params = json!({"id": made["id"], "historyLength": length});
        let now = without_nulls(&bench.reply(Operation::GetTask, &params).await?);
        let history = list(&now, "history");
        if history.len() > length {
            return Err(differs(
                format!("at most {length} entries of history"),
                format!("{}", history.len()),
            ));
        }
        judge(history_faults(&now))?;
    }
    Ok(())
}

async fn cancel_twice(bench: &Bench) -> Done {
    let task = bench.running().await?;
    let id = json!({ "id": task["id"] });
    older::cancel(bench, &task["id"]).await?;
    match bench.call(Operation::CancelTask, &id).await? {
        Answer::Error(error) if is_refusal(&error) => {
            bench.note(format!("a second cancel is refused: {}", error.summary()));
            Ok(())
        }
        Answer::Reply { root: Some(root), .. } if state(&root) == "CANCELED" => {
            bench.note("a second cancel answers with the canceled task");
            Ok(())
        }
        other => Err(differs("the canceled task, or an error", other.summary())),
    }
}

async fn content_type(bench: &Bench) -> Done {
    let good = bench.call(Operation::SendMessage, &Say::text(COMPLETE).params(bench)).await?;
    let bad = bench.call(Operation::GetTask, &json!({ "id": fresh_id() })).await?;
    for answer in [good, bad] {
        let kind = answer.header("content-type").unwrap_or_default().to_ascii_lowercase();
        if kind.split(';').next().unwrap_or_default().trim() != "application/json" {
            return Err(differs("the content type application/json", json!(kind).to_string()));
        }
    }
    Ok(())
}

/// Sends a request with a given id; returns the raw body.
async fn with_id(bench: &Bench, operation: Operation, params: &Value, id: &Value) -> Done<Value> {
    let mut request = bench.request(operation, params).map_err(|none| skip(none.0))?;
    let mut body: Value =
        serde_json::from_slice(request.body.as_deref().unwrap_or_default()).unwrap_or_default();
    body["id"] = id.clone();
    request.body = Some(body.to_string().into_bytes());
    let answer = bench.ask(operation, &request).await.map_err(|error| fail(format!("no answer: {error}")))?;
    let body = match &answer {
        Answer::Reply { body, .. } => body.clone(),
        Answer::Error(error) => error.body.clone(),
        Answer::Stream { .. } => None,
    };
    body.ok_or_else(|| differs("a JSON-RPC response", answer.summary()))
}

/// Faults of a response's envelope; null counts as absent.
pub(super) fn envelope_faults(envelope: &Value, id: &Value, place: &str) -> Vec<Mismatch> {
    let mut found = Vec::new();
    if envelope["jsonrpc"] != "2.0" {
        found.push(fault(&format!("{place}.jsonrpc"), "\"2.0\"", envelope.get("jsonrpc")));
    }
    if envelope.get("id") != Some(id) {
        found.push(fault(&format!("{place}.id"), &format!("the request's id, {id}"), envelope.get("id")));
    }
    let there = |name: &str| envelope.get(name).is_some_and(|member| !member.is_null());
    if there("result") && there("error") || !there("result") && !there("error") {
        found.push(fault(place, "either `result` or `error`", Some(envelope)));
    }
    found
}

async fn envelope(bench: &Bench) -> Done {
    let id = json!(fresh_id());
    let good = with_id(bench, Operation::SendMessage, &Say::text(COMPLETE).params(bench), &id).await?;
    let bad = with_id(bench, Operation::GetTask, &json!({ "id": fresh_id() }), &id).await?;
    let mut found = envelope_faults(&good, &id, "result");
    found.extend(envelope_faults(&bad, &id, "error"));
    if !bad["error"]["code"].is_i64() || !bad["error"]["message"].is_string() {
        found.push(fault("error", "a whole number as `code` and a text as `message`", bad.get("error")));
    }
    judge(found)
}

async fn ids(bench: &Bench) -> Done {
    let mut found = Vec::new();
    for id in [json!(7), json!("7"), json!(0)] {
        let answer = with_id(bench, Operation::GetTask, &json!({ "id": fresh_id() }), &id).await?;
        if answer.get("id") != Some(&id) {
            found.push(fault("id", &id.to_string(), answer.get("id")));
        }
    }
    judge(found)
}

/// A task that waits for input, for several cases.
pub(super) async fn asking(bench: &Bench) -> Done<Value> {
    let task = bench.task(&Say::text("tck-input-required")).await?;
    let task = bench.settled(&task).await?;
    if has_ended(&task) { Err(differs("a task in input-required", state(&task))) } else { Ok(task) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_is_of_states_or_of_messages() {
        let entry = |state: &str| json!({"state": state, "timestamp": "2025-04-01T12:00:00"});
        let task = |state: &str, history: Value| json!({"status": {"state": state}, "history": history});
        let places = |task: &Value| -> Vec<String> {
            history_faults(task).into_iter().map(|fault| fault.path).collect()
        };
        let none: Vec<String> = Vec::new();
        let good = json!([entry("submitted"), entry("working"), entry("completed")]);
        assert_eq!(places(&task("completed", good)), none);
        let message = json!({"role": "user", "parts": [{"type": "text", "text": "x"}]});
        assert_eq!(places(&task("completed", json!([message, message]))), none);
        assert_eq!(
            places(&task("completed", json!([entry("submitted"), entry("working")]))),
            ["history[1].state"]
        );
        assert_eq!(
            places(&task("working", json!([entry("completed"), entry("working")]))),
            ["history[1].state"]
        );
        assert_eq!(
            places(&task("completed", json!([{"role": "robot", "parts": []}]))),
            ["history[0].parts", "history[0].role"]
        );
        assert_eq!(
            places(&task("completed", json!([{"state": "done"}, entry("completed")]))),
            ["history[0].state"]
        );
    }

    #[test]
    fn envelopes_may_hold_nulls() {
        let id = json!("1");
        let faults = |envelope: Value| envelope_faults(&envelope, &id, "e").len();
        assert_eq!(faults(json!({"jsonrpc": "2.0", "id": "1", "result": {}, "error": null})), 0);
        assert_eq!(faults(json!({"jsonrpc": "2.0", "id": "1", "result": null, "error": {}})), 0);
        assert_eq!(faults(json!({"jsonrpc": "2.0", "id": "1", "result": {}, "error": {}})), 1);
        assert_eq!(faults(json!({"jsonrpc": "2.0", "id": 1, "result": null})), 2);
    }
}
