//! Serves the public card to everybody, in the form that the caller's generation reads.

use std::net::IpAddr;

use axum::body::Body;
use axum::extract::OriginalUri;
use baton_protocol::domain::AgentCard;
use baton_protocol::generation::{AskedVersion, Generations};
use baton_protocol::wire::http_json::version_in;
use baton_protocol::{ErrorKind, Generation};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ALLOW, CACHE_CONTROL, CONTENT_TYPE, ETAG, HOST, IF_MODIFIED_SINCE,
    IF_NONE_MATCH, LAST_MODIFIED, VARY,
};
use http::request::Parts;
use http::{Extensions, HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use sha2::{Digest, Sha256};

use super::request_log::{RequestLog, Route};
use super::{incoming, respond};
use crate::card::Document;
use crate::service::Service;
use crate::telemetry::labels::Binding;

/// The two paths where clients look for a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WellKnown {
    /// `agent-card.json`, since 0.3.
    AgentCard,
    /// `agent.json`, where 0.1 and 0.2 clients look: one document with the members of both and of 0.3.
    Agent,
}

impl WellKnown {
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::AgentCard => "/.well-known/agent-card.json",
            Self::Agent => "/.well-known/agent.json",
        }
    }
}

pub(super) fn handle(
    service: &Service,
    place: WellKnown,
    peer: Option<IpAddr>,
    request: &Request<Body>,
    log: &mut RequestLog<'_>,
) -> Response<Body> {
    log.set_route(Binding::Card, Route::Fixed(place.path()));
    let mut response = match *request.method() {
        Method::GET | Method::HEAD => get(service, place, peer, request),
        Method::OPTIONS => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            let headers = response.headers_mut();
            headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, OPTIONS"));
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*"));
            response
        }
        _ => {
            log.refused(ErrorKind::MethodNotAllowed);
            let mut response = respond::plain(StatusCode::METHOD_NOT_ALLOWED, "The card is read with GET\n");
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS"));
            response
        }
    };
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("ETag"));
    response
}

fn get(service: &Service, place: WellKnown, peer: Option<IpAddr>, request: &Request<Body>) -> Response<Body> {
    let asked_headers = request.headers();
    let host = asked_headers.get(HOST).and_then(|host| host.to_str().ok());
    let served = service.generations();
    if place == WellKnown::Agent && !served.has(Generation::V0_1) && !served.has(Generation::V0_3) {
        return respond::plain(StatusCode::NOT_FOUND, "The card is at /.well-known/agent-card.json\n");
    }
    let document = document(place, served, says_v1(request));
    let json = service.card().document(document, peer, host, nested_at(request), asked_headers);
    let digest = Sha256::digest(&json);
    let etag = format!("\"{}\"", digest[..16].iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    let mut response = if is_current(service, asked_headers, &etag) {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        respond::json(StatusCode::OK, respond::JSON, json)
    };
    let headers = response.headers_mut();
    let text = |value: &str| HeaderValue::from_str(value).ok();
    headers.extend(text(&etag).map(|etag| (ETAG, etag)));
    headers.extend(text(&httpdate::fmt_http_date(service.card().made_at())).map(|at| (LAST_MODIFIED, at)));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
    headers.insert(VARY, HeaderValue::from_static("A2A-Version"));
    if response.status() == StatusCode::NOT_MODIFIED {
        response.headers_mut().remove(CONTENT_TYPE);
    }
    response
}

/// The extended card with the addresses of the public card.
pub(super) fn with_addresses(
    service: &Service,
    card: AgentCard,
    peer: Option<IpAddr>,
    parts: &Parts,
) -> AgentCard {
    let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    let nested_at = below_path(&parts.extensions, &parts.uri);
    service.card().with_addresses(card, peer, host, nested_at, &parts.headers)
}

/// The path below which an application nested this router.
pub(super) fn nested_at(request: &Request<Body>) -> &str {
    below_path(request.extensions(), request.uri())
}

fn below_path<'a>(extensions: &'a Extensions, uri: &Uri) -> &'a str {
    let whole = extensions.get::<OriginalUri>().map(|whole| whole.0.path());
    whole.and_then(|whole| whole.strip_suffix(uri.path())).unwrap_or_default()
}

fn document(place: WellKnown, served: Generations, says_v1: bool) -> Document {
    match place {
        WellKnown::AgentCard if served.has(Generation::V1) && says_v1 => Document::V1,
        WellKnown::AgentCard if served.has(Generation::V1) => Document::Superset,
        WellKnown::AgentCard if served.has(Generation::V0_3) => Document::V0_3,
        WellKnown::AgentCard | WellKnown::Agent => Document::Legacy,
    }
}

/// Whether the request names version 1.x. Later 1.x versions count, too: unlike for operations, their clients can read the
/// 1.0 form of a card.
fn says_v1(request: &Request<Body>) -> bool {
    let said = incoming::header(request.headers(), &incoming::VERSION);
    let query = request.uri().query().and_then(version_in);
    match AskedVersion::read(said.as_deref(), query.as_deref()) {
        AskedVersion::Known(generation) => generation == Generation::V1,
        AskedVersion::Unknown(version) => version.starts_with("1."),
        AskedVersion::Unsaid => false,
    }
}

/// Whether the client already has this document: by `If-None-Match` if it is sent, else by date.
fn is_current(service: &Service, headers: &HeaderMap, etag: &str) -> bool {
    let mut tags = headers.get_all(IF_NONE_MATCH).iter().peekable();
    if tags.peek().is_none() {
        let since = incoming::header(headers, &IF_MODIFIED_SINCE);
        let since = since.and_then(|since| httpdate::parse_http_date(&since).ok());
        return since.is_some_and(|since| since >= service.card().made_at());
    }
    let said = tags.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    said.map(|tag| tag.trim()).any(|tag| tag == "*" || tag.trim_start_matches("W/") == etag)
}
