//! A client's requests, and the operations they stand for.

use std::time::Instant;

use serde_json::{Map, Value, json};

use super::variant::Variant;
use crate::generation::Generation;
use crate::wire::Received;
use crate::wire::request::Operation;

/// One request and its answer.
#[derive(Debug, Clone)]
pub struct Heard {
    pub at: Instant,
    pub method: String,
    /// Path and query, as sent.
    pub target: String,
    pub host: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub json: Option<Value>,
    /// The part of the agent that was addressed.
    pub place: Place,
    /// The request went to the other origin.
    pub foreign: bool,
    pub call: Option<Call>,
    /// The request is about a task that had already ended.
    pub late: bool,
    pub answer: Option<Received>,
}

/// The part of the agent that a request addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A well-known file.
    Card(String),
    /// An address below the agent's base; `a2a` is the one its card gives.
    Door { name: String, rest: String },
    /// The base itself, or an unknown path.
    Elsewhere,
}

/// An operation, as far as it can be recognised.
#[derive(Debug, Clone)]
pub struct Call {
    pub operation: Operation,
    /// Parameters from body, path and query, with the names of JSON-RPC.
    pub params: Value,
    pub id: Value,
    /// The tenant at the beginning of a path.
    pub tenant: Option<String>,
}

impl Heard {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// All values of a header, also those separated by commas.
    pub fn listed(&self, name: &str) -> Vec<&str> {
        let lines = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        lines.flat_map(|(_, value)| value.split(',')).map(str::trim).collect()
    }

    pub fn query(&self) -> Vec<(String, String)> {
        let query = self.target.split_once('?').map_or("", |(_, query)| query);
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        pairs
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                (decoded(&name.replace('+', " ")), decoded(&value.replace('+', " ")))
            })
            .collect()
    }

    /// The operation's params; `null` if there is no operation.
    pub fn params(&self) -> &Value {
        static NONE: Value = Value::Null;
        self.call.as_ref().map_or(&NONE, |call| &call.params)
    }

    pub fn operation(&self) -> Option<Operation> {
        self.call.as_ref().map(|call| call.operation)
    }

    /// True for a message, with or without a stream.
    pub fn sends(&self) -> bool {
        matches!(self.operation(), Some(Operation::SendMessage | Operation::SendStreamingMessage))
    }

    /// True for a request to an interface of the agent, not to a card.
    pub fn is_call(&self) -> bool {
        !matches!(self.place, Place::Card(_))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// One line for a report.
    pub fn line(&self) -> String {
        match (&self.call, self.json.as_ref().and_then(|json| json["method"].as_str())) {
            (_, Some(method)) => format!("{} {} ({method})", self.method, self.target),
            _ => format!("{} {}", self.method, self.target),
        }
    }
}

/// The operation of a request. `rest` is its path below the interface's address.
pub(super) fn understand(variant: Variant, heard: &Heard, rest: &str, tenant: Option<&str>) -> Option<Call> {
    let mut call = if variant.is_rest() {
        rest_call(variant, heard, rest, tenant)?
    } else {
        rpc_call(variant, heard, rest)?
    };
    in_camel_case(&mut call.params);
    Some(call)
}

/// Renames members to camelCase, so that a client that misspells them fails one rule, and not all the others, too.
fn in_camel_case(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(in_camel_case),
        Value::Object(members) => {
            let named = std::mem::take(members).into_iter().map(|(name, mut member)| {
                if !["metadata", "data"].contains(&name.as_str()) {
                    in_camel_case(&mut member);
                }
                let mut words = name.split('_');
                let first = words.next().unwrap_or_default().to_owned();
                let rest = words.map(|word| {
                    let mut letters = word.chars();
                    letters.next().map(|letter| letter.to_ascii_uppercase().to_string()).unwrap_or_default()
                        + letters.as_str()
                });
                (rest.fold(first, |name, word| name + &word), member)
            });
            *members = named.collect();
        }
        _ => {}
    }
}

