//! Streams: named events, `final`, and the separate path `/subscribe` if an agent has it.

use serde_json::{Value, json};

use super::shapes::{self, without_nulls};
use super::tasks::{asking, envelope_faults};
use crate::acts::assertion::{Mismatch, show};
use crate::acts::stream::state_of;
use crate::native::older::{self, final_faults, is_refusal, streamed};
use crate::native::shape::{fault, faults, judge};
use crate::native::talk::{COMPLETE, Say, fresh_id, skip};
use crate::native::v1::rpc;
use crate::native::{Checks, Done, checks, differs, fail};
use crate::run::Bench;
use crate::wire::Answer;
use crate::wire::request::Operation;
use crate::wire::sse::Event;

pub(in crate::native) const CHECKS: Checks = checks! {
    "v0_1.streams.content-type" => rpc::stream_content_type,
    "v0_1.streams.envelopes" => envelopes,
    "v0_1.streams.events" => events,
    "v0_1.streams.first" => first,
    "v0_1.streams.final" => is_final,
    "v0_1.streams.names" => names,
    "v0_1.streams.ids" => ids,
    "v0_1.streams.order" => older::streams::order,
    "v0_1.streams.question" => older::streams::question,
    "v0_1.streams.question-final" => older::streams::question_final,
    "v0_1.streams.answered" => answered,
    "v0_1.streams.chunks" => older::streams::chunks,
    "v0_1.streams.canceled" => older::streams::canceled,
    "v0_1.streams.disconnect" => older::streams::task_stays,
    "v0_1.streams.work-goes-on" => older::streams::work_goes_on,
    "v0_1.streams.not-offered" => not_offered,
    "v0_1.resubscribe.to-the-end" => older::streams::to_the_end,
    "v0_1.resubscribe.comes-back" => older::streams::comes_back,
    "v0_1.resubscribe.ended" => older::streams::subscribe_ended,
    "v0_1.resubscribe.unknown" => unknown,
    "v0_1.door.streams" => subscribe_path,
    "v0_1.door.other-methods" => other_methods,
};

async fn envelopes(bench: &Bench) -> Done {
    let seen = streamed(bench, &Say::text(COMPLETE)).await?;
    let frames = seen.frames.iter().enumerate();
    judge(
        frames
            .flat_map(|(index, frame)| {
                let envelope: Value = serde_json::from_str(&frame.data).unwrap_or_default();
                envelope_faults(&envelope, &seen.request_id, &format!("events[{index}]"))
            })
            .collect(),
    )
}

async fn events(bench: &Bench) -> Done {
    let seen = streamed(bench, &Say::text("tck-stream-basic")).await?;
    judge(event_faults(&seen.events))
}

fn event_faults(events: &[Value]) -> Vec<Mismatch> {
    let all = events.iter().enumerate();
    all.flat_map(|(index, event)| faults(&shapes::EVENT, &without_nulls(event), &format!("events[{index}]")))
        .collect()
}

async fn first(bench: &Bench) -> Done {
    let mut watch = bench.send_stream(&Say::text(COMPLETE)).await?;
    let first = watch.event().await?;
    match state_of(&first).as_deref() {
        Some("SUBMITTED" | "WORKING") => Ok(()),
        _ => Err(differs("a status, submitted or working, as the first event", show(&first))),
    }
}

async fn is_final(bench: &Bench) -> Done {
    let seen = streamed(bench, &Say::text(COMPLETE)).await?;
    let plain: Vec<Value> = seen.events.iter().map(without_nulls).collect();
    judge(final_faults(&plain))
}

/// Event names are `status` and `artifact`, or `message` as in one document's examples, or absent.
async fn names(bench: &Bench) -> Done {
    let seen = streamed(bench, &Say::text("tck-stream-basic")).await?;
    let (found, unusual) = name_faults(&seen.frames, &seen.events);
    if unusual {
        bench.note(
            "events are not called `status` and `artifact`, as one guide has it; the text has no names",
        );
    }
    judge(found)
}

fn name_faults(frames: &[Event], events: &[Value]) -> (Vec<Mismatch>, bool) {
    let (mut found, mut unusual) = (Vec::new(), false);
    for (index, (frame, event)) in frames.iter().zip(events).enumerate() {
        let content = if event.get("artifact").is_some_and(|artifact| !artifact.is_null()) {
            "artifact"
        } else {
            "status"
        };
        match frame.name.as_deref() {
            Some(name) if name == content => {}
            None | Some("message" | "") => unusual = true,
            Some(name) => {
                let wanted = format!("{content}, message, or no name");
                found.push(fault(&format!("events[{index}] event:"), &wanted, Some(&json!(name))));
            }
        }
    }
    (found, unusual)
}

