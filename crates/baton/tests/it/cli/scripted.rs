//! An agent that says what a test wants, and remembers what it was asked.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, Method};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use baton_protocol::error::TABLE;
use baton_protocol::operation::Operation;
use baton_protocol::wire::dialect::Dialect;
use baton_protocol::wire::pb::Package;
use baton_protocol::wire::pb::framing::{Deframer, framed};
use futures_util::{StreamExt as _, stream};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

/// A request as it came.
#[derive(Debug, Clone)]
pub(super) struct Heard {
    pub(super) method: Method,
    /// Path and query.
    pub(super) target: String,
    pub(super) headers: HeaderMap,
    /// Null if it is not JSON. Of gRPC, the JSON that the message stands for.
    pub(super) body: Value,
    pub(super) text: String,
    pub(super) at: Instant,
    /// The same for requests by the same connection.
    pub(super) from: SocketAddr,
}

impl Heard {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(super) fn is_grpc(&self) -> bool {
        self.called().is_some()
    }

    fn called(&self) -> Option<(Package, Operation)> {
        Package::of_path(&self.target)
    }

    /// The method of JSON-RPC.
    pub(super) fn rpc(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }
}

/// What the agent answers.
pub(super) enum Answer {
    /// The result of a call, by either binding.
    Result(Value),
    /// The error of a JSON-RPC call.
    Error(i32, &'static str),
    /// The error of a call by gRPC: its reason, its message.
    Refused(&'static str, &'static str),
    /// A stream that ends properly.
    Events(Vec<Value>),
    /// The same, with ids.
    Numbered(Vec<(u64, Value)>),
    /// A stream that stays open behind these events.
    Open(Vec<(u64, Value)>),
    /// A stream that breaks off.
    Cut(Vec<Value>),
    /// An answer that comes after some time.
    Late(Duration, Box<Answer>),
    /// Status, media type and body.
    Plain(u16, &'static str, String),
    /// JSON that comes in these pieces.
    Pieces(Vec<&'static str>),
    /// A redirect to there.
    Moved(String),
}

pub(super) struct Scripted {
    pub(super) url: String,
    heard: Arc<Mutex<Vec<Heard>>>,
}

impl Scripted {
    /// `card` gets the address. `answer` gets each other request and how many came before it.
    pub(super) fn start(
        card: impl FnOnce(&str) -> Value,
        answer: impl Fn(&Heard, usize) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let card = card(&url).to_string();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&heard);
        let answer = Arc::new(answer);
        let handle = move |ConnectInfo(from): ConnectInfo<SocketAddr>, request: Request| {
            let (card, seen, answer) = (card.clone(), Arc::clone(&seen), Arc::clone(&answer));
            async move {
                let (parts, body) = request.into_parts();
                let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
                let body = match Package::of_path(parts.uri.path()) {
                    Some(called) => said(called, &bytes),
                    None => serde_json::from_slice(&bytes).unwrap_or_default(),
                };
                let heard = Heard {
                    target: parts.uri.path_and_query().unwrap().to_string(),
                    method: parts.method,
                    headers: parts.headers,
                    body,
                    text: String::from_utf8_lossy(&bytes).into_owned(),
                    at: Instant::now(),
                    from,
                };
                let is_card = heard.target.ends_with("/agent-card.json");
                let before = {
                    let mut seen = seen.lock().unwrap();
                    seen.push(heard.clone());
                    seen.iter().filter(|heard| !heard.target.ends_with("/agent-card.json")).count()
                };
                if is_card {
                    return ([(CONTENT_TYPE, "application/json")], card).into_response();
                }
                let mut answer = answer(&heard, before - 1);
                while let Answer::Late(delay, later) = answer {
                    tokio::time::sleep(delay).await; // tidy: allow-sleep the agent is slow on purpose
                    answer = *later;
                }
                respond(&heard, answer)
            }
        };
        thread::spawn(move || {
            // An answer may wait for another request.
            let mut runtime = tokio::runtime::Builder::new_multi_thread();
            let runtime = runtime.worker_threads(3).enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                let router = Router::new().fallback(handle);
                let service = router.into_make_service_with_connect_info::<SocketAddr>();
                axum::serve(listener, service).await.unwrap();
            });
        });
        Scripted { url, heard }
    }

    /// Everything that it was asked, cards too.
    pub(super) fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }

    /// The calls, without requests for the card.
    pub(super) fn calls(&self) -> Vec<Heard> {
        self.heard().into_iter().filter(|heard| !heard.target.ends_with("/agent-card.json")).collect()
    }
}

/// The JSON of a message.
fn said((package, operation): (Package, Operation), body: &[u8]) -> Value {
    let mut deframer = Deframer::new(1 << 20);
    deframer.feed(body);
    let call = package.decode_call(operation, deframer.next().unwrap().expect("a message")).unwrap();
    let mut json = Vec::new();
    Dialect::in_http_json(package.generation()).write_call(&mut json, call.tenant.as_deref(), &call.call);
    serde_json::from_slice(&json).unwrap()
}

