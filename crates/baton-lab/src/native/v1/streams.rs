//! Single streams, from the response head to the end.

use serde_json::{Value, json};

use super::shape::{fault, judge};
use super::talk::{COMPLETE, Next, SOON, Say, last_state, skip};
use crate::acts::assertion::{Mismatch, show};
use crate::acts::stream::{inner, is_terminal, kind_of, state_of};
use crate::native::{Checks, Done, checks, differs};
use crate::run::Bench;
use crate::wire::Answer;
use crate::wire::request::Operation;

pub(in crate::native) const CHECKS: Checks = checks! {
    "v1.streams.sequence" => sequence,
    "v1.streams.ends" => ends,
    "v1.streams.any-agent" => any_agent,
    "v1.streams.prompt" => prompt,
    "v1.streams.ids-agree" => ids_agree,
    "v1.streams.envelopes" => envelopes,
    "v1.streams.times" => times,
    "v1.streams.awkward-text" => awkward_text,
    "v1.streams.refusal" => refusal,
};

async fn events_of(bench: &Bench, text: &str) -> Done<Vec<Value>> {
    bench.events(Operation::SendStreamingMessage, &Say::text(text).params(bench)).await
}

async fn sequence(bench: &Bench) -> Done {
    let events = events_of(bench, "tck-stream-basic").await?;
    let (found, notes) = sequence_faults(&events);
    notes.into_iter().for_each(|note| bench.note(note));
    judge(found)
}

/// For the agent's own example phrase: a message alone, or a task and its updates up to the end or a question.
async fn any_agent(bench: &Bench) -> Done {
    let mut watch = bench.send_stream(&Say::text(COMPLETE)).await?;
    let mut events = vec![watch.event().await?];
    loop {
        let stops = events.last().and_then(state_of).is_some_and(|state| state.ends_with("_REQUIRED"));
        // At a question the stream may stay open until there is an answer.
        let patience = if stops { SOON / 10 } else { bench.probe().timeout() };
        match watch.within(patience).await? {
            Next::Event(event) => events.push(event),
            Next::Closed => break,
            Next::Quiet if stops => break,
            Next::Quiet => {
                return Err(differs("the stream to close", format!("open after {} events", events.len())));
            }
        }
    }
    judge(sequence_faults(&events).0)
}

/// Faults in the order of event kinds, and notes on what is unusual but allowed.
fn sequence_faults(events: &[Value]) -> (Vec<Mismatch>, Vec<String>) {
    let (mut found, mut notes) = (Vec::new(), Vec::new());
    let kinds: Vec<String> = events.iter().map(kind_of).collect();
    let mut wrong = |index: usize, wanted: &str| {
        found.push(fault(
            &format!("events[{index}]"),
            wanted,
            kinds.get(index).map(|kind| json!(kind)).as_ref(),
        ));
    };
    match kinds.first().map(String::as_str) {
        Some("message") if kinds.len() > 1 => wrong(1, "the stream to end after the one message"),
        Some("message" | "task") => {}
        _ => wrong(0, "a task, or a single message, as the first event"),
    }
    let mut ended = false;
    for (index, event) in events.iter().enumerate() {
        match kinds[index].as_str() {
            "statusUpdate" | "artifactUpdate" if !ended => {}
            "task" if index == 0 => {}
            "task"
                if index + 1 == events.len() && state_of(event).is_some_and(|state| is_terminal(&state)) =>
            {
                notes.push(
                    "the stream ends with the whole task once more, which one section allows".to_owned(),
                );
            }
            "message" if index == 0 => {}
            // If the task's snapshot was taken a moment late, it already contains the following update.
            "statusUpdate" if index == 1 && state_of(event) == state_of(&events[0]) => {
                notes.push(
                    "the task is terminal in the first event, and the update says so once more".to_owned(),
                );
            }
            _ if ended => wrong(index, "nothing after a terminal state"),
            _ => wrong(index, "a status or artifact update after the task"),
        }
        ended = ended || state_of(event).is_some_and(|state| is_terminal(&state));
    }
    (found, notes)
}

/// The case's test phrase determines the terminal state, so that each has a case of its own.
async fn ends(bench: &Bench) -> Done {
    let prefix = bench.case().test.requires_behaviors.first().map_or(COMPLETE, String::as_str);
    let events = match bench.call(Operation::SendStreamingMessage, &Say::text(prefix).params(bench)).await? {
        Answer::Stream { events, closed: true, error: None, .. } => events,
        Answer::Error(error) if prefix == "tck-reject-task" => {
            bench.note(format!("the task is rejected by an error: {}", error.summary()));
            return Ok(());
        }
        other => return Err(differs("a stream that closes", other.summary())),
    };
    match last_state(&events) {
        state if is_terminal(&state) => Ok(()),
        other => Err(differs("the stream to close at a terminal state", other)),
    }
}

