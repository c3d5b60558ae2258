//! Requests of every generation and binding, built by hand from the specification's tables.

use serde_json::{Map, Value, json};

use super::grpc::methods::Method;
use super::proto_json;
use crate::generation::{Binding, Generation};
use crate::target::Interface;

/// A request to send.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
    /// The answer is expected to be a stream of events.
    pub streams: bool,
}

/// The media type of gRPC.
const GRPC: &str = "application/grpc";

impl Request {
    /// The method of a call of gRPC. Its body here is ProtoJSON, so that it can be read; the probe encodes it.
    pub(crate) fn grpc(&self) -> Option<Method> {
        let is_grpc =
            |(name, value): &(String, String)| name.eq_ignore_ascii_case("content-type") && value == GRPC;
        self.headers.iter().any(is_grpc).then(|| Method::at(path_of(&self.url))).flatten()
    }
}

/// From the first slash after the host on.
fn path_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find('/').map_or("", |slash| &rest[slash..])
}

/// The operations, with their ACTS names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    SendMessage,
    SendStreamingMessage,
    GetTask,
    ListTasks,
    CancelTask,
    SubscribeToTask,
    GetAgentCard,
    GetExtendedAgentCard,
    CreatePushConfig,
    GetPushConfig,
    ListPushConfigs,
    DeletePushConfig,
}

/// Name in ACTS; methods of 1.0, 0.3, 0.1.
type Row = (Operation, &'static str, &'static str, &'static str, &'static str);

const TABLE: &[Row] = &[
    (Operation::SendMessage, "send_message", "SendMessage", "message/send", "tasks/send"),
    (
        Operation::SendStreamingMessage,
        "send_streaming_message",
        "SendStreamingMessage",
        "message/stream",
        "tasks/sendSubscribe",
    ),
    (Operation::GetTask, "get_task", "GetTask", "tasks/get", "tasks/get"),
    (Operation::ListTasks, "list_tasks", "ListTasks", "tasks/list", ""),
    (Operation::CancelTask, "cancel_task", "CancelTask", "tasks/cancel", "tasks/cancel"),
    (
        Operation::SubscribeToTask,
        "subscribe_to_task",
        "SubscribeToTask",
        "tasks/resubscribe",
        "tasks/resubscribe",
    ),
    (Operation::GetAgentCard, "get_agent_card", "", "", ""),
    (
        Operation::GetExtendedAgentCard,
        "get_extended_agent_card",
        "GetExtendedAgentCard",
        "agent/getAuthenticatedExtendedCard",
        "",
    ),
    (
        Operation::CreatePushConfig,
        "create_push_config",
        "CreateTaskPushNotificationConfig",
        "tasks/pushNotificationConfig/set",
        "tasks/pushNotification/set",
    ),
    (
        Operation::GetPushConfig,
        "get_push_config",
        "GetTaskPushNotificationConfig",
        "tasks/pushNotificationConfig/get",
        "tasks/pushNotification/get",
    ),
    (
        Operation::ListPushConfigs,
        "list_push_configs",
        "ListTaskPushNotificationConfigs",
        "tasks/pushNotificationConfig/list",
        "",
    ),
    (
        Operation::DeletePushConfig,
        "delete_push_config",
        "DeleteTaskPushNotificationConfig",
        "tasks/pushNotificationConfig/delete",
        "",
    ),
];

impl Operation {
    /// All operations.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.0)
    }

    /// By its ACTS name.
    pub fn named(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    fn row(self) -> &'static Row {
        TABLE.iter().find(|row| row.0 == self).expect("every operation has a row")
    }

    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// `None` where the generation has no such method.
    pub fn method(self, generation: Generation) -> Option<&'static str> {
        let row = self.row();
        let method = match generation {
            Generation::V1 => row.2,
            Generation::V0_3 => row.3,
            Generation::V0_1 => row.4,
        };
        (!method.is_empty()).then_some(method)
    }

    pub fn streams(self) -> bool {
        matches!(self, Self::SendStreamingMessage | Self::SubscribeToTask)
    }
}

/// Why an operation cannot be requested in this generation and binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoSuchRequest(pub String);