fn rpc_call(variant: Variant, heard: &Heard, rest: &str) -> Option<Call> {
    let json = heard.json.as_ref().filter(|_| heard.method == "POST" && rest.trim_matches('/').is_empty())?;
    let method = json["method"].as_str()?;
    let operation =
        Operation::all().find(|operation| operation.method(variant.generation) == Some(method))?;
    Some(Call { operation, params: json["params"].clone(), id: json["id"].clone(), tenant: None })
}

fn rest_call(variant: Variant, heard: &Heard, rest: &str, tenant: Option<&str>) -> Option<Call> {
    use Operation as O;
    let rest = rest.split('?').next().unwrap_or_default();
    let given = tenant.and_then(|tenant| Some((tenant, rest.strip_prefix(&format!("/{tenant}/"))?)));
    let path = match given {
        Some((_, path)) => path,
        None => rest.strip_prefix(&format!("{}/", variant.prefix()))?,
    };
    let mut params = match (&heard.json, heard.method.as_str()) {
        (Some(Value::Object(members)), "POST") => members.clone(),
        _ => Map::new(),
    };
    // The proto's field is called `request`; its JSON name is `message`.
    if let Some(message) = params.remove("request").filter(|_| variant.generation == Generation::V0_3) {
        params.entry("message").or_insert(message);
    }
    for (name, value) in heard.query() {
        params.entry(name).or_insert_with(|| json!(value));
    }
    let mut put = |name: &str, value: &str| params.insert(name.to_owned(), json!(decoded(value)));
    let operation = match (heard.method.as_str(), path) {
        ("POST", "message:send") => O::SendMessage,
        ("POST", "message:stream") => O::SendStreamingMessage,
        ("GET", "tasks") => O::ListTasks,
        ("GET", "extendedAgentCard") if variant.generation == Generation::V1 => O::GetExtendedAgentCard,
        ("GET", "card") if variant.generation == Generation::V0_3 => O::GetExtendedAgentCard,
        (method, path) => {
            let task = path.strip_prefix("tasks/")?;
            let config = task.split_once("/pushNotificationConfigs");
            match (method, config, task.rsplit_once(':')) {
                ("POST", Some((task, "" | "/")), _) => {
                    put("taskId", task);
                    O::CreatePushConfig
                }
                ("GET", Some((task, "" | "/")), _) => {
                    put("taskId", task);
                    O::ListPushConfigs
                }
                ("GET" | "DELETE", Some((task, config)), _) => {
                    put("taskId", task);
                    put("id", config.trim_start_matches('/'));
                    if method == "GET" { O::GetPushConfig } else { O::DeletePushConfig }
                }
                ("POST", None, Some((task, "cancel"))) => {
                    put("id", task);
                    O::CancelTask
                }
                ("GET" | "POST", None, Some((task, "subscribe"))) => {
                    put("id", task);
                    O::SubscribeToTask
                }
                // Probably an id that the client did not encode.
                ("GET", None, _) => {
                    put("id", task);
                    O::GetTask
                }
                _ => return None,
            }
        }
    };
    let tenant = given.map(|(tenant, _)| tenant.to_owned());
    Some(Call { operation, params: Value::Object(params), id: Value::Null, tenant })
}

/// Percent-decoded; invalid UTF-8 is replaced.
pub(super) fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) if bytes[at] == b'%' => {
                out.push(byte);
                at += 3;
            }
            _ => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_members_are_understood() {
        let mut value =
            json!({"message_id": 1, "a": [{"task_é_id": {"ü_": 2}}], "metadata": {"my_own": 3}, "_": 4});
        in_camel_case(&mut value);
        assert_eq!(
            value,
            json!({"messageId": 1, "a": [{"taskéId": {"ü": 2}}], "metadata": {"my_own": 3}, "": 4})
        );
    }

    #[test]
    fn escapes_are_taken_out() {
        for (text, plain) in
            [("a%2Fb", "a/b"), ("%C3%A4", "ä"), ("%", "%"), ("%zz%41", "%zzA"), ("%ff", "\u{fffd}")]
        {
            assert_eq!(decoded(text), plain);
        }
    }
}
