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
use super::{http_json, index, metrics, respond};
use crate::service::Service;
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
        ("", _) if is_read(request.method()) && index::is_at_root(site, service) => {
            index::handle(site, peer, &request, seen)
        }
        ("" | "/subscribe", _) => {
            seen.came_by(Binding::JsonRpc, Route::Unknown);
            seen.refused(ErrorKind::MethodNotAllowed);
            only_post(service)
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
            index::not_here(site)
        }
    }
}

fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

fn only_post(service: Option<&Service>) -> Response<Body> {
    let (prefix, card) = (service.map_or("", Service::prefix), WellKnown::AgentCard.path());
    let text = format!("This is an A2A agent: POST JSON-RPC here; its card is at {prefix}{card}\n");
    let mut response = respond::plain(StatusCode::METHOD_NOT_ALLOWED, text);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
    response
}
