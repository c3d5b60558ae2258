//! CancelTask, where more than one answer is correct.

use serde_json::json;

use super::talk::{COMPLETE, Said, Say, has_ended, skip, state};
use crate::case::Verdict;
use crate::native::{Checks, Done, checks, differs};
use crate::run::Bench;
use crate::target::Behaviours;
use crate::wire::Answer;
use crate::wire::request::Operation;

pub(in crate::native) const CHECKS: Checks = checks! {
    "v1.cancel.any-agent" => any_agent,
    "v1.cancel.twice" => twice,
};

/// Cancels right after the start. A fast agent may be done by then, which is not a failure.
pub(in crate::native) async fn any_agent(bench: &Bench) -> Done {
    let knows = bench.target().behaviours == Behaviours::Prefixes;
    let say = Say::text(if knows { "tck-cancel" } else { COMPLETE }).at_once();
    let Said::Task(task) = bench.say(&say).await? else {
        return Err(skip("the agent answers with a message; there is no task to cancel"));
    };
    let answer = bench.call(Operation::CancelTask, &json!({ "id": task["id"] })).await?;
    let now = bench.get(&task["id"]).await?;
    match answer {
        Answer::Reply { root: Some(root), .. } if root["id"] != task["id"] => {
            Err(differs(format!("the canceled task, {}", task["id"]), root["id"].to_string()))
        }
        Answer::Reply { .. } if state(&now) == "CANCELED" => Ok(()),
        Answer::Reply { .. } if has_ended(&now) => Err(quicker(&state(&now))),
        Answer::Reply { .. } => {
            let settled = bench.settled(&now).await?;
            if state(&settled) == "CANCELED" { Ok(()) } else { Err(quicker(&state(&settled))) }
        }
        Answer::Error(error) if bench.is_named(&error, "TaskNotCancelableError") => {
            if has_ended(&now) {
                return Err(quicker(&state(&now)));
            }
            bench.note("the agent does not cancel tasks that are at work, which is allowed");
            Ok(())
        }
        Answer::Error(error) if bench.is_named(&error, "UnsupportedOperationError") => {
            bench.note("the agent does not cancel tasks at all");
            Ok(())
        }
        other => Err(differs("the canceled task, or TaskNotCancelableError", other.summary())),
    }
}

fn quicker(state: &str) -> Verdict {
    Verdict::Inconclusive(format!("the agent was quicker than the cancellation: the task is {state}"))
}

/// One section says a cancel may be repeated, another that an ended task cannot be canceled.
async fn twice(bench: &Bench) -> Done {
    let task = bench.running().await?;
    let id = json!({ "id": task["id"] });
    bench.reply(Operation::CancelTask, &id).await?;
    match bench.call(Operation::CancelTask, &id).await? {
        Answer::Reply { root: Some(root), .. } if state(&root) == "CANCELED" => {
            bench.note("a second cancel answers with the canceled task");
            Ok(())
        }
        Answer::Error(error) => {
            bench.note("a second cancel is refused");
            bench.expect_named(&error, "TaskNotCancelableError")
        }
        other => Err(differs("the canceled task, or TaskNotCancelableError", other.summary())),
    }
}
