//! A server on a free port, and a client that sends and reads raw JSON-RPC, without our codecs.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use baton_protocol::domain::{AgentCard, AgentSkill};
use baton_protocol::wire::sse::{SseEvent, SseParser};
use baton_server::{Agent, Builder, Server};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Longest time that a test waits for anything.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) struct TestServer {
    pub(crate) url: String,
    pub(crate) server: Server,
    pub(crate) http: reqwest::Client,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<()>,
}

/// A builder with one skill whose card accepts anything.
pub(crate) fn with_agent(agent: impl Agent) -> Builder {
    let mut card = AgentCard::new("test", "An agent for tests", "1.0.0");
    card.default_input_modes = vec!["*/*".to_owned()];
    all_bindings(Server::builder(card).task_skill(AgentSkill::new("test", "test", "test"), agent))
}

/// With gRPC, which the card does not tell.
pub(crate) fn all_bindings(builder: Builder) -> Builder {
    #[cfg(feature = "grpc")]
    let builder = builder.grpc().grpc_address(baton_server::card::GrpcAddress::Hidden);
    builder
}

/// With cards that tell how streams of gRPC are resumed.
pub(crate) fn resumable(builder: Builder) -> Builder {
    #[cfg(feature = "grpc")]
    let builder = builder.grpc_address(baton_server::card::GrpcAddress::HostPort);
    builder
}

pub(crate) async fn serve(builder: Builder) -> TestServer {
    let server = builder.build().await.expect("the server can be built");
    serve_with(server, |server, listener, stopped| async move {
        server.serve_until(listener, stopped).await.expect("it serves");
    })
    .await
}

/// The same server as a part of another application.
pub(crate) async fn serve_in_app(builder: Builder) -> TestServer {
    let server = builder.build().await.expect("the server can be built");
    serve_with(server, |server, listener, stopped| async move {
        let app = server.router();
        server.serve_app_until(app, listener, stopped).await.expect("it serves");
    })
    .await
}

async fn serve_with<F: Future<Output = ()> + Send + 'static>(
    server: Server,
    serve: impl FnOnce(Server, TcpListener, Pin<Box<dyn Future<Output = ()> + Send>>) -> F,
) -> TestServer {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = Box::pin(async {
        let _ = stopped.await;
    });
    let served = tokio::spawn(serve(server.clone(), listener, stopped));
    TestServer { url, server, http: reqwest::Client::new(), stop: Some(stop), served }
}

/// The usual: one agent, memory store, default options.
pub(crate) async fn serve_agent(agent: impl Agent) -> TestServer {
    serve(with_agent(agent)).await
}

/// An HTTP response with a JSON body.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) body: Value,
}

impl Answer {
    #[track_caller]
    pub(crate) fn result(&self) -> &Value {
        self.body.get("result").unwrap_or_else(|| panic!("an error instead of a result: {}", self.body))
    }

    #[track_caller]
    pub(crate) fn error_code(&self) -> i64 {
        self.body["error"]["code"]
            .as_i64()
            .unwrap_or_else(|| panic!("a result instead of an error: {}", self.body))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

impl TestServer {
    /// A 1.0 call with its version header.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Answer {
        self.call_with(method, params, &[]).await
    }

    pub(crate) async fn call_with(&self, method: &str, params: Value, headers: &[(&str, &str)]) -> Answer {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut all = vec![("content-type", "application/json"), ("a2a-version", "1.0")];
        all.extend_from_slice(headers);
        self.post(&all, body.to_string()).await
    }

    /// Posts exactly these headers and this body.
    pub(crate) async fn post(&self, headers: &[(&str, &str)], body: impl Into<reqwest::Body>) -> Answer {
        let response = self.send_raw(headers, body).await;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text =
            tokio::time::timeout(TEST_TIMEOUT, response.text()).await.expect("the answer came").unwrap();
        let body = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text:?}"));
        Answer { status, headers, body }
    }

    pub(crate) async fn send_raw(
        &self,
        headers: &[(&str, &str)],
        body: impl Into<reqwest::Body>,
    ) -> reqwest::Response {
        let mut request = self.http.post(format!("{}/", self.url)).body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        tokio::time::timeout(TEST_TIMEOUT, request.send()).await.expect("an answer came").unwrap()
    }

    /// Opens a stream; `Err` when the server answered with an error instead.
    pub(crate) async fn stream(
        &self,
        method: &str,
        params: Value,
        last_event_id: Option<&str>,
    ) -> Result<Stream, Answer> {
        let body = json!({"jsonrpc": "2.0", "id": "s", "method": method, "params": params}).to_string();
        let mut headers = vec![("content-type", "application/json"), ("a2a-version", "1.0")];
        headers.extend(last_event_id.map(|id| ("last-event-id", id)));
        let response = self.send_raw(&headers, body).await;
        let is_stream = response.headers()["content-type"] == "text/event-stream";
        if !is_stream {
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            let body = serde_json::from_str(&response.text().await.unwrap()).unwrap();
            return Err(Answer { status, headers, body });
        }
        Ok(Stream {
            headers: response.headers().clone(),
            response,
            parser: SseParser::new(16 << 20),
            seen: VecDeque::new(),
        })
    }

