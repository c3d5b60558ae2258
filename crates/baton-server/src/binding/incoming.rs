//! What every binding reads of a request: headers, media type, body.

use std::borrow::Cow;

use axum::body::{Body, to_bytes};
use baton_protocol::domain::TraceContext;
use baton_protocol::generation::{AskedVersion, VERSION_HEADER};
use baton_protocol::wire::http_json::version_in;
use baton_protocol::{Error, ErrorKind};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderName};

pub(super) const VERSION: HeaderName = HeaderName::from_static(VERSION_HEADER);
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const EXTENSIONS: [HeaderName; 2] =
    [HeaderName::from_static("a2a-extensions"), HeaderName::from_static("x-a2a-extensions")];
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACE_STATE: HeaderName = HeaderName::from_static("tracestate");

/// A header that is not text is not missing: it must fail the check it is for, so it is read with marks where
/// its bytes make no sense.
pub(super) fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<Cow<'a, str>> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()))
}

pub(super) fn asked_version(parts: &Parts) -> AskedVersion {
    let said = header(&parts.headers, &VERSION);
    let query = parts.uri.query().and_then(version_in);
    AskedVersion::read(said.as_deref(), query.as_deref())
}

/// URIs of `A2A-Extensions`, and of the older spelling.
pub(super) fn extensions(headers: &HeaderMap) -> Vec<String> {
    let named = EXTENSIONS.into_iter().flat_map(|name| headers.get_all(name));
    let values = named.filter_map(|value| value.to_str().ok());
    let uris = values.flat_map(|value| value.split(',')).map(str::trim).filter(|uri| !uri.is_empty());
    let mut all: Vec<String> = Vec::new();
    for uri in uris {
        if !all.iter().any(|known| known == uri) {
            all.push(uri.to_owned());
        }
    }
    all
}

/// The caller's trace, when it sends one.
pub(super) fn trace(headers: &HeaderMap) -> Option<TraceContext> {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    TraceContext::parse(text(&TRACE_PARENT)?, text(&TRACE_STATE))
}

/// Does an `Accept` header name the type? Some clients send two of them.
pub(super) fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.into_iter().any(|value| value.to_ascii_lowercase().contains(media_type))
}

/// JSON by any of its names. A missing type is let through: the body tells.
pub(super) fn check_content_type(headers: &HeaderMap) -> Result<(), Error> {
    let Some(content_type) = header(headers, &CONTENT_TYPE) else { return Ok(()) };
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let essence = essence.to_ascii_lowercase();
    if essence.starts_with("application/") && essence.ends_with("+json") {
        return Ok(());
    }
    let essence: String = essence.chars().take(64).collect();
    let message = format!("Content-Type is {essence:?}; send the request as application/json");
    Err(Error::new(ErrorKind::MediaTypeNotSupported, message))
}

/// A small body could unfold to any size, so none is unfolded.
fn check_encoding(headers: &HeaderMap) -> Result<(), Error> {
    match header(headers, &CONTENT_ENCODING) {
        Some(encoding) if !encoding.trim().eq_ignore_ascii_case("identity") => {
            let encoding: String = encoding.chars().take(64).collect();
            let message = format!("Content-Encoding is {encoding:?}; send the request's body as it is");
            Err(Error::new(ErrorKind::MediaTypeNotSupported, message))
        }
        _ => Ok(()),
    }
}

/// At most `most` bytes of it.
pub(super) async fn read_body(most: usize, headers: &HeaderMap, body: Body) -> Result<Bytes, Error> {
    let too_large =
        || Error::new(ErrorKind::PayloadTooLarge, format!("Request body is larger than {most} bytes"));
    check_encoding(headers)?;
    // Refused before it is read, where the client says how long it is.
    let said = header(headers, &CONTENT_LENGTH).and_then(|length| length.parse::<usize>().ok());
    if said.is_some_and(|length| length > most) {
        return Err(too_large());
    }
    to_bytes(body, most).await.map_err(|error| {
        let limit = std::error::Error::source(&error)
            .is_some_and(|cause| cause.is::<http_body_util::LengthLimitError>());
        if limit {
            return too_large();
        }
        // Its chunks are broken, or it ends too early: there is no request to speak of, in any binding.
        Error::new(ErrorKind::ParseError, "The request's body could not be read to its end").with_log(error)
    })
}
