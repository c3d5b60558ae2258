//! HTTP+JSON: 1.0 at the root and under a tenant, 0.3 under `/v1`.

use std::borrow::Cow;

use axum::body::Body;
use baton_protocol::generation::{self, AskedVersion, Generations};
use baton_protocol::wire::dialect::{AnswerFacts, Dialect};
use baton_protocol::wire::http_json::{self, Route};
use baton_protocol::wire::v1;
use baton_protocol::{Error, ErrorKind, Generation};
use http::header::{ACCEPT, ALLOW, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};

use super::event_stream::{self, Envelope};
use super::observed::{self, Observed};
use super::{incoming, respond, stored_answer};
use crate::auth::Principal;
use crate::service::{CallContext, Outcome, Service};
use crate::site::Site;
use crate::telemetry::labels::Binding;

/// `path` is the request's, below the agent's own.
pub(super) async fn handle(
    site: &Site,
    service: &Service,
    path: &str,
    request: Request<Body>,
    seen: &mut Observed<'_>,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    // Before the path is looked at: what is here is not told to everybody.
    let principal = match site.authenticator().authenticate(&parts.headers).await {
        Ok(principal) => principal,
        Err(error) => return failed(nearest(path), &parts.headers, &error, seen),
    };
    seen.caller(&principal);
    let asked = incoming::asked_version(&parts);
    // Tenants of a server are those its agents declare; none is called `v1` here.
    let route = http_json::route(parts.method.as_str(), path, &asked, |_| false);
    let route = match route {
        Ok(Some(route)) => route,
        Ok(None) => {
            let message = "Nothing is here; the agent's card is at /.well-known/agent-card.json";
            let error = Error::new(ErrorKind::MethodNotFound, message);
            return failed(nearest(path), &parts.headers, &error, seen);
        }
        Err(wrong) => {
            let message = format!("This path takes {}", wrong.allow);
            let error = Error::new(ErrorKind::MethodNotAllowed, message);
            let mut response = failed(nearest(path), &parts.headers, &error, seen);
            response.headers_mut().insert(ALLOW, HeaderValue::from_static(wrong.allow));
            return response;
        }
    };
    seen.came_by(Binding::HttpJson, observed::Route::Operation(before(&route), route.operation));
    seen.operation(route.operation);
    seen.generation(route.generation);
    match answer(site, service, &principal, &parts, &asked, &route, body, seen).await {
        Ok(response) => response,
        Err(error) => failed(route.generation, &parts.headers, &error, seen),
    }
}

/// What stands before the operation's own path.
fn before(route: &Route) -> &'static str {
    match (route.generation, &route.tenant) {
        (_, Some(_)) => "/{tenant}",
        (Generation::V0_3, None) => "/v1",
        _ => "",
    }
}

/// Whose client it is that found no route: 0.3 appends `/v1` to the URL it is given.
fn nearest(path: &str) -> Generation {
    if path == "/v1" || path.starts_with("/v1/") { Generation::V0_3 } else { Generation::V1 }
}

#[allow(clippy::too_many_arguments, reason = "what one request is made of")]
async fn answer(
    site: &Site,
    service: &Service,
    principal: &Principal,
    parts: &Parts,
    asked: &AskedVersion,
    route: &Route,
    body: Body,
    seen: &mut Observed<'_>,
) -> Result<Response<Body>, Error> {
    check_version(asked, route.generation, service.generations())?;
    let body = incoming::read_body(service.limits().max_body_bytes, &parts.headers, body).await?;
    if !body.is_empty() {
        incoming::check_content_type(&parts.headers)?;
    }
    let text = std::str::from_utf8(&body).map_err(|error| {
        Error::new(ErrorKind::ParseError, format!("Invalid JSON payload: not UTF-8 ({error})"))
    })?;
    let text = (!text.trim().is_empty()).then_some(text);
    let dialect = match route.generation {
        Generation::V1 => Dialect::V1,
        Generation::V0_3 | Generation::V0_1 => Dialect::V0_3Rest,
    };
    let decoded = http_json::call_of(route, parts.uri.query(), text)?;
    // Nobody counts what lies here while an agent works, or while the answer waits for room.
    drop(body);
    let service = site.of_tenant(Some(service), decoded.tenant.as_deref())?;
    seen.agent(service);
    // A tenant may be another agent, whose card names generations of its own.
    service.generations().check(route.generation)?;
    let extensions = incoming::extensions(&parts.headers);
    let context = CallContext {
        scope: service.scope(principal, decoded.tenant.as_deref())?,
        generation: route.generation,
        last_event_id: incoming::header(&parts.headers, &incoming::LAST_EVENT_ID).map(Cow::into_owned),
        extensions: extensions.clone(),
        trace: incoming::trace(&parts.headers),
        asker: seen.asker().cloned(),
    };
    let facts = AnswerFacts::default();
    match service.dispatch(&context, decoded.call).await? {
        Outcome::Reply { reply, replayed, share } => {
            let mut json = Vec::with_capacity(1024);
            dialect.write_reply(&mut json, &reply, &facts);
            if json == b"null" {
                // A deleted config has nothing to show; an object is what every reader can parse.
                json = b"{}".to_vec();
            }
            drop(reply);
            let json = respond::held(json, share, seen)?;
            let response = respond::json(StatusCode::OK, media_type(route.generation, &parts.headers), json);
            Ok(respond::answered(response, service, &extensions, replayed, seen))
        }
        Outcome::Stored { json, share, sent, replayed } => {
            let (before, after) = v1::around_stored_reply(sent);
            let mut out = Vec::with_capacity(16 + stored_answer::copied(&json));
            out.extend_from_slice(before);
            let body = stored_answer::body(out, json, after, share);
            let response = respond::json(StatusCode::OK, media_type(route.generation, &parts.headers), body);
            Ok(respond::answered(response, service, &extensions, replayed, seen))
        }
        Outcome::Stream { stream, replayed } => {
            let keep_alive = service.limits().keep_alive;
            let envelope = Envelope::Bare;
            let watched = seen.stream();
            let response =
                event_stream::response(stream, dialect, facts, envelope, keep_alive, parts.version, watched);
            Ok(respond::answered(response, service, &extensions, replayed, seen))
        }
    }
}

/// The path tells the generation; a version that is said must agree. Unlike in JSON-RPC nothing is lost by
/// taking a 1.0 path at its word, but the specification counts silence as 0.3.
fn check_version(asked: &AskedVersion, spoken: Generation, served: Generations) -> Result<(), Error> {
    match (asked, spoken) {
        (AskedVersion::Unknown(version), _) => Err(generation::unsupported(version, served)),
        (AskedVersion::Known(Generation::V1), Generation::V1)
        | (AskedVersion::Unsaid | AskedVersion::Known(Generation::V0_3), Generation::V0_3) => {
            served.check(spoken)
        }
        (_, spoken) => {
            served.check(spoken)?;
            let version = spoken.version();
            let message =
                format!("This path is of protocol {version}: send the header `A2A-Version: {version}`");
            Err(Error::new(ErrorKind::VersionNotSupported, message))
        }
    }
}

/// The request's kind of JSON goes out again; without a body, what it accepts, and in 1.0 the protocol's own.
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
    error: &Error,
    seen: &mut Observed<'_>,
) -> Response<Body> {
    let mut json = Vec::with_capacity(512);
    http_json::write_error(&mut json, generation, error);
    let status = StatusCode::from_u16(http_json::http_status(generation, error.kind()));
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    respond::error(respond::json(status, media_type(generation, headers), json), error, seen)
}