/// The request for an operation in a generation and binding. `params` are already in the wire form of the generation.
pub fn operation(
    generation: Generation,
    binding: Binding,
    interface: &Interface,
    operation: Operation,
    params: &Value,
) -> Result<Request, NoSuchRequest> {
    match binding {
        Binding::Jsonrpc => rpc(generation, interface, operation, params),
        Binding::Rest => rest(generation, interface, operation, params),
        Binding::Grpc => grpc(generation, interface, operation, params),
    }
}

/// Protobuf cannot say everything that JSON can: what has no field is no request.
fn grpc(
    generation: Generation,
    interface: &Interface,
    operation: Operation,
    params: &Value,
) -> Result<Request, NoSuchRequest> {
    let Some(method) = Method::of(generation, operation) else {
        return Err(NoSuchRequest(format!("gRPC of {generation} has no method for {}", operation.name())));
    };
    let mut params = method.params(params).map_err(NoSuchRequest)?;
    if let (Generation::V1, Some(tenant), Some(members)) =
        (generation, &interface.tenant, params.as_object_mut())
    {
        members.entry("tenant").or_insert_with(|| json!(tenant));
    }
    method.encoded(&params).map_err(NoSuchRequest)?;
    let body = Some(params.to_string().into_bytes());
    Ok(Request { body, streams: operation.streams(), ..call(generation, interface, &method.path()) })
}

/// A call of gRPC without a body. The method alone is the path: what the address has after the host is not sent.
pub(crate) fn call(generation: Generation, interface: &Interface, path: &str) -> Request {
    let host = interface.url.strip_suffix(path_of(&interface.url)).unwrap_or(&interface.url);
    let mut headers =
        vec![("Content-Type".to_owned(), GRPC.to_owned()), ("TE".to_owned(), "trailers".to_owned())];
    headers.extend(version(generation));
    Request { method: "POST".to_owned(), url: format!("{host}{path}"), headers, body: None, streams: false }
}

fn rpc(
    generation: Generation,
    interface: &Interface,
    operation: Operation,
    params: &Value,
) -> Result<Request, NoSuchRequest> {
    let Some(method) = operation.method(generation) else {
        return Err(NoSuchRequest(format!("{generation} has no method for {}", operation.name())));
    };
    let mut params = params.clone();
    if let (Some(tenant), Some(members)) = (&interface.tenant, params.as_object_mut()) {
        members.entry("tenant").or_insert_with(|| json!(tenant));
    }
    let id = uuid::Uuid::new_v4().to_string();
    let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let mut headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
    headers.extend(version(generation));
    headers.push(("Accept".to_owned(), accepted(operation, "application/json")));
    Ok(Request {
        method: "POST".to_owned(),
        url: interface.url.clone(),
        headers,
        body: Some(body.to_string().into_bytes()),
        streams: operation.streams(),
    })
}

/// The header that names the generation; 0.1 has none.
pub fn version(generation: Generation) -> Option<(String, String)> {
    match generation {
        Generation::V1 | Generation::V0_3 => {
            Some(("A2A-Version".to_owned(), generation.version().to_owned()))
        }
        Generation::V0_1 => None,
    }
}

fn accepted(operation: Operation, json: &str) -> String {
    if operation.streams() { "text/event-stream".to_owned() } else { json.to_owned() }
}

