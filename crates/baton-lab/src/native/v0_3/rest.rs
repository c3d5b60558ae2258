//! HTTP+JSON of 0.3: paths, verbs, statuses, and the wire form.
//!
//! The specification asks for JSON that is "structurally equivalent" to 0.3 JSON; the SDKs send ProtoJSON. An answer
//! may be in either form, but not in a mixture.

use serde_json::{Value, json};

use super::{proto_shapes, shapes};
use crate::acts::assertion::{Mismatch, show};
use crate::native::older::streamed;
use crate::native::shape::{Shape, fault, faults, judge, kind_faults, strangers};
use crate::native::talk::{COMPLETE, Say, fresh_id, skip};
use crate::native::{Checks, Done, checks, differs, fail};
use crate::run::Bench;
use crate::wire::request::Operation;
use crate::wire::{Answer, Request, WireError};

pub(in crate::native) const CHECKS: Checks = checks! {
    "v0_3.rest.send" => send,
    "v0_3.rest.task" => task,
    "v0_3.rest.strict" => strict,
    "v0_3.rest.events" => events,
    "v0_3.rest.content-type" => content_type,
    "v0_3.rest.error-content-type" => error_content_type,
    "v0_3.rest.errors" => errors,
    "v0_3.rest.not-found" => not_found,
    "v0_3.rest.bad-bodies" => bad_bodies,
    "v0_3.rest.verbs" => verbs,
    "v0_3.rest.unknown-path" => unknown_path,
    "v0_3.rest.list" => list_of_tasks,
};

/// The raw body.
fn body_of(answer: Answer) -> Done<Value> {
    match answer {
        Answer::Reply { body: Some(body), .. } => Ok(body),
        other => Err(differs("a JSON body", other.summary())),
    }
}

/// The faults in the one of two forms that has fewer, since that is probably the intended form.
fn either(proto: Vec<Mismatch>, own: Vec<Mismatch>) -> Vec<Mismatch> {
    if own.len() < proto.len() { own } else { proto }
}

fn reply_faults(body: &Value) -> Vec<Mismatch> {
    let inner = |name: &str| body.get(name).map(|inner| kind_faults(&shapes::REPLY, inner, name));
    // The specification has the wrapper, too; JSON-RPC has a bare object.
    let own =
        inner("task").or_else(|| inner("message")).unwrap_or_else(|| kind_faults(&shapes::REPLY, body, ""));
    either(faults(&proto_shapes::SEND_RESPONSE, body, ""), own)
}

async fn sent(bench: &Bench) -> Done<Value> {
    body_of(bench.call(Operation::SendMessage, &Say::text(COMPLETE).params(bench)).await?)
}

async fn got(bench: &Bench) -> Done<Value> {
    let made = bench.ended().await?;
    body_of(bench.call(Operation::GetTask, &json!({ "id": made["id"] })).await?)
}

async fn send(bench: &Bench) -> Done {
    let body = sent(bench).await?;
    if ["task", "message"].iter().filter(|name| body.get(**name).is_some_and(Value::is_object)).count() != 1 {
        return Err(differs("an object with either `task` or `message`", show(&body)));
    }
    judge(reply_faults(&body))
}

async fn task(bench: &Bench) -> Done {
    let body = got(bench).await?;
    if body.get("task").is_some() {
        return Err(differs("the task itself, without a wrapper", show(&body)));
    }
    judge(either(faults(&proto_shapes::TASK, &body, ""), faults(&shapes::TASK, &body, "")))
}

/// Clients made from the `.proto` refuse members it does not have.
async fn strict(bench: &Bench) -> Done {
    let of = |shape: &'static Shape, body: &Value, place: &str| -> Vec<Mismatch> {
        let mut found = faults(shape, body, place);
        found.extend(strangers(shape, body, place));
        found
    };
    let mut found = of(&proto_shapes::SEND_RESPONSE, &sent(bench).await?, "");
    found.extend(of(&proto_shapes::TASK, &got(bench).await?, ""));
    judge(found)
}

async fn events(bench: &Bench) -> Done {
    let seen = streamed(bench, &Say::text(COMPLETE)).await?;
    let mut found = Vec::new();
    for (index, frame) in seen.frames.iter().enumerate() {
        let place = format!("events[{index}]");
        let event: Value = serde_json::from_str(&frame.data).unwrap_or_default();
        if event.get("jsonrpc").is_some() {
            found.push(fault(&place, "the event itself, without a JSON-RPC envelope", Some(&event)));
            continue;
        }
        let wrapped =
            ["task", "message", "statusUpdate", "artifactUpdate"].iter().find_map(|name| event.get(*name));
        let own = kind_faults(&shapes::EVENT, wrapped.unwrap_or(&event), &place);
        found.extend(either(faults(&proto_shapes::STREAM_RESPONSE, &event, &place), own));
    }
    judge(found)
}

