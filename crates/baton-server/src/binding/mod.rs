//! Sockets on one side, the service on the other. Bindings hold no rules: they find the dialect of a request,
//! decode a call, and spell what comes back.

mod agent_card;
mod event_stream;
mod front;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod health;
mod http_json;
mod incoming;
mod index;
mod jsonrpc;
pub(crate) mod metrics;
mod observed;
mod request_id;
mod respond;
mod stored_answer;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, State};
use axum::routing::{any, get, post};
use http::{HeaderMap, Request, Response};
use tower::Service as _;

use crate::engine::Engine;
use crate::net::Asker;
use crate::site::Site;

/// What a listener serves.
#[derive(Debug, Clone)]
pub(crate) enum App {
    /// One door: paths with colons, tenants and slashes at the end are ours to read, so there is nothing to route.
    Site(Arc<Site>),
    Routes(Router),
}

impl App {
    pub(crate) async fn answer(
        &self,
        mut request: Request<Body>,
        peer: SocketAddr,
        asker: Asker,
    ) -> Response<Body> {
        match self {
            App::Site(site) => observed::answer(site, request, Some(peer.ip()), Some(asker)).await,
            App::Routes(router) => {
                // What `axum::serve` tells its handlers; ours look there, too.
                request.extensions_mut().insert(ConnectInfo(peer));
                request.extensions_mut().insert(asker);
                // A router is always ready, and cheap to clone.
                router.clone().call(request).await.unwrap_or_else(|never| match never {})
            }
        }
    }
}

/// The server's numbers alone, for a listener of their own.
pub(crate) fn metrics_router(engine: Engine) -> Router {
    let answer = |State(engine): State<Engine>, headers: HeaderMap| async move {
        metrics::answer(&engine, &headers).await
    };
    Router::new().route(metrics::PATH, get(answer)).with_state(engine)
}

/// The same for an application of somebody else's. Routes rather than a fallback: the application's own go before
/// them, its own `GET /` too, and they survive being nested twice.
pub(crate) fn routes(site: Arc<Site>) -> Router {
    let root = post(observed::handle).fallback(observed::handle);
    Router::new().route("/", root).route("/{*below}", any(observed::handle)).with_state(site)
}
