//! A fuzz target: the whole server behind its router. Every request is answered with valid JSON or SSE, and never with an
//! internal error.
//!
//! The input is `METHOD path?query`, lines of headers, a blank line, and the body.

use std::cell::RefCell;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tokio::runtime::Runtime;
use tower::Service as _;

use crate::{AgentError, Server, Turn};

/// After this many requests a new server is used, because tasks stay in memory.
const REQUESTS: usize = 2_000;
/// Longest time for an answer; the agent itself answers immediately.
const LONGEST: Duration = Duration::from_secs(20);

struct Running {
    runtime: Runtime,
    server: Server,
    app: Router,
    left: usize,
}

thread_local! {
    static RUNNING: RefCell<Option<Running>> = const { RefCell::new(None) };
}

async fn agent(turn: Turn) -> Result<(), AgentError> {
    turn.text_artifact("echo", turn.text()).await?;
    Ok(())
}

impl Running {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let server =
            runtime.block_on(Server::agent("echo", "Says it again", agent).build()).expect("a server");
        let app = server.router();
        Running { runtime, server, app, left: REQUESTS }
    }

    fn ask(&mut self, request: Request<Body>) -> (Response<()>, Bytes) {
        self.runtime.block_on(async {
            let answer = async {
                let Ok(response) = self.app.call(request).await;
                let (parts, body) = response.into_parts();
                (Response::from_parts(parts, ()), body.collect().await.expect("a whole answer").to_bytes())
            };
            tokio::time::timeout(LONGEST, answer).await.expect("an answer in time")
        })
    }

    fn stop(self) {
        self.runtime.block_on(self.server.shut_down());
    }
}

pub(crate) fn requests(bytes: &[u8]) {
    let Some(request) = request(bytes) else { return };
    let is_rpc = request.method() == "POST" && request.uri().path() == "/";
    RUNNING.with_borrow_mut(|running| {
        let server = running.get_or_insert_with(Running::new);
        let (response, body) = server.ask(request);
        judge(&response, &body, is_rpc);
        server.left -= 1;
        if server.left == 0
            && let Some(running) = running.take()
        {
            running.stop();
        }
    });
}

fn request(bytes: &[u8]) -> Option<Request<Body>> {
    let (line, mut rest) = cut(bytes);
    let line = str::from_utf8(line).ok()?;
    let (method, target) = line.split_once(' ')?;
    let mut request = Request::builder().method(method).uri(target);
    loop {
        let (line, after) = cut(rest);
        rest = after;
        if line.is_empty() {
            break;
        }
        let colon = line.iter().position(|byte| *byte == b':')?;
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        request = request.header(name, HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?);
    }
    request.body(Body::from(rest.to_vec())).ok()
}

fn cut(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    (&bytes[..end], bytes.get(end + 1..).unwrap_or_default())
}

fn judge(response: &Response<()>, body: &[u8], is_rpc: bool) {
    let status = response.status();
    let shown = || String::from_utf8_lossy(body).into_owned();
    // 501 is how 0.3 says that there are no webhooks.
    assert!(!status.is_server_error() || status == 501, "{status}: {}", shown());
    assert!(!status.is_redirection() || status == 304, "{status}");
    let kind =
        response.headers().get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    if kind.starts_with("text/event-stream") {
        assert!(body.ends_with(b"\n\n"), "a stream ends in the middle of an event: {}", shown());
        return;
    }
    if kind.starts_with("application/json") {
        let value: Value = match serde_json::from_slice(body) {
            Ok(value) => value,
            // The request's id is sent back as it was, even if the number is too large for serde_json.
            Err(error) if error.to_string().starts_with("number out of range") => return,
            Err(error) => panic!("{error}: {}", shown()),
        };
        if is_rpc && (status == 200 || status == 400) {
            assert_eq!(value["jsonrpc"], "2.0", "{}", shown());
            assert_ne!(value.get("result").is_some(), value.get("error").is_some(), "{}", shown());
            assert_ne!(value["error"]["code"], -32603, "{}", shown());
        }
    }
}
