//! Streams of 0.3 and 0.1: where they end, what happens after a disconnect, and how they are resumed.

use serde_json::{Value, json};

use super::{cancel, compare_artifacts, final_faults, is_refusal, streamed, task_id};
use crate::acts::assertion::{Mismatch, show};
use crate::acts::stream::{is_terminal, state_of};
use crate::case::Verdict;
use crate::native::shape::{fault, judge};
use crate::native::talk::{COMPLETE, Next, SOON, Say, state};
use crate::native::{Done, differs, fail};
use crate::run::Bench;
use crate::wire::Answer;
use crate::wire::request::Operation;

/// States never go back, and nothing follows a terminal state.
pub(in crate::native) async fn order(bench: &Bench) -> Done {
    let seen = streamed(bench, &Say::text("tck-stream-basic")).await?;
    judge(order_faults(&seen.events))
}

fn order_faults(events: &[Value]) -> Vec<Mismatch> {
    let mut found = Vec::new();
    let mut last: Option<String> = None;
    for (index, event) in events.iter().enumerate() {
        let ended = last.as_deref().is_some_and(is_terminal);
        let Some(state) = state_of(event) else {
            if ended {
                found.push(fault(&format!("events[{index}]"), "nothing after a terminal state", Some(event)));
            }
            continue;
        };
        let back = last.as_deref().is_some_and(|last| last != state && (state == "SUBMITTED" || ended));
        if back {
            let wanted = format!("a state that may follow {}", last.as_deref().unwrap_or_default());
            found.push(fault(&format!("events[{index}].status.state"), &wanted, Some(&json!(state))));
        }
        last = Some(state);
    }
    found
}

/// The events up to a question; the stream must close there.
async fn up_to_a_question(bench: &Bench) -> Done<Vec<Value>> {
    let mut watch = bench.send_stream(&Say::text("tck-input-required")).await?;
    let mut events =
        watch.until("input-required", |event| state_of(event).as_deref() == Some("INPUT_REQUIRED")).await?;
    match watch.within(SOON).await? {
        Next::Closed => {}
        Next::Event(event) => {
            events.push(event);
            events.extend(watch.rest().await?);
        }
        Next::Quiet => {
            return Err(differs(
                "the stream to close, since the agent waits for the client",
                "open for 10 s more",
            ));
        }
    }
    bench.clean_up(&json!({ "id": task_id(&events[0]) })).await;
    Ok(events)
}

pub(in crate::native) async fn question(bench: &Bench) -> Done {
    up_to_a_question(bench).await.map(|_| ())
}

pub(in crate::native) async fn question_final(bench: &Bench) -> Done {
    judge(final_faults(&up_to_a_question(bench).await?))
}

/// The answer to a question may be streamed, too.
pub(in crate::native) async fn answered(bench: &Bench) -> Done {
    let task = bench.task(&Say::text("tck-input-required")).await?;
    let task = bench.settled(&task).await?;
    let seen = streamed(bench, &Say::text("an answer").to(&task)).await?;
    judge(final_faults(&seen.events))?;
    match seen.events.iter().find(|event| task_id(event) != task["id"]) {
        Some(event) => Err(differs(format!("events of the task {}", task["id"]), show(event))),
        None => Ok(()),
    }
}

pub(in crate::native) async fn chunks(bench: &Bench) -> Done {
    let seen = streamed(bench, &Say::text("tck-stream-chunked")).await?;
    let id = seen.events.first().map(task_id).unwrap_or_default();
    compare_artifacts(&seen.events, &bench.get(&id).await?)?;
    if seen.events.iter().any(|event| event["append"] == true || event["artifact"]["append"] == true) {
        return Ok(());
    }
    Err(fail("no artifact update has `append`, so nothing came in chunks"))
}

/// When a task is canceled, its stream shows that and ends.
pub(in crate::native) async fn canceled(bench: &Bench) -> Done {
    let mut watch = bench.send_stream(&Say::text("tck-cancel")).await?;
    let first = watch.event().await?;
    let id = task_id(&first);
    cancel(bench, &id).await?;
    let mut events = vec![first];
    events.extend(watch.rest().await?);
    match events.iter().rev().find_map(state_of) {
        Some(state) if state == "CANCELED" => judge(final_faults(&events)),
        other => Err(differs("CANCELED as the last state", format!("{other:?}"))),
    }
}