/// The first event must arrive while the work goes on, not at its end.
async fn prompt(bench: &Bench) -> Done {
    let mut watch = bench.send_stream(&Say::text("tck-cancel")).await?;
    let first = watch.event().await?;
    let task = inner(&first).clone();
    bench.clean_up(&task).await;
    let rest = watch.rest().await?;
    let last =
        rest.iter().chain([&first]).find_map(|event| state_of(event).filter(|state| is_terminal(state)));
    match last {
        Some(_) => Ok(()),
        None => Err(differs("the cancellation as the last event", show(&json!(rest)))),
    }
}

async fn ids_agree(bench: &Bench) -> Done {
    let events = events_of(bench, "tck-stream-basic").await?;
    judge(foreign_ids(&events))
}

fn foreign_ids(events: &[Value]) -> Vec<Mismatch> {
    let Some(first) = events.first().filter(|event| kind_of(event) == "task").map(inner) else {
        return vec![fault("events[0]", "a task", events.first())];
    };
    let (id, context) = (&first["id"], first.get("contextId"));
    let mut found = Vec::new();
    for (index, event) in events.iter().enumerate().skip(1) {
        let told = inner(event);
        let own = if kind_of(event) == "task" { "id" } else { "taskId" };
        if told[own] != *id {
            found.push(fault(
                &format!("events[{index}].{own}"),
                &format!("the task's id, {id}"),
                told.get(own),
            ));
        }
        if context.is_some() && told.get("contextId") != context {
            let wanted = format!("the task's contextId, {}", first["contextId"]);
            found.push(fault(&format!("events[{index}].contextId"), &wanted, told.get("contextId")));
        }
    }
    found
}

/// JSON-RPC: each event must be a complete response to the request that opened the stream.
pub(in crate::native) async fn envelopes(bench: &Bench) -> Done {
    let params = Say::text(COMPLETE).params(bench);
    let request = bench.request(Operation::SendStreamingMessage, &params).map_err(|none| skip(none.0))?;
    let sent: Value =
        request.body.as_deref().and_then(|body| serde_json::from_slice(body).ok()).unwrap_or_default();
    let asked = bench.ask(Operation::SendStreamingMessage, &request).await;
    let answer = asked.map_err(|error| crate::native::fail(format!("no answer: {error}")))?;
    let Answer::Stream { frames, .. } = &answer else {
        return Err(differs("a stream of events", answer.summary()));
    };
    let mut found = Vec::new();
    for (index, frame) in frames.iter().enumerate() {
        let envelope: Value = serde_json::from_str(&frame.data).unwrap_or_default();
        found.extend(envelope_faults(&envelope, &sent["id"], &format!("events[{index}]")));
    }
    judge(found)
}

/// Faults of a JSON-RPC envelope.
pub(in crate::native) fn envelope_faults(envelope: &Value, id: &Value, place: &str) -> Vec<Mismatch> {
    let mut found = Vec::new();
    if envelope["jsonrpc"] != "2.0" {
        found.push(fault(&format!("{place}.jsonrpc"), "\"2.0\"", envelope.get("jsonrpc")));
    }
    if envelope.get("id") != Some(id) {
        found.push(fault(&format!("{place}.id"), &format!("the request's id, {id}"), envelope.get("id")));
    }
    let there = |name: &str| envelope.get(name).is_some();
    if there("result") == there("error") {
        found.push(fault(place, "either `result` or `error`", Some(envelope)));
    }
    found
}

/// The timestamps of statuses must not go back.
async fn times(bench: &Bench) -> Done {
    let events = events_of(bench, "tck-stream-basic").await?;
    let times: Vec<(usize, &str)> = events
        .iter()
        .enumerate()
        .filter_map(|(index, event)| Some((index, inner(event)["status"]["timestamp"].as_str()?)))
        .collect();
    if times.is_empty() {
        return Err(skip("no event has a timestamp"));
    }
    judge(backward(&times))
}

/// Times in UTC with the same number of digits can be sorted as text; shorter fractions are padded.
fn backward(times: &[(usize, &str)]) -> Vec<Mismatch> {
    let key = |time: &str| {
        let plain = time.trim_end_matches('Z');
        let (seconds, fraction) = plain.split_once('.').unwrap_or((plain, ""));
        format!("{seconds}.{fraction:0<9}")
    };
    let back = times.windows(2).filter(|pair| key(pair[1].1) < key(pair[0].1));
    back.map(|pair| {
        let place = format!("events[{}].status.timestamp", pair[1].0);
        fault(&place, &format!("no time before {}", pair[0].1), Some(&json!(pair[1].1)))
    })
    .collect()
}

