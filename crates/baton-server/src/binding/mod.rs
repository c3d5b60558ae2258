//! Sockets on one side, the service on the other. Bindings hold no rules.

mod agent_card;
mod event_stream;
mod jsonrpc;

use std::future::{Future, IntoFuture as _};
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::service::Service;

/// How long connections may finish what is under way after the drain.
const LAST_PATIENCE: Duration = Duration::from_secs(5);

/// The mount table.
pub(crate) fn router(service: Service) -> Router {
    Router::new()
        .route("/", post(jsonrpc::handle))
        .route("/.well-known/agent-card.json", get(agent_card::get).options(agent_card::options))
        .with_state(service)
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
    tokio::select! {
        served = axum::serve(listener, router).with_graceful_shutdown(drained).into_future() => served,
        // A client that never finishes its request must not keep the process alive.
        () = patience => Ok(()),
    }
}
