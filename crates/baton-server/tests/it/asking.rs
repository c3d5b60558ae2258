//! One request in every generation and binding, for tables that compare them.

use http::Method;
use serde_json::{Value, json};

use crate::harness::{Answer, TestServer, message};
use crate::speakers::{Events, envelope, read, request};

/// A generation and a binding. (`faces::Face` also has 1.0 with a tenant.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interface {
    V1Rpc,
    V1Rest,
    V03Rpc,
    V03Rest,
    V01,
    #[cfg(feature = "grpc")]
    V1Grpc,
    #[cfg(feature = "grpc")]
    V03Grpc,
}

use Interface::{V01, V1Rest, V1Rpc, V03Rest, V03Rpc};

pub(crate) const INTERFACES: [Interface; 5] = [V1Rpc, V1Rest, V03Rpc, V03Rest, V01];

/// With gRPC.
#[cfg(feature = "grpc")]
pub(crate) const ALL_BINDINGS: [Interface; 7] =
    [V1Rpc, V1Rest, V03Rpc, V03Rest, V01, Interface::V1Grpc, Interface::V03Grpc];
#[cfg(not(feature = "grpc"))]
pub(crate) const ALL_BINDINGS: [Interface; 5] = INTERFACES;

impl Interface {
    /// Whether its JSON is that of HTTP+JSON, which stands for that of gRPC as well.
    pub(crate) fn is_rest(self) -> bool {
        matches!(self.in_json(), V1Rest | V03Rest)
    }

    /// The interface with the same JSON.
    pub(crate) fn in_json(self) -> Self {
        match self {
            #[cfg(feature = "grpc")]
            Self::V1Grpc => V1Rest,
            #[cfg(feature = "grpc")]
            Self::V03Grpc => V03Rest,
            other => other,
        }
    }

    pub(crate) fn is_grpc(self) -> bool {
        self != self.in_json()
    }

    /// The version header; older generations send none.
    pub(crate) fn version(self) -> Option<(&'static str, &'static str)> {
        matches!(self.in_json(), V1Rpc | V1Rest).then_some(("a2a-version", "1.0"))
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Ask {
    Send(Sending),
    Stream(Sending),
    Get {
        id: String,
        history: Option<i64>,
    },
    List {
        context: Option<String>,
        page_size: Option<u32>,
        page_token: Option<String>,
    },
    Cancel(String),
    Subscribe(String),
    SetPush(String),
    /// With an address that may not be called.
    SetBadPush(String),
    GetPush(String),
    ListPush(String),
    DeletePush(String),
    Card,
}

impl Ask {
    fn hook(&self) -> &'static str {
        if matches!(self, Ask::SetBadPush(_)) { BAD_HOOK } else { HOOK }
    }
}

/// A message to send, independent of the JSON of each generation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sending {
    pub(crate) text: String,
    /// Send a picture instead of the text.
    pub(crate) picture: bool,
    /// The task it is sent to. In 0.1 the client chooses every task's id: without one, a new id is made.
    pub(crate) task: Option<String>,
    pub(crate) context: Option<String>,
    /// Whether the answer waits for the task; left out if `None`.
    pub(crate) wait: Option<bool>,
    pub(crate) history: Option<i64>,
    pub(crate) push: bool,
    /// The skill id in its metadata.
    pub(crate) skill: Option<String>,
    /// Sent in the agent's role, which is not the caller's.
    pub(crate) agent: bool,
    /// Its id; without one, a new id is made. Messages of 0.1 have none.
    pub(crate) message: Option<String>,
    /// The tasks that it refers to. Messages of 0.1 refer to none.
    pub(crate) references: Vec<String>,
}

pub(crate) fn sending(text: &str) -> Sending {
    Sending { text: text.to_owned(), ..Sending::default() }
}

pub(crate) fn get(id: &str) -> Ask {
    Ask::Get { id: id.to_owned(), history: None }
}

pub(crate) const HOOK: &str = "https://hooks.example/a";
const BAD_HOOK: &str = "http://10.0.0.1/a";

fn part(interface: Interface, message: &Sending) -> Value {
    let (text, bytes, png) = (&message.text, "AAAA", "image/png");
    match (interface, message.picture) {
        (V1Rpc | V1Rest | V03Rest, false) => json!({"text": text}),
        (V03Rpc, false) => json!({"kind": "text", "text": text}),
        (_, false) => json!({"type": "text", "text": text}),
        (V1Rpc | V1Rest, true) => json!({"raw": bytes, "mediaType": png}),
        (V03Rest, true) => json!({"file": {"fileWithBytes": bytes, "mimeType": png}}),
        (V03Rpc, true) => json!({"kind": "file", "file": {"bytes": bytes, "mimeType": png}}),
        (_, true) => json!({"type": "file", "file": {"bytes": bytes, "mimeType": png}}),
    }
}

