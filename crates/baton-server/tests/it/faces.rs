//! A client for each face of a server; a face is a generation and a binding. Requests are written in the JSON of the face,
//! and answers are converted to one common form: that of 1.0 without ids and times.

use http::Method;
use serde_json::{Value, json};

use crate::harness::{Answer, TestServer};
use crate::shapes;
use crate::speakers::{Events, StreamEvent, envelope, read, request};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Face {
    V1Rpc,
    V1Http,
    /// 1.0 HTTP+JSON with a tenant in front of every path.
    V1Tenant,
    V03Rpc,
    V03Http,
    V01Rpc,
    #[cfg(feature = "grpc")]
    V1Grpc,
    #[cfg(feature = "grpc")]
    V03Grpc,
}

const IN_JSON: [Face; 6] =
    [Face::V1Rpc, Face::V1Http, Face::V1Tenant, Face::V03Rpc, Face::V03Http, Face::V01Rpc];

#[cfg(not(feature = "grpc"))]
pub(crate) const FACES: [Face; 6] = IN_JSON;
#[cfg(feature = "grpc")]
pub(crate) const FACES: [Face; 8] = {
    let [a, b, c, d, e, f] = IN_JSON;
    [a, b, c, d, e, f, Face::V1Grpc, Face::V03Grpc]
};

impl Face {
    pub(crate) fn is_rpc(self) -> bool {
        matches!(self, Face::V1Rpc | Face::V03Rpc | Face::V01Rpc)
    }

    pub(crate) fn is_v1(self) -> bool {
        matches!(self.in_json(), Face::V1Rpc | Face::V1Http | Face::V1Tenant)
    }

    /// The face with the same JSON: for gRPC that of HTTP+JSON.
    pub(crate) fn in_json(self) -> Face {
        match self {
            #[cfg(feature = "grpc")]
            Face::V1Grpc => Face::V1Http,
            #[cfg(feature = "grpc")]
            Face::V03Grpc => Face::V03Http,
            other => other,
        }
    }

    pub(crate) fn is_grpc(self) -> bool {
        self != self.in_json()
    }

    /// Only 1.0 has lists in all its bindings.
    pub(crate) fn lists(self) -> bool {
        self != Face::V01Rpc && (self.is_v1() || !self.is_grpc())
    }

    /// Prefix of every HTTP+JSON path.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Face::V1Tenant => "/acme",
            Face::V03Http => "/v1",
            _ => "",
        }
    }

    pub(crate) fn headers(self) -> Vec<(&'static str, &'static str)> {
        let mut headers = vec![("content-type", "application/json")];
        if self.is_v1() {
            headers.push(("a2a-version", "1.0"));
        }
        headers
    }
}

/// A user message to send.
#[derive(Debug, Clone)]
pub(crate) struct Say {
    pub(crate) id: String,
    /// Parts in the JSON of 1.0.
    pub(crate) parts: Value,
    /// The task it is sent to; without one it starts a task.
    pub(crate) to: Option<String>,
    pub(crate) metadata: Option<Value>,
    /// Wait until the task has ended or waits for input.
    pub(crate) wait: bool,
    pub(crate) history: Option<u32>,
}

impl Say {
    pub(crate) fn text(id: &str, text: &str) -> Self {
        Say {
            id: id.to_owned(),
            parts: json!([{"text": text}]),
            to: None,
            metadata: None,
            wait: true,
            history: None,
        }
    }

    pub(crate) fn to(mut self, task: &str) -> Self {
        self.to = Some(task.to_owned());
        self
    }

    pub(crate) fn at_once(mut self) -> Self {
        self.wait = false;
        self
    }
}

/// An answer in the common form: `{"task": …}`, `{"message": …}` or `{"error": …}`.
#[derive(Debug, Clone)]
pub(crate) struct CommonAnswer {
    /// The task's id.
    pub(crate) id: String,
    pub(crate) shape: Value,
    pub(crate) replayed: bool,
}

/// An event in the common form, and its number.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CommonEvent {
    pub(crate) number: Option<u64>,
    pub(crate) shape: Value,
}

pub(crate) struct Client<'a> {
    pub(crate) face: Face,
    /// Write every character beyond ASCII as an escape.
    pub(crate) ascii: bool,
    /// Send the version header of 0.3, which clients of 0.3 do not send: it takes precedence over the task's generation.
    pub(crate) sends_version: bool,
    pub(crate) server: &'a TestServer,
}

impl<'a> Client<'a> {
    pub(crate) fn new(server: &'a TestServer, face: Face) -> Self {
        Client { face, ascii: false, sends_version: false, server }
    }

