//! The front door: which binding a request is for.

use std::net::IpAddr;

use axum::body::Body;
use baton_protocol::ErrorKind;
use http::header::ALLOW;
use http::{HeaderValue, Method, Request, Response, StatusCode};

use super::agent_card::{self, WellKnown};
use super::health::{self, Probe};
use super::jsonrpc::{self, Door};
use super::observed::{Observed, Route};
use super::{http_json, metrics, respond};
use crate::site::{Found, Site};
use crate::telemetry::labels::Binding;

pub(super) async fn handle(
    site: &Site,
    request: Request<Body>,
    peer: Option<IpAddr>,
    seen: &mut Observed<'_>,
) -> Response<Body> {
    // The request goes on to its binding, the path is still needed: a clone shares its text.
    let uri = request.uri().clone();
    let path = uri.path();
    // Of the whole server, whatever agents it has.
    if let Some(probe) = Probe::at(site.below_base(path)) {
        seen.pass_over();
        return health::handle(site.engine(), probe, request.method()).await;
    }
    let metrics_access = site.engine().telemetry().metrics_access();
    if path == metrics::PATH && metrics::allows(metrics_access, request.method(), peer, request.headers()) {
        seen.pass_over();
        return metrics::answer(site.engine(), request.headers()).await;
    }
    let Found { service, rest } = site.find(path);
    if let Some(service) = service {
        seen.agent(service);
    }
    // A slash at the end means the same place: a redirect would lose the body of a POST.
    match (rest.trim_end_matches('/'), service) {
        (door @ ("" | "/subscribe"), _) if request.method() == Method::POST => {
            let door = if door.is_empty() { Door::Root } else { Door::Subscribe };
            jsonrpc::handle(site, service, door, request, seen).await
        }
        ("" | "/subscribe", _) => {
            seen.came_by(Binding::JsonRpc, Route::Unknown);
            seen.refused(ErrorKind::MethodNotAllowed);
            only_post()
        }
        ("/.well-known/agent-card.json", Some(service)) => {
            agent_card::handle(service, WellKnown::AgentCard, peer, &request, seen)
        }
        ("/.well-known/agent.json", Some(service)) => {
            agent_card::handle(service, WellKnown::Agent, peer, &request, seen)
        }
        (_, Some(service)) => http_json::handle(site, service, rest, request, seen).await,
        (_, None) => {
            seen.refused(ErrorKind::MethodNotFound);
            elsewhere(site)
        }
    }
}

/// Nothing is at the root of a server whose agents are all below it; where they are is no secret, their cards are
/// public.
fn elsewhere(site: &Site) -> Response<Body> {
    let mut text = "No agent is here. The cards of those on this server:\n".to_owned();
    for service in site.agents() {
        text += &format!("  {}/.well-known/agent-card.json\n", service.prefix());
    }
    respond::plain(StatusCode::NOT_FOUND, text)
}

fn only_post() -> Response<Body> {
    let text = "This is an A2A agent: POST JSON-RPC here; its card is at /.well-known/agent-card.json\n";
    let mut response = respond::plain(StatusCode::METHOD_NOT_ALLOWED, text);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
    response
}