fn params(interface: Interface, sent: &Sending) -> Value {
    let fresh = || message("")["message"]["messageId"].as_str().unwrap().to_owned();
    let parts = json!([part(interface, sent)]);
    if interface == V01 {
        let id = sent.task.clone().unwrap_or_else(fresh);
        let role = if sent.agent { "agent" } else { "user" };
        let mut params = json!({"id": id, "message": {"role": role, "parts": parts}});
        set(&mut params["message"], "metadata", metadata(sent));
        for (name, value) in [
            ("sessionId", sent.context.as_ref().map(|context| json!(context))),
            ("historyLength", sent.history.map(|length| json!(length))),
            ("pushNotification", sent.push.then(|| json!({"url": HOOK}))),
        ] {
            set(&mut params, name, value);
        }
        return params;
    }
    let role = match (interface, sent.agent) {
        (V03Rpc, false) => "user",
        (V03Rpc, true) => "agent",
        (_, false) => "ROLE_USER",
        (_, true) => "ROLE_AGENT",
    };
    let id = sent.message.clone().unwrap_or_else(fresh);
    let mut message = json!({"messageId": id, "role": role});
    message[if interface == V03Rest { "content" } else { "parts" }] = parts;
    set(&mut message, "kind", (interface == V03Rpc).then(|| json!("message")));
    set(&mut message, "taskId", sent.task.as_ref().map(|task| json!(task)));
    set(&mut message, "contextId", sent.context.as_ref().map(|context| json!(context)));
    set(&mut message, "referenceTaskIds", (!sent.references.is_empty()).then(|| json!(sent.references)));
    set(&mut message, "metadata", metadata(sent));
    let mut configuration = json!({});
    set(&mut configuration, "historyLength", sent.history.map(|length| json!(length)));
    let (waiting, push) = match interface {
        V1Rpc | V1Rest => (sent.wait.map(|wait| ("returnImmediately", !wait)), "taskPushNotificationConfig"),
        V03Rest => (sent.wait.map(|wait| ("blocking", wait)), "pushNotification"),
        _ => (sent.wait.map(|wait| ("blocking", wait)), "pushNotificationConfig"),
    };
    set(&mut configuration, push, sent.push.then(|| json!({"url": HOOK})));
    if let Some((name, value)) = waiting {
        configuration[name] = json!(value);
    }
    json!({"message": message, "configuration": configuration})
}

fn metadata(message: &Sending) -> Option<Value> {
    message.skill.as_ref().map(|skill| json!({"skillId": skill}))
}

fn set(object: &mut Value, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        object[name] = value;
    }
}

/// The JSON-RPC method and its params; `None` where the generation has no such method.
pub(crate) fn rpc(interface: Interface, ask: &Ask) -> Option<(&'static str, Value)> {
    let of = |v1: &'static str, v0_3: &'static str, v0_1: &'static str| match interface {
        V1Rpc | V1Rest => v1,
        V03Rpc | V03Rest => v0_3,
        _ => v0_1,
    };
    let one = |task: &String| match interface {
        V1Rpc => json!({"taskId": task, "id": "one"}),
        _ => json!({"id": task, "pushNotificationConfigId": "one"}),
    };
    let (method, params) = match ask {
        Ask::Send(message) => (of("SendMessage", "message/send", "tasks/send"), params(interface, message)),
        Ask::Stream(message) => {
            (of("SendStreamingMessage", "message/stream", "tasks/sendSubscribe"), params(interface, message))
        }
        Ask::Get { id, history } => {
            let mut params = json!({"id": id});
            set(&mut params, "historyLength", history.map(|length| json!(length)));
            (of("GetTask", "tasks/get", "tasks/get"), params)
        }
        Ask::List { context, page_size, page_token } => {
            let mut params = json!({});
            set(&mut params, "contextId", context.as_ref().map(|context| json!(context)));
            set(&mut params, "pageSize", page_size.map(|size| json!(size)));
            set(&mut params, "pageToken", page_token.as_ref().map(|token| json!(token)));
            (of("ListTasks", "tasks/list", ""), params)
        }
        Ask::Cancel(id) => (of("CancelTask", "tasks/cancel", "tasks/cancel"), json!({"id": id})),
        Ask::Subscribe(id) => {
            (of("SubscribeToTask", "tasks/resubscribe", "tasks/resubscribe"), json!({"id": id}))
        }
        Ask::SetPush(task) | Ask::SetBadPush(task) => {
            let url = ask.hook();
            let params = match interface {
                V1Rpc => json!({"taskId": task, "id": "one", "url": url}),
                V01 => json!({"id": task, "pushNotificationConfig": {"url": url}}),
                _ => json!({"taskId": task, "pushNotificationConfig": {"id": "one", "url": url}}),
            };
            let v0_3 = "tasks/pushNotificationConfig/set";
            (of("CreateTaskPushNotificationConfig", v0_3, "tasks/pushNotification/set"), params)
        }
        Ask::GetPush(task) => {
            let v0_3 = "tasks/pushNotificationConfig/get";
            (of("GetTaskPushNotificationConfig", v0_3, "tasks/pushNotification/get"), one(task))
        }
        Ask::ListPush(task) => {
            let params = if interface == V1Rpc { json!({"taskId": task}) } else { json!({"id": task}) };
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
pub(crate) fn rest(interface: Interface, ask: &Ask) -> (Method, String, Option<Value>) {
    let (method, path, body) = match ask {
        Ask::Send(message) => (Method::POST, "/message:send".to_owned(), Some(params(interface, message))),
        Ask::Stream(message) => {
            (Method::POST, "/message:stream".to_owned(), Some(params(interface, message)))
        }
        Ask::Get { id, history: None } => (Method::GET, format!("/tasks/{id}"), None),
        Ask::Get { id, history: Some(length) } => {
            (Method::GET, format!("/tasks/{id}?historyLength={length}"), None)
        }
        Ask::List { context, page_size, page_token } => {
            let page_size = page_size.map(|size| size.to_string());
            let query = [("contextId", context), ("pageSize", &page_size), ("pageToken", page_token)];
            let query = query.iter().filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)));
            (Method::GET, format!("/tasks?{}", query.collect::<Vec<_>>().join("&")), None)
        }
        Ask::Cancel(id) => (Method::POST, format!("/tasks/{id}:cancel"), Some(json!({}))),
        Ask::Subscribe(id) => (Method::GET, format!("/tasks/{id}:subscribe"), None),
        Ask::SetPush(task) | Ask::SetBadPush(task) => {
            let url = ask.hook();
            let body = match interface {
                V1Rest => json!({"id": "one", "url": url}),
                _ => {
                    let name = format!("tasks/{task}/pushNotificationConfigs/one");
                    let config = json!({"name": name, "pushNotificationConfig": {"id": "one", "url": url}});
                    json!({"configId": "one", "config": config})
                }
            };
            (Method::POST, format!("/tasks/{task}/pushNotificationConfigs"), Some(body))
        }
        Ask::GetPush(task) => (Method::GET, format!("/tasks/{task}/pushNotificationConfigs/one"), None),
        Ask::ListPush(task) => (Method::GET, format!("/tasks/{task}/pushNotificationConfigs"), None),
        Ask::DeletePush(task) => (Method::DELETE, format!("/tasks/{task}/pushNotificationConfigs/one"), None),
        Ask::Card if interface == V1Rest => (Method::GET, "/extendedAgentCard".to_owned(), None),
        Ask::Card => (Method::GET, "/card".to_owned(), None),
    };
    (method, if interface == V03Rest { format!("/v1{path}") } else { path }, body)
}

