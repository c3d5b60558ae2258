//! Checks for the official ACTS files only: requests without credentials, or without enough rights, must be refused.
//! [`corrections`](crate::acts::corrections) replaces the steps of their tests with these.

use serde_json::{Value, json};

use crate::acts::execute::raw_of;
use crate::acts::variables::Unresolved;
use crate::case::Verdict;
use crate::generation::Binding;
use crate::native::{Checks, Done, checks, differs, fail};
use crate::run::Bench;
use crate::wire::request::Operation;
use crate::wire::{Answer, WireError};

pub(super) const CHECKS: Checks = checks! {
    "acts.refused" => refused,
    "acts.lesser-card" => lesser_card,
    "acts.foreign-task" => foreign_task,
    "acts.extended-card" => extended_card,
};

/// An unknown id.
const NOBODYS: &str = "00000000-0000-0000-0000-000000000000";

/// The file's own request, without the user's credentials: HTTP 401 or 403, or an error of JSON-RPC.
async fn refused(bench: &Bench) -> Done {
    judge(bench, &as_written(bench).await?)
}

/// SEC-EXTCARD-002: refused, or a card for users with fewer rights.
async fn lesser_card(bench: &Bench) -> Done {
    let answer = as_written(bench).await?;
    if let Answer::Reply { body: Some(body), .. } = &answer
        && body.get("name").is_some_and(Value::is_string)
    {
        bench.note("a card is shown to those with fewer rights; whether it is a lesser one cannot be told");
        return Ok(());
    }
    judge(bench, &answer)
}

async fn as_written(bench: &Bench) -> Done<Answer> {
    let steps = &bench.case().test.steps;
    let step = steps.iter().find(|step| step.raw.is_some());
    let step = step.ok_or_else(|| Verdict::Error("the test has no raw step".to_owned()))?;
    let request = raw_of(bench, step)?;
    let asked = bench.probe().stranger().ask(bench.generation(), bench.binding(), &request).await;
    asked.map_err(|error| fail(format!("no answer: {error}")))
}

fn judge(bench: &Bench, answer: &Answer) -> Done {
    match answer {
        Answer::Error(error) if matches!(error.status, 401 | 403) => Ok(()),
        Answer::Error(error) if bench.binding() == Binding::Jsonrpc && error.status == 200 => {
            bench.note("refused with HTTP 200 and an error of JSON-RPC; 401 or 403 is usual");
            Ok(())
        }
        other => Err(differs("HTTP 401 or 403", other.summary())),
    }
}

/// SEC-AUTH-003, CORE-ERR-009: another user's task must look like a missing one.
async fn foreign_task(bench: &Bench) -> Done {
    let id = match bench.variables().resolve_text("{{otherUserTaskId}}") {
        Ok(id) => id,
        Err(why @ Unresolved::Runner(_)) => return Err(Verdict::Skip(why.to_string())),
        Err(why) => return Err(Verdict::Error(why.to_string())),
    };
    let foreign = bench.refusal(Operation::GetTask, &json!({ "id": id })).await?;
    let missing = bench.refusal(Operation::GetTask, &json!({ "id": NOBODYS })).await?;
    alike((&id, &foreign), (NOBODYS, &missing))
}

fn alike((id, foreign): (&str, &WireError), (nobodys, missing): (&str, &WireError)) -> Done {
    // The two errors may differ in the id only.
    let form = |id: &str, error: &WireError| {
        let message = error.message.as_deref().unwrap_or_default().replace(id, "{id}");
        (error.name.clone(), error.code, error.status, message)
    };
    if form(id, foreign) == form(nobodys, missing) {
        return Ok(());
    }
    Err(differs(format!("the same error as for a missing task: {}", missing.summary()), foreign.summary()))
}

/// CARD-EXT-001: the extended card, with the user's credentials.
async fn extended_card(bench: &Bench) -> Done {
    let card = match bench.call(Operation::GetExtendedAgentCard, &json!({})).await? {
        Answer::Reply { root: Some(card), .. } => card,
        Answer::Error(error) if matches!(error.status, 401 | 403) => {
            let why = "the extended card needs credentials; give them with --bearer, --api-key or --header";
            return Err(Verdict::Skip(why.to_owned()));
        }
        other => return Err(differs("the extended card", other.summary())),
    };
    let skills = card["skills"].as_array().map_or(0, Vec::len);
    let description = card["description"].as_str().unwrap_or_default();
    if skills == 0 || description.is_empty() {
        return Err(differs("a card with skills and a description", crate::acts::assertion::show(&card)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(name: &str, status: u16, message: &str) -> WireError {
        WireError {
            status,
            headers: Vec::new(),
            code: Some(-32001),
            name: Some(name.to_owned()),
            message: Some(message.to_owned()),
            details: Value::Null,
            body: None,
        }
    }

    #[test]
    fn errors_may_differ_in_the_id_alone() {
        let missing = error("TaskNotFoundError", 404, "no task t-2");
        let same = |foreign: &WireError| alike(("t-1", foreign), ("t-2", &missing)).is_ok();
        assert!(same(&error("TaskNotFoundError", 404, "no task t-1")));
        assert!(!same(&error("TaskNotFoundError", 403, "no task t-1")));
        assert!(!same(&error("TaskNotFoundError", 404, "not your task")));
        assert!(!same(&error("UnsupportedOperationError", 404, "no task t-1")));
    }
}
