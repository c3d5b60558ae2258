<<<<<<< HEAD
//! One request in every generation and binding, for tables that compare them.
=======
//! The faces of one server: a generation and a binding each. Every face says the same few things in its own
//! JSON, and what it hears is brought to one shape, that of 1.0 without ids and times.
>>>>>>> gen-b

use http::Method;
use serde_json::{Value, json};

<<<<<<< HEAD
use crate::harness::{Answer, TestServer, message};
use crate::speakers::{Events, envelope, read, request};

/// A generation in a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Face {
    V1Rpc,
    V1Rest,
    V03Rpc,
    V03Rest,
    V01,
}

use Face::{V01, V1Rest, V1Rpc, V03Rest, V03Rpc};

pub(crate) const FACES: [Face; 5] = [V1Rpc, V1Rest, V03Rpc, V03Rest, V01];

impl Face {
    pub(crate) fn is_rest(self) -> bool {
        matches!(self, V1Rest | V03Rest)
    }

    /// The version it says; the older ones say none.
    pub(crate) fn version(self) -> Option<(&'static str, &'static str)> {
        matches!(self, V1Rpc | V1Rest).then_some(("a2a-version", "1.0"))
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Ask {
    Send(Said),
    Stream(Said),
    Get { id: String, history: Option<i64> },
    Cancel(String),
    Subscribe(String),
    SetPush(String),
    GetPush(String),
    ListPush(String),
    DeletePush(String),
    Card,
}

/// What a message says, apart from how.
#[derive(Debug, Clone, Default)]
pub(crate) struct Said {
    pub(crate) text: String,
    /// A picture instead of the text.
    pub(crate) picture: bool,
    /// The task it is for. In 0.1 the client names every task: a fresh name is made where there is none.
    pub(crate) task: Option<String>,
    pub(crate) context: Option<String>,
    /// Whether the answer waits for the task; unsaid where `None`.
    pub(crate) wait: Option<bool>,
    pub(crate) history: Option<i64>,
    pub(crate) push: bool,
}

pub(crate) fn said(text: &str) -> Said {
    Said { text: text.to_owned(), ..Said::default() }
}

pub(crate) fn get(id: &str) -> Ask {
    Ask::Get { id: id.to_owned(), history: None }
}

const HOOK: &str = "https://hooks.example/a";

fn part(face: Face, said: &Said) -> Value {
    let (text, bytes, png) = (&said.text, "AAAA", "image/png");
    match (face, said.picture) {
        (V1Rpc | V1Rest | V03Rest, false) => json!({"text": text}),
        (V03Rpc, false) => json!({"kind": "text", "text": text}),
        (V01, false) => json!({"type": "text", "text": text}),
        (V1Rpc | V1Rest, true) => json!({"raw": bytes, "mediaType": png}),
        (V03Rest, true) => json!({"file": {"fileWithBytes": bytes, "mimeType": png}}),
        (V03Rpc, true) => json!({"kind": "file", "file": {"bytes": bytes, "mimeType": png}}),
        (V01, true) => json!({"type": "file", "file": {"bytes": bytes, "mimeType": png}}),
    }
}

fn params(face: Face, said: &Said) -> Value {
    let fresh = message("")["message"]["messageId"].as_str().unwrap().to_owned();
    let parts = json!([part(face, said)]);
    if face == V01 {
        let id = said.task.clone().unwrap_or(fresh);
        let mut params = json!({"id": id, "message": {"role": "user", "parts": parts}});
        for (name, value) in [
            ("sessionId", said.context.as_ref().map(|context| json!(context))),
            ("historyLength", said.history.map(|length| json!(length))),
            ("pushNotification", said.push.then(|| json!({"url": HOOK}))),
        ] {
            set(&mut params, name, value);
        }
        return params;
    }
    let role = if face == V03Rpc { "user" } else { "ROLE_USER" };
    let mut message = json!({"messageId": fresh, "role": role});
    message[if face == V03Rest { "content" } else { "parts" }] = parts;
    set(&mut message, "kind", (face == V03Rpc).then(|| json!("message")));
    set(&mut message, "taskId", said.task.as_ref().map(|task| json!(task)));
    set(&mut message, "contextId", said.context.as_ref().map(|context| json!(context)));
    let mut configuration = json!({});
    set(&mut configuration, "historyLength", said.history.map(|length| json!(length)));
    let (waiting, push) = match face {
        V1Rpc | V1Rest => (said.wait.map(|wait| ("returnImmediately", !wait)), "taskPushNotificationConfig"),
        V03Rest => (said.wait.map(|wait| ("blocking", wait)), "pushNotification"),
        V03Rpc | V01 => (said.wait.map(|wait| ("blocking", wait)), "pushNotificationConfig"),
    };
    set(&mut configuration, push, said.push.then(|| json!({"url": HOOK})));
    if let Some((name, value)) = waiting {
        configuration[name] = json!(value);
    }
    json!({"message": message, "configuration": configuration})
}

fn set(object: &mut Value, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        object[name] = value;
    }
}

/// The JSON-RPC method and its params; `None` where the generation has no such method.
fn rpc(face: Face, ask: &Ask) -> Option<(&'static str, Value)> {
    let of = |v1: &'static str, v0_3: &'static str, v0_1: &'static str| match face {
        V1Rpc | V1Rest => v1,
        V03Rpc | V03Rest => v0_3,
        V01 => v0_1,
    };
    let one = |task: &String| match face {
        V1Rpc => json!({"taskId": task, "id": "one"}),
        _ => json!({"id": task, "pushNotificationConfigId": "one"}),
    };
    let (method, params) = match ask {
        Ask::Send(said) => (of("SendMessage", "message/send", "tasks/send"), params(face, said)),
        Ask::Stream(said) => {
            (of("SendStreamingMessage", "message/stream", "tasks/sendSubscribe"), params(face, said))
        }
        Ask::Get { id, history } => {
            let mut params = json!({"id": id});
            set(&mut params, "historyLength", history.map(|length| json!(length)));
            (of("GetTask", "tasks/get", "tasks/get"), params)
        }
        Ask::Cancel(id) => (of("CancelTask", "tasks/cancel", "tasks/cancel"), json!({"id": id})),
        Ask::Subscribe(id) => {
            (of("SubscribeToTask", "tasks/resubscribe", "tasks/resubscribe"), json!({"id": id}))
        }
        Ask::SetPush(task) => {
            let params = match face {
                V1Rpc => json!({"taskId": task, "url": HOOK}),
                V01 => json!({"id": task, "pushNotificationConfig": {"url": HOOK}}),
                _ => json!({"taskId": task, "pushNotificationConfig": {"url": HOOK}}),
            };
            let v0_3 = "tasks/pushNotificationConfig/set";
            (of("CreateTaskPushNotificationConfig", v0_3, "tasks/pushNotification/set"), params)
        }
        Ask::GetPush(task) => {
            let v0_3 = "tasks/pushNotificationConfig/get";
            (of("GetTaskPushNotificationConfig", v0_3, "tasks/pushNotification/get"), one(task))
        }
        Ask::ListPush(task) => {
            let params = if face == V1Rpc { json!({"taskId": task}) } else { json!({"id": task}) };
            (of("ListTaskPushNotificationConfigs", "tasks/pushNotificationConfig/list", ""), params)
        }
        Ask::DeletePush(task) => {
            (of("DeleteTaskPushNotificationConfig", "tasks/pushNotificationConfig/delete", ""), one(task))
        }
        Ask::Card => (of("GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard", ""), json!({})),
    };
    (!method.is_empty()).then_some((method, params))
}

