//! `/healthz` and `/readyz`, for supervisors and load balancers. Everybody may call them, so the answer is one word that
//! reveals nothing about tasks or callers.

use axum::body::Body;
use baton_protocol::wire::http_json::{HEALTH_PATH, READY_PATH};
use http::header::{ALLOW, CACHE_CONTROL};
use http::{HeaderValue, Method, Response, StatusCode};

use super::respond;
use crate::engine::{Engine, Health};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Probe {
    /// Whether the process answers requests. If not, restart it.
    Alive,
    /// Whether work should be sent here. If not, a restart need not help.
    Ready,
}

impl Probe {
    pub(super) fn at(path: &str) -> Option<Self> {
        match path.trim_end_matches('/') {
            HEALTH_PATH => Some(Self::Alive),
            READY_PATH => Some(Self::Ready),
            _ => None,
        }
    }
}

pub(super) async fn handle(engine: &Engine, probe: Probe, method: &Method) -> Response<Body> {
    let mut response = if !matches!(*method, Method::GET | Method::HEAD) {
        let mut response = respond::plain(StatusCode::METHOD_NOT_ALLOWED, "Use GET\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        response
    } else if probe == Probe::Alive {
        respond::plain(StatusCode::OK, "ok")
    } else {
        let health = engine.health().await;
        let status = if health == Health::Ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        respond::plain(status, health.word())
    };
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
