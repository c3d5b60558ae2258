//! Sockets on one side, the service on the other. Bindings hold no rules: they find the dialect of a request,
//! decode a call, and spell what comes back.

mod agent_card;
mod event_stream;
mod front;
mod http_json;
mod incoming;
mod jsonrpc;
pub(crate) mod metrics;
mod observed;
mod request_id;
mod respond;

use std::future::{Future, IntoFuture as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use axum::serve::ListenerExt as _;
use http::HeaderMap;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::engine::Engine;
use crate::site::Site;

/// How long connections may finish what is under way after the drain.
const LAST_PATIENCE: Duration = Duration::from_secs(5);

/// One door: paths with colons, tenants and slashes at the end are ours to read.
pub(crate) fn router(site: Arc<Site>) -> Router {
    Router::new().fallback(observed::handle).with_state(site)
}

/// The server's numbers alone, for a listener of their own.
pub(crate) fn metrics_router(engine: Engine) -> Router {
    let answer = |State(engine): State<Engine>, headers: HeaderMap| async move {
        metrics::answer(&engine, &headers).await
    };
    Router::new().route(metrics::PATH, get(answer)).with_state(engine)
}

/// Accepts connections until `drained`, then lets those under way finish.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    drained: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    // Small frames must leave at once: Nagle's algorithm costs a stream 40 ms per event.
    let listener = listener.tap_io(|connection| {
        if let Err(error) = connection.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY could not be set");
        }
    });
    let stopping = CancellationToken::new();
    let patience = {
        let stopping = stopping.clone();
        async move {
            stopping.cancelled().await;
            tokio::time::sleep(LAST_PATIENCE).await;
        }
    };
    let drained = async move {
        drained.await;
        stopping.cancel();
    };
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    tokio::select! {
        served = axum::serve(listener, service).with_graceful_shutdown(drained).into_future() => served,
        // A client that never finishes its request must not keep the process alive.
        () = patience => Ok(()),
    }
}