/// The same answers over gRPC.
fn respond_by_grpc((package, operation): (Package, Operation), answer: Answer) -> Response {
    let dialect = Dialect::in_http_json(package.generation());
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", "0".parse().unwrap());
    let body = match answer {
        Answer::Result(result) => {
            let reply = dialect.read_reply(operation, &result.to_string()).unwrap().value;
            framed(&package.write_reply(&reply).unwrap())
        }
        Answer::Events(events) => {
            let item = |event: Value| dialect.read_stream_item(&event.to_string()).unwrap().value;
            let frame = |event| framed(&package.write_stream_update(&item(event))).to_vec();
            events.into_iter().flat_map(frame).collect::<Vec<u8>>().into()
        }
        Answer::Refused(reason, message) => {
            let row = TABLE.iter().find(|row| row.reason == reason).unwrap();
            let status = package.status(&baton_protocol::Error::new(row.kind, message));
            trailers.insert("grpc-status", status.code.to_string().parse().unwrap());
            trailers.insert("grpc-message", status.message.parse().unwrap());
            trailers.insert("grpc-status-details-bin", STANDARD.encode(&status.details).parse().unwrap());
            Bytes::new()
        }
        _ => unreachable!("no answer of gRPC"),
    };
    let body = Body::new(Body::from(body).with_trailers(async move { Some(Ok(trailers)) }));
    ([(CONTENT_TYPE, "application/grpc")], body).into_response()
}

fn respond(heard: &Heard, answer: Answer) -> Response {
    if let Some(called) = heard.called() {
        return respond_by_grpc(called, answer);
    }
    let envelope = |result: Value| match heard.body["jsonrpc"].is_string() {
        true => json!({"jsonrpc": "2.0", "id": heard.body["id"], "result": result}),
        false => result,
    };
    let frame = |event: Value| format!("data: {}\n\n", envelope(event));
    let numbered = |(id, event): (u64, Value)| format!("id: {id}\n{}", frame(event));
    let json = |status: u16, body: Value| {
        let status = axum::http::StatusCode::from_u16(status).unwrap();
        (status, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
    };
    match answer {
        Answer::Result(result) => json(200, envelope(result)),
        Answer::Error(code, message) => {
            let error = json!({"code": code, "message": message});
            json(200, json!({"jsonrpc": "2.0", "id": heard.body["id"], "error": error}))
        }
        Answer::Events(events) => {
            let body: String = events.into_iter().map(frame).collect();
            ([(CONTENT_TYPE, "text/event-stream")], body).into_response()
        }
        Answer::Numbered(events) => {
            let body: String = events.into_iter().map(numbered).collect();
            ([(CONTENT_TYPE, "text/event-stream")], body).into_response()
        }
        Answer::Open(events) => {
            let frames = events.into_iter().map(|event| Ok::<_, io::Error>(Bytes::from(numbered(event))));
            let frames = frames.collect::<Vec<_>>();
            let body = Body::from_stream(stream::iter(frames).chain(stream::pending()));
            ([(CONTENT_TYPE, "text/event-stream")], body).into_response()
        }
        Answer::Late(..) => unreachable!("the wait is over"),
        Answer::Refused(..) => unreachable!("an answer of gRPC"),
        Answer::Cut(events) => {
            let frames = events.into_iter().map(|event| Ok(Bytes::from(frame(event)))).collect::<Vec<_>>();
            let broken = async {
                // What came before is sent while this one waits.
                for _ in 0..8 {
                    tokio::task::yield_now().await;
                }
                Err(io::Error::other("cut"))
            };
            let body = Body::from_stream(stream::iter(frames).chain(stream::once(broken)));
            ([(CONTENT_TYPE, "text/event-stream")], body).into_response()
        }
        Answer::Pieces(pieces) => {
            let pieces = pieces.into_iter().map(|piece| Ok::<_, io::Error>(Bytes::from(piece)));
            ([(CONTENT_TYPE, "application/json")], Body::from_stream(stream::iter(pieces))).into_response()
        }
        Answer::Moved(to) => {
            (axum::http::StatusCode::TEMPORARY_REDIRECT, [(axum::http::header::LOCATION, to)]).into_response()
        }
        Answer::Plain(status, media_type, body) => {
            let status = axum::http::StatusCode::from_u16(status).unwrap();
            (status, [(CONTENT_TYPE, media_type)], body).into_response()
        }
    }
}

/// A card with one JSON-RPC interface, and these members on top.
pub(super) fn card(url: &str, more: Value) -> Value {
    let mut card = json!({
        "name": "Scripted", "description": "says what it is told", "version": "1",
        "supportedInterfaces": [{"url": format!("{url}/rpc"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {}, "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "s", "name": "S", "description": "d", "tags": []}],
    });
    for (name, value) in more.as_object().unwrap() {
        card[name] = value.clone();
    }
    card
}

/// Interfaces of both bindings, JSON-RPC first.
pub(super) fn both_bindings(url: &str) -> Value {
    let interface = |binding: &str, path: &str| json!({"url": format!("{url}{path}"), "protocolBinding": binding, "protocolVersion": "1.0"});
    json!([interface("JSONRPC", "/rpc"), interface("HTTP+JSON", "/rest")])
}

/// Interfaces of every binding, JSON-RPC first.
pub(super) fn all_bindings(url: &str) -> Value {
    let mut all = both_bindings(url);
    let grpc =
        json!({"url": url.strip_prefix("http://"), "protocolBinding": "GRPC", "protocolVersion": "1.0"});
    all.as_array_mut().unwrap().push(grpc);
    all
}

/// An agent with one answer to everything.
pub(super) fn always(answer: Value) -> Scripted {
    Scripted::start(|url| card(url, json!({})), move |_, _| Answer::Result(answer.clone()))
}

/// A task in this state.
pub(super) fn task(state: &str) -> Value {
    json!({"id": "t-1", "contextId": "c-1", "status": {"state": state, "timestamp": "2026-08-20T09:14:07.212Z"}})
}
