//! 0.3 over HTTP+JSON: ProtoJSON of `a2a.v1`, as all its SDKs speak it.

use baton_lab::wire::request::Operation;
use serde_json::{Map, Value, json};

use super::v0_3::{config_up, file_down, file_up};
use super::{authentication_down, authentication_up, each, is_last, rename, respell, with};

pub(super) fn params(operation: Operation, mut params: Value) -> Value {
    match operation {
        Operation::SendMessage | Operation::SendStreamingMessage => {
            with(params.get_mut("message"), |message| {
                rename(message, "content", "parts");
                each(message.get_mut("parts"), |part| with(Some(part), part_up));
            });
            with(params.get_mut("configuration"), |configuration| {
                if let Some(blocking) = configuration.remove("blocking") {
                    configuration.insert("returnImmediately".to_owned(), json!(blocking == false));
                }
                rename(configuration, "pushNotification", "taskPushNotificationConfig");
                with(configuration.get_mut("taskPushNotificationConfig"), authentication_up);
            });
            params
        }
        // The whole request, or the config alone; the path names the task.
        Operation::CreatePushConfig => {
            let config = params.get("config").unwrap_or(&params);
            config_up(&config["pushNotificationConfig"], &Value::Null)
        }
        _ => params,
    }
}

fn part_up(part: &mut Map<String, Value>) {
    file_up(part, "fileWithBytes", "fileWithUri");
    if let Some(inner) = part.get("data").and_then(|data| data.get("data")).cloned() {
        part.insert("data".to_owned(), inner);
    }
}

pub(super) fn reply(operation: Operation, root: &Value) -> Value {
    match operation {
        Operation::SendMessage => match root.get("message") {
            Some(said) => json!({"message": message(said)}),
            None => json!({"task": task(&root["task"])}),
        },
        Operation::ListTasks => {
            let mut page = root.clone();
            each(page.get_mut("tasks"), |listed| *listed = task(listed));
            page
        }
        Operation::CreatePushConfig | Operation::GetPushConfig => config(root),
        Operation::ListPushConfigs => {
            let configs = root["configs"].as_array().into_iter().flatten();
            json!({"configs": configs.map(config).collect::<Value>()})
        }
        Operation::DeletePushConfig => json!({}),
        _ => task(root),
    }
}

pub(super) fn event(event: &Value) -> Value {
    if let Some(whole) = event.get("task") {
        return json!({"task": task(whole)});
    }
    if let Some(said) = event.get("message") {
        return json!({"message": message(said)});
    }
    if let Some(update) = event.get("statusUpdate") {
        let mut down = update.clone();
        down["final"] = json!(is_last(&update["status"]));
        down["status"] = status(&update["status"]);
        return json!({ "statusUpdate": down });
    }
    let mut down = event.clone();
    each(down["artifactUpdate"]["artifact"].get_mut("parts"), |part| with(Some(part), part_down));
    down
}

fn task(task: &Value) -> Value {
    let mut down = task.clone();
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
        // With two Ls in this `.proto`.
        respell(members, "state", |state| state.replace("CANCELED", "CANCELLED"));
        if let Some(said) = members.get_mut("message") {
            *said = message(said);
        }
    });
    down
}

fn message(said: &Value) -> Value {
    let mut down = said.clone();
    with(Some(&mut down), |members| {
        members.remove("referenceTaskIds");
        rename(members, "parts", "content");
        each(members.get_mut("content"), |part| with(Some(part), part_down));
    });
    down
}

fn part_down(part: &mut Map<String, Value>) {
    if let Some(data) = part.get_mut("data") {
        *data = json!({ "data": data });
    } else if !part.contains_key("text") {
        file_down(part, "fileWithBytes", "fileWithUri");
    }
    part.remove("mediaType");
}

fn config(config: &Value) -> Value {
    let mut inner = config.clone();
    let mut task = Value::Null;
    with(Some(&mut inner), |members| {
        task = members.remove("taskId").unwrap_or_default();
        authentication_down(members);
    });
    let (task, id) = (task.as_str().unwrap_or_default(), inner["id"].as_str().unwrap_or_default());
    json!({"name": format!("tasks/{task}/pushNotificationConfigs/{id}"), "pushNotificationConfig": inner})
}