    pub(crate) async fn send(&self, say: &Say) -> CommonAnswer {
        let heard = self.read_answer(self.post_send(say, false, None).await).await;
        let busy = |state: &str| matches!(state, "submitted" | "working");
        let state = heard.shape["task"]["state"].as_str().unwrap_or("none");
        if self.face == Face::V01Rpc && say.wait && busy(state) {
            // 0.1 answers without waiting, so its clients poll.
            self.until(&heard.id, |state| !busy(state)).await;
            return CommonAnswer { replayed: heard.replayed, ..self.get(&heard.id, say.history).await };
        }
        heard
    }

    pub(crate) async fn stream(&self, say: &Say, after: Option<u64>) -> Result<CommonStream, Value> {
        let response = self.post_send(say, true, after).await;
        self.watch(response, after.is_none()).await
    }

    async fn post_send(&self, say: &Say, stream: bool, after: Option<u64>) -> reqwest::Response {
        let params = shapes::send_params(self.face.in_json(), say);
        let ask = match (self.face, stream) {
            (Face::V1Rpc, false) => "SendMessage",
            (Face::V1Rpc, true) => "SendStreamingMessage",
            (Face::V03Rpc, false) => "message/send",
            (Face::V03Rpc, true) => "message/stream",
            (Face::V01Rpc, false) => "tasks/send",
            (Face::V01Rpc, true) => "tasks/sendSubscribe",
            (_, false) => "POST /message:send",
            (_, true) => "POST /message:stream",
        };
        self.call(ask, &params, after).await
    }

    pub(crate) async fn get(&self, id: &str, history: Option<u32>) -> CommonAnswer {
        let mut params = json!({"id": id});
        if let Some(history) = history {
            params["historyLength"] = json!(history);
        }
        let query = history.map_or(String::new(), |history| format!("?historyLength={history}"));
        let response = match self.face {
            Face::V1Rpc => self.call("GetTask", &params, None).await,
            Face::V03Rpc | Face::V01Rpc => self.call("tasks/get", &params, None).await,
            _ => self.call(&format!("GET /tasks/{id}{query}"), &Value::Null, None).await,
        };
        self.read_task(response).await
    }

    pub(crate) async fn cancel(&self, id: &str) -> CommonAnswer {
        let params = json!({"id": id});
        let response = match self.face {
            Face::V1Rpc => self.call("CancelTask", &params, None).await,
            Face::V03Rpc | Face::V01Rpc => self.call("tasks/cancel", &params, None).await,
            _ => self.call(&format!("POST /tasks/{id}:cancel"), &Value::Null, None).await,
        };
        self.read_task(response).await
    }

    pub(crate) async fn subscribe(&self, id: &str, after: Option<u64>) -> Result<CommonStream, Value> {
        let params = json!({"id": id});
        let response = match self.face {
            Face::V1Rpc => self.call("SubscribeToTask", &params, after).await,
            Face::V03Rpc | Face::V01Rpc => self.call("tasks/resubscribe", &params, after).await,
            _ => self.call(&format!("GET /tasks/{id}:subscribe"), &Value::Null, after).await,
        };
        self.watch(response, after.is_none()).await
    }

