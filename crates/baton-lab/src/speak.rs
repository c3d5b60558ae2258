//! Messages in the form of each generation, for native checks and discovery.

use serde_json::{Map, Value, json};

use crate::generation::Generation;

/// The params of a send with one text; `more` adds members to the message (or, in 0.1, to the params).
pub fn send_params(generation: Generation, text: &str, more: Value) -> Value {
    let id = uuid::Uuid::new_v4().to_string();
    let mut params = match generation {
        Generation::V1 => {
            json!({"message": {"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]}})
        }
        Generation::V0_3 => json!({
            "message": {"kind": "message", "messageId": id, "role": "user", "parts": [{"kind": "text", "text": text}]},
            "configuration": {"blocking": true}}),
        Generation::V0_1 => {
            json!({"id": id, "message": {"role": "user", "parts": [{"type": "text", "text": text}]}})
        }
    };
    let place = if generation == Generation::V0_1 { Some(&mut params) } else { params.get_mut("message") };
    if let (Some(Value::Object(place)), Value::Object(more)) = (place, more) {
        place.extend(more);
    }
    params
}

/// Converts a send from its 1.0 form to a generation.
///
/// Adds what the older generations need: in 0.3 the default of waiting depends on the binding, so it is always set; 0.1
/// needs a task id from the client.
pub fn spelled(generation: Generation, send: &Value) -> Value {
    let message = &send["message"];
    let taken = |names: &[(&str, &str)]| -> Map<String, Value> {
        let found =
            names.iter().filter_map(|(from, to)| Some(((*to).to_owned(), message.get(*from)?.clone())));
        found.collect()
    };
    let parts = |tag: &str| -> Value {
        message["parts"].as_array().into_iter().flatten().map(|part| older_part(tag, part)).collect()
    };
    match generation {
        Generation::V1 => send.clone(),
        Generation::V0_3 => {
            let same = ["messageId", "taskId", "contextId", "metadata", "extensions", "referenceTaskIds"];
            let mut said = taken(&same.map(|name| (name, name)));
            said.insert("kind".to_owned(), json!("message"));
            said.insert("role".to_owned(), json!("user"));
            said.insert("parts".to_owned(), parts("kind"));
            let mut configuration = send["configuration"].as_object().cloned().unwrap_or_default();
            let at_once = configuration.remove("returnImmediately") == Some(json!(true));
            configuration.insert("blocking".to_owned(), json!(!at_once));
            json!({"message": said, "configuration": configuration})
        }
        Generation::V0_1 => {
            let mut params = taken(&[("taskId", "id"), ("contextId", "sessionId")]);
            params.entry("id").or_insert_with(|| json!(uuid::Uuid::new_v4().to_string()));
            params.insert("message".to_owned(), json!({"role": "user", "parts": parts("type")}));
            params.extend(send["configuration"].as_object().cloned().unwrap_or_default());
            // 0.1 has no such option: the server decides.
            params.remove("returnImmediately");
            Value::Object(params)
        }
    }
}

/// A part with its tag: `kind` in 0.3, `type` in 0.1.
fn older_part(tag: &str, part: &Value) -> Value {
    let file = |content: &str, value: &Value| {
        let mut file = json!({ content: value });
        for (from, to) in [("mediaType", "mimeType"), ("filename", "name")] {
            if let Some(value) = part.get(from) {
                file[to] = value.clone();
            }
        }
        json!({tag: "file", "file": file})
    };
    if let Some(text) = part.get("text") {
        json!({tag: "text", "text": text})
    } else if let Some(bytes) = part.get("raw") {
        file("bytes", bytes)
    } else if let Some(uri) = part.get("url") {
        file("uri", uri)
    } else {
        json!({tag: "data", "data": part["data"]})
    }
}

/// The name of a state in a generation.
pub fn state(generation: Generation, word: &str) -> String {
    match generation {
        Generation::V1 => format!("TASK_STATE_{word}"),
        Generation::V0_3 | Generation::V0_1 => word.to_ascii_lowercase().replace('_', "-"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_send_is_spelled_in_every_generation() {
        let send = json!({
            "message": {"messageId": "m", "taskId": "t", "contextId": "c", "role": "ROLE_USER", "parts": [
                {"text": "a"}, {"raw": "YQ==", "mediaType": "text/plain", "filename": "f"}, {"url": "http://h"},
                {"data": {"n": 1}}]},
            "configuration": {"returnImmediately": true, "historyLength": 1}});
        assert_eq!(spelled(Generation::V1, &send), send);
        let part = |tag: &str, kind: &str, member: &str, value: Value| json!({tag: kind, member: value});
        let parts = |tag: &str| {
            json!([
                part(tag, "text", "text", json!("a")),
                part(tag, "file", "file", json!({"bytes": "YQ==", "mimeType": "text/plain", "name": "f"})),
                part(tag, "file", "file", json!({"uri": "http://h"})),
                part(tag, "data", "data", json!({"n": 1}))
            ])
        };
        assert_eq!(
            spelled(Generation::V0_3, &send),
            json!({"message": {"kind": "message", "messageId": "m", "taskId": "t", "contextId": "c", "role": "user",
                "parts": parts("kind")}, "configuration": {"blocking": false, "historyLength": 1}})
        );
        assert_eq!(
            spelled(Generation::V0_1, &send),
            json!({"id": "t", "sessionId": "c", "historyLength": 1,
                "message": {"role": "user", "parts": parts("type")}})
        );
        let short = json!({"message": {"parts": [{"text": "a"}]}});
        assert_eq!(spelled(Generation::V0_3, &short)["configuration"], json!({"blocking": true}));
        assert!(spelled(Generation::V0_1, &short)["id"].is_string());
    }
}