async fn ids(bench: &Bench) -> Done {
    let id = fresh_id();
    let seen = streamed(bench, &Say::text("tck-stream-basic").member("taskId", json!(id))).await?;
    match seen.events.iter().position(|event| event["id"] != id) {
        Some(index) => judge(vec![fault(
            &format!("events[{index}].id"),
            &format!("the task's id, {id}"),
            seen.events[index].get("id"),
        )]),
        None => Ok(()),
    }
}

async fn answered(bench: &Bench) -> Done {
    let task = asking(bench).await?;
    let seen = streamed(bench, &Say::text("an answer").to(&task)).await?;
    let plain: Vec<Value> = seen.events.iter().map(without_nulls).collect();
    judge(final_faults(&plain))?;
    match plain.iter().find(|event| event["id"] != task["id"]) {
        Some(event) => Err(differs(format!("events of the task {}", task["id"]), show(event))),
        None => Ok(()),
    }
}

/// Refused by a JSON-RPC error, or by an HTTP status alone.
async fn not_offered(bench: &Bench) -> Done {
    let error = bench.refusal(Operation::SendStreamingMessage, &Say::text(COMPLETE).params(bench)).await?;
    if !is_refusal(&error) {
        return Err(differs("a refusal that says streams are not supported", error.summary()));
    }
    bench.note(format!("tasks/sendSubscribe is refused with {}", error.summary()));
    Ok(())
}

async fn unknown(bench: &Bench) -> Done {
    let error = bench.refusal(Operation::SubscribeToTask, &json!({ "id": fresh_id() })).await?;
    if is_refusal(&error) { Ok(()) } else { Err(differs("an unknown task to be refused", error.summary())) }
}

/// The answer at `/subscribe`; skipped if the agent does not have it.
async fn ask_at_subscribe(bench: &Bench, operation: Operation, params: &Value) -> Done<Answer> {
    let mut request = bench.request(operation, params).map_err(|none| skip(none.0))?;
    request.url = format!("{}/subscribe", bench.interface().url.trim_end_matches('/'));
    let answer = bench.probe().ask(bench.generation(), bench.binding(), &request).await;
    let answer = answer.map_err(|error| fail(format!("no answer at /subscribe: {error}")))?;
    if matches!(answer.status(), 404 | 405 | 501) {
        return Err(skip("the agent has no door of its own for streams at /subscribe"));
    }
    Ok(answer)
}

async fn subscribe_path(bench: &Bench) -> Done {
    let params = Say::text(COMPLETE).params(bench);
    match ask_at_subscribe(bench, Operation::SendStreamingMessage, &params).await? {
        Answer::Stream { events, closed: true, error: None, .. } => {
            let plain: Vec<Value> = events.iter().map(without_nulls).collect();
            let mut found = event_faults(&events);
            found.extend(final_faults(&plain));
            judge(found)
        }
        other => Err(differs("a stream of events", other.summary())),
    }
}

async fn other_methods(bench: &Bench) -> Done {
    let params = Say::text(COMPLETE).params(bench);
    // Checks whether the path exists; its first answer is enough.
    ask_at_subscribe(bench, Operation::SendStreamingMessage, &params).await?;
    let answer = ask_at_subscribe(bench, Operation::GetTask, &json!({ "id": fresh_id() })).await?;
    match answer {
        Answer::Error(error) if error.status == 400 => Ok(()),
        other => Err(differs("HTTP 400 for another method at /subscribe", other.summary())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_what_they_are_on() {
        let frame =
            |name: Option<&str>| Event { id: None, name: name.map(str::to_owned), data: String::new() };
        let events = [json!({"status": {}, "artifact": null}), json!({"artifact": {}})];
        let judged = |one: Option<&str>, two: Option<&str>| {
            let (found, unusual) = name_faults(&[frame(one), frame(two)], &events);
            (found.len(), unusual)
        };
        assert_eq!(judged(Some("status"), Some("artifact")), (0, false));
        assert_eq!(judged(None, Some("message")), (0, true));
        assert_eq!(judged(Some("artifact"), Some("done")), (2, false));
    }

    #[test]
    fn events_are_a_status_or_an_artifact() {
        let status = json!({"id": "t", "status": {"state": "working"}, "final": false});
        let artifact = json!({"id": "t", "artifact": {"parts": [{"type": "text", "text": "x"}], "index": 0}});
        assert_eq!(event_faults(&[status.clone(), artifact.clone()]), []);
        for (bad, place) in [
            (json!({"status": {"state": "working"}}), "events[0].id"),
            (json!({"id": "t"}), "events[0]"),
            (json!({"id": "t", "status": {"state": "rejected"}}), "events[0].status.state"),
            (json!({"id": "t", "artifact": {"parts": []}}), "events[0].artifact.parts"),
            (
                json!({"id": "t", "artifact": {"parts": [{"kind": "text", "text": "x"}]}}),
                "events[0].artifact.parts[0].type",
            ),
        ] {
            assert_eq!(event_faults(&[bad])[0].path, place);
        }
    }
}
