//! Builds responses for all bindings.

use axum::body::Body;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};

use super::request_log::RequestLog;
use crate::auth::Challenge;

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(super) const A2A_JSON: HeaderValue = HeaderValue::from_static("application/a2a+json");

pub(super) fn json(status: StatusCode, content_type: HeaderValue, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

pub(super) fn plain(status: StatusCode, text: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// Adds `Retry-After` and the headers of a challenge to the response of an error, and records the error for the log.
pub(super) fn refused(
    mut response: Response<Body>,
    challenge: &Challenge,
    log: &mut RequestLog<'_>,
) -> Response<Body> {
    let headers = response.headers_mut();
    if let Some(seconds) = challenge.error().retry_after_seconds() {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    for (name, value) in challenge.headers() {
        headers.append(name, value.clone());
    }
    log.failed(challenge.error());
    response
}
