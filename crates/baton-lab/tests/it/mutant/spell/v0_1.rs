//! 0.1: the client's ids, sessions, types instead of kinds, artifacts by index.

use baton_lab::wire::request::Operation;
use serde_json::{Map, Value, json};

use super::super::entry::fresh_id;
use super::v0_3::{file_down, file_up};
use super::{authentication_down, authentication_up, each, is_last, respell, small, with};

pub(super) fn params(operation: Operation, params: Value) -> Value {
    let mut params = without_nulls(params);
    match operation {
        Operation::SendMessage | Operation::SendStreamingMessage => {
            let (id, session) = (params.get("id").cloned(), params.get("sessionId").cloned());
            with(params.get_mut("message"), |message| {
                message.insert("messageId".to_owned(), json!(fresh_id()));
                message.insert("taskId".to_owned(), id.unwrap_or_default());
                message.extend(session.map(|session| ("contextId".to_owned(), session)));
                respell(message, "role", |role| format!("ROLE_{}", role.to_ascii_uppercase()));
                each(message.get_mut("parts"), |part| with(Some(part), part_up));
            });
            // The reply comes as soon as the task is there.
            let mut configuration = json!({"returnImmediately": true});
            if let Some(length) = params.get("historyLength") {
                configuration["historyLength"] = length.clone();
            }
            if let Some(config) = params.get("pushNotification") {
                configuration["taskPushNotificationConfig"] = config_up(config, &Value::Null);
            }
            let mut up = json!({ "configuration": configuration });
            if let Some(message) = params.get("message") {
                up["message"] = message.clone();
            }
            up
        }
        Operation::CreatePushConfig => config_up(&params["pushNotificationConfig"], &params["id"]),
        Operation::GetPushConfig => json!({"taskId": params["id"]}),
        _ => params,
    }
}

/// What is null is not there.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let there = members.into_iter().filter(|(_, member)| !member.is_null());
            Value::Object(there.map(|(name, member)| (name, without_nulls(member))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

fn part_up(part: &mut Map<String, Value>) {
    part.remove("type");
    file_up(part, "bytes", "uri");
}

/// One webhook per task: it is called what the task is called.
fn config_up(config: &Value, task: &Value) -> Value {
    let mut config = config.clone();
    with(Some(&mut config), authentication_up);
    config["taskId"] = task.clone();
    config["id"] = json!("the only one");
    config
}

pub(super) fn reply(operation: Operation, root: &Value) -> Value {
    match operation {
        Operation::SendMessage => task(&root["task"]),
        Operation::CreatePushConfig | Operation::GetPushConfig => {
            let mut inner = root.clone();
            let mut task = Value::Null;
            with(Some(&mut inner), |members| {
                task = members.remove("taskId").unwrap_or_default();
                members.remove("id");
                authentication_down(members);
            });
            json!({"id": task, "pushNotificationConfig": inner})
        }
        _ => task(root),
    }
}

pub(super) fn event(event: &Value) -> Value {
    if let Some(whole) = event.get("task") {
        return json!({"id": whole["id"], "status": status(&whole["status"]), "final": false});
    }
    if let Some(update) = event.get("statusUpdate") {
        let last = is_last(&update["status"]);
        return json!({"id": update["taskId"], "status": status(&update["status"]), "final": last});
    }
    let update = &event["artifactUpdate"];
    let mut down = artifact(&update["artifact"], 0);
    for flag in ["append", "lastChunk"] {
        if let Some(flagged) = update.get(flag) {
            down[flag] = flagged.clone();
        }
    }
    json!({"id": update["taskId"], "artifact": down})
}

pub(super) fn webhook(event: &Value) -> Value {
    let update = event.get("statusUpdate").or_else(|| event.get("artifactUpdate")).unwrap_or(event);
    let kind = if event.get("statusUpdate").is_some() { "status" } else { "artifact" };
    json!({"taskId": update["taskId"], "eventType": kind, "status": status(&update["status"]),
        "timestamp": update["status"]["timestamp"]})
}

fn task(task: &Value) -> Value {
    let mut down =
        json!({"id": task["id"], "sessionId": task["contextId"], "status": status(&task["status"])});
    let artifacts = task["artifacts"].as_array().into_iter().flatten().enumerate();
    let artifacts: Vec<Value> = artifacts.map(|(index, one)| artifact(one, index)).collect();
    if !artifacts.is_empty() {
        down["artifacts"] = json!(artifacts);
    }
    // With `stateTransitionHistory` on, a history of states.
    if let Some(history) = task.get("history").and_then(Value::as_array) {
        down["history"] = history.iter().map(status).collect();
    }
    down
}

fn artifact(artifact: &Value, index: usize) -> Value {
    let mut down = artifact.clone();
    with(Some(&mut down), |members| {
        members.remove("artifactId");
        members.insert("index".to_owned(), json!(index));
        each(members.get_mut("parts"), |part| with(Some(part), part_down));
    });
    down
}

fn status(status: &Value) -> Value {
    let mut down = status.clone();
    with(Some(&mut down), |members| {
        respell(members, "state", |state| match small(state).as_str() {
            // Two states came later.
            "rejected" => "failed".to_owned(),
            "auth-required" => "input-required".to_owned(),
            other => other.to_owned(),
        });
        with(members.get_mut("message"), |message| {
            message.retain(|name, _| ["role", "parts", "metadata"].contains(&name.as_str()));
            respell(message, "role", |role| role.trim_start_matches("ROLE_").to_ascii_lowercase());
            each(message.get_mut("parts"), |part| with(Some(part), part_down));
        });
    });
    down
}

fn part_down(part: &mut Map<String, Value>) {
    let kind = if part.contains_key("text") {
        "text"
    } else if part.contains_key("data") {
        "data"
    } else {
        file_down(part, "bytes", "uri");
        "file"
    };
    part.remove("mediaType");
    part.insert("type".to_owned(), json!(kind));
}

#[test]
fn a_file_goes_up_and_comes_down() {
    let mut part = json!({"type": "file", "file": {"bytes": "YQ==", "mimeType": "text/plain", "name": "a"}});
    let before = part.clone();
    with(Some(&mut part), part_up);
    assert_eq!(part, json!({"raw": "YQ==", "mediaType": "text/plain", "filename": "a"}));
    with(Some(&mut part), part_down);
    assert_eq!(part, before);
}
