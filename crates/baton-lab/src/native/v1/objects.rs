//! Compares the agent's objects with the tables of [`shapes`](super::shapes).

use serde_json::{Value, json};

use super::shape::{fault, faults, judge};
use super::shapes;
use super::talk::{COMPLETE, Say, skip};
use crate::acts::assertion::Mismatch;
use crate::native::{Checks, Done, checks};
use crate::run::Bench;
use crate::wire::request::Operation;

pub(in crate::native) const CHECKS: Checks = checks! {
    "v1.objects.reply" => reply,
    "v1.objects.task" => task,
    "v1.objects.events" => events,
    "v1.objects.list" => list,
    "v1.objects.extended-card" => extended_card,
    "v1.objects.artifact-ids" => artifact_ids,
    "v1.objects.milliseconds" => milliseconds,
    "v1.objects.messages-belong" => messages_belong,
};

async fn reply(bench: &Bench) -> Done {
    let params = Say::text(COMPLETE).params(bench);
    let root = bench.reply(Operation::SendMessage, &params).await?;
    judge(faults(&shapes::SEND_RESPONSE, &root, ""))
}

async fn task(bench: &Bench) -> Done {
    let task = bench.task(&Say::text(COMPLETE)).await?;
    judge(faults(&shapes::TASK, &bench.get(&task["id"]).await?, ""))
}

async fn events(bench: &Bench) -> Done {
    let params = Say::text(COMPLETE).params(bench);
    let events = bench.events(Operation::SendStreamingMessage, &params).await?;
    let each = events.iter().enumerate();
    judge(
        each.flat_map(|(index, event)| faults(&shapes::STREAM_RESPONSE, event, &format!("events[{index}]")))
            .collect(),
    )
}

async fn list(bench: &Bench) -> Done {
    let task = bench.task(&Say::text(COMPLETE)).await?;
    let mut params = json!({"includeArtifacts": true, "pageSize": 10});
    if let Some(context) = task.get("contextId") {
        params["contextId"] = context.clone();
    }
    judge(faults(&shapes::LIST_RESPONSE, &bench.reply(Operation::ListTasks, &params).await?, ""))
}

async fn extended_card(bench: &Bench) -> Done {
    match bench.call(Operation::GetExtendedAgentCard, &json!({})).await? {
        crate::wire::Answer::Reply { root: Some(card), .. } => judge(faults(&shapes::CARD, &card, "")),
        crate::wire::Answer::Error(error) => {
            bench.note("the extended card is declared, but none is configured");
            bench.expect_named(&error, "ExtendedAgentCardNotConfiguredError")
        }
        other => Err(crate::native::differs("the extended card", other.summary())),
    }
}

async fn artifact_ids(bench: &Bench) -> Done {
    let task = bench.ended().await?;
    let task = bench.get(&task["id"]).await?;
    let artifacts = task["artifacts"].as_array().map_or(&[][..], Vec::as_slice);
    if artifacts.is_empty() {
        return Err(skip("the agent's task has no artifacts"));
    }
    judge(repeated_ids(artifacts))
}

fn repeated_ids(artifacts: &[Value]) -> Vec<Mismatch> {
    let twice = artifacts.iter().enumerate().filter(|(index, artifact)| {
        artifacts[..*index].iter().any(|earlier| earlier["artifactId"] == artifact["artifactId"])
    });
    twice
        .map(|(index, artifact)| {
            let place = format!("artifacts[{index}].artifactId");
            fault(&place, "an id no other artifact of the task has", artifact.get("artifactId"))
        })
        .collect()
}

async fn milliseconds(bench: &Bench) -> Done {
    let task = bench.task(&Say::text(COMPLETE)).await?;
    let Some(time) = task["status"]["timestamp"].as_str() else {
        return Err(skip("the task's status has no timestamp"));
    };
    if has_milliseconds(time) {
        return Ok(());
    }
    judge(vec![fault("status.timestamp", "milliseconds, as in 12:00:00.000Z", Some(&json!(time)))])
}

fn has_milliseconds(time: &str) -> bool {
    time.split_once('.').is_some_and(|(_, rest)| {
        rest.strip_suffix('Z')
            .is_some_and(|digits| digits.len() >= 3 && digits.bytes().all(|b| b.is_ascii_digit()))
    })
}

/// Messages inside a task must not name another task or context.
async fn messages_belong(bench: &Bench) -> Done {
    let task = bench.task(&Say::text(COMPLETE)).await?;
    judge(strangers(&bench.get(&task["id"]).await?))
}

fn strangers(task: &Value) -> Vec<Mismatch> {
    let history = task["history"].as_array().into_iter().flatten().enumerate();
    let mut all: Vec<(String, &Value)> =
        history.map(|(index, message)| (format!("history[{index}]"), message)).collect();
    if let Some(message) = task["status"].get("message") {
        all.push(("status.message".to_owned(), message));
    }
    let mut found = Vec::new();
    for (place, message) in all {
        for (member, own) in [("taskId", "id"), ("contextId", "contextId")] {
            let named =
                message.get(member).filter(|value| value.as_str().is_some_and(|text| !text.is_empty()));
            if let Some(named) = named.filter(|named| task.get(own).is_some_and(|own| own != *named)) {
                let wanted = format!("the task's own {own}, {}", task[own]);
                found.push(fault(&format!("{place}.{member}"), &wanted, Some(named)));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_times_and_belongings_are_judged() {
        let ids = |ids: &[&str]| -> Vec<Value> { ids.iter().map(|id| json!({ "artifactId": id })).collect() };
        assert_eq!(repeated_ids(&ids(&["a", "b"])), []);
        assert_eq!(repeated_ids(&ids(&["a", "b", "a"]))[0].path, "artifacts[2].artifactId");
        assert!(
            has_milliseconds("2026-01-31T12:00:00.123Z") && has_milliseconds("2026-01-31T12:00:00.123456Z")
        );
        assert!(!has_milliseconds("2026-01-31T12:00:00Z") && !has_milliseconds("2026-01-31T12:00:00.1Z"));
        let task = |message: Value| json!({"id": "t", "contextId": "c", "history": [message.clone()], "status": {"message": message}});
        assert_eq!(strangers(&task(json!({"taskId": "t", "contextId": "c"}))), []);
        assert_eq!(strangers(&task(json!({}))), []);
        assert_eq!(strangers(&task(json!({"taskId": "x", "contextId": "y"}))).len(), 4);
    }
}
