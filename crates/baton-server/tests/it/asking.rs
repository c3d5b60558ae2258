//! One request in every generation and binding, for tables that compare them.

use http::Method;
use serde_json::{Value, json};

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
    /// The skill it names.
    pub(crate) skill: Option<String>,
    /// Said in the agent's role, which is not the caller's.
    pub(crate) agent: bool,
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
        let role = if said.agent { "agent" } else { "user" };
        let mut params = json!({"id": id, "message": {"role": role, "parts": parts}});
        set(&mut params["message"], "metadata", metadata(said));
        for (name, value) in [
            ("sessionId", said.context.as_ref().map(|context| json!(context))),
            ("historyLength", said.history.map(|length| json!(length))),
            ("pushNotification", said.push.then(|| json!({"url": HOOK}))),
        ] {
            set(&mut params, name, value);
        }
        return params;
    }
    let role = match (face, said.agent) {
        (V03Rpc, false) => "user",
        (V03Rpc, true) => "agent",
        (_, false) => "ROLE_USER",
        (_, true) => "ROLE_AGENT",
    };
    let mut message = json!({"messageId": fresh, "role": role});
    message[if face == V03Rest { "content" } else { "parts" }] = parts;
    set(&mut message, "kind", (face == V03Rpc).then(|| json!("message")));
    set(&mut message, "taskId", said.task.as_ref().map(|task| json!(task)));
    set(&mut message, "contextId", said.context.as_ref().map(|context| json!(context)));
    set(&mut message, "metadata", metadata(said));
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

fn metadata(said: &Said) -> Option<Value> {
    said.skill.as_ref().map(|skill| json!({"skillId": skill}))
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
}
