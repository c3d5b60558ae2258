//! Sockets on one side, the service on the other. Bindings hold no rules: they find the dialect of a request,
//! decode a call, and spell what comes back.

mod agent_card;
mod event_stream;
mod front;
mod health;
mod http_json;
mod incoming;
mod jsonrpc;
mod respond;

use std::sync::Arc;

use axum::Router;

use crate::site::Site;

/// One door: paths with colons, tenants and slashes at the end are ours to read.
pub(crate) fn router(site: Arc<Site>) -> Router {
    Router::new().fallback(front::handle).with_state(site)
}
