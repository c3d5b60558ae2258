//! Converts between 0.3 JSON and the ProtoJSON of `a2a.v1` that 0.3 uses over HTTP+JSON. Cases use 0.3 JSON, so that
//! one case fits both bindings: requests are converted to ProtoJSON (`down`), and answers back (`up`).
//!
//! The specification of 0.3 only asks for "structurally equivalent" JSON. So an answer in 0.3 JSON is accepted
//! unchanged; the cases for HTTP+JSON check the form, by reading the bytes.

use serde_json::{Map, Value, json};

use super::request::Operation;

/// The params of an operation for HTTP+JSON: `taskId` and `id` for the path, and the body.
pub fn request(operation: Operation, params: &Value) -> Value {
    let text = |name: &str| params[name].as_str().unwrap_or_default().to_owned();
    match operation {
        Operation::SendMessage | Operation::SendStreamingMessage => {
            let mut body = params.as_object().cloned().unwrap_or_default();
            if let Some(message) = body.get_mut("message") {
                *message = message_down(message);
            }
            if let Some(Value::Object(configuration)) = body.get_mut("configuration") {
                rename(configuration, "pushNotificationConfig", "pushNotification");
            }
            Value::Object(body)
        }
        Operation::CreatePushConfig => {
            let (task, config) = (text("taskId"), &params["pushNotificationConfig"]);
            let parent = format!("tasks/{task}");
            let id = config["id"].as_str().unwrap_or(&task);
            json!({"taskId": task, "parent": parent, "configId": id, "config": {
                "name": format!("{parent}/pushNotificationConfigs/{id}"), "pushNotificationConfig": config}})
        }
        Operation::GetPushConfig | Operation::DeletePushConfig => {
            json!({"taskId": text("id"), "id": text("pushNotificationConfigId")})
        }
        Operation::ListPushConfigs => json!({"taskId": text("id")}),
        _ => params.clone(),
    }
}

fn message_down(message: &Value) -> Value {
    let Some(members) = message.as_object() else { return message.clone() };
    let mut down = members.clone();
    // Neither is in the proto, and strict readers refuse unknown members.
    down.remove("kind");
    down.remove("referenceTaskIds");
    rename(&mut down, "parts", "content");
    if let Some(Value::Array(parts)) = down.get_mut("content") {
        parts.iter_mut().for_each(|part| *part = part_down(part));
    }
    if let Some(role) = down.get("role").and_then(Value::as_str) {
        let role = format!("ROLE_{}", role.to_ascii_uppercase());
        down.insert("role".to_owned(), json!(role));
    }
    Value::Object(down)
}

fn part_down(part: &Value) -> Value {
    let Some(members) = part.as_object() else { return part.clone() };
    let mut down = members.clone();
    let kind = down.remove("kind");
    match kind.as_ref().and_then(Value::as_str) {
        Some("file") => {
            if let Some(Value::Object(file)) = down.get_mut("file") {
                rename(file, "bytes", "fileWithBytes");
                rename(file, "uri", "fileWithUri");
            }
        }
        Some("data") => {
            if let Some(data) = down.get_mut("data") {
                *data = json!({"data": data});
            }
        }
        _ => {}
    }
    Value::Object(down)
}

/// A whole answer, or one event, as 0.3 JSON.
pub fn reply(body: &Value) -> Value {
    if let Some(configs) = body.get("configs").and_then(Value::as_array) {
        return Value::Array(configs.iter().map(config_up).collect());
    }
    for (wrapper, kind) in [
        ("task", "task"),
        ("message", "message"),
        ("statusUpdate", "status-update"),
        ("artifactUpdate", "artifact-update"),
    ] {
        if let Some(inner) =
            body.as_object().filter(|members| members.len() == 1).and_then(|one| one.get(wrapper))
        {
            return object_up(inner, kind);
        }
    }
    let has = |name: &str| body.get(name).is_some();
    let is_list = |name: &str| body.get(name).is_some_and(Value::is_array);
    if has("kind") {
        body.clone()
    } else if has("messageId") && (is_list("content") || is_list("parts")) {
        object_up(body, "message")
    } else if has("id") && has("status") {
        object_up(body, "task")
    } else if has("pushNotificationConfig") && has("name") {
        config_up(body)
    } else if is_list("tasks") {
        let mut up = body.clone();
        if let Some(tasks) = up["tasks"].as_array_mut() {
            tasks.iter_mut().for_each(|task| *task = object_up(task, "task"));
        }
        up
    } else {
        body.clone()
    }
}

