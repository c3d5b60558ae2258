//! Maps the files' abstract operations to the wire.
//!
//! The draft and the official files have their own names for several operations and parameters. Reading them is not a
//! correction: without it those tests could not run at all, so it also applies with corrections off.

use serde_json::{Map, Value, json};

use crate::generation::Generation;
use crate::wire::request::Operation;

/// Names that the official files use in addition to those of the draft.
const ALIASES: &[(&str, Operation)] = &[
    ("set_push_notification_config", Operation::CreatePushConfig),
    ("create_push_notification_config", Operation::CreatePushConfig),
    ("get_push_notification_config", Operation::GetPushConfig),
    ("list_push_notification_configs", Operation::ListPushConfigs),
    ("delete_push_notification_config", Operation::DeletePushConfig),
];

/// Finds an operation by any of its names.
pub fn operation(name: &str) -> Option<Operation> {
    let alias = || ALIASES.iter().find(|(known, _)| *known == name).map(|(_, operation)| *operation);
    Operation::named(name).or_else(alias)
}

/// The operation and its parameters in wire form; `None` for an unknown name.
///
/// Only 1.0 is read this way: files of the older generations are our own and use the wire names.
pub fn read(generation: Generation, name: &str, mut params: Value) -> Option<(Operation, Value)> {
    let mut found = operation(name)?;
    if generation != Generation::V1 {
        return Some((found, params));
    }
    let Some(members) = params.as_object_mut() else { return Some((found, params)) };
    match found {
        Operation::GetAgentCard if members.remove("extended") == Some(json!(true)) => {
            found = Operation::GetExtendedAgentCard;
        }
        Operation::CreatePushConfig => {
            // 1.0 has one flat object.
            if let Some(Value::Object(inner)) = members.remove("pushNotificationConfig") {
                members.extend(inner);
            }
        }
        Operation::ListTasks => {
            if let Some(cursor) = members.remove("cursor") {
                members.entry("pageToken").or_insert(cursor);
            }
        }
        Operation::SendMessage | Operation::SendStreamingMessage => {
            let parts = members.get_mut("message").and_then(|message| message.get_mut("parts"));
            for part in parts.and_then(Value::as_array_mut).into_iter().flatten() {
                flatten_file(part);
            }
        }
        _ => {}
    }
    Some((found, params))
}

/// The draft's `file{url,raw,mediaType,name}`: 1.0 has these on the part itself.
fn flatten_file(part: &mut Value) {
    let Some(members) = part.as_object_mut() else { return };
    if !members.get("file").is_some_and(Value::is_object) {
        return;
    }
    let Some(Value::Object(file)) = members.remove("file") else { return };
    let renamed: Map<String, Value> = file
        .into_iter()
        .map(|(name, value)| match name.as_str() {
            "name" => ("filename".to_owned(), value),
            "bytes" => ("raw".to_owned(), value),
            _ => (name, value),
        })
        .collect();
    members.extend(renamed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_own_spellings_are_understood() {
        for (name, params, operation, wire) in [
            (
                "set_push_notification_config",
                json!({"taskId": "t", "pushNotificationConfig": {"url": "u", "token": "x"}}),
                Operation::CreatePushConfig,
                json!({"taskId": "t", "url": "u", "token": "x"}),
            ),
            ("get_agent_card", json!({"extended": true}), Operation::GetExtendedAgentCard, json!({})),
            ("get_agent_card", json!({}), Operation::GetAgentCard, json!({})),
            ("list_tasks", json!({"cursor": "c"}), Operation::ListTasks, json!({"pageToken": "c"})),
            (
                "send_message",
                json!({"message": {"parts": [{"file": {"raw": "AA==", "name": "n"}}, {"text": "t"}]}}),
                Operation::SendMessage,
                json!({"message": {"parts": [{"raw": "AA==", "filename": "n"}, {"text": "t"}]}}),
            ),
        ] {
            assert_eq!(read(Generation::V1, name, params), Some((operation, wire)));
        }
        assert_eq!(read(Generation::V1, "sing", json!({})), None);
        let older = json!({"pushNotificationConfig": {"url": "u"}});
        let read = read(Generation::V0_3, "create_push_config", older.clone());
        assert_eq!(read, Some((Operation::CreatePushConfig, older)));
    }
}
