//! The front door: which binding a request is for.

use std::net::SocketAddr;

use axum::body::Body;
use axum::extract::{ConnectInfo, State};
use http::header::ALLOW;
use http::{HeaderValue, Method, Request, Response, StatusCode};

use super::agent_card::{self, WellKnown};
use super::health::{self, Probe};
use super::jsonrpc::{self, Door};
use super::{http_json, respond};
use crate::service::Service;

pub(super) async fn handle(State(service): State<Service>, request: Request<Body>) -> Response<Body> {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip());
    // Below the path of the public URL everything is there once more: not every proxy strips what it matched.
    let whole = request.uri().path();
    let inner = below(service.card().base_path(), whole).to_owned();
    // A slash at the end means the same place: a redirect would lose the body of a POST.
    let path = inner.trim_end_matches('/');
    match path {
        "" | "/subscribe" => {
            let door = if path.is_empty() { Door::Root } else { Door::Subscribe };
            if request.method() == Method::POST {
                jsonrpc::handle(&service, door, request).await
            } else {
                only_post()
            }
        }
        "/healthz" => health::handle(&service, Probe::Alive, request.method()).await,
        "/readyz" => health::handle(&service, Probe::Ready, request.method()).await,
        "/.well-known/agent-card.json" => agent_card::handle(&service, WellKnown::AgentCard, peer, &request),
        "/.well-known/agent.json" => agent_card::handle(&service, WellKnown::Agent, peer, &request),
        _ => http_json::handle(&service, &inner, request).await,
    }
}

/// What follows the base path, or the path as it is.
fn below<'a>(base: &str, path: &'a str) -> &'a str {
    match path.strip_prefix(base) {
        Some("") => "/",
        Some(rest) if rest.starts_with('/') => rest,
        _ => path,
    }
}

fn only_post() -> Response<Body> {
    let text = "This is an A2A agent: POST JSON-RPC here; its card is at /.well-known/agent-card.json\n";
    let mut response = respond::plain(StatusCode::METHOD_NOT_ALLOWED, text);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
    response
}