/// The HTTP method, path and body.
fn rest(face: Face, ask: &Ask) -> (Method, String, Option<Value>) {
    let (method, path, body) = match ask {
        Ask::Send(said) => (Method::POST, "/message:send".to_owned(), Some(params(face, said))),
        Ask::Stream(said) => (Method::POST, "/message:stream".to_owned(), Some(params(face, said))),
        Ask::Get { id, history: None } => (Method::GET, format!("/tasks/{id}"), None),
        Ask::Get { id, history: Some(length) } => {
            (Method::GET, format!("/tasks/{id}?historyLength={length}"), None)
        }
        Ask::Cancel(id) => (Method::POST, format!("/tasks/{id}:cancel"), Some(json!({}))),
        Ask::Subscribe(id) => (Method::GET, format!("/tasks/{id}:subscribe"), None),
        Ask::SetPush(task) => {
            let body = match face {
                V1Rest => json!({"url": HOOK}),
                _ => json!({"config": {"pushNotificationConfig": {"url": HOOK}}}),
            };
            (Method::POST, format!("/tasks/{task}/pushNotificationConfigs"), Some(body))
        }
        Ask::GetPush(task) => (Method::GET, format!("/tasks/{task}/pushNotificationConfigs/one"), None),
        Ask::ListPush(task) => (Method::GET, format!("/tasks/{task}/pushNotificationConfigs"), None),
        Ask::DeletePush(task) => (Method::DELETE, format!("/tasks/{task}/pushNotificationConfigs/one"), None),
        Ask::Card if face == V1Rest => (Method::GET, "/extendedAgentCard".to_owned(), None),
        Ask::Card => (Method::GET, "/card".to_owned(), None),
    };
    (method, if face == V03Rest { format!("/v1{path}") } else { path }, body)
}