fn object_up(object: &Value, kind: &str) -> Value {
    let Some(members) = object.as_object().filter(|members| !members.contains_key("kind")) else {
        return object.clone();
    };
    let mut up = members.clone();
    up.insert("kind".to_owned(), json!(kind));
    if let Some(status) = up.get_mut("status").and_then(Value::as_object_mut) {
        if let Some(state) = status.get("state").and_then(Value::as_str) {
            let state = state_up(state);
            status.insert("state".to_owned(), json!(state));
        }
        if let Some(message) = status.get_mut("message") {
            *message = object_up(message, "message");
        }
    }
    if kind == "status-update" {
        // ProtoJSON omits false.
        up.entry("final").or_insert(json!(false));
    }
    if kind == "message" {
        rename(&mut up, "content", "parts");
        if let Some(role) = up.get("role").and_then(Value::as_str).and_then(|role| role.strip_prefix("ROLE_"))
        {
            let role = role.to_ascii_lowercase();
            up.insert("role".to_owned(), json!(role));
        }
        up.get_mut("parts").into_iter().for_each(parts_up);
    }
    if let Some(Value::Array(history)) = up.get_mut("history") {
        history.iter_mut().for_each(|message| *message = object_up(message, "message"));
    }
    let artifacts = up.get_mut("artifacts").and_then(Value::as_array_mut);
    artifacts.into_iter().flatten().filter_map(|artifact| artifact.get_mut("parts")).for_each(parts_up);
    if let Some(parts) = up.get_mut("artifact").and_then(|artifact| artifact.get_mut("parts")) {
        parts_up(parts);
    }
    Value::Object(up)
}

/// `CANCELLED` has two `L` in the proto.
fn state_up(state: &str) -> String {
    match state.strip_prefix("TASK_STATE_") {
        Some("CANCELLED") => "canceled".to_owned(),
        Some("UNSPECIFIED") => "unknown".to_owned(),
        Some(name) => name.to_ascii_lowercase().replace('_', "-"),
        None => state.to_owned(),
    }
}

fn parts_up(parts: &mut Value) {
    for part in parts.as_array_mut().into_iter().flatten() {
        let Some(members) = part.as_object_mut().filter(|members| !members.contains_key("kind")) else {
            continue;
        };
        let kind = ["text", "file", "data"].into_iter().find(|kind| members.contains_key(*kind));
        let Some(kind) = kind else { continue };
        members.insert("kind".to_owned(), json!(kind));
        if let Some(Value::Object(file)) = members.get_mut("file") {
            rename(file, "fileWithBytes", "bytes");
            rename(file, "fileWithUri", "uri");
        }
        if let Some(inner) = members.get("data").and_then(|data| data.get("data")).cloned() {
            members.insert("data".to_owned(), inner);
        }
    }
}

/// The resource name contains the ids.
fn config_up(config: &Value) -> Value {
    let name = config["name"].as_str().unwrap_or_default();
    let task = name.strip_prefix("tasks/").and_then(|rest| rest.split('/').next());
    let mut up = config.as_object().cloned().unwrap_or_default();
    if let Some(task) = task {
        up.remove("name");
        up.insert("taskId".to_owned(), json!(task));
    }
    Value::Object(up)
}

