//! The states of a task from first to last, and that nothing follows.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::same::same;
use super::talk::{COMPLETE, SOON, Said, Say, has_ended, is_interrupted, skip, state};
use crate::acts::assertion::show;
use crate::native::{Checks, Done, checks, differs};
use crate::run::Bench;
use crate::target::Behaviours;
use crate::wire::Answer;
use crate::wire::request::Operation;

pub(in crate::native) const CHECKS: Checks = checks! {
    "v1.lifecycle.examples" => examples,
    "v1.lifecycle.polled" => polled,
    "v1.lifecycle.final" => is_final,
    "v1.lifecycle.refuses-messages" => refuses_messages,
    "v1.lifecycle.rejected" => rejected,
    "v1.lifecycle.seen-working" => seen_working,
};

/// Most skills whose examples are tried.
const MOST_SKILLS: usize = 5;

/// The first example phrase of each skill must lead to a result, an answer, or a question.
pub(in crate::native) async fn examples(bench: &Bench) -> Done {
    let skills = bench.target().skills().iter();
    let phrases: Vec<(&str, &str)> = skills
        .filter_map(|skill| Some((skill["id"].as_str()?, skill["examples"].get(0)?.as_str()?)))
        .take(MOST_SKILLS)
        .collect();
    if phrases.is_empty() {
        return Err(skip("no skill has an example phrase"));
    }
    for (skill, phrase) in phrases {
        let Said::Task(task) = bench.say(&Say::text(phrase)).await? else { continue };
        let task = bench.settled(&task).await?;
        if !(state(&task) == "COMPLETED" || is_interrupted(&task)) {
            let wanted = format!("skill `{skill}` to complete its own example {}", json!(phrase));
            return Err(differs(wanted, state(&task)));
        }
    }
    Ok(())
}

/// While it is polled, a task never returns to an earlier state, and a terminal state does not change.
pub(in crate::native) async fn polled(bench: &Bench) -> Done {
    let knows = bench.target().behaviours == Behaviours::Prefixes;
    let say = Say::text(if knows { "tck-stream-basic" } else { COMPLETE }).at_once();
    let mut task = bench.task(&say).await?;
    let (mut seen, started) = (vec![state(&task)], Instant::now());
    let mut pause = Duration::from_millis(20);
    while !has_ended(&task) && !is_interrupted(&task) {
        if started.elapsed() > bench.probe().timeout() {
            return Err(differs("the task to end", format!("{seen:?}")));
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(500));
        task = bench.get(&task["id"]).await?;
        seen.push(state(&task));
    }
    seen.push(state(&bench.get(&task["id"]).await?));
    match backward(&seen) {
        Some((from, to)) => Err(differs(format!("a state that may follow {from}"), to)),
        None => Ok(()),
    }
}

fn backward(states: &[String]) -> Option<(String, String)> {
    let bad =
        |from: &str, to: &str| from != to && (to == "SUBMITTED" || crate::acts::stream::is_terminal(from));
    let pair = states.windows(2).find(|pair| bad(&pair[0], &pair[1]))?;
    Some((pair[0].clone(), pair[1].clone()))
}

/// A message and a cancel to an ended task are refused, and do not change the task.
pub(in crate::native) async fn is_final(bench: &Bench) -> Done {
    let task = bench.ended().await?;
    let before = bench.get(&task["id"]).await?;
    let _ = bench.call(Operation::SendMessage, &Say::text(COMPLETE).to(&task).params(bench)).await?;
    bench.clean_up(&task).await;
    let after = bench.get(&task["id"]).await?;
    for member in ["status", "artifacts", "history"] {
        if !same(before.get(member), after.get(member)) {
            let shown = |task: &Value| task.get(member).map_or("nothing".to_owned(), show);
            return Err(differs(format!("`{member}` unchanged: {}", shown(&before)), shown(&after)));
        }
    }
    Ok(())
}

/// After each terminal state, messages are refused. The case's test phrase determines the state.
async fn refuses_messages(bench: &Bench) -> Done {
    let prefix = bench.case().test.requires_behaviors.first().map_or(COMPLETE, String::as_str);
    let mut task = bench.task(&Say::text(prefix).at_once()).await?;
    if prefix == "tck-cancel" {
        task = bench.reply(Operation::CancelTask, &json!({ "id": task["id"] })).await?;
    }
    let task = bench.settled(&task).await?;
    if !has_ended(&task) {
        return Err(differs("a task that has ended", state(&task)));
    }
    let error = bench.refusal(Operation::SendMessage, &Say::text("more").to(&task).params(bench)).await?;
    bench.expect_named(&error, "UnsupportedOperationError")
}

/// A task is rejected by its state, or by an error.
async fn rejected(bench: &Bench) -> Done {
    match bench.call(Operation::SendMessage, &Say::text("tck-reject-task").params(bench)).await? {
        Answer::Reply { root: Some(root), .. } if state(&root) == "REJECTED" => Ok(()),
        Answer::Error(error) if error.status < 500 && error.name.as_deref() != Some("InternalError") => {
            bench.note(format!("the task is rejected by an error: {}", error.summary()));
            Ok(())
        }
        other => Err(differs("a task in REJECTED, or an error", other.summary())),
    }
}

/// Polling shows that the work has begun.
async fn seen_working(bench: &Bench) -> Done {
    let task = bench.running().await?;
    let (started, mut now) = (Instant::now(), task.clone());
    while state(&now) != "WORKING" {
        if started.elapsed() > SOON {
            bench.clean_up(&task).await;
            return Err(differs("WORKING within 10 s", state(&now)));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        now = bench.get(&task["id"]).await?;
    }
    bench.clean_up(&task).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_do_not_go_back() {
        let list = |states: &[&str]| -> Vec<String> { states.iter().map(ToString::to_string).collect() };
        assert_eq!(backward(&list(&["SUBMITTED", "SUBMITTED", "WORKING", "COMPLETED", "COMPLETED"])), None);
        assert_eq!(backward(&list(&["WORKING", "INPUT_REQUIRED", "WORKING"])), None);
        backward(&list(&["WORKING", "SUBMITTED"])).unwrap();
        backward(&list(&["COMPLETED", "WORKING"])).unwrap();
    }
}
