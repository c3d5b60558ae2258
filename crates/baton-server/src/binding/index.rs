//! `GET /` on a server with several agents: a list of the agents and their cards. Where callers are authenticated, it
//! is not public: only the cards are.

use std::net::IpAddr;

use axum::body::Body;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HOST, VARY};
use http::{HeaderValue, Request, Response, StatusCode};
use serde_json::json;

use super::agent_card::{WellKnown, nested_at};
use super::request_log::{RequestLog, Route};
use super::{incoming, respond};
use crate::service::Service;
use crate::site::Site;
use crate::telemetry::labels::Binding;

/// Whether the root shows the list. A single agent at the root has none.
pub(super) fn is_at_root(site: &Site, found: Option<&Service>) -> bool {
    match found {
        None => true,
        Some(service) => service.prefix().is_empty() && site.agents().len() > 1,
    }
}

/// The list, as text or, if the client accepts it, as JSON.
pub(super) fn handle(
    site: &Site,
    peer: Option<IpAddr>,
    request: &Request<Body>,
    log: &mut RequestLog<'_>,
) -> Response<Body> {
    log.set_route(Binding::Card, Route::Fixed("/"));
    let wants_json = incoming::header(request.headers(), &ACCEPT)
        .is_some_and(|accept| accept.contains("application/json"));
    let mut response = if wants_json {
        let agents: Vec<_> = entries(site, peer, request)
            .into_iter()
            .map(|entry| json!({"name": entry.name, "description": entry.description, "card": entry.card}))
            .collect();
        let mut response = Response::new(Body::from(format!("{}\n", json!({"agents": agents}))));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    } else {
        let mut lines = String::new();
        for entry in entries(site, peer, request) {
            lines += &format!("  {}: {}\n", entry.name, entry.card);
        }
        respond::plain(StatusCode::OK, format!("The agents on this server, by their cards:\n{lines}"))
    };
    let headers = response.headers_mut();
    // Cards and addresses may change while the server serves.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    response
}

/// The answer for a path that belongs to no agent.
pub(super) fn not_found(site: &Site) -> Response<Body> {
    let mut text = "No agent is here. The cards of those on this server:\n".to_owned();
    for service in site.agents() {
        text += &format!("  {}{}\n", service.prefix(), WellKnown::AgentCard.path());
    }
    respond::plain(StatusCode::NOT_FOUND, text)
}

struct Entry {
    name: String,
    description: String,
    card: String,
}

/// Sorted by address.
fn entries(site: &Site, peer: Option<IpAddr>, request: &Request<Body>) -> Vec<Entry> {
    let headers = request.headers();
    let host = request.uri().authority().map(|authority| authority.as_str());
    let host = host.or_else(|| headers.get(HOST)?.to_str().ok());
    let mut entries: Vec<Entry> = Vec::new();
    for service in site.agents() {
        let base = service.card().base(peer, host, nested_at(request), headers);
        let declared = service.card().declared();
        entries.push(Entry {
            name: declared.name.clone(),
            description: declared.description.clone(),
            card: format!("{base}{}{}", service.prefix(), WellKnown::AgentCard.path()),
        });
    }
    entries.sort_by(|one, two| one.card.cmp(&two.card));
    entries
}