fn rename(members: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = members.remove(from) {
        members.insert(to.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_go_down_and_come_up_the_same() {
        let message = json!({"kind": "message", "messageId": "m", "role": "agent", "taskId": "t", "parts": [
            {"kind": "text", "text": "a"},
            {"kind": "file", "file": {"bytes": "YQ==", "mimeType": "text/plain"}},
            {"kind": "file", "file": {"uri": "http://h/f"}},
            {"kind": "data", "data": {"data": 1}, "metadata": {"kind": "mine"}}]});
        let down = message_down(&message);
        assert_eq!(
            down,
            json!({"messageId": "m", "role": "ROLE_AGENT", "taskId": "t", "content": [
                {"text": "a"},
                {"file": {"fileWithBytes": "YQ==", "mimeType": "text/plain"}},
                {"file": {"fileWithUri": "http://h/f"}},
                {"data": {"data": {"data": 1}}, "metadata": {"kind": "mine"}}]})
        );
        assert_eq!(reply(&json!({"message": down})), message);
        assert_eq!(reply(&down), message);
        assert_eq!(reply(&message), message, "the generation's own JSON stays");
    }

    #[test]
    fn answers_come_up_whatever_holds_them() {
        let status = |state: &str| json!({"state": state, "message": {"messageId": "m", "role": "ROLE_AGENT", "content": [{"text": "x"}]}});
        let up = |state: &str| {
            json!({"state": state, "message":
            {"kind": "message", "messageId": "m", "role": "agent", "parts": [{"kind": "text", "text": "x"}]}})
        };
        let task = json!({"id": "t", "contextId": "c", "status": status("TASK_STATE_INPUT_REQUIRED"),
            "artifacts": [{"artifactId": "a", "parts": [{"text": "y"}]}]});
        let task_up = json!({"kind": "task", "id": "t", "contextId": "c", "status": up("input-required"),
            "artifacts": [{"artifactId": "a", "parts": [{"kind": "text", "text": "y"}]}]});
        for (body, expected) in [
            (json!({"task": task}), task_up.clone()),
            (task.clone(), task_up.clone()),
            (task_up.clone(), task_up.clone()),
            (json!({"task": task_up}), task_up.clone()),
            (json!({"tasks": [task], "nextPageToken": ""}), json!({"tasks": [task_up], "nextPageToken": ""})),
            (
                json!({"statusUpdate": {"taskId": "t", "status": status("TASK_STATE_CANCELLED")}}),
                json!({"kind": "status-update", "taskId": "t", "status": up("canceled"), "final": false}),
            ),
            (
                json!({"artifactUpdate": {"taskId": "t", "artifact": {"parts": [{"data": {"data": {}}}]}}}),
                json!({"kind": "artifact-update", "taskId": "t", "artifact": {"parts": [{"kind": "data", "data": {}}]}}),
            ),
            (
                json!({"configs": [{"name": "tasks/t/pushNotificationConfigs/c", "pushNotificationConfig": {"id": "c"}}]}),
                json!([{"taskId": "t", "pushNotificationConfig": {"id": "c"}}]),
            ),
            (json!({"error": {"code": 404}}), json!({"error": {"code": 404}})),
            (json!([1]), json!([1])),
        ] {
            assert_eq!(reply(&body), expected, "{body}");
        }
    }

    #[test]
    fn the_path_gets_its_ids() {
        let push = json!({"taskId": "t", "pushNotificationConfig": {"id": "c", "url": "http://h"}});
        let down = request(Operation::CreatePushConfig, &push);
        assert_eq!((&down["taskId"], &down["configId"]), (&json!("t"), &json!("c")));
        assert_eq!(down["config"]["pushNotificationConfig"], push["pushNotificationConfig"]);
        let id = json!({"id": "t", "pushNotificationConfigId": "c"});
        assert_eq!(request(Operation::DeletePushConfig, &id), json!({"taskId": "t", "id": "c"}));
        assert_eq!(request(Operation::GetTask, &json!({"id": "t"})), json!({"id": "t"}));
        let send = request(
            Operation::SendMessage,
            &json!({"message": {"parts": []}, "configuration": {"blocking": true, "pushNotificationConfig": {"url": "u"}}}),
        );
        assert_eq!(
            send,
            json!({"message": {"content": []}, "configuration": {"blocking": true, "pushNotification": {"url": "u"}}})
        );
    }
}
