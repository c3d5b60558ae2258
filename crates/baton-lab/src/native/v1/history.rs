//! `historyLength`: never more messages than requested, and the latest ones.

use serde_json::{Value, json};

use super::talk::{Say, skip};
use crate::acts::assertion::show;
use crate::native::{Checks, Done, checks, differs};
use crate::run::Bench;
use crate::wire::request::Operation;

pub(in crate::native) const CHECKS: Checks = checks! {
    "v1.history.latest" => latest,
    "v1.history.order" => order,
    "v1.history.in-lists" => in_lists,
    "v1.history.two-entries" => two_entries,
};

/// A task with three turns; the ids of the user's messages.
async fn talk(bench: &Bench) -> Done<(Value, Vec<Value>)> {
    let mut ids = Vec::new();
    let first = Say::text("tck-multi-turn");
    ids.push(first.id().clone());
    let task = bench.task(&first).await?;
    for text in ["second turn", "done"] {
        let say = Say::text(text).to(&task);
        ids.push(say.id().clone());
        bench.task(&say).await?;
    }
    Ok((bench.get(&task["id"]).await?, ids))
}

fn messages(task: &Value) -> &[Value] {
    task["history"].as_array().map_or(&[], Vec::as_slice)
}

async fn latest(bench: &Bench) -> Done {
    let (task, _) = talk(bench).await?;
    let all = messages(&task);
    if all.is_empty() {
        return Err(skip("the agent keeps no history"));
    }
    for length in 0..=all.len() {
        let params = json!({"id": task["id"], "historyLength": length});
        let now = bench.reply(Operation::GetTask, &params).await?;
        is_tail(all, messages(&now), length)?;
    }
    Ok(())
}

/// At most `length` messages: the latest ones, in order. Fewer are allowed.
fn is_tail(all: &[Value], got: &[Value], length: usize) -> Done {
    if got.len() > length {
        return Err(differs(
            format!("at most {length} messages of history"),
            format!("{} messages", got.len()),
        ));
    }
    let last = &all[all.len().saturating_sub(length)..];
    let mut rest = last.iter();
    if got.iter().all(|message| rest.any(|known| known["messageId"] == message["messageId"])) {
        return Ok(());
    }
    let ids =
        |messages: &[Value]| show(&messages.iter().map(|message| message["messageId"].clone()).collect());
    Err(differs(format!("the latest {length} messages: {}", ids(last)), ids(got)))
}

async fn order(bench: &Bench) -> Done {
    let (task, sent) = talk(bench).await?;
    let kept: Vec<&Value> = messages(&task).iter().map(|message| &message["messageId"]).collect();
    let places: Vec<usize> =
        sent.iter().filter_map(|id| kept.iter().position(|known| *known == id)).collect();
    if places.len() < 2 {
        return Err(skip("the agent keeps fewer than two of the user's messages"));
    }
    if places.is_sorted() {
        Ok(())
    } else {
        Err(differs("the user's messages in the order they were sent", format!("{places:?}")))
    }
}

async fn in_lists(bench: &Bench) -> Done {
    let (task, _) = talk(bench).await?;
    let Some(context) = task.get("contextId") else {
        return Err(skip("the task has no contextId to list by"));
    };
    for length in [0, 1] {
        let params = json!({"contextId": context, "historyLength": length});
        let list = bench.reply(Operation::ListTasks, &params).await?;
        let long = list["tasks"].as_array().into_iter().flatten().find(|task| messages(task).len() > length);
        if let Some(long) = long {
            let count = messages(long).len();
            return Err(differs(format!("at most {length} messages per task"), format!("{count} messages")));
        }
    }
    Ok(())
}

async fn two_entries(bench: &Bench) -> Done {
    let (task, _) = talk(bench).await?;
    let params = json!({"id": task["id"], "historyLength": 100});
    let now = bench.reply(Operation::GetTask, &params).await?;
    match messages(&now).len() {
        0 | 1 => Err(differs("a history of at least two entries after three turns", show(&now["history"]))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_is_short_and_from_the_end() {
        let list = |ids: &[&str]| -> Vec<Value> { ids.iter().map(|id| json!({ "messageId": id })).collect() };
        let all = list(&["a", "b", "c", "d"]);
        for (got, length, met) in [
            (list(&["c", "d"]), 2, true),
            (list(&["d"]), 2, true),
            (list(&[]), 0, true),
            (list(&["b", "c", "d"]), 2, false),
            (list(&["a", "b"]), 2, false),
            (list(&["d", "c"]), 2, false),
            (list(&["d"]), 0, false),
        ] {
            assert_eq!(is_tail(&all, &got, length).is_ok(), met, "{got:?} {length}");
        }
    }
}