    /// SendMessage with a text; answers the task (or message) object.
    pub(crate) async fn send(&self, text: &str) -> Value {
        self.call("SendMessage", message(text)).await.result()["task"].clone()
    }

    /// SendMessage with `returnImmediately`.
    pub(crate) async fn start(&self, text: &str) -> Value {
        let mut params = message(text);
        params["configuration"] = json!({"returnImmediately": true});
        self.call("SendMessage", params).await.result()["task"].clone()
    }

    pub(crate) async fn get(&self, id: &str) -> Value {
        self.call("GetTask", json!({"id": id})).await.result().clone()
    }

    /// Polls until the task is in that state.
    #[track_caller]
    pub(crate) fn eventually<'a>(&'a self, id: &'a str, wanted: &'a str) -> impl Future<Output = Value> + 'a {
        let caller = std::panic::Location::caller();
        async move {
            let give_up = tokio::time::Instant::now() + TEST_TIMEOUT;
            loop {
                let task = self.get(id).await;
                if state(&task) == wanted {
                    return task;
                }
                assert!(tokio::time::Instant::now() < give_up, "{caller}: not {wanted}: {task}");
            }
        }
    }

    /// How many tasks are stored, in all scopes.
    pub(crate) async fn task_count(&self) -> u64 {
        let numbers = self.server.metrics().await;
        let count = numbers.lines().find_map(|line| line.strip_prefix("baton_tasks_stored "));
        count.and_then(|count| count.parse::<f64>().ok()).expect("the store says how many it holds") as u64
    }

    /// Stops the server gracefully and waits until it has stopped.
    pub(crate) async fn stop(mut self) {
        let _ = self.stop.take().expect("stopped once").send(());
        tokio::time::timeout(TEST_TIMEOUT, &mut self.served).await.expect("it stops").unwrap();
    }
}

/// Params of a send with a fresh messageId.
pub(crate) fn message(text: &str) -> Value {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let id = format!("m-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    message_with_id(&id, text)
}

pub(crate) fn message_with_id(id: &str, text: &str) -> Value {
    json!({"message": {"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]}})
}

pub(crate) struct Stream {
    pub(crate) headers: reqwest::header::HeaderMap,
    response: reqwest::Response,
    parser: SseParser,
    seen: VecDeque<SseEvent>,
}

/// One event: its SSE id and the JSON-RPC envelope.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RpcEvent {
    pub(crate) id: Option<u64>,
    pub(crate) envelope: Value,
}

impl RpcEvent {
    pub(crate) fn result(&self) -> &Value {
        &self.envelope["result"]
    }

    /// `task`, `message`, `artifactUpdate`, `error`, or the state of a status update: short names for comparing orders.
    pub(crate) fn kind(&self) -> String {
        let result = self.result();
        if let Some(state) = result["statusUpdate"]["status"]["state"].as_str() {
            return state.trim_start_matches("TASK_STATE_").to_lowercase();
        }
        result
            .as_object()
            .and_then(|members| members.keys().next().cloned())
            .unwrap_or_else(|| "error".to_owned())
    }
}

impl Stream {
    /// The next event, or `None` when the stream has closed.
    pub(crate) async fn next(&mut self) -> Option<RpcEvent> {
        loop {
            if let Some(event) = self.seen.pop_front() {
                let id = event.id.as_deref().map(|id| id.parse().expect("ids are numbers"));
                return Some(RpcEvent {
                    id,
                    envelope: serde_json::from_str(&event.data).expect("data is JSON"),
                });
            }
            let chunk = tokio::time::timeout(TEST_TIMEOUT, self.response.chunk())
                .await
                .expect("the stream goes on")
                .unwrap()?;
            self.parser.feed(&chunk).unwrap();
            while let Some(event) = self.parser.next_event() {
                self.seen.push_back(event);
            }
        }
    }

    /// Reads raw bytes until they contain `wanted` (for comments).
    pub(crate) async fn until_bytes(&mut self, wanted: &[u8]) {
        let mut all = Vec::new();
        while !all.windows(wanted.len()).any(|window| window == wanted) {
            let chunk = tokio::time::timeout(TEST_TIMEOUT, self.response.chunk())
                .await
                .expect("the stream goes on")
                .unwrap();
            all.extend_from_slice(&chunk.expect("the stream is open"));
        }
    }

    /// Everything up to the close.
    pub(crate) async fn rest(&mut self) -> Vec<RpcEvent> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        all
    }
}

pub(crate) fn kinds(events: &[RpcEvent]) -> Vec<String> {
    events.iter().map(RpcEvent::kind).collect()
}

#[track_caller]
pub(crate) fn state(task: &Value) -> &str {
    task["status"]["state"]
        .as_str()
        .unwrap_or_else(|| panic!("not a task: {task}"))
        .trim_start_matches("TASK_STATE_")
}

pub(crate) fn id(task: &Value) -> &str {
    task["id"].as_str().expect("a task has an id")
}

/// A follow-up: the same as [`message`], to that task.
pub(crate) fn message_to(task: &Value, text: &str) -> Value {
    let mut params = message(text);
    params["message"]["taskId"] = task["id"].clone();
    params
}
