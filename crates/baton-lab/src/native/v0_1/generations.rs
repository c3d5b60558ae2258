//! 0.1 together with other generations: method names that two generations share, and tasks that are read in another
//! one.

use serde_json::{Value, json};

use super::shapes::{self, without_nulls};
use crate::generation::Generation;
use crate::native::shape::{faults, judge};
use crate::native::talk::{fresh_id, skip};
use crate::native::v0_3::generations::{in_generation, judge_foreign};
use crate::native::v0_3::shapes as newer;
use crate::native::{Checks, Done, checks, differs};
use crate::run::Bench;
use crate::wire::Answer;
use crate::wire::request::Operation;

pub(in crate::native) const CHECKS: Checks = checks! {
    "v0_1.generations.read-by-newer" => read_by_newer,
    "v0_1.generations.read-from-newer" => read_from_newer,
};

/// `tasks/get` is a method of both; the header says which generation is meant.
async fn read_by_newer(bench: &Bench) -> Done {
    let made = bench.ended().await?;
    let id = json!({ "id": made["id"] });
    let answer = in_generation(bench, Generation::V0_3, Operation::GetTask, &id).await?;
    judge_foreign(answer, &made["id"], &newer::TASK)
}

/// Without a header the caller's generation is unknown: the task may be in the form of either generation.
async fn read_from_newer(bench: &Bench) -> Done {
    let say = json!({
        "message": {"kind": "message", "messageId": fresh_id(), "role": "user", "parts": [{"kind": "text", "text": "hello"}]},
        "configuration": {"blocking": true}});
    let sent = in_generation(bench, Generation::V0_3, Operation::SendMessage, &say).await?;
    let Answer::Reply { root: Some(root), .. } = &sent else {
        return Err(differs("an answer to message/send in 0.3", sent.summary()));
    };
    if root["kind"] != "task" {
        return Err(skip("the agent answers with a message in 0.3"));
    }
    match bench.call(Operation::GetTask, &json!({ "id": root["id"] })).await? {
        Answer::Reply { root: Some(task), .. } => in_one_spelling(&task),
        Answer::Error(error) if error.name.as_deref() == Some("TaskNotFoundError") => {
            Err(skip("the agent keeps the tasks of its generations apart, which is allowed"))
        }
        other => Err(differs("the task, or TaskNotFoundError", other.summary())),
    }
}

fn in_one_spelling(task: &Value) -> Done {
    let (old, new) = (faults(&shapes::TASK, &without_nulls(task), ""), faults(&newer::TASK, task, ""));
    judge(if new.len() < old.len() { new } else { old })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_in_one_spelling() {
        let old = json!({"id": "t", "status": {"state": "completed"}, "artifacts": [{"parts": [{"type": "text", "text": "x"}]}]});
        let new = json!({"kind": "task", "id": "t", "contextId": "c", "status": {"state": "completed"},
            "artifacts": [{"artifactId": "a", "parts": [{"kind": "text", "text": "x"}]}]});
        in_one_spelling(&old).unwrap();
        in_one_spelling(&new).unwrap();
        let mut mixed = new;
        mixed["artifacts"] = old["artifacts"].clone();
        in_one_spelling(&json!({"id": "t", "status": {"state": "TASK_STATE_COMPLETED"}})).unwrap_err();
        mixed["status"]["state"] = json!("done");
        in_one_spelling(&mixed).unwrap_err();
    }
}