fn is_plain_json(answer: &Answer) -> Done {
    let kind = answer.header("content-type").unwrap_or_default().to_ascii_lowercase();
    match kind.split(';').next().unwrap_or_default().trim() {
        "application/json" => Ok(()),
        _ => Err(differs("the content type application/json", json!(kind).to_string())),
    }
}

async fn content_type(bench: &Bench) -> Done {
    let answer = bench.call(Operation::SendMessage, &Say::text(COMPLETE).params(bench)).await?;
    is_plain_json(&answer)
}

async fn error_content_type(bench: &Bench) -> Done {
    let answer = bench.call(Operation::GetTask, &json!({ "id": fresh_id() })).await?;
    match &answer {
        Answer::Error(_) => is_plain_json(&answer),
        other => Err(differs("an unknown task to be refused", other.summary())),
    }
}

/// The errors for several different mistakes.
async fn mistakes(bench: &Bench) -> Done<Vec<(&'static str, WireError)>> {
    let none = json!({ "id": fresh_id() });
    Ok(vec![
        ("an unknown task", bench.refusal(Operation::GetTask, &none).await?),
        ("a cancellation of an unknown task", bench.refusal(Operation::CancelTask, &none).await?),
        ("a body that is no JSON", posted(bench, b"{".to_vec()).await?),
    ])
}

async fn posted(bench: &Bench, body: Vec<u8>) -> Done<WireError> {
    let params = Say::text(COMPLETE).params(bench);
    let mut request = bench.request(Operation::SendMessage, &params).map_err(|none| skip(none.0))?;
    let shown = String::from_utf8_lossy(&body).into_owned();
    request.body = Some(body);
    match asked(bench, &request).await? {
        Answer::Error(error) => Ok(error),
        other => Err(differs(format!("the body {shown} to be refused"), other.summary())),
    }
}

async fn asked(bench: &Bench, request: &Request) -> Done<Answer> {
    let answer = bench.probe().ask(bench.generation(), bench.binding(), request).await;
    answer.map_err(|error| fail(format!("no answer: {error}")))
}

/// The members where an error's text may be: 0.3 does not say which, only that it is always the same.
fn forms(body: Option<&Value>) -> Vec<&'static str> {
    let Some(body) = body else { return Vec::new() };
    let places = [
        ("message", "/message"),
        ("error.message", "/error/message"),
        ("detail", "/detail"),
        ("title", "/title"),
    ];
    let there = places.into_iter().filter(|(_, pointer)| body.pointer(pointer).is_some_and(Value::is_string));
    there.map(|(name, _)| name).collect()
}

async fn errors(bench: &Bench) -> Done {
    let all = mistakes(bench).await?;
    judge(form_faults(&all))
}

