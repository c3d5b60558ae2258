//! HTTP+JSON: 1.0 at the root and under a tenant, 0.3 under `/v1`.

use axum::body::Body;
use baton_protocol::generation::{self, AskedVersion};
use baton_protocol::wire::dialect::Dialect;
use baton_protocol::wire::http_json::{self, Route, WrongMethod};
use baton_protocol::{Error, ErrorKind, Generation};
use http::header::{ACCEPT, ALLOW, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::answer::Envelope;
use super::exchange::Found;
use super::request_log::{self, RequestLog};
use super::{incoming, respond};
use crate::auth::{Challenge, Principal};
use crate::service::Service;
use crate::site::Site;
use crate::telemetry::labels::Binding;

/// The result of routing a request, made before the caller is authenticated.
pub(super) struct Routed {
    asked_version: AskedVersion,
    route: Result<Option<Route>, WrongMethod>,
    /// The generation in which errors are encoded if there is no route. 0.3 clients append `/v1` to the agent's URL.
    nearest: Generation,
}

impl Routed {
    /// `path` is the request's path without the agent's prefix.
    pub(super) fn of(parts: &Parts, path: &str) -> Self {
        let asked_version = incoming::asked_version(parts);
        // `mount.rs` reserves the name `v1`, so it is never a tenant.
        let route = http_json::route(parts.method.as_str(), path, &asked_version, |_| false);
        Routed { asked_version, route, nearest: http_json::generation_at(path) }
    }

    /// The tenant that the path names.
    pub(super) fn tenant(&self) -> Option<&str> {
        self.route.as_ref().ok()?.as_ref()?.tenant.as_deref()
    }

    /// The answer to a caller who is not authenticated. It is the same whether or not the path exists.
    pub(super) fn refuse(
        &self,
        parts: &Parts,
        challenge: &Challenge,
        log: &mut RequestLog<'_>,
    ) -> Response<Body> {
        failed(self.nearest, &parts.headers, challenge, log)
    }
}

pub(super) async fn handle(
    site: &Site,
    service: &Service,
    principal: &Principal,
    routed: Routed,
    parts: &Parts,
    body: Body,
    log: &mut RequestLog<'_>,
) -> Response<Body> {
    let Routed { asked_version, route, nearest } = routed;
    let route = match route {
        Ok(Some(route)) => route,
        Ok(None) => {
            let message =
                "There is nothing at this path; the agent's card is at /.well-known/agent-card.json";
            let error = Error::new(ErrorKind::MethodNotFound, message);
            return failed(nearest, &parts.headers, &error.into(), log);
        }
        Err(wrong) => {
            let message = format!("This path takes {}", wrong.allow);
            let error = Error::new(ErrorKind::MethodNotAllowed, message);
            let mut response = failed(nearest, &parts.headers, &error.into(), log);
            response.headers_mut().insert(ALLOW, HeaderValue::from_static(wrong.allow));
            return response;
        }
    };
    log.set_route(Binding::HttpJson, request_log::Route::Operation(before(&route), route.operation));
    log.set_operation(route.operation);
    log.set_generation(route.generation);
    match answer(site, service, principal, parts, &asked_version, &route, body, log).await {
        Ok(response) => response,
        Err(challenge) => failed(route.generation, &parts.headers, &challenge, log),
    }
}

/// The part of the route before the operation's own path.
fn before(route: &Route) -> &'static str {
    match (route.generation, &route.tenant) {
        (_, Some(_)) => "/{tenant}",
        (Generation::V0_3, None) => "/v1",
        _ => "",
    }
}

#[allow(clippy::too_many_arguments, reason = "each is a part of one request")]
async fn answer(
    site: &Site,
    service: &Service,
    principal: &Principal,
    parts: &Parts,
    asked_version: &AskedVersion,
    route: &Route,
    body: Body,
    log: &mut RequestLog<'_>,
) -> Result<Response<Body>, Challenge> {
    generation::check_path(asked_version, route.generation, site.generations(Some(service)))?;
    let body = incoming::read_body(site.body_limit(Some(service)), &parts.headers, body).await?;
    if !body.is_empty() {
        incoming::check_content_type(&parts.headers)?;
    }
    let text = std::str::from_utf8(&body).map_err(|error| {
        Error::new(ErrorKind::ParseError, format!("Invalid JSON payload: not UTF-8 ({error})"))
    })?;
    let text = (!text.trim().is_empty()).then_some(text);
    let decoded = (http_json::call_of(route, parts.uri.query(), text)?, body.len());
    // Freed now: no limit counts these bytes while the agent works or the answer waits for room.
    drop(body);
    let dialect = Dialect::in_http_json(route.generation);
    let found = Found::find(site, Some(service), principal, dialect, decoded, log)?;
    let checked = found.check(site, principal, log)?;
    let exchange = found.allow(checked, principal, parts, log);
    let media_type = media_type(route.generation, &parts.headers);
    exchange.answer(Envelope::Bare, media_type, parts, log).await
}

/// The response has the request's media type; if the request has no body, the one it accepts. In 1.0 the default is
/// `application/a2a+json`.
fn media_type(generation: Generation, headers: &HeaderMap) -> HeaderValue {
    let says = |name: &http::HeaderName, kind: &str| {
        incoming::header(headers, name).is_some_and(|value| value.to_ascii_lowercase().contains(kind))
    };
    if generation != Generation::V1 || says(&CONTENT_TYPE, "application/json") {
        return respond::JSON;
    }
    let plain_only = says(&ACCEPT, "application/json") && !says(&ACCEPT, "application/a2a+json");
    if plain_only && !says(&CONTENT_TYPE, "application/a2a+json") { respond::JSON } else { respond::A2A_JSON }
}

fn failed(
    generation: Generation,
    headers: &HeaderMap,
    challenge: &Challenge,
    log: &mut RequestLog<'_>,
) -> Response<Body> {
    let mut json = Vec::with_capacity(512);
    http_json::write_error(&mut json, generation, challenge.error());
    let status = StatusCode::from_u16(http_json::http_status(generation, challenge.error().kind()));
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    respond::refused(respond::json(status, media_type(generation, headers), json), challenge, log)
}
