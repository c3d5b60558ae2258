//! An agent that speaks gRPC, answers as a test wants, and remembers what it was asked.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use baton_client::protocol::Error;
use baton_client::protocol::wire::pb::Package;
use baton_client::protocol::wire::pb::framing::{Deframer, framed};
use baton_client::{Client, Discovered};
use futures_util::stream;
use http_body_util::BodyExt as _;

use crate::harness::serve_router;

/// The message of a request.
pub(crate) fn message(body: &[u8]) -> Bytes {
    let mut deframer = Deframer::new(1 << 20);
    deframer.feed(body);
    deframer.next().unwrap().expect("a message")
}

/// An answer.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) status: StatusCode,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    /// No trailers at all if there are none, and then the status belongs to the headers.
    pub(crate) trailers: Vec<(&'static str, String)>,
    /// The connection is reset behind the body.
    pub(crate) reset: bool,
}

impl Default for Script {
    fn default() -> Self {
        Script {
            status: StatusCode::OK,
            headers: vec![("content-type", "application/grpc".to_owned())],
            body: Vec::new(),
            trailers: Vec::new(),
            reset: false,
        }
    }
}

impl Script {
    /// A message, and a proper end.
    pub(crate) fn of(message: &[u8]) -> Self {
        Script { body: framed(message).to_vec(), ..Script::default() }.ends("0", "")
    }

    pub(crate) fn ends(mut self, code: &str, message: &str) -> Self {
        self.trailers.push(("grpc-status", code.to_owned()));
        if !message.is_empty() {
            self.trailers.push(("grpc-message", message.to_owned()));
        }
        self
    }

    pub(crate) fn failed(self, package: Package, error: &Error) -> Self {
        let status = package.status(error);
        let mut failed = self.ends(&status.code.to_string(), &status.message);
        failed.trailers.push(("grpc-status-details-bin", STANDARD_NO_PAD.encode(&status.details)));
        failed
    }

    /// What would be trailers comes in the head, and there is no body.
    pub(crate) fn at_once(mut self) -> Self {
        let trailers = std::mem::take(&mut self.trailers);
        self.headers.extend(trailers);
        self
    }

    pub(crate) fn answer(self) -> Response {
        let body = match (self.reset, self.trailers.is_empty()) {
            (true, _) => {
                let broken = Err(std::io::Error::other("reset"));
                Body::from_stream(stream::iter([Ok(Bytes::from(self.body)), broken]))
            }
            (false, true) => Body::from(self.body),
            (false, false) => {
                let trailers = map(self.trailers);
                Body::new(Body::from(self.body).with_trailers(async move { Some(Ok(trailers)) }))
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        *response.headers_mut() = map(self.headers);
        response
    }
}

fn map(pairs: Vec<(&'static str, String)>) -> HeaderMap {
    let pair = |(name, value)| (HeaderName::from_static(name), HeaderValue::try_from(value).unwrap());
    pairs.into_iter().map(pair).collect()
}

/// A request: its method, its metadata, its message.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) metadata: HeaderMap,
    pub(crate) message: Bytes,
}

pub(crate) struct Agent {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Agent {
    /// `answer` gets the method, and how often it was called before.
    pub(crate) async fn start(answer: impl Fn(&str, usize) -> Script + Send + Sync + 'static) -> Self {
        let asked = Arc::new(Mutex::new(Vec::<Asked>::new()));
        let (heard, answer) = (Arc::clone(&asked), Arc::new(answer));
        let url = serve_router(Router::new().fallback(move |request: Request| {
            let (heard, answer) = (Arc::clone(&heard), Arc::clone(&answer));
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect().await.unwrap().to_bytes();
                let method = parts.uri.path().rsplit('/').next().unwrap_or_default().to_owned();
                let asked =
                    Asked { method: method.clone(), metadata: parts.headers, message: message(&body) };
                let before = {
                    let mut heard = heard.lock().unwrap();
                    heard.push(asked);
                    heard.iter().filter(|asked| asked.method == method).count() - 1
                };
                answer(&method, before).answer()
            }
        }))
        .await;
        Agent { url, asked }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn methods(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.method).collect()
    }

    /// A client of this agent.
    pub(crate) fn client(&self, builder: baton_client::Builder, package: Package) -> Client {
        builder.with_card(Discovered::from_json(self.card(package)).unwrap()).unwrap()
    }

    /// A card that says the agent numbers its events.
    fn card(&self, package: Package) -> String {
        let (address, version) = (self.url.strip_prefix("http://").unwrap(), package.generation().version());
        format!(
            r#"{{"name":"scripted","description":"","version":"1",
            "capabilities":{{"streaming":true,"extensions":[{{"uri":"urn:baton:resume:v1"}}]}},
            "defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],"skills":[],
            "supportedInterfaces":[{{"url":"{address}","protocolBinding":"GRPC","protocolVersion":"{version}"}}]}}"#
        )
    }
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.metadata.get(name).map(|value| value.to_str().unwrap())
    }
}