    /// A page in the common form; `query` is a query string of plain names and values.
    pub(crate) async fn list(&self, query: &str) -> Value {
        let mut params = json!({});
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            params[name] = match value.parse::<i64>() {
                Ok(number) => json!(number),
                Err(_) => json!(value),
            };
        }
        let response = match self.face {
            Face::V1Rpc => self.call("ListTasks", &params, None).await,
            Face::V03Rpc | Face::V01Rpc => self.call("tasks/list", &params, None).await,
            _ => self.call(&format!("GET /tasks?{query}"), &Value::Null, None).await,
        };
        match self.result(&read(response).await) {
            Ok(page) => shapes::page(self.face.in_json(), &page),
            Err(error) => error,
        }
    }

    /// Polls until `enough` accepts the task's state.
    pub(crate) async fn until(&self, id: &str, enough: impl Fn(&str) -> bool) -> CommonAnswer {
        let give_up = tokio::time::Instant::now() + crate::harness::TEST_TIMEOUT;
        loop {
            let heard = self.get(id, None).await;
            let state = heard.shape["task"]["state"].as_str().unwrap_or("none");
            if enough(state) {
                return heard;
            }
            assert!(tokio::time::Instant::now() < give_up, "{:?}: it stays {}", self.face, heard.shape);
        }
    }

    /// `ask` is a JSON-RPC method, or an HTTP method with a path.
    async fn call(&self, ask: &str, params: &Value, after: Option<u64>) -> reqwest::Response {
        let mut headers = self.face.headers();
        headers.extend(self.sends_version.then_some(("a2a-version", "0.3")));
        let after = after.map(|number| number.to_string());
        headers.extend(after.as_deref().map(|number| ("last-event-id", number)));
        let spelled = |text: String| if self.ascii { escaped(&text) } else { text };
        if self.face.is_rpc() {
            return request(self.server, Method::POST, "/", &headers, spelled(envelope(ask, params))).await;
        }
        let (method, path) = ask.split_once(' ').expect("a method and a path");
        #[cfg(feature = "grpc")]
        if self.face.is_grpc() {
            use baton_protocol::wire::pb::Package;
            let package = if self.face.is_v1() { Package::V1 } else { Package::V0_3 };
            let (method, body) = (method.parse().unwrap(), (!params.is_null()).then(|| params.clone()));
            let answer =
                crate::grpc_gateway::request(self.server, package, &headers, &method, path, body).await;
            return answer.unwrap_or_else(|| panic!("{:?} has no {ask}", self.face));
        }
        let path = format!("{}{path}", self.face.prefix());
        let body = if params.is_null() { String::new() } else { spelled(params.to_string()) };
        request(self.server, method.parse().unwrap(), &path, &headers, body).await
    }

    async fn read_answer(&self, response: reqwest::Response) -> CommonAnswer {
        let reply = read(response).await;
        let replayed = reply.header("a2a-idempotent-replay") == Some("true");
        match self.result(&reply) {
            Ok(sent) => {
                let (id, shape) = shapes::sent(self.face.in_json(), &sent);
                CommonAnswer { id, shape, replayed }
            }
            Err(shape) => CommonAnswer { id: String::new(), shape, replayed },
        }
    }

    async fn read_task(&self, response: reqwest::Response) -> CommonAnswer {
        let reply = read(response).await;
        match self.result(&reply) {
            Ok(task) => {
                let id = task["id"].as_str().expect("a task has an id").to_owned();
                let shape = json!({"task": shapes::task(self.face.in_json(), &task)});
                CommonAnswer { id, shape, replayed: false }
            }
            Err(shape) => CommonAnswer { id: String::new(), shape, replayed: false },
        }
    }

    fn result(&self, reply: &Answer) -> Result<Value, Value> {
        let body = &reply.body;
        if self.face.is_rpc() {
            assert_eq!((&body["jsonrpc"], &body["id"]), (&json!("2.0"), &json!("r")), "{body}");
        }
        match (self.face.is_rpc(), body.get("error"), body.get("result")) {
            (true, Some(error), None) => Err(shapes::rpc_error(self.face, error)),
            (true, None, Some(result)) => Ok(result.clone()),
            (false, Some(error), _) if self.face.is_grpc() => Err(shapes::grpc_error(self.face, error)),
            (false, Some(error), _) => Err(shapes::http_error(self.face, reply.status, error)),
            (false, None, _) if reply.status == 200 => Ok(body.clone()),
            _ => panic!("{:?} {}: {body}", self.face, reply.status),
        }
    }

    async fn watch(&self, response: reqwest::Response, fresh: bool) -> Result<CommonStream, Value> {
        match Events::open(response).await {
            Ok(events) => {
                let replayed = events.headers.contains_key("a2a-idempotent-replay");
                let face = self.face.in_json();
                Ok(CommonStream { face, events, opening: fresh, ended: false, message: false, replayed })
            }
            Err(answer) => Err(self.result(&answer).expect_err("a stream, or an error")),
        }
    }
}

fn escaped(json: &str) -> String {
    let mut units = [0; 2];
    let escape = |unit: &u16| format!("\\u{unit:04x}");
    let spell = |it: char| match it {
        ' '..='~' => it.to_string(),
        _ => it.encode_utf16(&mut units).iter().map(escape).collect(),
    };
    json.chars().map(spell).collect()
}

/// An open stream; its events are converted to the common form.
pub(crate) struct CommonStream {
    face: Face,
    events: Events,
    opening: bool,
    /// The last event was read: it was marked as final, or was a message, which is always alone.
    ended: bool,
    message: bool,
    pub(crate) replayed: bool,
}

impl CommonStream {
    pub(crate) async fn next(&mut self) -> Option<CommonEvent> {
        let event = self.events.next().await?;
        assert!(!self.ended, "{:?}: an event after the last: {event:?}", self.face);
        let StreamEvent { id: number, name, data } = event;
        let event = if self.face.is_rpc() {
            assert_eq!((&data["jsonrpc"], &data["id"]), (&json!("2.0"), &json!("r")), "{data}");
            data["result"].clone()
        } else {
            data
        };
        let opening = std::mem::replace(&mut self.opening, false);
        let (shape, last) = shapes::event(self.face, &event, name.as_deref(), opening);
        self.message = shape.get("message").is_some();
        self.ended = last || self.message;
        Some(CommonEvent { number, shape })
    }

    /// All events up to the close; in older generations the last one must be marked as final.
    pub(crate) async fn rest(&mut self) -> Vec<CommonEvent> {
        let mut all = Vec::new();
        while let Some(seen) = self.next().await {
            all.push(seen);
        }
        assert_eq!(self.ended, !self.face.is_v1() || self.message, "{:?}: {all:?}", self.face);
        all
    }
}

pub(crate) fn shown(events: &[CommonEvent]) -> Vec<Value> {
    events.iter().map(|event| event.shape.clone()).collect()
}
