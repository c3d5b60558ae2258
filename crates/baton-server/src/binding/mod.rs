//! Sockets on one side, the service on the other. Bindings hold no rules: they find the dialect of a request,
//! decode a call, and spell what comes back.

mod agent_card;
mod event_stream;
mod front;
mod http_json;
mod incoming;
mod jsonrpc;
mod respond;

use std::future::{Future, IntoFuture as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::{any, post};
use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::site::Site;

/// How long connections may finish what is under way after the drain.
const LAST_PATIENCE: Duration = Duration::from_secs(5);

/// One door: paths with colons, tenants and slashes at the end are ours to read.
pub(crate) fn router(site: Arc<Site>) -> Router {
    Router::new().fallback(front::handle).with_state(site)
}

/// The same for an application of somebody else's. Routes rather than a fallback: the application's own go before
/// them, its own `GET /` too, and they survive being nested twice.
pub(crate) fn routes(site: Arc<Site>) -> Router {
    let root = post(front::handle).fallback(front::handle);
    Router::new().route("/", root).route("/{*below}", any(front::handle)).with_state(site)
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