/// Line breaks and other special characters in a text must not break a frame.
async fn awkward_text(bench: &Bench) -> Done {
    let long = "x".repeat(100_000);
    let text = format!("data: a\r\nid: 7\n\nevent: b\r\r: c\u{2028}\u{2029}\u{85}{long}");
    let say = Say::parts(json!([{ "text": COMPLETE }, { "text": text }]));
    let events = bench.events(Operation::SendStreamingMessage, &say.params(bench)).await?;
    if events.is_empty() { Err(differs("events", "none")) } else { judge(sequence_faults(&events).0) }
}

/// An error before the first event must be an error of the binding, or the only event of the stream.
async fn refusal(bench: &Bench) -> Done {
    let say = Say::text(COMPLETE).member("taskId", json!(super::talk::fresh_id()));
    let error = bench.refusal(Operation::SendStreamingMessage, &say.params(bench)).await?;
    bench.expect_named(&error, "TaskNotFoundError")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(state: &str) -> Value {
        json!({"task": {"id": "t", "contextId": "c", "status": {"state": format!("TASK_STATE_{state}")}}})
    }

    fn status(state: &str) -> Value {
        json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": format!("TASK_STATE_{state}")}}})
    }

    fn artifact() -> Value {
        json!({"artifactUpdate": {"taskId": "t", "contextId": "c", "artifact": {}}})
    }

    #[test]
    fn sequences_are_judged() {
        let message = json!({"message": {}});
        let faults = |events: &[Value]| {
            let (found, notes) = sequence_faults(events);
            (found.into_iter().map(|fault| fault.path).collect::<Vec<_>>(), notes.len())
        };
        let none: Vec<String> = Vec::new();
        let good = [task("SUBMITTED"), status("WORKING"), artifact(), status("COMPLETED")];
        assert_eq!(faults(&good), (none.clone(), 0));
        assert_eq!(faults(&[task("COMPLETED")]), (none.clone(), 0));
        assert_eq!(faults(&[task("WORKING"), status("COMPLETED"), task("COMPLETED")]), (none.clone(), 1));
        assert_eq!(faults(&[task("COMPLETED"), status("COMPLETED")]), (none.clone(), 1));
        assert_eq!(faults(std::slice::from_ref(&message)), (none, 0));
        for (bad, place) in [
            (vec![], "events[0]"),
            (vec![status("WORKING"), status("COMPLETED")], "events[0]"),
            (vec![task("WORKING"), task("WORKING")], "events[1]"),
            (vec![task("WORKING"), message.clone()], "events[1]"),
            (vec![task("WORKING"), status("COMPLETED"), artifact()], "events[2]"),
            (vec![task("COMPLETED"), artifact()], "events[1]"),
            (vec![task("COMPLETED"), status("FAILED")], "events[1]"),
        ] {
            assert_eq!(faults(&bad).0, [place], "{bad:?}");
        }
        assert_eq!(faults(&[message, task("WORKING")]).0.len(), 2);
    }

    #[test]
    fn ids_times_and_envelopes_are_judged() {
        assert_eq!(foreign_ids(&[task("WORKING"), artifact(), status("COMPLETED")]), []);
        let other = json!({"statusUpdate": {"taskId": "x", "status": {}}});
        assert_eq!(foreign_ids(&[task("WORKING"), other]).len(), 2);
        assert_eq!(backward(&[(0, "2026-01-31T12:00:00Z"), (1, "2026-01-31T12:00:00.001Z")]), []);
        assert_eq!(backward(&[(0, "2026-01-31T12:00:00.5Z"), (2, "2026-01-31T12:00:00.499Z")]).len(), 1);
        let id = json!("1");
        let faults = |envelope: Value| envelope_faults(&envelope, &id, "e").len();
        assert_eq!(faults(json!({"jsonrpc": "2.0", "id": "1", "result": {}})), 0);
        assert_eq!(faults(json!({"jsonrpc": "2.0", "id": "1", "error": {}})), 0);
        assert_eq!(faults(json!({"jsonrpc": "2.0", "id": 1, "result": {}})), 1);
        assert_eq!(faults(json!({"jsonrpc": "2.0", "id": "1", "result": {}, "error": {}})), 1);
        assert_eq!(faults(json!({"task": {}})), 3);
    }
}
