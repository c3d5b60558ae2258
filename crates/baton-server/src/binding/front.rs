//! Chooses the binding for a request by its path and method, and authenticates the caller.

use std::future::poll_fn;
use std::net::IpAddr;
use std::task::Poll;

use axum::body::Body;
use axum::extract::OriginalUri;
use baton_protocol::wire::http_json::METRICS_PATH;
use baton_protocol::{Error, ErrorKind};
#[cfg(feature = "grpc")]
use http::Version;
use http::header::ALLOW;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};

use super::agent_card::{self, WellKnown};
#[cfg(feature = "grpc")]
use super::grpc;
use super::health::{self, Probe};
use super::http_json::{self, Routed};
use super::jsonrpc::{self, Endpoint};
use super::request_log::{RequestLog, Route};
use super::{incoming, index, metrics, published_keys, respond};
use crate::auth::{AuthRequest, Challenge, Principal, TlsPeer};
use crate::engine::caller::Caller;
use crate::net::TooManyRequests;
use crate::service::Service;
use crate::site::{Found, PUBLIC_KEYS_PATH, Site};
use crate::telemetry::labels::{Binding, Limited};

/// Seconds after which a caller with too many requests under way may try again.
const RETRY_AFTER: u32 = 1;

pub(super) async fn handle(
    site: &Site,
    request: Request<Body>,
    peer: Option<IpAddr>,
    log: &mut RequestLog<'_>,
) -> Response<Body> {
    // A cheap clone that shares its bytes: the path is still needed after the request has been moved.
    let uri = request.uri().clone();
    let path = uri.path();
    if let Some(response) = about_server(site, path, request.method(), request.headers(), peer, log).await {
        return response;
    }
    let Found { service, rest } = site.find(path);
    if let Some(service) = service {
        log.set_agent(service);
    }
    #[cfg(feature = "grpc")]
    if grpc::is_call(&request) {
        // Boxed: only calls of gRPC need its memory.
        return Box::pin(grpc_call(site, service, rest, request, peer, log)).await;
    }
    // A slash at the end is ignored. A redirect would not do: clients drop the body of a redirected POST.
    match (rest.trim_end_matches('/'), service) {
        (endpoint @ ("" | "/subscribe"), _) if request.method() == Method::POST => {
            let endpoint = if endpoint.is_empty() { Endpoint::Root } else { Endpoint::Subscribe };
            log.set_route(Binding::JsonRpc, Route::Fixed(endpoint.path()));
            let (parts, body) = request.into_parts();
            match caller(site, service, None, &parts, peer, log).await {
                Ok(principal) => {
                    jsonrpc::handle(site, service, &principal, endpoint, &parts, body, log).await
                }
                Err(challenge) => {
                    incoming::discard(&parts, body).await;
                    jsonrpc::refuse(challenge, log)
                }
            }
        }
        ("" | "/subscribe", _) => {
            log.set_route(Binding::JsonRpc, Route::Unknown);
            let (parts, body) = request.into_parts();
            if let Err(challenge) = caller(site, service, None, &parts, peer, log).await {
                return jsonrpc::refuse(challenge, log);
            }
            if rest != "/subscribe" && is_read(&parts.method) && index::is_at_root(site, service) {
                return index::handle(site, peer, &Request::from_parts(parts, body), log);
            }
            log.refused(ErrorKind::MethodNotAllowed);
            only_post(service)
        }
        ("/.well-known/agent-card.json", Some(service)) => {
            agent_card::handle(service, WellKnown::AgentCard, peer, &request, log)
        }
        ("/.well-known/agent.json", Some(service)) => {
            agent_card::handle(service, WellKnown::Agent, peer, &request, log)
        }
        (_, Some(service)) => {
            let (parts, body) = request.into_parts();
            let routed = Routed::of(&parts, rest);
            match caller(site, Some(service), routed.tenant(), &parts, peer, log).await {
                Ok(principal) => {
                    http_json::handle(site, service, &principal, routed, &parts, body, log).await
                }
                Err(challenge) => {
                    incoming::discard(&parts, body).await;
                    routed.refuse(&parts, &challenge, log)
                }
            }
        }
        (_, None) => {
            let (parts, _) = request.into_parts();
            match caller(site, None, None, &parts, peer, log).await {
                Ok(_) => {
                    log.refused(ErrorKind::MethodNotFound);
                    index::not_found(site)
                }
                Err(challenge) => Routed::of(&parts, rest).refuse(&parts, &challenge, log),
            }
        }
    }
}

