//! Contexts: who chooses the id, and that it is never replaced silently.

use serde_json::json;

use super::talk::{COMPLETE, Said, Say, filled, fresh_id, skip};
use crate::native::{Checks, Done, checks, differs};
use crate::run::Bench;
use crate::wire::Answer;
use crate::wire::request::Operation;

pub(in crate::native) const CHECKS: Checks = checks! {
    "v1.contexts.kept-or-refused" => kept_or_refused,
    "v1.contexts.generated" => generated,
    "v1.contexts.message-task" => message_task,
};

async fn kept_or_refused(bench: &Bench) -> Done {
    let own = json!(fresh_id());
    let params = Say::text(COMPLETE).within(&own).params(bench);
    match bench.call(Operation::SendMessage, &params).await? {
        Answer::Reply { root: Some(root), .. } => {
            let said = root.get("task").or_else(|| root.get("message")).unwrap_or(&root);
            match said.get("contextId") {
                Some(context) if *context == own => Ok(()),
                other => {
                    let got = other.map_or("none".to_owned(), ToString::to_string);
                    Err(differs(format!("the client's contextId, {own}, or an error"), got))
                }
            }
        }
        Answer::Error(error) if error.status < 500 && error.name.as_deref() != Some("InternalError") => {
            bench.note(format!("the agent takes no contextId of a client's making: {}", error.summary()));
            Ok(())
        }
        other => Err(differs("an answer, or an error that refuses the contextId", other.summary())),
    }
}

/// The reply must already contain a context that the agent created.
async fn generated(bench: &Bench) -> Done {
    let task = bench.task(&Say::text(COMPLETE)).await?;
    let now = bench.get(&task["id"]).await?;
    if filled(&task, "contextId").is_none() && filled(&now, "contextId").is_none() {
        bench.note("the agent makes no contexts, which is allowed");
        return if task.get("contextId").is_none() {
            Ok(())
        } else {
            Err(differs("a contextId", "an empty one"))
        };
    }
    if task["contextId"] == now["contextId"] {
        return Ok(());
    }
    Err(differs(
        format!("the contextId that GetTask tells, {}", now["contextId"]),
        task["contextId"].to_string(),
    ))
}

/// A message may name only an existing task.
async fn message_task(bench: &Bench) -> Done {
    let Said::Message(message) = bench.say(&Say::text("tck-message-response")).await? else {
        return Err(skip("the agent answers with a task"));
    };
    let Some(id) = filled(&message, "taskId") else { return Ok(()) };
    match bench.call(Operation::GetTask, &json!({ "id": id })).await? {
        Answer::Reply { .. } => Ok(()),
        other => Err(differs("no taskId, or that of a task", format!("{id}: {}", other.summary()))),
    }
}
