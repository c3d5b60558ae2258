//! Two streams of one task, and one that is cut.

use serde_json::{Value, json};

use crate::acts::assertion::show;
use crate::acts::stream::{is_terminal, kind_of, state_of};
use crate::case::Verdict;
use crate::native::{Done, differs, fail};
use crate::run::Bench;
use crate::speak::send_params;
use crate::wire::request::Operation;
use crate::wire::{Answer, WireError};

/// STREAM-MULTI-001: two subscriptions of one task show the same events.
pub(super) async fn two_streams(bench: &Bench) -> Done {
    let task = started(bench, "tck-stream-basic two streams").await?;
    let (one, two) = tokio::join!(watch(bench, &task), watch(bench, &task));
    let (one, two) = (one?, two?);
    for events in [&one, &two] {
        ends(events)?;
    }
    same_tail(&one, &two)
}

/// STREAM-MULTI-002: one of two subscriptions is closed; the other goes on to the end.
pub(super) async fn one_stream_closed(bench: &Bench) -> Done {
    let task = started(bench, "tck-stream-basic one is closed").await?;
    let (short, long) = tokio::join!(first_event(bench, &task), watch(bench, &task));
    short?;
    ends(&long?)
}

/// STREAM-RESUB-001: a subscription is cut after its first event; the next starts with the task and goes on.
pub(super) async fn resubscribe(bench: &Bench) -> Done {
    let task = started(bench, "tck-long-running cut and resumed").await?;
    first_event(bench, &task).await?;
    let events = watch(bench, &task).await?;
    match events.first() {
        Some(first) if kind_of(first) == "task" => ends(&events),
        first => {
            Err(differs("the task as the first event", first.map_or_else(|| "no event".to_owned(), show)))
        }
    }
}

/// A task that goes on working while it is watched.
async fn started(bench: &Bench, text: &str) -> Done<Value> {
    let mut params = send_params(bench.generation(), text, json!({}));
    params["configuration"] = json!({"returnImmediately": true});
    let root = bench.reply(Operation::SendMessage, &params).await?;
    let task = root.get("task").cloned().unwrap_or_default();
    match (&task["id"], state_of(&task)) {
        (Value::String(_), Some(state)) if !is_terminal(&state) => Ok(task),
        (Value::String(_), Some(state)) => {
            Err(Verdict::Inconclusive(format!("the task was {state} before it could be watched")))
        }
        _ => Err(differs("a task that is at work", show(&root))),
    }
}

/// All events of a subscription, until the agent closes it.
async fn watch(bench: &Bench, task: &Value) -> Done<Vec<Value>> {
    match bench.call(Operation::SubscribeToTask, &json!({"id": task["id"]})).await? {
        Answer::Stream { events, closed: true, error: None, .. } => Ok(events),
        Answer::Error(error) => Err(refused(&error)),
        other => Err(differs("a stream that closes", other.summary())),
    }
}

/// Reads one event and hangs up.
async fn first_event(bench: &Bench, task: &Value) -> Done<Value> {
    let params = json!({"id": task["id"]});
    let request = bench.request(Operation::SubscribeToTask, &params).map_err(|none| Verdict::Skip(none.0))?;
    let probe = bench.probe();
    let asked = probe.ask_until(bench.generation(), bench.binding(), &request, |seen| !seen.is_empty()).await;
    match asked.map_err(|error| fail(format!("no answer: {error}")))? {
        Answer::Stream { events, error: None, .. } if !events.is_empty() => Ok(events[0].clone()),
        Answer::Error(error) => Err(refused(&error)),
        other => Err(differs("an event", other.summary())),
    }
}

/// A task that ended meanwhile cannot be subscribed to; one that may have one stream only refuses a second.
fn refused(error: &WireError) -> Verdict {
    let said = error.summary();
    if error.name.as_deref() == Some("UnsupportedOperationError") {
        return Verdict::Inconclusive(format!("the agent refused a subscription: {said}"));
    }
    differs("a stream of events", said)
}

fn ends(events: &[Value]) -> Done {
    let last = events.iter().rev().find_map(state_of);
    match last {
        Some(state) if is_terminal(&state) => Ok(()),
        other => {
            Err(differs("a stream up to a terminal state", other.unwrap_or_else(|| "no state".to_owned())))
        }
    }
}

/// Whoever came later has more in its first task and fewer updates: the shorter list ends the longer one.
fn same_tail(one: &[Value], two: &[Value]) -> Done {
    let updates = |events: &[Value]| events.iter().skip(1).cloned().collect::<Vec<_>>();
    let (one, two) = (updates(one), updates(two));
    let (short, long) = if one.len() < two.len() { (one, two) } else { (two, one) };
    let tail = &long[long.len() - short.len()..];
    match tail.iter().zip(&short).find(|(one, two)| one != two) {
        None => Ok(()),
        Some((one, two)) => Err(differs(format!("the same event on both streams: {}", show(one)), show(two))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_later_stream_is_the_end_of_the_earlier_one() {
        let task = |seen: u32| json!({"task": {"id": "t", "seen": seen}});
        let update = |number: u32| json!({"statusUpdate": {"number": number}});
        let full = [task(0), update(1), update(2), update(3)];
        same_tail(&full, &full).unwrap();
        same_tail(&full, &[task(2), update(3)]).unwrap();
        same_tail(&[task(3)], &full).unwrap();
        same_tail(&full, &[task(1), update(3), update(2)]).unwrap_err();
        same_tail(&full, &[task(0), update(1), update(3)]).unwrap_err();
    }

    #[test]
    fn a_stream_ends_in_a_terminal_state() {
        let status = |state: &str| json!({"statusUpdate": {"status": {"state": state}}});
        ends(&[status("TASK_STATE_WORKING"), status("TASK_STATE_COMPLETED")]).unwrap();
        ends(&[status("TASK_STATE_WORKING")]).unwrap_err();
        ends(&[]).unwrap_err();
    }
}
