//! Responses, and what all bindings put on them.

use axum::body::Body;
use baton_protocol::Error;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Response, StatusCode};

use super::observed::Observed;
use crate::engine::no_room;
use crate::net::{NoRoom, Share};
use crate::service::Service;

/// Tells a client that its message had been taken before.
const REPLAY_HEADER: HeaderName = HeaderName::from_static("a2a-idempotent-replay");
const EXTENSIONS_HEADER: HeaderName = HeaderName::from_static("a2a-extensions");

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(super) const A2A_JSON: HeaderValue = HeaderValue::from_static("application/a2a+json");

pub(super) fn json(status: StatusCode, content_type: HeaderValue, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// The answer with its room. One that was made without, or with too little, has to get it at once: it must not lie here and
/// wait.
pub(super) fn held(json: Vec<u8>, share: Option<Share>, seen: &Observed<'_>) -> Result<Bytes, Error> {
    let bytes = Bytes::from(json);
    let Some(asker) = seen.asker() else { return Ok(bytes) };
    let share = match share {
        Some(share) => asker.fit(share, bytes.len()),
        None => asker.try_enter(bytes.len()).ok_or(NoRoom),
    };
    Ok(share.map_err(no_room)?.holding(bytes))
}

pub(super) fn plain(status: StatusCode, text: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// An error that goes out: when to come back is told, and what only the log may see is kept for it.
pub(super) fn error(mut response: Response<Body>, error: &Error, seen: &mut Observed<'_>) -> Response<Body> {
    seen.failed(error);
    if let Some(seconds) = error.retry_after_seconds() {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// An answer that went well.
pub(super) fn answered(
    mut response: Response<Body>,
    service: &Service,
    asked_extensions: &[String],
    replayed: bool,
    seen: &Observed<'_>,
) -> Response<Body> {
    if replayed {
        seen.replayed();
        response.headers_mut().insert(REPLAY_HEADER, HeaderValue::from_static("true"));
    }
    let active = service.active_extensions(asked_extensions);
    if !active.is_empty()
        && let Ok(value) = HeaderValue::from_str(&active)
    {
        response.headers_mut().insert(EXTENSIONS_HEADER, value);
    }
    response
}
