//! Several streams of one task: the same events in the same order, independent of each other.

use serde_json::{Value, json};

use super::fold::fold;
use super::same::plain;
use super::shape::{fault, judge};
use super::talk::{Next, SOON, Say, Watch, has_ended, last_state, state};
use crate::acts::assertion::{Mismatch, show};
use crate::acts::stream::{inner, is_terminal, kind_of};
use crate::case::Verdict;
use crate::native::{Checks, Done, checks, differs, fail};
use crate::run::Bench;

pub(in crate::native) const CHECKS: Checks = checks! {
    "v1.watchers.first-is-the-task" => first_is_the_task,
    "v1.watchers.ends-with-the-task" => ends_with_the_task,
    "v1.watchers.same-events" => same_events,
    "v1.watchers.sender-and-subscriber" => sender_and_subscriber,
    "v1.watchers.one-leaves" => one_leaves,
    "v1.watchers.comes-back" => comes_back,
    "v1.watchers.waits-at-a-question" => waits_at_a_question,
};

async fn first_is_the_task(bench: &Bench) -> Done {
    let task = bench.running().await?;
    let mut watch = bench.subscribe(&task).await?;
    let first = watch.event().await;
    bench.clean_up(&task).await;
    judge(not_the_task(&first?, &task))
}

fn not_the_task(first: &Value, task: &Value) -> Vec<Mismatch> {
    if kind_of(first) != "task" {
        return vec![fault("events[0]", "the task", Some(&json!(kind_of(first))))];
    }
    if first["task"]["id"] != task["id"] {
        return vec![fault("events[0].task.id", &task["id"].to_string(), first["task"].get("id"))];
    }
    if has_ended(&first["task"]) {
        let wanted = "the task's current state; it is still working";
        return vec![fault("events[0].task.status.state", wanted, Some(&json!(state(&first["task"]))))];
    }
    Vec::new()
}

async fn ends_with_the_task(bench: &Bench) -> Done {
    let task = bench.running().await?;
    let mut watch = bench.subscribe(&task).await?;
    watch.event().await?;
    bench.clean_up(&task).await;
    let rest = watch.rest().await?;
    match last_state(&rest) {
        state if is_terminal(&state) => Ok(()),
        other => Err(differs("a terminal state before the stream closes", other)),
    }
}

async fn same_events(bench: &Bench) -> Done {
    let task = bench.task(&Say::text("tck-stream-basic").at_once()).await?;
    let (mut one, mut two) = (bench.subscribe(&task).await?, bench.subscribe(&task).await?);
    let (one, two) = tokio::join!(one.rest(), two.rest());
    compare(&one?, &two?)
}

async fn sender_and_subscriber(bench: &Bench) -> Done {
    let mut sender = bench.send_stream(&Say::text("tck-stream-basic")).await?;
    let first = sender.event().await?;
    let mut subscriber = bench.subscribe(inner(&first)).await?;
    let (sent, subscribed) = tokio::join!(sender.rest(), subscriber.rest());
    let mut sent = sent?;
    sent.insert(0, first);
    compare(&sent, &subscribed?)
}

/// After the first event, the events of the later stream must be the end of those of the earlier one.
pub(super) fn compare(one: &[Value], two: &[Value]) -> Done {
    for events in [one, two] {
        let first = events.first().map(kind_of).unwrap_or_default();
        if first != "task" {
            return Err(differs("each stream to begin with the task", first));
        }
    }
    let (long, short) = if one.len() >= two.len() { (one, two) } else { (two, one) };
    let (long, short) = (updates(long), updates(short));
    if short.is_empty() {
        return Err(Verdict::Inconclusive("the task ended before both streams were open".to_owned()));
    }
    if !long.ends_with(&short) {
        return Err(differs(
            format!("both streams with the same updates: {}", show(&json!(long))),
            show(&json!(short)),
        ));
    }
    // A later stream has the earlier updates in its first event; a stream that lost updates does not.
    let (one, two) = (fold(one).map_err(fail)?, fold(two).map_err(fail)?);
    if one == two {
        return Ok(());
    }
    Err(differs(format!("both streams to add up to the same artifacts: {}", show(&one)), show(&two)))
}

fn updates(events: &[Value]) -> Vec<Value> {
    events.iter().skip(1).filter(|event| kind_of(event) != "task").map(plain).collect()
}