/// Sends it; `None` where the face has no words for it. `headers` go before the face's own version.
pub(crate) async fn ask_with(
    server: &TestServer,
    face: Face,
    headers: &[(&str, &str)],
    ask: &Ask,
) -> Option<reqwest::Response> {
    let mut all = headers.to_vec();
    for (name, value) in face.version().into_iter().chain([("content-type", "application/json")]) {
        if headers.iter().all(|(other, _)| *other != name) {
            all.push((name, value));
        }
    }
    if face.is_rest() {
        let (method, path, body) = rest(face, ask);
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        return Some(request(server, method, &path, &all, body).await);
    }
    let (method, params) = rpc(face, ask)?;
    Some(request(server, Method::POST, "/", &all, envelope(method, &params)).await)
}

/// The answer, whether it went well or not.
pub(crate) async fn answer(server: &TestServer, face: Face, ask: &Ask) -> Answer {
    read(ask_with(server, face, &[], ask).await.expect("every generation can say this")).await
}

/// The task in an answer that went well.
pub(crate) async fn task_of(server: &TestServer, face: Face, ask: &Ask) -> Value {
    let answer = answer(server, face, ask).await;
    let whole = if face.is_rest() { &answer.body } else { answer.result() };
    assert_eq!(answer.status, 200, "{face:?} {ask:?}: {}", answer.body);
    whole.get("task").unwrap_or(whole).clone()
}

pub(crate) async fn events(server: &TestServer, face: Face, ask: &Ask) -> Result<Events, Answer> {
    Events::open(ask_with(server, face, &[], ask).await.expect("every generation can say this")).await
}

/// The state of a task or event, in the words of 0.3 whatever the face.
pub(crate) fn state(task: &Value) -> String {
    let state = task["status"]["state"].as_str().unwrap_or_else(|| panic!("no task: {task}"));
    let state = state.trim_start_matches("TASK_STATE_").to_lowercase().replace('_', "-");
    if state == "cancelled" { "canceled".to_owned() } else { state }
=======
use crate::harness::{Answer, TestServer};
use crate::shapes;
use crate::speakers::{Events, Told, envelope, read, request};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Face {
    V1Rpc,
    V1Http,
    /// 1.0 HTTP+JSON with a tenant in front of every path.
    V1Tenant,
    V03Rpc,
    V03Http,
    V01Rpc,
}

pub(crate) const FACES: [Face; 6] =
    [Face::V1Rpc, Face::V1Http, Face::V1Tenant, Face::V03Rpc, Face::V03Http, Face::V01Rpc];

impl Face {
    pub(crate) fn is_rpc(self) -> bool {
        matches!(self, Face::V1Rpc | Face::V03Rpc | Face::V01Rpc)
    }

    pub(crate) fn is_v1(self) -> bool {
        matches!(self, Face::V1Rpc | Face::V1Http | Face::V1Tenant)
    }

    /// In front of every HTTP+JSON path.
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

/// A message of the user's.
#[derive(Debug, Clone)]
pub(crate) struct Say {
    pub(crate) id: String,
    /// Parts as 1.0 spells them.
    pub(crate) parts: Value,
    /// The task it is for; without one it starts a task.
    pub(crate) to: Option<String>,
    pub(crate) metadata: Option<Value>,
    /// Wait until the task rests.
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

/// What came back, in the common shape: `{"task": …}`, `{"message": …}` or `{"error": …}`.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    /// The task's id.
    pub(crate) id: String,
    pub(crate) shape: Value,
    pub(crate) replayed: bool,
}

/// An event in the common shape, and its number.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seen {
    pub(crate) number: Option<u64>,
    pub(crate) shape: Value,
}

pub(crate) struct Client<'a> {
    pub(crate) face: Face,
    pub(crate) server: &'a TestServer,
}

impl<'a> Client<'a> {
    pub(crate) fn new(server: &'a TestServer, face: Face) -> Self {
        Client { face, server }
    }

    pub(crate) async fn send(&self, say: &Say) -> Heard {
        let heard = self.hear(self.ask_send(say, false, None).await).await;
        let busy = |state: &str| matches!(state, "submitted" | "working");
        let state = heard.shape["task"]["state"].as_str().unwrap_or("none");
        if self.face == Face::V01Rpc && say.wait && busy(state) {
            // This generation answers at once, so its clients poll.
            self.until(&heard.id, |state| !busy(state)).await;
            return Heard { replayed: heard.replayed, ..self.get(&heard.id, say.history).await };
        }
        heard
    }

    pub(crate) async fn stream(&self, say: &Say, after: Option<u64>) -> Result<Watch, Value> {
        let response = self.ask_send(say, true, after).await;
        self.watch(response, after.is_none()).await
    }

