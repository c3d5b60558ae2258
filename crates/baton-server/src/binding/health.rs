//! `/healthz` and `/readyz`: what supervisors and load balancers ask. For everybody, like the card, so they tell one
//! word and nothing about tasks or callers.

use axum::body::Body;
use http::header::{ALLOW, CACHE_CONTROL};
use http::{HeaderValue, Method, Response, StatusCode};

use super::respond;
use crate::engine::{Engine, Health};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Probe {
    /// Does the process serve? A restart would help if not.
    Alive,
    /// Should work be sent here? A restart need not help if not.
    Ready,
}

impl Probe {
    pub(super) fn at(path: &str) -> Option<Self> {
        match path.trim_end_matches('/') {
            "/healthz" => Some(Self::Alive),
            "/readyz" => Some(Self::Ready),
            _ => None,
        }
    }
}

pub(super) async fn handle(engine: &Engine, probe: Probe, method: &Method) -> Response<Body> {
    let mut response = if !matches!(*method, Method::GET | Method::HEAD) {
        let mut response = respond::plain(StatusCode::METHOD_NOT_ALLOWED, "This is asked with GET\n");
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