fn form_faults(all: &[(&'static str, WireError)]) -> Vec<Mismatch> {
    let mut shared: Option<Vec<&str>> = None;
    let mut found = Vec::new();
    for (name, error) in all {
        let here = forms(error.body.as_ref());
        if here.is_empty() {
            found.push(fault(name, "a JSON object that tells what is wrong", error.body.as_ref()));
            continue;
        }
        let before = shared.clone();
        let kept: Vec<&str> = before
            .as_ref()
            .map_or(here.clone(), |one| here.iter().copied().filter(|form| one.contains(form)).collect());
        if kept.is_empty() {
            let wanted = format!("`{}`, as with other errors", before.unwrap_or_default().join("` or `"));
            found.push(fault(name, &wanted, error.body.as_ref()));
            continue;
        }
        shared = Some(kept);
    }
    found
}

async fn not_found(bench: &Bench) -> Done {
    let error = bench.refusal(Operation::GetTask, &json!({ "id": fresh_id() })).await?;
    if error.status == 404 { Ok(()) } else { Err(differs("HTTP 404 for an unknown task", error.summary())) }
}

/// Mistakes of the client must be answered with 4xx.
async fn bad_bodies(bench: &Bench) -> Done {
    for body in ["{", "", "[]", "{}", "{\"message\":7}"] {
        let error = posted(bench, body.as_bytes().to_vec()).await?;
        if !(400..500).contains(&error.status) {
            return Err(differs(format!("HTTP 4xx for the body {}", json!(body)), error.summary()));
        }
    }
    Ok(())
}

fn request(bench: &Bench, method: &str, path: &str) -> Request {
    let url = format!("{}{path}", bench.interface().url.trim_end_matches('/'));
    let headers = vec![("Accept".to_owned(), "application/json".to_owned())];
    Request { method: method.to_owned(), url, headers, body: None, streams: false }
}

async fn verbs(bench: &Bench) -> Done {
    for (method, path) in
        [("GET", "/v1/message:send".to_owned()), ("DELETE", format!("/v1/tasks/{}", fresh_id()))]
    {
        let answer = asked(bench, &request(bench, method, &path)).await?;
        let status = answer.status();
        if !((400..500).contains(&status) || status == 501) {
            return Err(differs(format!("{method} {path} to be refused (405 or 404)"), answer.summary()));
        }
    }
    Ok(())
}

async fn unknown_path(bench: &Bench) -> Done {
    let answer = asked(bench, &request(bench, "GET", "/v1/nothing-of-this-name")).await?;
    if answer.status() == 404 {
        Ok(())
    } else {
        Err(differs("HTTP 404 for an unknown path", answer.summary()))
    }
}

/// Lists are in a table of the specification and not in the `.proto`: they are optional.
async fn list_of_tasks(bench: &Bench) -> Done {
    let made = bench.ended().await?;
    let answer = asked(bench, &request(bench, "GET", "/v1/tasks")).await?;
    let body = match answer {
        Answer::Reply { body: Some(body), .. } => body,
        Answer::Error(error) if matches!(error.status, 404 | 405 | 501) => {
            return Err(skip(format!("the agent has no lists of tasks (HTTP {})", error.status)));
        }
        other => return Err(differs("a list of tasks, or HTTP 404", other.summary())),
    };
    let tasks = body.as_array().or_else(|| body["tasks"].as_array());
    let Some(tasks) = tasks else { return Err(differs("a list of tasks", show(&body))) };
    if !tasks.iter().any(|task| task["id"] == made["id"])
        && body.get("nextPageToken").is_none_or(|next| next == "")
    {
        return Err(differs(
            format!("the task {} in the list", made["id"]),
            format!("{} others", tasks.len()),
        ));
    }
    let all = tasks.iter().enumerate().map(|(index, task)| (format!("tasks[{index}]"), task));
    judge(
        all.flat_map(|(place, task)| {
            either(faults(&proto_shapes::TASK, task, &place), faults(&shapes::TASK, task, &place))
        })
        .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_in_one_spelling_or_the_other() {
        let own = json!({"kind": "task", "id": "t", "contextId": "c", "status": {"state": "completed"}});
        let proto = json!({"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_CANCELLED"}});
        for good in [json!({"task": own}), json!({"task": proto}), own.clone()] {
            assert_eq!(reply_faults(&good), [], "{good}");
        }
        for (member, value) in [("state", json!("TASK_STATE_CANCELED")), ("state", json!("canceled"))] {
            let mut mixed = json!({ "task": proto });
            mixed["task"]["status"][member] = value;
            assert_eq!(reply_faults(&mixed).len(), 1, "{mixed}");
        }
        assert!(!reply_faults(&json!({})).is_empty());
        assert_eq!(strangers(&proto_shapes::SEND_RESPONSE, &json!({"task": proto}), ""), []);
        assert_eq!(strangers(&proto_shapes::SEND_RESPONSE, &json!({"task": own}), "")[0].path, "task.kind");
    }

    #[test]
    fn errors_have_one_form() {
        let error = |body: Value| WireError {
            status: 400,
            headers: Vec::new(),
            code: None,
            name: None,
            message: None,
            details: Value::Null,
            body: Some(body),
        };
        let (plain, nested) = (json!({"message": "m"}), json!({"error": {"message": "m"}}));
        let both = json!({"message": "m", "error": {"message": "m"}});
        let count = |bodies: &[&Value]| {
            let all: Vec<_> = bodies.iter().map(|body| ("x", error((*body).clone()))).collect();
            form_faults(&all).len()
        };
        assert_eq!((count(&[&plain, &plain]), count(&[&both, &nested]), count(&[&both, &plain])), (0, 0, 0));
        assert_eq!((count(&[&plain, &nested]), count(&[&json!("text")]), count(&[&json!({})])), (1, 1, 1));
    }
}
