//! Between the sockets and the service. Bindings hold no rules: they determine the dialect of a request, decode the call,
//! and encode the outcome.

mod agent_card;
mod answer;
mod event_stream;
mod exchange;
mod front;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
#[cfg(feature = "grpc")]
pub(crate) mod grpc;
mod health;
mod http_json;
mod incoming;
mod index;
mod jsonrpc;
pub(crate) mod metrics;
mod published_keys;
mod request_id;
mod request_log;
mod respond;
mod stored_answer;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, State};
use axum::routing::{any, get, post};
use baton_protocol::wire::http_json::METRICS_PATH;
use http::{HeaderMap, Request, Response};
use tower::Service as _;

pub(crate) use request_id::RequestIds;

use crate::auth::TlsPeer;
use crate::engine::Engine;
use crate::net::{Application, Asker, ClientCertificates};
use crate::site::Site;

/// What a listener serves.
#[derive(Debug, Clone)]
pub(crate) enum App {
    /// All requests go to [`front`], which reads paths itself: a router's patterns cannot express paths with colons,
    /// optional tenants and optional slashes at the end.
    Site(Arc<Site>),
    Routes(Router),
}

impl Application for App {
    async fn answer(&self, mut request: Request<Body>, peer: SocketAddr, asker: Asker) -> Response<Body> {
        if let Some(shown) = request.extensions().get::<ClientCertificates>() {
            let peer = TlsPeer::new(shown.chain().to_vec());
            request.extensions_mut().insert(peer);
        }
        match self {
            App::Site(site) => request_log::answer(site, request, Some(peer.ip()), Some(asker)).await,
            App::Routes(router) => {
                // `axum::serve` provides this as well; the application's handlers and ours read it.
                request.extensions_mut().insert(ConnectInfo(peer));
                request.extensions_mut().insert(asker);
                // A router is always ready, so `poll_ready` is not needed, and it is cheap to clone.
                router.clone().call(request).await.unwrap_or_else(|never| match never {})
            }
        }
    }
}

/// `/metrics` only, for a separate listener.
pub(crate) fn metrics_router(engine: Engine) -> Router {
    let answer = |State(engine): State<Engine>, headers: HeaderMap| async move {
        metrics::answer(&engine, &headers).await
    };
    Router::new().route(METRICS_PATH, get(answer)).with_state(engine)
}

/// The whole site as a router, for an application that mounts it. It has routes and no fallback, so that the application's
/// own routes, `GET /` included, take precedence, and so that it still works when it is nested twice.
pub(crate) fn routes(site: Arc<Site>) -> Router {
    let root = post(request_log::handle).fallback(request_log::handle);
    Router::new().route("/", root).route("/{*below}", any(request_log::handle)).with_state(site)
}