    async fn ask_send(&self, say: &Say, stream: bool, after: Option<u64>) -> reqwest::Response {
        let params = shapes::send_params(self.face, say);
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

    pub(crate) async fn get(&self, id: &str, history: Option<u32>) -> Heard {
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
        self.hear_task(response).await
    }

    pub(crate) async fn cancel(&self, id: &str) -> Heard {
        let params = json!({"id": id});
        let response = match self.face {
            Face::V1Rpc => self.call("CancelTask", &params, None).await,
            Face::V03Rpc | Face::V01Rpc => self.call("tasks/cancel", &params, None).await,
            _ => self.call(&format!("POST /tasks/{id}:cancel"), &Value::Null, None).await,
        };
        self.hear_task(response).await
    }

    pub(crate) async fn subscribe(&self, id: &str, after: Option<u64>) -> Result<Watch, Value> {
        let params = json!({"id": id});
        let response = match self.face {
            Face::V1Rpc => self.call("SubscribeToTask", &params, after).await,
            Face::V03Rpc | Face::V01Rpc => self.call("tasks/resubscribe", &params, after).await,
            _ => self.call(&format!("GET /tasks/{id}:subscribe"), &Value::Null, after).await,
        };
        self.watch(response, after.is_none()).await
    }

    /// A page in the common shape; `query` is a query string of plain names and values.
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
            Ok(page) => shapes::page(self.face, &page),
            Err(error) => error,
        }
    }

    /// Asks until the task is in a state that will do.
    pub(crate) async fn until(&self, id: &str, enough: impl Fn(&str) -> bool) -> Heard {
        let give_up = tokio::time::Instant::now() + crate::harness::HANG;
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
        let after = after.map(|number| number.to_string());
        headers.extend(after.as_deref().map(|number| ("last-event-id", number)));
        if self.face.is_rpc() {
            return request(self.server, Method::POST, "/", &headers, envelope(ask, params)).await;
        }
        let (method, path) = ask.split_once(' ').expect("a method and a path");
        let path = format!("{}{path}", self.face.prefix());
        let body = if params.is_null() { String::new() } else { params.to_string() };
        request(self.server, method.parse().unwrap(), &path, &headers, body).await
    }

    async fn hear(&self, response: reqwest::Response) -> Heard {
        let reply = read(response).await;
        let replayed = reply.header("a2a-idempotent-replay") == Some("true");
        match self.result(&reply) {
            Ok(sent) => {
                let (id, shape) = shapes::sent(self.face, &sent);
                Heard { id, shape, replayed }
            }
            Err(shape) => Heard { id: String::new(), shape, replayed },
        }
    }

    async fn hear_task(&self, response: reqwest::Response) -> Heard {
        let reply = read(response).await;
        match self.result(&reply) {
            Ok(task) => {
                let id = task["id"].as_str().expect("a task has an id").to_owned();
                Heard { id, shape: json!({"task": shapes::task(self.face, &task)}), replayed: false }
            }
            Err(shape) => Heard { id: String::new(), shape, replayed: false },
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
            (false, Some(error), _) => Err(shapes::http_error(self.face, reply.status, error)),
            (false, None, _) if reply.status == 200 => Ok(body.clone()),
            _ => panic!("{:?} {}: {body}", self.face, reply.status),
        }
    }

    async fn watch(&self, response: reqwest::Response, fresh: bool) -> Result<Watch, Value> {
        match Events::open(response).await {
            Ok(events) => {
                let replayed = events.headers.contains_key("a2a-idempotent-replay");
                let face = self.face;
                Ok(Watch { face, events, opening: fresh, ended: false, message: false, replayed })
            }
            Err(answer) => Err(self.result(&answer).expect_err("a stream, or an error")),
        }
    }
}

/// A stream being read.
pub(crate) struct Watch {
    face: Face,
    events: Events,
    opening: bool,
    /// An event said it was the last, or was a message, which is always alone.
    ended: bool,
    message: bool,
    pub(crate) replayed: bool,
}

impl Watch {
    pub(crate) async fn next(&mut self) -> Option<Seen> {
        let told = self.events.next().await?;
        assert!(!self.ended, "{:?}: an event after the last: {told:?}", self.face);
        let Told { id: number, name, data } = told;
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
        Some(Seen { number, shape })
    }

    /// Everything up to the close; older generations must have said that it comes.
    pub(crate) async fn rest(&mut self) -> Vec<Seen> {
        let mut all = Vec::new();
        while let Some(seen) = self.next().await {
            all.push(seen);
        }
        assert_eq!(self.ended, !self.face.is_v1() || self.message, "{:?}: {all:?}", self.face);
        all
    }
}

pub(crate) fn shown(events: &[Seen]) -> Vec<Value> {
    events.iter().map(|event| event.shape.clone()).collect()
>>>>>>> gen-b
}
