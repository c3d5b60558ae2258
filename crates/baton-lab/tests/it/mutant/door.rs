//! The socket: HTTP in, HTTP out, and nothing of A2A but which door leads where.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use baton_lab::generation::{Binding, Generation};
use futures_util::stream::{BoxStream, StreamExt as _};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, Limited, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::agent::Agent;
use super::fault::{Place, Quirk, What};
use super::profile::{Profile, TOKEN};
use super::{card, rest, rpc, seal};

/// Largest body that is read.
pub(super) const MOST: usize = 16 * 1024 * 1024;

/// A request as it came.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) method: String,
    pub(super) path: String,
    /// Names and values, decoded.
    pub(super) query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Arrived {
    pub(super) fn new(head: &hyper::http::request::Parts, body: Vec<u8>) -> Self {
        let headers = head.headers.iter();
        let headers = headers
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
        Arrived {
            method: head.method.to_string(),
            path: head.uri.path().to_owned(),
            query: query(head.uri.query().unwrap_or_default()),
            headers: headers.collect(),
            body,
        }
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// An answer about to go.
pub(super) struct Leaving {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Body,
}

pub(super) enum Body {
    Whole(Vec<u8>),
    Frames(BoxStream<'static, Vec<u8>>),
}

/// The connection is closed without an answer.
#[derive(Debug)]
pub(super) struct HangUp;

impl Leaving {
    pub(super) fn json(status: u16, kind: &str, body: &Value) -> Self {
        let headers = vec![("content-type".to_owned(), kind.to_owned())];
        Leaving { status, headers, body: Body::Whole(body.to_string().into_bytes()) }
    }
}

pub(super) async fn listen(
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    agent: Arc<Agent>,
    stop: CancellationToken,
) {
    while let Some(Ok((stream, _))) = stop.run_until_cancelled(listener.accept()).await {
        let (agent, acceptor) = (Arc::clone(&agent), acceptor.clone());
        let serving = async move {
            // Small frames should not wait for each other.
            let _ = stream.set_nodelay(true);
            match acceptor {
                None => serve(stream, agent).await,
                Some(acceptor) => {
                    if let Some(stream) = seal::open(stream, &acceptor, &agent).await {
                        serve(stream, agent).await;
                    }
                }
            }
        };
        tokio::spawn(stop.clone().run_until_cancelled_owned(serving));
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, agent: Arc<Agent>) {
    let service = service_fn(move |request| {
        let agent = Arc::clone(&agent);
        async move { respond(&agent, request).await }
    });
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

type Response = hyper::Response<UnsyncBoxBody<Bytes, Infallible>>;

async fn respond(agent: &Arc<Agent>, request: hyper::Request<Incoming>) -> io::Result<Response> {
    let broken = || io::Error::other("hung up");
    let (head, body) = request.into_parts();
    // Whichever door it is: these are faults of all of them.
    let anywhere = Place::new(Generation::V1, Binding::Jsonrpc);
    if agent.has(Quirk::DiesOfHalves, &anywhere) && agent.is_scarred() {
        return Err(broken());
    }
    let half = Half { agent: Arc::clone(agent), whole: false };
    let mut body = Limited::new(body, MOST);
    let body = if agent.has(Quirk::OneRead, &anywhere) {
        let first = body.frame().await.transpose().map_err(|_| broken())?;
        first.and_then(|frame| frame.into_data().ok()).unwrap_or_default().to_vec()
    } else {
        body.collect().await.map_err(|_| broken())?.to_bytes().to_vec()
    };
    half.whole();
    if agent.has(Quirk::DeafAfterHalves, &anywhere) && agent.is_scarred() && !body.is_empty() {
        return Ok(hyper::Response::new(Full::new(Bytes::from_static(b"what?")).boxed_unsync()));
    }
    let arrived = Arrived::new(&head, body);
    let leaving = route(agent, arrived).await.map_err(|HangUp| broken())?;
    let mut response = hyper::Response::builder().status(leaving.status);
    if agent.profile == Profile::Sealed && !agent.has(Quirk::NoHsts, &anywhere) {
        response = response.header("strict-transport-security", "max-age=31536000");
    }
    for (name, value) in leaving.headers {
        response = response.header(name, value);
    }
    let body = match leaving.body {
        Body::Whole(bytes) => Full::new(Bytes::from(bytes)).boxed_unsync(),
        Body::Frames(frames) => {
            StreamBody::new(frames.map(|bytes| Ok(Frame::data(Bytes::from(bytes))))).boxed_unsync()
        }
    };
    response.body(body).map_err(io::Error::other)
}

async fn route(agent: &Arc<Agent>, arrived: Arrived) -> Result<Leaving, HangUp> {
    let below = |prefix: &str| {
        let rest = arrived.path.strip_prefix(prefix)?;
        (rest.is_empty() || rest.starts_with('/')).then(|| rest.to_owned())
    };
    match arrived.path.as_str() {
        "/.well-known/agent-card.json" => return Ok(card_answer(agent, &arrived, What::Card)),
        "/.well-known/agent.json" => return Ok(card_answer(agent, &arrived, What::LegacyCard)),
        card::RPC => return rpc::answer(agent, Generation::V1, &arrived).await,
        card::RPC_V0_3 => return rpc::answer(agent, Generation::V0_3, &arrived).await,
        card::RPC_V0_1 => return rpc::answer(agent, Generation::V0_1, &arrived).await,
        path if path.strip_prefix(card::RPC_V0_1) == Some("/subscribe") => {
            return rpc::answer_stream(agent, &arrived).await;
        }
        _ => {}
    }
    if let Some(path) = below(card::REST) {
        return rest::answer(agent, Generation::V1, &path, &arrived).await;
    }
    if let Some(path) = below(&format!("{}/v1", card::REST_V0_3)) {
        return rest::answer(agent, Generation::V0_3, &path, &arrived).await;
    }
    let nothing = Value::String("there is nothing here".to_owned());
    Ok(Leaving::json(404, "application/json", &nothing))
}

fn card_answer(agent: &Agent, arrived: &Arrived, what: What) -> Leaving {
    let generation = if what == What::Card { Generation::V1 } else { Generation::V0_1 };
    let place = Place::new(generation, Binding::Rest);
    if agent.has(Quirk::CardNeedsCredentials, &place)
        && arrived.header("authorization") != Some(&format!("Bearer {TOKEN}"))
    {
        return Leaving::json(401, "application/json", &Value::Null);
    }
    let mut document = if what == What::Card { card::public(agent) } else { card::legacy(agent) };
    agent.edit(what, &place, &mut document);
    let tag = format!("\"{:x}\"", document.to_string().len());
    let known = arrived.header("if-none-match") == Some(&tag) && !agent.has(Quirk::AlwaysSendsCard, &place);
    let mut leaving = Leaving::json(if known { 304 } else { 200 }, "application/json", &document);
    if known {
        leaving.body = Body::Whole(Vec::new());
    }
    for (name, value) in
        [("etag", tag.as_str()), ("cache-control", "max-age=60"), ("access-control-allow-origin", "*")]
    {
        leaving.headers.push((name.to_owned(), value.to_owned()));
    }
    agent.dress(what, &place, &mut leaving.headers);
    leaving
}

/// A request of which only a half came.
struct Half {
    agent: Arc<Agent>,
    whole: bool,
}

impl Half {
    fn whole(mut self) {
        self.whole = true;
    }
}

impl Drop for Half {
    fn drop(&mut self) {
        if !self.whole {
            self.agent.hurt();
        }
    }
}

fn query(text: &str) -> Vec<(String, String)> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    let split = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    split.map(|(name, value)| (decoded(name), decoded(&value.replace('+', " ")))).collect()
}

/// Percent-decoded.
pub(super) fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let escaped = hex.filter(|_| byte == b'%').and_then(|two| u8::from_str_radix(two, 16).ok());
        bytes.push(escaped.unwrap_or(byte));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
