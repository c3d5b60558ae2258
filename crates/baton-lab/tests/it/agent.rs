//! An agent made for these tests: every answer is written down in one place.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// A request, as far as tests look at it.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) text: String,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}

/// Whom an agent lets in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    /// Everybody, and its card says so.
    Open,
    /// `Bearer good`; `Bearer weak` is known, and may do nothing.
    Guarded,
    /// Everybody, though its card says otherwise; and it tells strangers whose task they ask for.
    Pretended,
}

pub(crate) struct Agent {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Agent {
    /// Starts one at a free port; it ends with the test.
    pub(crate) async fn start() -> Self {
        Self::behind(Door::Open).await
    }

    pub(crate) async fn behind(door: Door) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (base, seen) = (url.clone(), Arc::clone(&asked));
        tokio::spawn(async move {
            let die = Arc::new(Notify::new());
            loop {
                tokio::select! {
                    Ok((socket, _)) = listener.accept() => {
                        tokio::spawn(serve(socket, base.clone(), door, Arc::clone(&seen), Arc::clone(&die)));
                    }
                    () = die.notified() => return,
                }
            }
        });
        Agent { url, asked }
    }

    /// What it was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

async fn serve(
    mut socket: TcpStream,
    base: String,
    door: Door,
    seen: Arc<Mutex<Vec<Asked>>>,
    die: Arc<Notify>,
) {
    let Some(asked) = read(&mut socket).await else { return };
    if asked.path == "/die" {
        die.notify_one();
        return;
    }
    let count = {
        let mut seen = seen.lock().unwrap();
        seen.push(asked.clone());
        seen.iter()
            .filter(|earlier| earlier.text == asked.text || task_of(earlier) == task_of(&asked))
            .count()
    };
    let (status, kind, body) = answer(&asked, &base, door, count);
    let hang = body.ends_with("HANG");
    let body = body.trim_end_matches("HANG");
    let length = if hang { String::new() } else { format!("content-length: {}\r\n", body.len()) };
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\nx-kind: test\r\n{length}connection: close\r\n\r\n"
    );
    let _ = socket.write_all(format!("{head}{body}").as_bytes()).await;
    if hang {
        // Until the other side has had enough.
        let _ = socket.read(&mut [0; 64]).await;
    }
}

fn task_of(asked: &Asked) -> Option<Value> {
    asked.json().pointer("/params/id").cloned()
}

async fn read(socket: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let mut lines = head.lines();
            let mut first = lines.next()?.split(' ');
            let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
            let headers: Vec<(String, String)> = lines
                .filter_map(|line| line.split_once(':'))
                .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
                .collect();
            let length = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
            let length: usize = length.map_or(Ok(0), |(_, value)| value.parse()).ok()?;
            while bytes.len() < end + 4 + length {
                let count = socket.read(&mut chunk).await.ok().filter(|count| *count > 0)?;
                bytes.extend_from_slice(&chunk[..count]);
            }
            let text = String::from_utf8_lossy(&bytes[end + 4..end + 4 + length]).into_owned();
            return Some(Asked { method, path, headers, text });
        }
        let count = socket.read(&mut chunk).await.ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&chunk[..count]);
    }
}

/// Status, content type, body. `count` is how often this, or this task, has been asked for; a body that ends in `HANG`
/// leaves the connection open.
fn answer(asked: &Asked, base: &str, door: Door, count: usize) -> (u16, &'static str, String) {
    const JSON: &str = "application/json";
    if door == Door::Guarded && !asked.path.starts_with("/.well-known/") {
        match asked.header("authorization") {
            Some("Bearer good") => {}
            Some("Bearer weak") => return (403, JSON, String::new()),
            _ => return (401, JSON, String::new()),
        }
    }
    match (asked.method.as_str(), asked.path.as_str()) {
        // Who sends no version is shown the members of 0.3.
        ("GET", "/.well-known/agent-card.json")
            if door == Door::Guarded && asked.header("a2a-version").is_none() =>
        {
            let mut older = card(base, door);
            older["capabilities"] = json!({"streaming": true});
            older["supportsAuthenticatedExtendedCard"] = json!(true);
            (200, JSON, older.to_string())
        }
        ("GET", "/.well-known/agent-card.json" | "/rest/extendedAgentCard") => {
            (200, JSON, card(base, door).to_string())
        }
        ("GET", "/page") => (200, "text/html", "<p>not JSON</p>".to_owned()),
        ("POST", "/echo") => (200, JSON, json!({"body": asked.json(), "text": asked.text}).to_string()),
        ("GET", "/who") => {
            let who = asked.header("authorization").or_else(|| asked.header("x-api-key"));
            (200, JSON, json!({ "you": who }).to_string())
        }
        ("GET", "/closed") => (401, JSON, String::new()),
        ("POST", "/") => rpc(asked, base, door, count),
        _ => (404, JSON, json!({"error": {"code": 404, "message": "no such place"}}).to_string()),
    }
}

