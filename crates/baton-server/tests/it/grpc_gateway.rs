//! Requests of HTTP+JSON, sent over gRPC: answers come back in the JSON of HTTP+JSON, streams as server-sent events. So the
//! tables that compare bindings compare gRPC as well.

use baton_protocol::wire::pb::Package;
use futures_util::stream::unfold;
use http::{HeaderMap, Method};
use serde_json::{Map, Value, json};
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};

use crate::grpc_client::{Grpc, Messages, details, message_of};
use crate::harness::TestServer;

const NUMBER: &str = "urn:baton:resume:v1";

/// `None`: the service has no such method.
pub(crate) async fn request(
    server: &TestServer,
    package: Package,
    headers: &[(&str, &str)],
    method: &Method,
    path: &str,
    body: Option<Value>,
) -> Option<reqwest::Response> {
    let (name, params, streams) = route(package, method, path, body)?;
    if let Err(error) = message_of(package, name, &params) {
        return Some(answer(400, &HeaderMap::new(), &json!({"error": {"unsayable": error}})));
    }
    let mut client = Grpc::connect(server, package).await.with("a2a-extensions", NUMBER);
    for (name, value) in headers {
        match *name {
            "content-type" => {}
            "a2a-extensions" => client = client.with(name, &format!("{NUMBER},{value}")),
            _ => client = client.with(name, value),
        }
    }
    let answered = match streams {
        true => client.stream(name, params).await.map(|messages| events(package, messages)),
        false => client.call(name, params).await.map(|it| answer(200, &it.metadata.into_headers(), &it.json)),
    };
    Some(answered.unwrap_or_else(|status| refusal(package, &status)))
}

/// A call of any path with any bytes, by an owner of [`ByHeader`](crate::callers::ByHeader).
pub(crate) async fn raw(
    server: &TestServer,
    package: Package,
    path: &str,
    message: Vec<u8>,
) -> reqwest::Response {
    let mut client = Grpc::connect(server, package).await.with("x-owner", "ann");
    match client.call_raw(path, message.into()).await {
        Ok((metadata, _)) => answer(200, &metadata.into_headers(), &json!({})),
        Err(status) => refusal(package, &status),
    }
}

pub(crate) fn refusal(package: Package, status: &Status) -> reqwest::Response {
    let error = error(package, status);
    answer(error["error"]["code"].as_u64().unwrap() as u16, &headers_of(status), &error)
}

/// The method, its request and whether it streams.
fn route(
    package: Package,
    method: &Method,
    path: &str,
    body: Option<Value>,
) -> Option<(&'static str, Value, bool)> {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let body = body.unwrap_or_else(|| json!({}));
    let is_v1 = package == Package::V1;
    let named = |task: &str, config: Option<&str>| match (package, config) {
        (Package::V1, None) => json!({"id": task}),
        (Package::V1, Some(config)) => json!({"taskId": task, "id": config}),
        (Package::V0_3, None) => json!({"name": format!("tasks/{task}")}),
        (Package::V0_3, Some(config)) => {
            json!({"name": format!("tasks/{task}/pushNotificationConfigs/{config}")})
        }
    };
    let with = |mut message: Value, more: Value| {
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        message
    };
    let pairs =
        query.split('&').filter_map(|pair| pair.split_once('=')).filter(|(_, value)| !value.is_empty());
    let query: Value =
        Value::Object(pairs.map(|(name, value)| (name.to_owned(), json!(value))).collect::<Map<_, _>>());
    let segments: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    Some(match (method.as_str(), &segments[..]) {
        ("POST", ["message:send"]) => ("SendMessage", body, false),
        ("POST", ["message:stream"]) => ("SendStreamingMessage", body, true),
        ("GET", ["tasks"]) if is_v1 => ("ListTasks", query, false),
        ("GET", ["tasks"]) => return None,
        ("GET", ["extendedAgentCard"]) => ("GetExtendedAgentCard", json!({}), false),
        ("GET", ["card"]) => ("GetAgentCard", json!({}), false),
        (_, ["tasks", task, "pushNotificationConfigs"]) => match (method.as_str(), is_v1) {
            ("POST", true) => {
                ("CreateTaskPushNotificationConfig", with(body, json!({"taskId": task})), false)
            }
            ("POST", false) => {
                let parent = json!({"parent": format!("tasks/{task}")});
                ("CreateTaskPushNotificationConfig", with(body, parent), false)
            }
            (_, true) => ("ListTaskPushNotificationConfigs", json!({"taskId": task}), false),
            (_, false) => {
                ("ListTaskPushNotificationConfig", json!({"parent": format!("tasks/{task}")}), false)
            }
        },
        ("GET", ["tasks", task, "pushNotificationConfigs", config]) => {
            ("GetTaskPushNotificationConfig", named(task, Some(config)), false)
        }
        ("DELETE", ["tasks", task, "pushNotificationConfigs", config]) => {
            ("DeleteTaskPushNotificationConfig", named(task, Some(config)), false)
        }
        ("GET", ["tasks", task]) => match task.strip_suffix(":subscribe") {
            Some(task) if is_v1 => ("SubscribeToTask", named(task, None), true),
            Some(task) => ("TaskSubscription", named(task, None), true),
            None => ("GetTask", with(named(task, None), query), false),
        },
        ("POST", ["tasks", task]) => {
            ("CancelTask", named(task.strip_suffix(":cancel").expect("a verb"), None), false)
        }
        other => panic!("no call of gRPC: {other:?}"),
    })
}