/// After a client has disconnected, the task can still be read, and the next ten calls work.
pub(in crate::native) async fn task_stays(bench: &Bench) -> Done {
    let mut watch = bench.send_stream(&Say::text("tck-cancel")).await?;
    let first = watch.event().await?;
    let id = task_id(&first);
    drop(watch);
    let mut now = Value::Null;
    for call in 1..=10 {
        now = bench.get(&id).await.map_err(|verdict| match verdict {
            Verdict::Fail(failure) => {
                fail(format!("call {call} after a stream was closed early: {}", failure.message))
            }
            other => other,
        })?;
    }
    bench.clean_up(&json!({ "id": id })).await;
    if is_terminal(&state(&now)) { Err(differs("the task still at work", state(&now))) } else { Ok(()) }
}

/// The work goes on without any subscriber.
pub(in crate::native) async fn work_goes_on(bench: &Bench) -> Done {
    let mut watch = bench.send_stream(&Say::text("tck-stream-basic")).await?;
    let id = task_id(&watch.event().await?);
    drop(watch);
    let now = bench.settled(&bench.get(&id).await?).await?;
    if state(&now) == "COMPLETED" { Ok(()) } else { Err(differs("COMPLETED after all", state(&now))) }
}

pub(in crate::native) async fn ended_task(bench: &Bench) -> Done {
    let task = bench.ended().await?;
    bench
        .refusal(Operation::SendStreamingMessage, &Say::text(COMPLETE).to(&task).params(bench))
        .await
        .map(|_| ())
}

/// A subscriber to a running task sees its end.
pub(in crate::native) async fn to_the_end(bench: &Bench) -> Done {
    let task = bench.task(&Say::text("tck-stream-basic").at_once()).await?;
    watched(bench, &task["id"]).await
}

/// A stream is cut and resumed.
pub(in crate::native) async fn comes_back(bench: &Bench) -> Done {
    let mut watch = bench.send_stream(&Say::text("tck-stream-basic")).await?;
    let id = task_id(&watch.event().await?);
    drop(watch);
    watched(bench, &id).await
}

/// Not every server repeats earlier events; the end must be shown.
async fn watched(bench: &Bench, id: &Value) -> Done {
    let events = bench.subscribe(&json!({ "id": id })).await?.rest().await?;
    if let Some(event) = events.iter().find(|event| task_id(event) != *id) {
        return Err(differs(format!("events of the task {id}"), show(event)));
    }
    judge(final_faults(&events))
}

/// The specifications allow a stream with the task, or say nothing, and some servers refuse: only a stream that stays
/// open is wrong.
pub(in crate::native) async fn subscribe_ended(bench: &Bench) -> Done {
    let task = bench.ended().await?;
    match bench.call(Operation::SubscribeToTask, &json!({ "id": task["id"] })).await? {
        Answer::Error(error) if is_refusal(&error) => {
            bench.note(format!("a subscription to an ended task is refused: {}", error.summary()));
            Ok(())
        }
        Answer::Stream { closed: true, error: None, events, .. } => {
            bench.note(format!("a subscription to an ended task closes after {} events", events.len()));
            if events.iter().all(|event| state_of(event).is_none_or(|state| is_terminal(&state))) {
                return Ok(());
            }
            Err(differs("events of a task that has ended", show(&json!(events))))
        }
        Answer::Stream { error: Some(error), .. } if is_refusal(&error) => {
            bench.note(format!("a subscription to an ended task ends with {}", error.summary()));
            Ok(())
        }
        Answer::Reply { .. } => Err(differs("a stream, or an error", "a plain answer")),
        other => Err(differs("a stream that closes, or an error", other.summary())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_do_not_go_back() {
        let status = |state: &str| json!({"status": {"state": state}});
        let places = |events: &[Value]| -> Vec<String> {
            order_faults(events).into_iter().map(|fault| fault.path).collect()
        };
        let artifact = json!({"artifact": {}});
        let none: Vec<String> = Vec::new();
        assert_eq!(
            places(&[status("submitted"), status("working"), artifact.clone(), status("completed")]),
            none
        );
        assert_eq!(places(&[status("working"), status("input-required"), status("working")]), none);
        assert_eq!(places(&[status("completed"), artifact]), ["events[1]"]);
        assert_eq!(places(&[status("working"), status("submitted")]), ["events[1].status.state"]);
        assert_eq!(places(&[status("failed"), status("completed")]), ["events[1].status.state"]);
    }
}
