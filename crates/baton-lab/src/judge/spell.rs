//! Converts answers from their 1.0 form to the older generations.
//!
//! Written separately on purpose: the lab must not use the codecs of Baton's server or client, which it tests. Unknown
//! members are kept: some scripts send them on purpose.

use serde_json::{Map, Value, json};

use super::variant::Variant;
use crate::generation::{Binding, Generation};
use crate::wire::request::Operation;

/// A reply to an operation.
pub(super) fn reply(variant: Variant, operation: Operation, value: Value) -> Value {
    match operation {
        Operation::SendMessage => wrapped(variant, value),
        Operation::GetTask | Operation::CancelTask => {
            let mut value = json!({ "task": value });
            value = wrapped(variant, value);
            match (variant.generation, variant.binding) {
                (Generation::V1, _) | (_, Binding::Rest) => value["task"].take(),
                _ => value,
            }
        }
        Operation::CreatePushConfig | Operation::GetPushConfig => push(variant, value),
        Operation::ListPushConfigs => {
            let configs: Vec<Value> = value["configs"].as_array().cloned().unwrap_or_default();
            let configs: Vec<Value> = configs.into_iter().map(|config| push(variant, config)).collect();
            match (variant.generation, variant.binding) {
                (Generation::V1, _) | (_, Binding::Rest) => json!({ "configs": configs }),
                _ => json!(configs),
            }
        }
        _ => value,
    }
}

/// An event of a stream; `last` is the older generations' `final`.
pub(super) fn event(variant: Variant, value: Value, last: bool) -> Value {
    let mut value = value;
    // Streams of 0.1 have no task.
    if variant.generation == Generation::V0_1
        && let Some(task) = value.get("task")
    {
        value = json!({"statusUpdate": {"taskId": task["id"], "status": task["status"]}});
    }
    if variant.generation != Generation::V1
        && let Some(update) = value.get_mut("statusUpdate")
    {
        update["final"] = json!(last);
    }
    wrapped(variant, value)
}

/// A push notification config.
fn push(variant: Variant, value: Value) -> Value {
    let task = value["taskId"].clone();
    let mut inner = value.as_object().cloned().unwrap_or_default();
    inner.remove("taskId");
    match (variant.generation, variant.binding) {
        (Generation::V1, _) => value,
        (Generation::V0_3, Binding::Rest) => {
            let (task, id) = (task.as_str().unwrap_or_default(), value["id"].as_str().unwrap_or_default());
            json!({"name": format!("tasks/{task}/pushNotificationConfigs/{id}"), "pushNotificationConfig": inner})
        }
        (Generation::V0_3, _) => json!({"taskId": task, "pushNotificationConfig": inner}),
        (Generation::V0_1, _) => {
            inner.remove("id");
            json!({"id": task, "pushNotificationConfig": inner})
        }
    }
}

/// `{"task": …}`, `{"message": …}`, `{"statusUpdate": …}`, `{"artifactUpdate": …}`.
fn wrapped(variant: Variant, mut value: Value) -> Value {
    match (variant.generation, variant.binding) {
        (Generation::V1, _) => value,
        (Generation::V0_3, Binding::Rest) => {
            older(&mut value, Style::Proto);
            value
        }
        (Generation::V0_3, _) => {
            older(&mut value, Style::Kind);
            unwrapped(value, |name, inner| {
                let kind = match name {
                    "statusUpdate" => "status-update",
                    "artifactUpdate" => "artifact-update",
                    other => other,
                };
                inner.insert("kind".to_owned(), json!(kind));
            })
        }
        (Generation::V0_1, _) => {
            older(&mut value, Style::Type);
            unwrapped(value, first_generation)
        }
    }
}

/// Changes the value of the only member.
fn unwrapped(value: Value, change: impl Fn(&str, &mut Map<String, Value>)) -> Value {
    let Value::Object(members) = value else { return value };
    let mut inner = Value::Null;
    for (name, member) in members {
        let mut member = member;
        if let Value::Object(object) = &mut member {
            change(&name, object);
        }
        inner = member;
    }
    inner
}

