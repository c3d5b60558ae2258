//! 0.3 over JSON-RPC: kinds, small letters, `final`.

use baton_lab::wire::request::Operation;
use serde_json::{Map, Value, json};

use super::{authentication_down, authentication_up, each, is_last, rename, respell, small, with};

pub(super) fn params(operation: Operation, mut params: Value) -> Value {
    match operation {
        Operation::SendMessage | Operation::SendStreamingMessage => {
            with(params.get_mut("message"), message_up);
            with(params.get_mut("configuration"), |configuration| {
                if let Some(blocking) = configuration.remove("blocking") {
                    configuration.insert("returnImmediately".to_owned(), json!(blocking == false));
                }
                rename(configuration, "pushNotificationConfig", "taskPushNotificationConfig");
                with(configuration.get_mut("taskPushNotificationConfig"), authentication_up);
            });
            params
        }
        Operation::CreatePushConfig => config_up(&params["pushNotificationConfig"], &params["taskId"]),
        Operation::GetPushConfig | Operation::DeletePushConfig | Operation::ListPushConfigs => {
            json!({"taskId": params["id"], "id": params["pushNotificationConfigId"]})
        }
        _ => params,
    }
}

fn message_up(message: &mut Map<String, Value>) {
    message.remove("kind");
    respell(message, "role", |role| format!("ROLE_{}", role.to_ascii_uppercase()));
    each(message.get_mut("parts"), |part| with(Some(part), part_up));
}

fn part_up(part: &mut Map<String, Value>) {
    part.remove("kind");
    file_up(part, "bytes", "uri");
}

/// A file's members become the part's own.
pub(super) fn file_up(part: &mut Map<String, Value>, bytes: &str, uri: &str) {
    let Some(Value::Object(mut file)) = part.remove("file") else { return };
    for (from, to) in [(bytes, "raw"), (uri, "url"), ("mimeType", "mediaType"), ("name", "filename")] {
        rename(&mut file, from, to);
    }
    part.extend(file);
}

pub(super) fn config_up(config: &Value, task: &Value) -> Value {
    let mut config = config.clone();
    with(Some(&mut config), authentication_up);
    config["taskId"] = task.clone();
    config
}

pub(super) fn reply(operation: Operation, root: &Value) -> Value {
    match operation {
        Operation::SendMessage => match root.get("message") {
            Some(said) => message(said),
            None => task(&root["task"]),
        },
        Operation::ListTasks => {
            let mut page = root.clone();
            each(page.get_mut("tasks"), |listed| *listed = task(listed));
            page
        }
        Operation::CreatePushConfig | Operation::GetPushConfig => config(root),
        Operation::ListPushConfigs => {
            let configs = root["configs"].as_array().into_iter().flatten();
            configs.map(config).collect()
        }
        Operation::DeletePushConfig => Value::Null,
        _ => task(root),
    }
}

pub(super) fn event(event: &Value) -> Value {
    if let Some(whole) = event.get("task") {
        return task(whole);
    }
    if let Some(said) = event.get("message") {
        return message(said);
    }
    if let Some(update) = event.get("statusUpdate") {
        let mut down = update.clone();
        down["kind"] = json!("status-update");
        down["final"] = json!(is_last(&update["status"]));
        down["status"] = status(&update["status"]);
        return down;
    }
    let mut down = event["artifactUpdate"].clone();
    down["kind"] = json!("artifact-update");
    each(down["artifact"].get_mut("parts"), |part| with(Some(part), part_down));
    down
}

pub(super) fn task(task: &Value) -> Value {
    let mut down = task.clone();
    down["kind"] = json!("task");
    down["status"] = status(&task["status"]);
    each(down.get_mut("history"), |said| *said = message(said));
    each(down.get_mut("artifacts"), |artifact| {
        each(artifact.get_mut("parts"), |part| with(Some(part), part_down));
    });
    down
}

fn status(status: &Value) -> Value {
    let mut down = status.clone();
    with(Some(&mut down), |members| {
        respell(members, "state", small);
        if let Some(said) = members.get_mut("message") {
            *said = message(said);
        }
    });
    down
}

fn message(said: &Value) -> Value {
    let mut down = said.clone();
    with(Some(&mut down), |members| {
        members.insert("kind".to_owned(), json!("message"));
        respell(members, "role", |role| role.trim_start_matches("ROLE_").to_ascii_lowercase());
        each(members.get_mut("parts"), |part| with(Some(part), part_down));
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
    part.insert("kind".to_owned(), json!(kind));
}

pub(super) fn file_down(part: &mut Map<String, Value>, bytes: &str, uri: &str) {
    let mut file = Map::new();
    for (from, to) in [("raw", bytes), ("url", uri), ("mediaType", "mimeType"), ("filename", "name")] {
        if let Some(value) = part.remove(from) {
            file.insert(to.to_owned(), value);
        }
    }
    part.insert("file".to_owned(), Value::Object(file));
}

fn config(config: &Value) -> Value {
    let mut inner = config.clone();
    let mut task = Value::Null;
    with(Some(&mut inner), |members| {
        task = members.remove("taskId").unwrap_or_default();
        authentication_down(members);
    });
    json!({"taskId": task, "pushNotificationConfig": inner})
}
