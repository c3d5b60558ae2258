//! A JSON-RPC agent that answers as a test wants, and remembers what it was asked.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use futures_util::{StreamExt as _, stream};
use tokio::sync::Semaphore;

use crate::harness::serve_router;

/// What the agent answers.
pub(crate) enum Say {
    /// The result of a call.
    Result(String),
    /// The error of a call.
    Error(i32),
    /// Server-sent events, and a proper end. `id=7 {…}` has an id, `retry=0 {…}` asks for a wait, `!-32004` is an error.
    Events(Vec<String>),
    /// The same, and then silence.
    Open(Vec<String>),
    /// The same events, once there is a permit.
    Later(Arc<Semaphore>, Vec<String>),
    /// A status of HTTP, with `Retry-After: 0`.
    Busy(u16),
}

/// A request: its method, and `Last-Event-ID`.
pub(crate) type Asked = (String, Option<String>);

type Answer = dyn Fn(&str, usize) -> Say + Send + Sync;

#[derive(Clone)]
struct Script {
    asked: Arc<Mutex<Vec<Asked>>>,
    answer: Arc<Answer>,
}

pub(crate) struct Agent {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Agent {
    /// `answer` gets the method, and how often it was called before.
    pub(crate) async fn start(answer: impl Fn(&str, usize) -> Say + Send + Sync + 'static) -> Self {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let state = Script { asked: Arc::clone(&asked), answer: Arc::new(answer) };
        let url = serve_router(Router::new().route("/", post(respond)).with_state(state)).await;
        Agent { url, asked }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// How often a method was called.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.asked().iter().filter(|(asked, _)| asked == method).count()
    }
}

async fn respond(
    State(Script { asked, answer }): State<Script>,
    headers: HeaderMap,
    body: String,
) -> Response {
    let member = |name: &str| body.split(&format!("\"{name}\":")).nth(1).unwrap().split([',', '}']).next();
    let (id, method) = (member("id").unwrap(), member("method").unwrap().trim_matches('"').to_owned());
    let before = {
        let mut asked = asked.lock().unwrap();
        let last = headers.get("last-event-id").map(|id| id.to_str().unwrap().to_owned());
        asked.push((method.clone(), last));
        asked.iter().filter(|(asked, _)| *asked == method).count() - 1
    };
    let rpc = |member: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},{member}}}"#);
    let json = |body: String| ([(header::CONTENT_TYPE, "application/json")], body).into_response();
    let frames = |items: Vec<String>| -> String {
        let frame = |item: String| {
            let mut rest = item.as_str();
            let mut fields = String::new();
            for name in ["id", "retry"] {
                let field = rest.strip_prefix(name).and_then(|it| it.strip_prefix('=')?.split_once(' '));
                if let Some((value, item)) = field {
                    fields += &format!("{name}: {value}\n");
                    rest = item;
                }
            }
            let member = match rest.strip_prefix('!') {
                Some(code) => format!(r#""error":{{"code":{code},"message":"no"}}"#),
                None => format!("\"result\":{rest}"),
            };
            format!("{fields}data: {}\n\n", rpc(&member))
        };
        items.into_iter().map(frame).collect()
    };
    let events = |body: Body| ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response();
    match answer(&method, before) {
        Say::Result(result) => json(rpc(&format!("\"result\":{result}"))),
        Say::Error(code) => json(rpc(&format!(r#""error":{{"code":{code},"message":"no"}}"#))),
        Say::Events(items) => events(Body::from(frames(items))),
        Say::Open(items) => {
            let first = stream::iter([Ok::<_, Infallible>(Bytes::from(frames(items)))]);
            events(Body::from_stream(first.chain(stream::pending())))
        }
        Say::Later(permits, items) => {
            permits.acquire().await.unwrap().forget();
            events(Body::from(frames(items)))
        }
        Say::Busy(status) => {
            (StatusCode::from_u16(status).unwrap(), [(header::RETRY_AFTER, "0")], "busy").into_response()
        }
    }
}

/// The events of a script.
pub(crate) fn list(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

/// The task `t`.
pub(crate) fn task(state: &str) -> String {
    format!(r#"{{"id":"t","contextId":"c","status":{{"state":"TASK_STATE_{state}"}}}}"#)
}

/// The task `t` with artifacts whose names and texts are these.
pub(crate) fn task_with(state: &str, artifacts: &[&str]) -> String {
    let artifact =
        |name: &&str| format!(r#"{{"artifactId":"{name}","name":"{name}","parts":[{{"text":"{name}"}}]}}"#);
    let artifacts: Vec<String> = artifacts.iter().map(artifact).collect();
    let whole = task(state);
    format!(r#"{},"artifacts":[{}]}}"#, whole.strip_suffix('}').unwrap(), artifacts.join(","))
}

/// A task as an event, or as the answer to a message.
pub(crate) fn shown(task: &str) -> String {
    format!(r#"{{"task":{task}}}"#)
}

pub(crate) fn status(state: &str) -> String {
    format!(
        r#"{{"statusUpdate":{{"taskId":"t","contextId":"c","status":{{"state":"TASK_STATE_{state}"}}}}}}"#
    )
}

pub(crate) fn artifact(name: &str) -> String {
    format!(
        r#"{{"artifactUpdate":{{"taskId":"t","contextId":"c","artifact":{{"artifactId":"{name}","name":"{name}","parts":[{{"text":"{name}"}}]}}}}}}"#
    )
}