fn first_generation(name: &str, inner: &mut Map<String, Value>) {
    if name == "task" {
        rename(inner, "contextId", "sessionId");
    } else {
        inner.remove("contextId");
        rename(inner, "taskId", "id");
    }
    if name == "artifactUpdate" {
        // In 0.1 the flags are inside the artifact.
        for flag in ["append", "lastChunk"] {
            if let (Some(value), Some(Value::Object(artifact))) =
                (inner.remove(flag), inner.get_mut("artifact"))
            {
                artifact.insert(flag.to_owned(), value);
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    /// JSON of 0.3.
    Kind,
    /// ProtoJSON of 0.3.
    Proto,
    /// JSON of 0.1.
    Type,
}

fn older(value: &mut Value, style: Style) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| older(item, style)),
        Value::Object(members) => {
            members
                .iter_mut()
                .filter(|(name, _)| *name != "data")
                .for_each(|(_, member)| older(member, style));
            if let Some(Value::Array(parts)) = members.get_mut("parts") {
                parts.iter_mut().for_each(|part| *part = part_of(part, style));
            }
            let message = members.contains_key("messageId");
            let word =
                |prefix: &str, text: &str| text.trim_start_matches(prefix).to_lowercase().replace('_', "-");
            if let Some(Value::String(role)) = members.get_mut("role").filter(|_| style != Style::Proto) {
                *role = word("ROLE_", role);
            }
            if let Some(Value::String(state)) = members.get_mut("state") {
                *state = match style {
                    Style::Proto => state.replace("CANCELED", "CANCELLED"),
                    _ => word("TASK_STATE_", state),
                };
            }
            match style {
                Style::Kind if message => {
                    members.insert("kind".to_owned(), json!("message"));
                }
                Style::Proto if message => rename(members, "parts", "content"),
                Style::Type if message => {
                    for name in ["messageId", "contextId", "taskId"] {
                        members.remove(name);
                    }
                }
                Style::Type if members.remove("artifactId").is_some() => {
                    members.insert("index".to_owned(), json!(0));
                }
                _ => {}
            }
        }
        _ => {}
    }
}

fn part_of(part: &Value, style: Style) -> Value {
    let Some(members) = part.as_object() else { return part.clone() };
    let mut out = members.clone();
    let file = |out: &mut Map<String, Value>, from: &str, to: &str| {
        let mut file = Map::new();
        for (from, to) in [(from, to), ("mediaType", "mimeType"), ("filename", "name")] {
            if let Some(value) = out.remove(from) {
                file.insert(to.to_owned(), value);
            }
        }
        out.insert("file".to_owned(), Value::Object(file));
    };
    let (bytes, uri) =
        if style == Style::Proto { ("fileWithBytes", "fileWithUri") } else { ("bytes", "uri") };
    let kind = if out.contains_key("text") {
        for name in ["mediaType", "filename"] {
            out.remove(name);
        }
        "text"
    } else if out.contains_key("raw") {
        file(&mut out, "raw", bytes);
        "file"
    } else if out.contains_key("url") {
        file(&mut out, "url", uri);
        "file"
    } else {
        // In 0.3 and 0.1, data is an object without a media type.
        for name in ["mediaType", "filename"] {
            out.remove(name);
        }
        let data = out.remove("data").unwrap_or_default();
        let data = if data.is_object() { data } else { json!({ "value": data }) };
        out.insert("data".to_owned(), if style == Style::Proto { json!({ "data": data }) } else { data });
        "data"
    };
    match style {
        Style::Kind => drop(out.insert("kind".to_owned(), json!(kind))),
        Style::Type => drop(out.insert("type".to_owned(), json!(kind))),
        Style::Proto => {}
    }
    Value::Object(out)
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
    fn a_task_is_spelled_by_generation_and_binding() {
        let task = json!({"task": {"id": "t", "contextId": "c", "new": 1,
            "status": {"state": "TASK_STATE_CANCELED", "message":
                {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "x"}]}},
            "artifacts": [{"artifactId": "a", "parts": [{"url": "http://h/f", "mediaType": "image/png"}, {"data": null}]}]}});
        let spelled = Variant::ALL.map(|variant| reply(variant, Operation::SendMessage, task.clone()));
        assert_eq!(spelled[0], task);
        assert_eq!(spelled[2]["kind"], "task");
        assert_eq!(spelled[2]["status"]["state"], "canceled");
        assert_eq!(
            spelled[2]["status"]["message"],
            json!({"messageId": "m", "kind": "message", "role": "agent", "parts": [{"kind": "text", "text": "x"}]})
        );
        assert_eq!(
            spelled[2]["artifacts"][0]["parts"],
            json!([{"kind": "file", "file": {"uri": "http://h/f", "mimeType": "image/png"}},
                   {"kind": "data", "data": {"value": null}}])
        );
        assert_eq!(spelled[3]["task"]["status"]["state"], "TASK_STATE_CANCELLED");
        assert_eq!(spelled[3]["task"]["status"]["message"]["content"], json!([{"text": "x"}]));
        assert_eq!(spelled[4]["sessionId"], "c");
        assert_eq!(spelled[4]["artifacts"][0]["index"], 0);
        assert_eq!(
            spelled[4]["status"]["message"],
            json!({"role": "agent", "parts": [{"type": "text", "text": "x"}]})
        );
        assert!(spelled.iter().all(|value| value.to_string().contains("\"new\":1")));
    }
}
