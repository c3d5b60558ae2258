//! 0.3 together with other generations on one agent: a task may be read in each, in the form of the caller's
//! generation.

use serde_json::{Value, json};

use super::shapes;
use crate::generation::{Binding, Generation};
use crate::native::shape::{Shape, faults, judge};
use crate::native::talk::{COMPLETE, Say, fresh_id, skip};
use crate::native::v1::shapes as newer;
use crate::native::{Checks, Done, checks, differs, fail};
use crate::run::Bench;
use crate::target;
use crate::wire::request::{self, Operation};
use crate::wire::{Answer, Request};

pub(in crate::native) const CHECKS: Checks = checks! {
    "v0_3.generations.without-version" => without_version,
    "v0_3.generations.newer-method" => newer_method,
    "v0_3.generations.read-by-newer" => read_by_newer,
    "v0_3.generations.read-from-newer" => read_from_newer,
};

pub(in crate::native) async fn asked(
    bench: &Bench,
    generation: Generation,
    request: &Request,
) -> Done<Answer> {
    let answer = bench.probe().ask(generation, Binding::Jsonrpc, request).await;
    answer.map_err(|error| fail(format!("no answer: {error}")))
}

/// The same over another generation's JSON-RPC; skipped if the agent does not have it.
pub(in crate::native) async fn in_generation(
    bench: &Bench,
    generation: Generation,
    operation: Operation,
    params: &Value,
) -> Done<Answer> {
    let Some(interface) = bench.target().interfaces.get(&(generation, Binding::Jsonrpc)) else {
        return Err(skip(format!("the agent does not speak {generation} over JSON-RPC")));
    };
    let built = request::operation(generation, Binding::Jsonrpc, interface, operation, params);
    let mut request = built.map_err(|none| skip(none.0))?;
    request.headers.extend(target::extensions_header(bench.target().card_of(generation), generation));
    asked(bench, generation, &request).await
}

/// Judges a task that was read in another generation. An agent may keep the tasks of its generations separate;
/// otherwise the form must be correct.
pub(in crate::native) fn judge_foreign(answer: Answer, id: &Value, shape: &Shape) -> Done {
    match answer {
        Answer::Reply { root: Some(root), .. } => {
            let mut found = faults(shape, &root, "");
            if root["id"] != *id {
                found.push(crate::native::shape::fault("id", &id.to_string(), root.get("id")));
            }
            judge(found)
        }
        Answer::Error(error) if error.name.as_deref() == Some("TaskNotFoundError") => {
            Err(skip("the agent keeps the tasks of its generations apart, which is allowed"))
        }
        other => Err(differs("the task, or TaskNotFoundError", other.summary())),
    }
}

/// 0.3 clients send no version header, since 0.3 has none.
async fn without_version(bench: &Bench) -> Done {
    for (operation, params) in [
        (Operation::SendMessage, Say::text(COMPLETE).params(bench)),
        (Operation::GetTask, json!({ "id": fresh_id() })),
    ] {
        let mut request = bench.request(operation, &params).map_err(|none| skip(none.0))?;
        request.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("a2a-version"));
        let answer = bench.probe().ask(bench.generation(), bench.binding(), &request).await;
        match answer.map_err(|error| fail(format!("no answer: {error}")))? {
            Answer::Reply { root: Some(root), .. } if root["kind"].is_string() => {}
            Answer::Error(error) if bench.is_named(&error, "TaskNotFoundError") => {}
            other => {
                let wanted = format!("{} to work without `A2A-Version`", operation.name());
                return Err(differs(wanted, other.summary()));
            }
        }
    }
    Ok(())
}

/// A 1.0 method without the header is not a valid 0.3 request: unknown, or refused for its version. Some servers accept
/// it.
async fn newer_method(bench: &Bench) -> Done {
    let id = fresh_id();
    let body = json!({"jsonrpc": "2.0", "id": id, "method": "GetTask", "params": {"id": fresh_id()}});
    let request = Request {
        method: "POST".to_owned(),
        url: bench.interface().url.clone(),
        headers: vec![("Content-Type".to_owned(), "application/json".to_owned())],
        body: Some(body.to_string().into_bytes()),
        streams: false,
    };
    match asked(bench, Generation::V0_3, &request).await? {
        Answer::Error(error) if matches!(error.code, Some(-32601 | -32009)) => Ok(()),
        Answer::Error(error) if error.code == Some(-32001) => {
            bench.note("a method of 1.0 is taken without `A2A-Version`");
            Ok(())
        }
        other => Err(differs("-32601 (unknown method) or -32009 (version not supported)", other.summary())),
    }
}

async fn read_by_newer(bench: &Bench) -> Done {
    let made = bench.ended().await?;
    let id = json!({ "id": made["id"] });
    let answer = in_generation(bench, Generation::V1, Operation::GetTask, &id).await?;
    if let Answer::Reply { root: Some(root), .. } = &answer
        && root.get("kind").is_some()
    {
        return Err(differs("a task of 1.0, without `kind`", root["kind"].to_string()));
    }
    judge_foreign(answer, &made["id"], &newer::TASK)
}

async fn read_from_newer(bench: &Bench) -> Done {
    let say =
        json!({"message": {"messageId": fresh_id(), "role": "ROLE_USER", "parts": [{"text": "hello"}]}});
    let sent = in_generation(bench, Generation::V1, Operation::SendMessage, &say).await?;
    let Answer::Reply { root: Some(root), .. } = &sent else {
        return Err(differs("an answer to SendMessage in 1.0", sent.summary()));
    };
    let Some(id) = root.pointer("/task/id") else {
        return Err(skip("the agent answers with a message in 1.0"));
    };
    let answer = bench.call(Operation::GetTask, &json!({ "id": id })).await?;
    judge_foreign(answer, id, &shapes::TASK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Verdict;
    use crate::wire::WireError;

    #[test]
    fn a_foreign_task_is_in_the_words_of_who_asks() {
        let reply =
            |root: Value| Answer::Reply { status: 200, headers: Vec::new(), root: Some(root), body: None };
        let id = json!("t");
        let task = json!({"kind": "task", "id": "t", "contextId": "c", "status": {"state": "completed"}});
        judge_foreign(reply(task.clone()), &id, &shapes::TASK).unwrap();
        judge_foreign(reply(task.clone()), &json!("other"), &shapes::TASK).unwrap_err();
        judge_foreign(reply(task), &id, &newer::TASK).unwrap_err();
        let error = WireError {
            status: 200,
            headers: Vec::new(),
            code: Some(-32001),
            name: Some("TaskNotFoundError".to_owned()),
            message: None,
            details: Value::Null,
            body: None,
        };
        let apart = judge_foreign(Answer::Error(error), &id, &shapes::TASK);
        assert!(matches!(apart, Err(Verdict::Skip(_))));
    }
}
