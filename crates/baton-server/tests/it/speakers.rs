//! Hand-written requests of every generation and binding, and event streams read line by line.

use baton_protocol::domain::{AgentCard, AgentSkill};
use baton_server::{Agent, Builder, Server};
use http::{HeaderMap, Method};
use serde_json::{Value, json};

use crate::harness::{Answer, TEST_TIMEOUT, TestServer, all_bindings};

/// Sends exactly this request.
pub(crate) async fn request(
    server: &TestServer,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<reqwest::Body>,
) -> reqwest::Response {
    let mut request = server.http.request(method, format!("{}{path}", server.url)).body(body);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    tokio::time::timeout(TEST_TIMEOUT, request.send()).await.expect("an answer came").unwrap()
}

/// Reads the whole answer; a body that is not JSON becomes a JSON string.
pub(crate) async fn read(response: reqwest::Response) -> Answer {
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let text = tokio::time::timeout(TEST_TIMEOUT, response.text()).await.expect("the answer came").unwrap();
    let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
    Answer { status, headers, body }
}

pub(crate) fn envelope(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": "r", "method": method, "params": params}).to_string()
}

/// JSON-RPC at the root.
pub(crate) async fn rpc(
    server: &TestServer,
    headers: &[(&str, &str)],
    method: &str,
    params: Value,
) -> Answer {
    let mut all = vec![("content-type", "application/json")];
    all.extend_from_slice(headers);
    read(request(server, Method::POST, "/", &all, envelope(method, &params)).await).await
}

/// A call in 0.1, which has no version header.
pub(crate) async fn legacy(server: &TestServer, method: &str, params: Value) -> Answer {
    rpc(server, &[], method, params).await
}

/// Params of `tasks/send`; the client chooses the task's id.
pub(crate) fn task(id: &str, text: &str) -> Value {
    json!({"id": id, "sessionId": "session-1", "message": {"role": "user", "parts": [{"type": "text", "text": text}]}})
}

/// Params of `message/send` with a message id of its own.
pub(crate) fn message_03(text: &str) -> Value {
    let id = crate::harness::message("")["message"]["messageId"].clone();
    json!({"message": {"kind": "message", "messageId": id, "role": "user", "parts": [{"kind": "text", "text": text}]}})
}

/// The same for `/v1/message:send`.
pub(crate) fn proto_message_03(text: &str) -> Value {
    let id = crate::harness::message("")["message"]["messageId"].clone();
    json!({"message": {"messageId": id, "role": "ROLE_USER", "content": [{"text": text}]}})
}

/// Polls `tasks/get` until the task is in that state.
pub(crate) async fn wait_for_state(server: &TestServer, id: &str, wanted: &str) -> Value {
    let give_up = tokio::time::Instant::now() + TEST_TIMEOUT;
    loop {
        let task = legacy(server, "tasks/get", json!({"id": id})).await.result().clone();
        if task["status"]["state"] == wanted {
            return task;
        }
        assert!(tokio::time::Instant::now() < give_up, "not {wanted}: {task}");
    }
}

/// A builder whose card was changed first.
pub(crate) fn with_card(change: impl FnOnce(&mut AgentCard), agent: impl Agent) -> Builder {
    let mut card = AgentCard::new("test", "An agent for tests", "1.0.0");
    change(&mut card);
    all_bindings(Server::builder(card).task_skill(AgentSkill::new("test", "test", "test"), agent))
}

/// An open event stream.
pub(crate) struct Events {
    pub(crate) headers: HeaderMap,
    response: reqwest::Response,
    unread: String,
}

/// One event: its lines, and its data as JSON.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StreamEvent {
    pub(crate) id: Option<u64>,
    pub(crate) name: Option<String>,
    pub(crate) data: Value,
}

impl StreamEvent {
    /// The JSON-RPC result, or the whole data where there is no envelope.
    pub(crate) fn result(&self) -> &Value {
        self.data.get("result").unwrap_or(&self.data)
    }
}

impl Events {
    /// `Err` when the answer is not a stream.
    pub(crate) async fn open(response: reqwest::Response) -> Result<Self, Answer> {
        let is_stream =
            response.headers().get("content-type").is_some_and(|value| value == "text/event-stream");
        if !is_stream {
            return Err(read(response).await);
        }
        Ok(Events { headers: response.headers().clone(), response, unread: String::new() })
    }

    /// A stream of a JSON-RPC method at some path.
    pub(crate) async fn of(
        server: &TestServer,
        path: &str,
        headers: &[(&str, &str)],
        method: &str,
        params: Value,
    ) -> Result<Self, Answer> {
        let mut all = vec![("content-type", "application/json")];
        all.extend_from_slice(headers);
        Self::open(request(server, Method::POST, path, &all, envelope(method, &params)).await).await
    }

    /// The next event, `None` once the stream has closed.
    pub(crate) async fn next(&mut self) -> Option<StreamEvent> {
        loop {
            while let Some((event, rest)) = self.unread.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.unread = rest;
                let parsed = parse_event(&event);
                if parsed.is_some() {
                    return parsed;
                }
            }
            let chunk = self.response.chunk();
            let chunk =
                tokio::time::timeout(TEST_TIMEOUT, chunk).await.expect("the stream goes on").unwrap()?;
            self.unread.push_str(std::str::from_utf8(&chunk).expect("events are text"));
        }
    }

    pub(crate) async fn rest(&mut self) -> Vec<StreamEvent> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        assert_eq!(self.unread, "", "the stream ends with a complete event");
        all
    }
}

/// Parses one block of lines; `None` for comments.
fn parse_event(block: &str) -> Option<StreamEvent> {
    let (mut id, mut name, mut data) = (None, None, Vec::new());
    for line in block.lines() {
        match line.split_once(": ") {
            Some(("id", value)) => id = Some(value.parse().expect("ids are numbers")),
            Some(("event", value)) => name = Some(value.to_owned()),
            Some(("data", value)) => data.push(value),
            Some(("", _comment)) => {}
            _ => panic!("not a line of an event: {line:?}"),
        }
    }
    (!data.is_empty()).then(|| StreamEvent {
        id,
        name,
        data: serde_json::from_str(&data.join("\n")).expect("JSON"),
    })
}
