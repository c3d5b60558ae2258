//! Streams: the kinds of events, their order, and `final` on the last one.

use serde_json::{Value, json};

use super::shapes;
use crate::acts::assertion::{Mismatch, show};
use crate::native::older::{final_faults, streamed, streams as shared};
use crate::native::shape::{fault, judge, kind_faults};
use crate::native::talk::{COMPLETE, Say, fresh_id};
use crate::native::v1::{rpc, streams};
use crate::native::{Checks, Done, checks, differs};
use crate::run::Bench;
use crate::wire::request::Operation;

pub(in crate::native) const CHECKS: Checks = checks! {
    "v0_3.streams.content-type" => rpc::stream_content_type,
    "v0_3.streams.envelopes" => streams::envelopes,
    "v0_3.streams.events" => events,
    "v0_3.streams.first" => first,
    "v0_3.streams.final" => is_final,
    "v0_3.streams.order" => shared::order,
    "v0_3.streams.ids" => ids,
    "v0_3.streams.message" => message,
    "v0_3.streams.question" => shared::question,
    "v0_3.streams.question-final" => shared::question_final,
    "v0_3.streams.answered" => shared::answered,
    "v0_3.streams.chunks" => shared::chunks,
    "v0_3.streams.canceled" => shared::canceled,
    "v0_3.streams.disconnect" => shared::task_stays,
    "v0_3.streams.work-goes-on" => shared::work_goes_on,
    "v0_3.streams.unknown-task" => unknown_task,
    "v0_3.streams.ended-task" => shared::ended_task,
    "v0_3.resubscribe.to-the-end" => shared::to_the_end,
    "v0_3.resubscribe.comes-back" => shared::comes_back,
    "v0_3.resubscribe.ended" => shared::subscribe_ended,
};

/// Every event of a stream is one of the four objects.
async fn events(bench: &Bench) -> Done {
    let seen = streamed(bench, &Say::text("tck-stream-basic")).await?;
    let all = seen.events.iter().enumerate();
    judge(
        all.flat_map(|(index, event)| kind_faults(&shapes::EVENT, event, &format!("events[{index}]")))
            .collect(),
    )
}

async fn first(bench: &Bench) -> Done {
    let mut watch = bench.send_stream(&Say::text(COMPLETE)).await?;
    let first = watch.event().await?;
    match first["kind"].as_str() {
        Some("task" | "message") => Ok(()),
        _ => Err(differs("a task or a message as the first event", show(&first))),
    }
}

async fn is_final(bench: &Bench) -> Done {
    let seen = streamed(bench, &Say::text(COMPLETE)).await?;
    judge(final_faults(&seen.events))
}

async fn ids(bench: &Bench) -> Done {
    let seen = streamed(bench, &Say::text("tck-stream-basic")).await?;
    judge(foreign_ids(&seen.events))
}

/// All events must belong to one task and one context.
fn foreign_ids(events: &[Value]) -> Vec<Mismatch> {
    let own = |event: &Value| if event["kind"] == "task" { "id" } else { "taskId" };
    let Some(first) = events.first() else { return vec![fault("events", "at least one event", None)] };
    let (task, context) = (first.get(own(first)), first.get("contextId"));
    let mut found = Vec::new();
    for (index, event) in events.iter().enumerate().skip(1) {
        let told = event.get(own(event));
        if told != task {
            let wanted = format!("the task of the first event, {}", task.unwrap_or(&Value::Null));
            found.push(fault(&format!("events[{index}].{}", own(event)), &wanted, told));
        }
        if event.get("contextId") != context {
            let wanted = format!("the context of the first event, {}", context.unwrap_or(&Value::Null));
            found.push(fault(&format!("events[{index}].contextId"), &wanted, event.get("contextId")));
        }
    }
    found
}

async fn message(bench: &Bench) -> Done {
    let seen = streamed(bench, &Say::text("tck-message-response")).await?;
    match &seen.events[..] {
        [only] if only["kind"] == "message" => judge(kind_faults(&shapes::EVENT, only, "events[0]")),
        other => Err(differs("one message and nothing else", show(&json!(other)))),
    }
}

async fn unknown_task(bench: &Bench) -> Done {
    let say = Say::text(COMPLETE).member("taskId", json!(fresh_id()));
    let error = bench.refusal(Operation::SendStreamingMessage, &say.params(bench)).await?;
    bench.expect_named(&error, "TaskNotFoundError")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(state: &str) -> Value {
        json!({"kind": "status-update", "taskId": "t", "contextId": "c", "status": {"state": state}})
    }

    #[test]
    fn ids_are_judged() {
        let task = json!({"kind": "task", "id": "t", "contextId": "c", "status": {"state": "submitted"}});
        let artifact = json!({"kind": "artifact-update", "taskId": "t", "contextId": "c"});
        let good = [task.clone(), status("working"), artifact.clone(), status("completed")];
        assert_eq!(foreign_ids(&good), []);
        let other = json!({"kind": "artifact-update", "taskId": "x", "contextId": "y"});
        assert_eq!(foreign_ids(&[task, other]).len(), 2);
        assert_eq!(foreign_ids(&[artifact, status("working")]), []);
    }
}
