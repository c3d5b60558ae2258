//! The line that a newcomer pastes to see an answer.

use std::time::{SystemTime, UNIX_EPOCH};

use baton_protocol::generation::{Generation, Generations};
use serde_json::{Value, json};

/// Said where no skill has an example.
const GREETING: &str = "Hello, Baton";

/// In the newest generation that is served, with words that the agent knows. Pasted twice, the second call is the
/// same message again and gets the same task. Another start makes another message, so that the line shows a fresh
/// task then.
pub(super) fn curl_line(url: &str, served: Generations, example: Option<&str>) -> String {
    let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let id = format!("hello-{started}");
    let (version, call) = call(served, &id, example.unwrap_or(GREETING));
    let call = in_quotes(&call.to_string());
    format!("curl -sS {url}/ -H 'Content-Type: application/json'{version} -d {call}")
}

fn call(served: Generations, id: &str, text: &str) -> (&'static str, Value) {
    let rpc =
        |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    if served.has(Generation::V1) {
        let message = json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]});
        (" -H 'A2A-Version: 1.0'", rpc("SendMessage", json!({"message": message})))
    } else if served.has(Generation::V0_3) {
        let parts = json!([{"kind": "text", "text": text}]);
        let message = json!({"kind": "message", "messageId": id, "role": "user", "parts": parts});
        ("", rpc("message/send", json!({"message": message})))
    } else {
        let message = json!({"role": "user", "parts": [{"type": "text", "text": text}]});
        ("", rpc("tasks/send", json!({"id": id, "message": message})))
    }
}

/// One word for a shell, whatever is in it.
fn in_quotes(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