/// The error as HTTP+JSON has it, and the code of gRPC.
fn error(package: Package, status: &Status) -> Value {
    let (code, details) = (status.code(), details(status));
    let reason = details.first().and_then(|info| info["reason"].as_str()).unwrap_or_default();
    let of = |v1: u16, v0_3: u16| if package == Package::V1 { v1 } else { v0_3 };
    let http = match (reason, code) {
        ("TASK_NOT_FOUND", _) | ("METHOD_NOT_FOUND", _) => 404,
        ("TASK_NOT_CANCELABLE", _) => of(400, 409),
        ("PUSH_NOTIFICATION_NOT_SUPPORTED", _) | ("UNSUPPORTED_OPERATION", Code::Unimplemented) => {
            of(400, 501)
        }
        ("CONTENT_TYPE_NOT_SUPPORTED", _) => of(400, 415),
        ("INVALID_AGENT_RESPONSE", _) => of(500, 502),
        ("EXTENDED_AGENT_CARD_NOT_CONFIGURED", _) => of(400, 404),
        ("UNAUTHENTICATED", _) => 401,
        ("PERMISSION_DENIED", _) => 403,
        ("PAYLOAD_TOO_LARGE", _) => 413,
        ("RESOURCE_EXHAUSTED", Code::ResourceExhausted) => 429,
        ("RESOURCE_EXHAUSTED" | "UNAVAILABLE", _) => 503,
        ("INTERNAL_ERROR", _) => 500,
        ("DEADLINE_EXCEEDED", _) => 504,
        _ => 400,
    };
    let code = code as i32;
    // In 0.3 the errors of A2A say their name first.
    let message = match status.message().split_once("Error: ") {
        Some((name, told)) if package == Package::V0_3 && !name.contains(' ') => told,
        _ => status.message(),
    };
    json!({"error": {"code": http, "grpc": code, "message": message, "details": details}})
}

fn headers_of(status: &Status) -> HeaderMap {
    MetadataMap::clone(status.metadata()).into_headers()
}

fn answer(status: u16, metadata: &HeaderMap, json: &Value) -> reqwest::Response {
    let mut response = http::Response::builder().status(status).header("content-type", "application/json");
    for (name, value) in metadata.iter().filter(|(name, _)| *name != "content-type") {
        response = response.header(name, value);
    }
    response.body(json.to_string()).unwrap().into()
}

fn events(package: Package, messages: Messages) -> reqwest::Response {
    let mut response = http::Response::builder().header("content-type", "text/event-stream");
    for (name, value) in messages.metadata.clone().into_headers() {
        let name = name.filter(|name| name != "content-type");
        response = name
            .map(|name| (name, value))
            .into_iter()
            .fold(response, |it, (name, value)| it.header(name, value));
    }
    let lines = unfold(Some(messages), move |messages| async move {
        let mut messages = messages?;
        match messages.next().await {
            Ok(Some(message)) => Some((line(message), Some(messages))),
            Ok(None) => None,
            Err(status) => Some((format!("event: error\ndata: {}\n\n", error(package, &status)), None)),
        }
    });
    let lines = futures_util::StreamExt::map(lines, Ok::<_, std::convert::Infallible>);
    response.body(reqwest::Body::wrap_stream(lines)).unwrap().into()
}

/// A message as an event, with its number as the id.
fn line(mut message: Value) -> String {
    let inner = message.as_object_mut().unwrap().values_mut().next().expect("one member");
    let mut number = None;
    if let Some(metadata) = inner.get_mut("metadata").and_then(Value::as_object_mut) {
        number = metadata.remove(NUMBER);
        if metadata.is_empty() {
            inner.as_object_mut().unwrap().remove("metadata");
        }
    }
    let id =
        number.map_or_else(String::new, |number| format!("id: {}\n", number.as_f64().expect("a number")));
    format!("{id}data: {message}\n\n")
}
