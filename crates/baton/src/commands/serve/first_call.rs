//! The lines that are printed at start, to try the agent: one with our own client, one with `curl`.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use baton_protocol::generation::{Generation, Generations};
use serde_json::{Value, json};

use crate::config::KeyPlace;

/// Sent if no skill has an example.
const GREETING: &str = "Hello, Baton";

/// The same call with our own client. `key` is the key of a caller, or a variable of the shell that has it.
pub(crate) fn send_line(
    url: &str,
    served: Generations,
    example: Option<&str>,
    trusted: Option<&Path>,
    key: Option<&str>,
) -> String {
    let key = key.map(|key| format!("A2ACLI_API_KEY={key} ")).unwrap_or_default();
    let trusted = trusted.map(|file| format!("--ca {} ", word(&file.to_string_lossy()))).unwrap_or_default();
    let version = match (served.has(Generation::V1), served.has(Generation::V0_3)) {
        (true, _) => "",
        (false, true) => "--a2a-version 0.3 ",
        (false, false) => "--a2a-version 0.1 ",
    };
    format!("{key}baton send {trusted}{version}{url} {}", word(example.unwrap_or(GREETING)))
}

/// A call in the newest generation that is served, with an example that the agent knows. Pasted twice, the second call
/// repeats the message and gets the same task. Each start of the server prints another message id, so that the line
/// then makes a new task.
///
/// `trusted` is a certificate that curl has to be told to trust. `key` is where callers send their key, and the key or a
/// variable of the shell that has it.
pub(crate) fn curl_line(
    url: &str,
    served: Generations,
    example: Option<&str>,
    trusted: Option<&Path>,
    key: Option<(&KeyPlace, &str)>,
) -> String {
    let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let id = format!("hello-{started}");
    let (version, call) = call(served, &id, example.unwrap_or(GREETING));
    let call = in_quotes(&call.to_string());
    let trusted =
        trusted.map(|file| format!("--cacert {} ", word(&file.to_string_lossy()))).unwrap_or_default();
    let (query, flags) = key.map(|(place, key)| place.curl(key)).unwrap_or_default();
    let url = if query.is_empty() { format!("{url}/") } else { format!("\"{url}/{query}\"") };
    format!("curl -sS {trusted}{url}{flags} -H 'Content-Type: application/json'{version} -d {call}")
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

/// Without quotes, if it needs none.
pub(crate) fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/:".contains(c);
    if !text.is_empty() && text.chars().all(plain) { text.to_owned() } else { in_quotes(text) }
}

/// Quotes any text as one word for a shell.
fn in_quotes(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
