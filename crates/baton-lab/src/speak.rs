//! Messages in the words of each generation, for native checks and the first look.

use serde_json::{Value, json};

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

/// A state as a generation spells it.
pub fn state(generation: Generation, word: &str) -> String {
    match generation {
        Generation::V1 => format!("TASK_STATE_{word}"),
        Generation::V0_3 | Generation::V0_1 => word.to_ascii_lowercase().replace('_', "-"),
    }
}
