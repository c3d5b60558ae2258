//! One agent, two bindings: both must show the same tasks, errors and streams.

use serde_json::{Value, json};

use crate::acts::assertion::Mismatch;
use crate::acts::stream::state_of;
use crate::native::older::{self, list, streamed};
use crate::native::shape::{fault, judge};
use crate::native::talk::{Say, fresh_id, has_ended, state};
use crate::native::v1::equivalence::{differences, other};
use crate::native::{Checks, Done, checks, differs};
use crate::run::Bench;
use crate::wire::request::Operation;

pub(in crate::native) const CHECKS: Checks = checks! {
    "v0_3.equivalence.task" => task,
    "v0_3.equivalence.errors" => errors,
    "v0_3.equivalence.continued" => continued,
    "v0_3.equivalence.canceled" => canceled,
    "v0_3.equivalence.stream" => stream,
};

/// The members of a task that both bindings have. Types of parts, references and metadata are lost in one of them.
fn common(task: &Value) -> Value {
    let parts = |object: &Value| -> Value {
        let one = |part: &Value| json!({"kind": part["kind"], "text": part["text"], "file": part["file"], "data": part["data"]});
        list(object, "parts").iter().map(one).collect()
    };
    let message = |message: &Value| json!({"messageId": message["messageId"], "role": message["role"], "parts": parts(message)});
    let artifact = |artifact: &Value| json!({"artifactId": artifact["artifactId"], "name": artifact["name"], "parts": parts(artifact)});
    json!({
        "id": task["id"], "contextId": task["contextId"], "state": task["status"]["state"],
        "message": message(&task["status"]["message"]),
        "artifacts": list(task, "artifacts").iter().map(artifact).collect::<Value>(),
        "history": list(task, "history").iter().map(message).collect::<Value>()})
}

async fn task(bench: &Bench) -> Done {
    let rest = other(bench)?;
    for (maker, reader) in [(bench, &rest), (&rest, bench)] {
        let made = maker.ended().await?;
        let (one, two) = (maker.get(&made["id"]).await?, reader.get(&made["id"]).await?);
        judge(differences(&common(&one), &common(&two), ""))?;
    }
    Ok(())
}

async fn errors(bench: &Bench) -> Done {
    let rest = other(bench)?;
    let ended = bench.ended().await?;
    let (id, none) = (json!({ "id": ended["id"] }), json!({ "id": fresh_id() }));
    let lost = Say::text("hello").member("taskId", json!(fresh_id())).params(bench);
    let mut found = Vec::new();
    for (name, operation, params) in [
        ("TaskNotFoundError", Operation::GetTask, &none),
        ("TaskNotFoundError", Operation::CancelTask, &none),
        ("TaskNotFoundError", Operation::SendMessage, &lost),
        ("TaskNotCancelableError", Operation::CancelTask, &id),
    ] {
        let (one, two) = (bench.refusal(operation, params).await?, rest.refusal(operation, params).await?);
        // Other cases check which error it is; here both must be equal.
        if one.name != two.name && bench.is_named(&one, name) != rest.is_named(&two, name) {
            let expected = format!("{} in both", one.summary());
            found.push(Mismatch { path: operation.name().to_owned(), expected, actual: two.summary() });
        }
    }
    judge(found)
}

async fn continued(bench: &Bench) -> Done {
    let rest = other(bench)?;
    let first = bench.task(&Say::text("tck-multi-turn")).await?;
    let second = rest.task(&Say::text("second turn").to(&first)).await?;
    if second["id"] != first["id"] {
        return Err(differs(format!("the task {} to go on", first["id"]), second["id"].to_string()));
    }
    let third = bench.task(&Say::text("done").to(&first)).await?;
    if has_ended(&third) { Ok(()) } else { Err(differs("the task to end at `done`", state(&third))) }
}

async fn canceled(bench: &Bench) -> Done {
    let rest = other(bench)?;
    for (maker, other) in [(bench, &rest), (&rest, bench)] {
        let task = maker.running().await?;
        older::cancel(other, &task["id"]).await?;
        let now = maker.settled(&task).await?;
        if state(&now) != "CANCELED" {
            return Err(differs("CANCELED in both bindings", state(&now)));
        }
    }
    Ok(())
}

/// The same work, streamed through both bindings, must give the same kinds of events and states.
async fn stream(bench: &Bench) -> Done {
    let rest = other(bench)?;
    let say = Say::text("tck-stream-basic");
    let one = streamed(bench, &say).await?.events;
    let say = Say::text("tck-stream-basic");
    let two = streamed(&rest, &say).await?.events;
    judge(tale_faults(&one, &two))
}

fn tale_faults(one: &[Value], two: &[Value]) -> Vec<Mismatch> {
    let (one, two) = (tale(one), tale(two));
    if one == two {
        return Vec::new();
    }
    vec![fault("events", &format!("{one:?}, as in the other binding"), Some(&json!(two)))]
}

/// The kinds and states of the events, without the first task, whose content depends on the moment.
fn tale(events: &[Value]) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    for event in events.iter().filter(|event| event["kind"] != "task") {
        let word = state_of(event).unwrap_or_else(|| "an artifact".to_owned());
        if !["SUBMITTED", "WORKING"].contains(&word.as_str()) && told.last() != Some(&word) {
            told.push(word);
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tale_is_the_same_whenever_it_is_told() {
        let status = |state: &str| json!({"kind": "status-update", "status": {"state": state}});
        let artifact = json!({"kind": "artifact-update", "artifact": {}});
        let task = json!({"kind": "task", "status": {"state": "working"}});
        let one = [task.clone(), status("working"), artifact.clone(), status("completed")];
        let two = [task.clone(), artifact.clone(), status("completed")];
        assert_eq!(tale_faults(&one, &two), []);
        assert_eq!(tale_faults(&one, &[task.clone(), status("completed")]).len(), 1);
        assert_eq!(tale_faults(&one, &[task, artifact, status("failed")]).len(), 1);
    }

    #[test]
    fn only_what_both_can_say_is_compared() {
        let part = |more: Value| json!({"kind": "text", "text": "x", "metadata": more});
        let task = |part: Value, state: &str| json!({"id": "t", "status": {"state": state}, "artifacts": [{"parts": [part]}]});
        let one = common(&task(part(json!({"a": 1})), "completed"));
        assert_eq!(one, common(&task(part(json!(null)), "completed")));
        assert_ne!(one, common(&task(part(json!(null)), "failed")));
        assert_ne!(one, common(&task(json!({"kind": "text", "text": "y"}), "completed")));
    }
}