fn card(base: &str, door: Door) -> Value {
    let interface = |path: &str, binding: &str| json!({"url": format!("{base}{path}"), "protocolBinding": binding, "protocolVersion": "1.0"});
    let mut card = json!({
        "name": "Scripted", "version": "7", "description": "For tests.",
        "supportedInterfaces": [interface("/", "JSONRPC")],
        "capabilities": {"streaming": true},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "s", "name": "S", "description": "d", "tags": [], "examples": ["hello"]}]});
    if door != Door::Open {
        card["supportedInterfaces"] = json!([interface("/", "JSONRPC"), interface("/rest", "HTTP+JSON")]);
        card["capabilities"]["extendedAgentCard"] = json!(true);
        card["securitySchemes"] = json!({"b": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}});
        card["securityRequirements"] = json!([{"schemes": {"b": {"list": []}}}]);
    }
    card
}

fn rpc(asked: &Asked, base: &str, door: Door, count: usize) -> (u16, &'static str, String) {
    let body = asked.json();
    let method = body["method"].as_str().unwrap_or_default();
    let params = &body["params"];
    let text = params.pointer("/message/parts/0/text").and_then(Value::as_str).unwrap_or_default();
    let result = match method {
        // It knows the prefixes: that is what the first look wants to see.
        "SendMessage" if text.starts_with("tck-multi-turn") => json!({"task": task("t-1", "INPUT_REQUIRED")}),
        "SendMessage" if text.starts_with("refuse") => return failed(&body, text),
        "SendMessage" => json!({"task": sample(params)}),
        "GetExtendedAgentCard" if door != Door::Open => card(base, door),
        "GetTask" => match params["id"].as_str() {
            Some("foreign") if door == Door::Pretended => return failed(&body, "refuse not-yours"),
            Some("slow") if count < 3 => task("slow", "WORKING"),
            Some("slow") => task("slow", "COMPLETED"),
            Some("never") => task("never", "WORKING"),
            _ => return failed(&body, "refuse not-found"),
        },
        "ListTasks" => json!({"tasks": [task("a", "COMPLETED"), task("b", "WORKING")], "nextPageToken": ""}),
        "SendStreamingMessage" if text.starts_with("refuse") => return failed(&body, text),
        "SendStreamingMessage" => return (200, "text/event-stream", stream(&body["id"], text)),
        _ => return failed(&body, "refuse method"),
    };
    (200, "application/json", json!({"jsonrpc": "2.0", "id": body["id"], "result": result}).to_string())
}

fn task(id: &str, state: &str) -> Value {
    json!({"id": id, "contextId": "c-1", "status": {"state": format!("TASK_STATE_{state}")}})
}

/// A task with a member for every operator.
fn sample(params: &Value) -> Value {
    let mut task = task("t-1", "COMPLETED");
    task["metadata"] = json!({
        "text": "hello world", "number": 7, "half": 7.0, "yes": true, "nothing": null,
        "list": ["a", "b", "c"], "empty": [], "object": {"inner": {"deep": 1}}, "type": "a member called type",
        "date": "2026-11-15T10:31:06Z", "objects": [{"id": 1, "tag": "x"}, {"id": 2, "tag": "x"}],
        "heard": params});
    task
}

fn failed(body: &Value, text: &str) -> (u16, &'static str, String) {
    let (code, reason, message) = match text {
        "refuse not-found" => (-32001, "TASK_NOT_FOUND", "Task not found"),
        "refuse not-yours" => (-32001, "TASK_NOT_FOUND", "This is somebody else's task"),
        "refuse method" => (-32601, "METHOD_NOT_FOUND", "Method not found"),
        _ => (-32004, "UNSUPPORTED_OPERATION", "This operation is not supported"),
    };
    let data = json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}]);
    let error = json!({"code": code, "message": message, "data": data});
    (200, "application/json", json!({"jsonrpc": "2.0", "id": body["id"], "error": error}).to_string())
}

fn stream(id: &Value, text: &str) -> String {
    let status = |state: &str| json!({"statusUpdate": {"taskId": "t-1", "status": {"state": format!("TASK_STATE_{state}")}}});
    let artifact = json!({"artifactUpdate": {"taskId": "t-1", "artifact": {"artifactId": "a", "parts": [{"text": "x"}]}}});
    let events = match text {
        "backwards" => vec![status("WORKING"), status("SUBMITTED"), status("COMPLETED")],
        "message" => {
            vec![json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}})]
        }
        _ => {
            vec![json!({"task": task("t-1", "SUBMITTED")}), status("WORKING"), artifact, status("COMPLETED")]
        }
    };
    let frame = |event: Value| format!("data: {}\n\n", json!({"jsonrpc": "2.0", "id": id, "result": event}));
    let frames: String = events.into_iter().map(frame).collect();
    if text == "open" { frames + "HANG" } else { frames }
}