async fn one_leaves(bench: &Bench) -> Done {
    let task = bench.running().await?;
    let (mut stays, mut leaves) = (bench.subscribe(&task).await?, bench.subscribe(&task).await?);
    stays.event().await?;
    leaves.event().await?;
    drop(leaves);
    // Enough time for the agent to notice the disconnect.
    let now = bench.get(&task["id"]).await?;
    if has_ended(&now) {
        return Err(differs("the task to go on after one of its streams was closed", state(&now)));
    }
    let early = stays.within(SOON / 50).await?;
    if matches!(early, Next::Closed) {
        return Err(differs("the other stream to stay open", "it closed, too"));
    }
    bench.clean_up(&task).await;
    ends(stays).await
}

async fn ends(mut watch: Watch) -> Done {
    let rest = watch.rest().await?;
    match last_state(&rest) {
        state if is_terminal(&state) => Ok(()),
        other => Err(differs("the terminal state on the stream", other)),
    }
}

async fn comes_back(bench: &Bench) -> Done {
    let task = bench.running().await?;
    let mut first = bench.subscribe(&task).await?;
    first.event().await?;
    drop(first);
    let mut second = bench.subscribe(&task).await?;
    let again = second.event().await?;
    bench.clean_up(&task).await;
    judge(not_the_task(&again, &task))?;
    ends(second).await
}

/// A task that waits for input can be subscribed to. The agent may close the stream or keep it open; an open stream
/// must continue with the task.
async fn waits_at_a_question(bench: &Bench) -> Done {
    let task = bench.task(&Say::text("tck-input-required")).await?;
    if state(&task) != "INPUT_REQUIRED" {
        return Err(differs("a task that waits for input", state(&task)));
    }
    let mut watch = bench.subscribe(&task).await?;
    judge(not_the_task(&watch.event().await?, &task))?;
    let early = watch.within(SOON / 50).await?;
    bench.task(&Say::text("an answer").to(&task)).await?;
    match early {
        Next::Closed => {
            bench.note("the stream of a task that waits for input is closed by the agent, which is allowed");
            Ok(())
        }
        Next::Event(_) | Next::Quiet => ends(watch).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_compared_by_their_ends() {
        let task = json!({"task": {"id": "t"}});
        let artifact = json!({"artifactId": "a", "parts": [{"text": "x"}]});
        let (a, b) = (json!({"statusUpdate": 1}), json!({"statusUpdate": 2}));
        let c = json!({"artifactUpdate": {"artifact": artifact}});
        let all = [task.clone(), a.clone(), b.clone(), c.clone()];
        compare(&all, &all).unwrap();
        compare(&all, &[task.clone(), c.clone()]).unwrap();
        compare(&[task.clone(), b.clone(), c.clone()], &all).unwrap();
        let lost = [task.clone(), a.clone(), c.clone()];
        assert!(matches!(compare(&all, &lost), Err(Verdict::Fail(_))));
        let swapped = [task.clone(), b.clone(), a, c.clone()];
        assert!(matches!(compare(&all, &swapped), Err(Verdict::Fail(_))));
        let (late, end) = (json!({"task": {"id": "t", "artifacts": [artifact]}}), json!({"statusUpdate": 4}));
        let whole = [task.clone(), c.clone(), end.clone()];
        compare(&whole, &[late, end.clone()]).unwrap();
        assert!(
            matches!(compare(&whole, &[task.clone(), end]), Err(Verdict::Fail(_))),
            "the artifact is lost"
        );
        assert!(matches!(compare(&all, &[b]), Err(Verdict::Fail(_))));
        assert!(matches!(compare(&all, &[task]), Err(Verdict::Inconclusive(_))));
    }

    #[test]
    fn the_first_event_is_the_task_as_it_is() {
        let task = json!({"id": "t"});
        let first = |id: &str, state: &str| json!({"task": {"id": id, "status": {"state": state}}});
        assert_eq!(not_the_task(&first("t", "TASK_STATE_WORKING"), &task), []);
        assert_eq!(not_the_task(&first("x", "TASK_STATE_WORKING"), &task).len(), 1);
        assert_eq!(not_the_task(&first("t", "TASK_STATE_CANCELED"), &task).len(), 1);
        assert_eq!(not_the_task(&json!({"statusUpdate": {}}), &task).len(), 1);
    }
}
