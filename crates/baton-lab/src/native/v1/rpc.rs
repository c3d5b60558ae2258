//! The JSON-RPC envelope and HTTP headers of an answer.

use serde_json::{Value, json};

use super::card::is_json;
use super::shape::{fault, judge};
use super::streams::envelope_faults;
use super::talk::{COMPLETE, Say, fresh_id, skip};
use crate::native::{Checks, Done, checks, differs, fail};
use crate::run::Bench;
use crate::wire::Answer;
use crate::wire::request::Operation;

pub(in crate::native) const CHECKS: Checks = checks! {
    "v1.rpc.envelope" => envelope,
    "v1.rpc.ids" => ids,
    "v1.rpc.content-type" => content_type,
    "v1.rpc.a2a-json" => a2a_json,
    "v1.rpc.stream-content-type" => stream_content_type,
};

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

pub(in crate::native) async fn envelope(bench: &Bench) -> Done {
    let id = json!(fresh_id());
    let good = with_id(bench, Operation::SendMessage, &Say::text(COMPLETE).params(bench), &id).await?;
    let bad = with_id(bench, Operation::GetTask, &json!({ "id": fresh_id() }), &id).await?;
    let mut found = envelope_faults(&good, &id, "result");
    found.extend(envelope_faults(&bad, &id, "error"));
    if good.get("result").is_none() {
        found.push(fault("result", "`result` in the answer to SendMessage", Some(&good)));
    }
    let (code, message) = (&bad["error"]["code"], &bad["error"]["message"]);
    if !code.is_i64() || !message.is_string() {
        found.push(fault("error", "a whole number as `code` and a text as `message`", bad.get("error")));
    }
    judge(found)
}

/// Ids must be returned unchanged: a number must not become text.
pub(in crate::native) async fn ids(bench: &Bench) -> Done {
    let mut found = Vec::new();
    for id in [json!(7), json!("7"), json!("ä / \u{1f3c3}"), json!(2_147_483_648_u64), json!(0), json!(-1)] {
        let answer = with_id(bench, Operation::GetTask, &json!({ "id": fresh_id() }), &id).await?;
        if answer.get("id") != Some(&id) {
            found.push(fault("id", &id.to_string(), answer.get("id")));
        }
    }
    judge(found)
}

pub(in crate::native) async fn content_type(bench: &Bench) -> Done {
    let good = bench.call(Operation::SendMessage, &Say::text(COMPLETE).params(bench)).await?;
    let bad = bench.call(Operation::GetTask, &json!({ "id": fresh_id() })).await?;
    for answer in [good, bad] {
        let kind = answer.header("content-type").unwrap_or_default();
        if !is_json(kind) {
            return Err(differs("a JSON content type", json!(kind).to_string()));
        }
    }
    Ok(())
}

/// 1.0.0 said `application/json`, and so do many agents.
async fn a2a_json(bench: &Bench) -> Done {
    let answer = bench.call(Operation::SendMessage, &Say::text(COMPLETE).params(bench)).await?;
    let kind = answer.header("content-type").unwrap_or_default().to_ascii_lowercase();
    match kind.split(';').next().unwrap_or_default().trim() {
        "application/a2a+json" => Ok(()),
        "application/json" => {
            bench.note("the content type is application/json; since 1.0.1 application/a2a+json is preferred");
            Ok(())
        }
        _ => Err(differs("application/a2a+json", json!(kind).to_string())),
    }
}

pub(in crate::native) async fn stream_content_type(bench: &Bench) -> Done {
    let mut watch = bench.send_stream(&Say::text(COMPLETE)).await?;
    let kind = watch.header("content-type").unwrap_or_default().to_ascii_lowercase();
    watch.event().await?;
    if kind.starts_with("text/event-stream") { Ok(()) } else { Err(differs("text/event-stream", kind)) }
}