fn rest(
    generation: Generation,
    interface: &Interface,
    operation: Operation,
    params: &Value,
) -> Result<Request, NoSuchRequest> {
    let none = || NoSuchRequest(format!("{generation} has no path for {}", operation.name()));
    let params = match generation {
        Generation::V0_3 => &proto_json::request(operation, params),
        Generation::V1 | Generation::V0_1 => params,
    };
    let mut rest = params.as_object().cloned().unwrap_or_default();
    let mut take = |name: &str| match rest.remove(name) {
        Some(Value::String(text)) => encoded(&text),
        Some(other) => encoded(&other.to_string()),
        None => String::new(),
    };
    use Operation as O;
    let (method, path) = match operation {
        O::SendMessage => ("POST", "/message:send".to_owned()),
        O::SendStreamingMessage => ("POST", "/message:stream".to_owned()),
        O::GetTask => ("GET", format!("/tasks/{}", take("id"))),
        O::ListTasks => ("GET", "/tasks".to_owned()),
        O::CancelTask => ("POST", format!("/tasks/{}:cancel", take("id"))),
        O::SubscribeToTask => ("GET", format!("/tasks/{}:subscribe", take("id"))),
        O::GetAgentCard => return Err(none()),
        O::GetExtendedAgentCard if generation == Generation::V1 => ("GET", "/extendedAgentCard".to_owned()),
        O::GetExtendedAgentCard => ("GET", "/card".to_owned()),
        O::CreatePushConfig => ("POST", format!("/tasks/{}/pushNotificationConfigs", take("taskId"))),
        O::GetPushConfig => {
            ("GET", format!("/tasks/{}/pushNotificationConfigs/{}", take("taskId"), take("id")))
        }
        O::ListPushConfigs => ("GET", format!("/tasks/{}/pushNotificationConfigs", take("taskId"))),
        O::DeletePushConfig => {
            ("DELETE", format!("/tasks/{}/pushNotificationConfigs/{}", take("taskId"), take("id")))
        }
    };
    let prefix = match (generation, &interface.tenant) {
        (Generation::V1, Some(tenant)) => format!("/{}", encoded(tenant)),
        (Generation::V1, None) => String::new(),
        (Generation::V0_3, _) => "/v1".to_owned(),
        (Generation::V0_1, _) => return Err(NoSuchRequest("0.1 has JSON-RPC alone".to_owned())),
    };
    let media = if generation == Generation::V1 { "application/a2a+json" } else { "application/json" };
    let mut url = format!("{}{prefix}{path}", interface.url.trim_end_matches('/'));
    let mut headers: Vec<_> = version(generation).into_iter().collect();
    headers.push(("Accept".to_owned(), accepted(operation, media)));
    let mut body = None;
    if method == "POST" {
        headers.push(("Content-Type".to_owned(), media.to_owned()));
        body = Some(Value::Object(rest).to_string().into_bytes());
    } else {
        url += &query(&rest);
    }
    Ok(Request { method: method.to_owned(), url, headers, body, streams: operation.streams() })
}

/// Members as query parameters; a list is the same parameter several times.
fn query(members: &Map<String, Value>) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => encoded(text),
        other => encoded(&other.to_string()),
    };
    let mut pairs = Vec::new();
    for (name, value) in members {
        match value {
            Value::Array(items) => pairs.extend(items.iter().map(|item| format!("{name}={}", text(item)))),
            value => pairs.push(format!("{name}={}", text(value))),
        }
    }
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}

/// Percent-encodes a path segment or a query value.
pub fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_spelled_by_generation_and_binding() {
        let interface = Interface { url: "http://h/a/".to_owned(), tenant: None };
        let id = json!({"id": "t/1", "historyLength": 2});
        let build = |generation, binding, wanted, params: &Value| {
            operation(generation, binding, &interface, wanted, params).unwrap()
        };
        let rest = build(Generation::V1, Binding::Rest, Operation::GetTask, &id);
        assert_eq!(
            (rest.method.as_str(), rest.url.as_str()),
            ("GET", "http://h/a/tasks/t%2F1?historyLength=2")
        );
        let rest = build(Generation::V0_3, Binding::Rest, Operation::CancelTask, &json!({"id": "t"}));
        assert_eq!((rest.method.as_str(), rest.url.as_str()), ("POST", "http://h/a/v1/tasks/t:cancel"));
        let rpc = build(Generation::V0_1, Binding::Jsonrpc, Operation::SendStreamingMessage, &json!({}));
        let body: Value = serde_json::from_slice(&rpc.body.unwrap()).unwrap();
        assert_eq!((body["method"].as_str(), rpc.url.as_str()), (Some("tasks/sendSubscribe"), "http://h/a/"));
        assert!(rpc.streams && rpc.headers.iter().all(|(name, _)| name != "A2A-Version"));
        operation(Generation::V0_1, Binding::Jsonrpc, &interface, Operation::ListTasks, &json!({}))
            .unwrap_err();
    }
}