/// Sends the request; `None` where the interface has no such operation. `headers` go before the interface's own version.
pub(crate) async fn ask_with(
    server: &TestServer,
    interface: Interface,
    headers: &[(&str, &str)],
    ask: &Ask,
) -> Option<reqwest::Response> {
    let mut all = headers.to_vec();
    for (name, value) in interface.version().into_iter().chain([("content-type", "application/json")]) {
        if headers.iter().all(|(other, _)| *other != name) {
            all.push((name, value));
        }
    }
    #[cfg(feature = "grpc")]
    if interface.is_grpc() {
        use baton_protocol::wire::pb::Package;
        let package = if interface == Interface::V1Grpc { Package::V1 } else { Package::V0_3 };
        let (method, path, body) = rest(interface.in_json(), ask);
        let path = path.strip_prefix("/v1").unwrap_or(&path);
        return crate::grpc_gateway::request(server, package, headers, &method, path, body).await;
    }
    if interface.is_rest() {
        let (method, path, body) = rest(interface, ask);
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        return Some(request(server, method, &path, &all, body).await);
    }
    let (method, params) = rpc(interface, ask)?;
    Some(request(server, Method::POST, "/", &all, envelope(method, &params)).await)
}

/// The answer, success or error.
pub(crate) async fn answer(server: &TestServer, interface: Interface, ask: &Ask) -> Answer {
    read(ask_with(server, interface, &[], ask).await.expect("every generation can say this")).await
}

/// The task in a successful answer.
pub(crate) async fn task_of(server: &TestServer, interface: Interface, ask: &Ask) -> Value {
    let answer = answer(server, interface, ask).await;
    let whole = if interface.is_rest() { &answer.body } else { answer.result() };
    assert_eq!(answer.status, 200, "{interface:?} {ask:?}: {}", answer.body);
    whole.get("task").unwrap_or(whole).clone()
}

pub(crate) async fn events(server: &TestServer, interface: Interface, ask: &Ask) -> Result<Events, Answer> {
    Events::open(ask_with(server, interface, &[], ask).await.expect("every generation can say this")).await
}

/// The state of a task or event, by its name in 0.3 whatever the interface.
pub(crate) fn state(task: &Value) -> String {
    let state = task["status"]["state"].as_str().unwrap_or_else(|| panic!("no task: {task}"));
    let state = state.trim_start_matches("TASK_STATE_").to_lowercase().replace('_', "-");
    if state == "cancelled" { "canceled".to_owned() } else { state }
}
