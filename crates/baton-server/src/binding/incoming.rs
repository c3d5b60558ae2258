//! Reads the parts of a request that all bindings need: headers, media type, body.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Display;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use baton_protocol::domain::TraceContext;
use baton_protocol::generation::{AskedVersion, VERSION_HEADER};
use baton_protocol::wire::http_json::version_in;
use baton_protocol::{Error, ErrorKind, Generation};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Version};

pub(super) const VERSION: HeaderName = HeaderName::from_static(VERSION_HEADER);
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const EXTENSIONS: HeaderName = HeaderName::from_static("a2a-extensions");
const EXTENSIONS_V0_3: HeaderName = HeaderName::from_static("x-a2a-extensions");
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACE_STATE: HeaderName = HeaderName::from_static("tracestate");

/// How much of a refused request's body is taken, and for how long.
const DISCARD_BYTES: usize = 64 * 1024;
const DISCARD_TIME: Duration = Duration::from_millis(500);

/// A header's value. Invalid UTF-8 is replaced by U+FFFD: such a header must not pass for a missing one, but fail the check
/// of its value. The same is for one that was sent several times with different values: they are read as HTTP joins them, as a
/// list. A proxy may have gone by another of them than the first.
pub(super) fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<Cow<'a, str>> {
    let text = |value: &'a HeaderValue| String::from_utf8_lossy(value.as_bytes());
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    if values.all(|value| value == first) {
        return Some(text(first));
    }
    let all: Vec<_> = headers.get_all(name).iter().map(text).collect();
    Some(Cow::Owned(all.join(", ")))
}

pub(super) fn asked_version(parts: &Parts) -> AskedVersion {
    let from_header = header(&parts.headers, &VERSION);
    let from_query = parts.uri.query().and_then(version_in);
    AskedVersion::read(from_header.as_deref(), from_query.as_deref())
}

/// The header that lists extensions, as a generation spells it. Requests may have either.
pub(super) fn extensions_header(generation: Generation) -> HeaderName {
    match generation {
        Generation::V0_3 => EXTENSIONS_V0_3,
        Generation::V1 | Generation::V0_1 => EXTENSIONS,
    }
}

/// URIs in `A2A-Extensions` and in its older spelling, without duplicates.
pub(super) fn extensions(headers: &HeaderMap) -> Vec<String> {
    let named = [EXTENSIONS, EXTENSIONS_V0_3].into_iter().flat_map(|name| headers.get_all(name));
    let values = named.filter_map(|value| value.to_str().ok());
    let uris = values.flat_map(|value| value.split(',')).map(str::trim).filter(|uri| !uri.is_empty());
    let mut known = HashSet::new();
    uris.filter(|uri| known.insert(*uri)).map(str::to_owned).collect()
}

/// The caller's trace context, if it sends one.
pub(super) fn trace(headers: &HeaderMap) -> Option<TraceContext> {
    TraceContext::parse(&header(headers, &TRACE_PARENT)?, header(headers, &TRACE_STATE).as_deref())
}

/// Whether an `Accept` header names the type. Some clients send two such headers.
pub(super) fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.into_iter().any(|value| value.to_ascii_lowercase().contains(media_type))
}

/// Accepts `application/json` and `application/*+json`. A missing `Content-Type` is accepted, too: the parser decides.
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

/// Compressed bodies are refused: a small one could decompress to any size.
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

/// Over HTTP/2: takes the body of a request that is refused by its headers, if it is small and comes at once, without looking
/// at it. If the answer came first, the stream would be reset after it, and some clients (curl 7.88) then report the reset
/// and not the answer. Over HTTP/1 the connection takes care of that.
pub(super) async fn discard(parts: &Parts, body: Body) {
    if parts.version == Version::HTTP_2 {
        let _ = tokio::time::timeout(DISCARD_TIME, to_bytes(body, DISCARD_BYTES)).await;
    }
}

/// Refuses a request whose body, or message, is larger than `max` bytes.
pub(super) fn check_size(size: usize, max: usize) -> Result<(), Error> {
    if size <= max { Ok(()) } else { Err(too_large(max)) }
}

fn too_large(max: usize) -> Error {
    Error::new(ErrorKind::PayloadTooLarge, format!("Request body is larger than {max} bytes"))
}

/// Reads the body; refuses one that is larger than `max` bytes.
pub(super) async fn read_body(max: usize, headers: &HeaderMap, body: Body) -> Result<Bytes, Error> {
    check_head(max, headers)?;
    collect(max, body).await
}

/// Refuses a body that is compressed, or larger than `max` bytes by its `Content-Length`, without reading it.
pub(super) fn check_head(max: usize, headers: &HeaderMap) -> Result<(), Error> {
    check_encoding(headers)?;
    let declared = header(headers, &CONTENT_LENGTH).and_then(|length| length.parse::<usize>().ok());
    check_size(declared.unwrap_or_default(), max)
}

/// What there is to read, at most `max` bytes.
pub(super) async fn collect(max: usize, body: Body) -> Result<Bytes, Error> {
    to_bytes(body, max).await.map_err(|error| {
        let limit = std::error::Error::source(&error)
            .is_some_and(|cause| cause.is::<http_body_util::LengthLimitError>());
        if limit { too_large(max) } else { unreadable(error) }
    })
}

/// The chunked encoding is broken, or the body ends too early.
pub(super) fn unreadable(error: impl Display) -> Error {
    Error::new(ErrorKind::ParseError, "The request's body could not be read to its end").with_log(error)
}