/// A call of gRPC, also where it cannot be answered: off, or not over HTTP/2. Health alone is for everybody.
#[cfg(feature = "grpc")]
async fn grpc_call(
    site: &Site,
    service: Option<&Service>,
    rest: &str,
    request: Request<Body>,
    peer: Option<IpAddr>,
    log: &mut RequestLog<'_>,
) -> Response<Body> {
    let deadline = grpc::Deadline::of(request.headers());
    let services = site.grpc_services();
    let is_served = site.serves_grpc() && request.version() == Version::HTTP_2;
    let (parts, body) = request.into_parts();
    if is_served
        && services.health
        && let Some(probe) = grpc::health::Probe::at(site.below_base(parts.uri.path()))
    {
        log.exclude();
        let caller = Caller::at(site.client(peer, &parts.headers));
        return grpc::health::handle(site, probe, &caller, &parts, body).await;
    }
    let called = grpc::Called::of(rest);
    let reflection = services.reflection.as_ref().filter(|_| is_served).zip(grpc::reflection::route(rest));
    log.set_route(
        Binding::Grpc,
        match reflection {
            Some((_, route)) => Route::Fixed(route),
            None if is_served => called.route(),
            None => Route::Unknown,
        },
    );
    let principal = match deadline.authenticate(caller(site, service, None, &parts, peer, log)).await {
        Ok(principal) => principal,
        Err(challenge) => {
            incoming::discard(&parts, body).await;
            return match parts.version {
                Version::HTTP_2 => grpc::refuse(called, challenge, log),
                _ => Routed::of(&parts, rest).refuse(&parts, &challenge, log),
            };
        }
    };
    if !is_served {
        log.refused(ErrorKind::MethodNotFound);
        incoming::discard(&parts, body).await;
        return grpc::not_served(parts.version);
    }
    if let Some((reflection, _)) = reflection {
        let caller = Caller::of(&principal, log.client());
        return grpc::reflection::handle(site, reflection, &caller, deadline, &parts, body);
    }
    grpc::handle(site, service, &principal, called, deadline, &parts, body, log).await
}

/// What concerns the whole server, whatever agents it has.
async fn about_server(
    site: &Site,
    path: &str,
    method: &Method,
    headers: &HeaderMap,
    peer: Option<IpAddr>,
    log: &mut RequestLog<'_>,
) -> Option<Response<Body>> {
    if let Some(probe) = Probe::at(site.below_base(path)) {
        log.exclude();
        return Some(health::handle(site.engine(), probe, method).await);
    }
    if path == METRICS_PATH {
        let access = site.engine().telemetry().metrics_access();
        if metrics::allows(access, method, peer, headers) {
            log.exclude();
            return Some(metrics::answer(site.engine(), headers).await);
        }
    }
    if site.has_public_keys() && site.below_base(path).trim_end_matches('/') == PUBLIC_KEYS_PATH {
        return Some(published_keys::handle(site, method, log).await);
    }
    None
}

/// Authenticates the caller, once for each request: before the body is read, and before an answer could tell which paths
/// exist.
async fn caller(
    site: &Site,
    found: Option<&Service>,
    tenant: Option<&str>,
    parts: &Parts,
    peer: Option<IpAddr>,
    log: &mut RequestLog<'_>,
) -> Result<Principal, Challenge> {
    // In a nested router `parts.uri` has lost its prefix.
    let uri = parts.extensions.get::<OriginalUri>().map_or(&parts.uri, |original| &original.0);
    let own = found.and_then(Service::tenant).map(|tenant| &**tenant);
    let client = site.client(peer, &parts.headers);
    log.set_client(client);
    let request = AuthRequest {
        agents: site.candidates(found, tenant),
        tenant: tenant.or(own),
        method: &parts.method,
        uri,
        headers: &parts.headers,
        peer,
        client,
        tls_peer: parts.extensions.get::<TlsPeer>(),
        site: Some(site),
    };
    let mut verifying = site.authenticator().authenticate(&request);
    let verified = match poll_fn(|cx| Poll::Ready(verifying.as_mut().poll(cx))).await {
        Poll::Ready(verified) => verified,
        // Most credentials are verified at once. Where another server has to be asked, it may take seconds.
        Poll::Pending => {
            count(site, &Caller::at(client), log)?;
            verifying.await
        }
    };
    let principal = verified.inspect_err(|challenge| {
        if challenge.error().kind() == ErrorKind::QuotaExceeded {
            site.engine().telemetry().limited(Limited::Authentication);
        }
    })?;
    log.set_caller(&principal);
    let caller = Caller::of(&principal, client);
    count(site, &caller, log)?;
    if let (Some(asker), Some(customer)) = (log.asker(), caller.customer()) {
        asker.set_customer(customer);
    }
    Ok(principal)
}

/// Counts the request for its caller until it is answered, or refuses it.
fn count(site: &Site, caller: &Caller, log: &RequestLog<'_>) -> Result<(), Error> {
    let (Some(asker), Some(customer)) = (log.asker(), caller.customer()) else { return Ok(()) };
    asker.count(&customer).map_err(|TooManyRequests { most, .. }| {
        site.engine().telemetry().limited(Limited::Requests);
        let message =
            format!("This caller has {most} requests under way, and may have no more; wait for some of them");
        Error::new(ErrorKind::QuotaExceeded, message).with_retry_after(RETRY_AFTER)
    })
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
