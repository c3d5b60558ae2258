//! JSON-RPC 2.0 over `POST /`.

use std::borrow::Cow;

use axum::body::{Body, to_bytes};
use axum::extract::State;
use baton_protocol::generation::{AskedVersion, VERSION_HEADER};
use baton_protocol::operation::Operation;
use baton_protocol::wire::jsonrpc::{self, RpcId};
use baton_protocol::wire::v1;
use baton_protocol::{Error, ErrorKind, Generation};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};

use super::event_stream;
use crate::service::{CallContext, Outcome, Service};

/// Tells a client that its message had been taken before.
pub(super) const REPLAY_HEADER: HeaderName = HeaderName::from_static("a2a-idempotent-replay");

pub(super) async fn handle(State(service): State<Service>, request: Request<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    match answer(&service, &parts, body).await {
        Ok(response) => response,
        Err(Failed { id, error }) => error_response(id.as_ref(), &error),
    }
}

struct Failed {
    id: Option<RpcId>,
    error: Error,
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Failed { id: None, error }
    }
}

async fn answer(service: &Service, parts: &Parts, body: Body) -> Result<Response<Body>, Failed> {
    let principal = service.authenticate(&parts.headers).await?;
    check_content_type(&parts.headers)?;
    let body = read_body(service, &parts.headers, body).await?;
    let request = jsonrpc::parse_request(&body)?;
    let id = request.id;
    let result = async {
        let operation = operation(parts, &request.method)?;
        let decoded = v1::decode_call(operation, request.params)?;
        let context = CallContext {
            scope: service.scope(&principal, decoded.tenant.as_deref())?,
            generation: Generation::V1,
            last_event_id: header(&parts.headers, "last-event-id").map(Cow::into_owned),
            extensions: extensions(&parts.headers),
        };
        service.dispatch(&context, decoded.call).await
    };
    match result.await {
        Ok(Outcome::Reply { reply, replayed }) => {
            let mut json = Vec::with_capacity(1024);
            jsonrpc::write_result(&mut json, &id, |out| v1::write_reply(out, &reply));
            Ok(mark_replay(json_response(StatusCode::OK, json), replayed))
        }
        Ok(Outcome::Stream { stream, replayed }) => {
            let keep_alive = service.limits().keep_alive;
            Ok(mark_replay(event_stream::response(stream, id, keep_alive, parts.version), replayed))
        }
        Err(error) => Err(Failed { id: Some(id), error }),
    }
}

/// The method tells the generation; the version header must agree with it.
fn operation(parts: &Parts, method: &str) -> Result<Operation, Error> {
    let said = header(&parts.headers, VERSION_HEADER);
    let query = parts.uri.query().and_then(version_in_query);
    let asked = AskedVersion::read(said.as_deref(), query.as_deref());
    if let AskedVersion::Unknown(version) = &asked {
        let version: String = version.chars().take(32).collect();
        let message = format!("A2A-Version {version:?} is not supported; this server speaks 1.0");
        return Err(Error::new(ErrorKind::VersionNotSupported, message));
    }
    let Some(operation) = Operation::of_v1_method(method) else {
        let method: String = method.chars().take(64).collect();
        return Err(Error::new(ErrorKind::MethodNotFound, format!("Method not found: {method:?}")));
    };
    match asked {
        AskedVersion::Known(Generation::V1) => Ok(operation),
        AskedVersion::Unsaid => Err(Error::new(
            ErrorKind::VersionNotSupported,
            format!(
                "{method} is a method of protocol 1.0, and a request without a version counts as 0.3: send the header `A2A-Version: 1.0`"
            ),
        )),
        AskedVersion::Known(other) => Err(Error::new(
            ErrorKind::VersionNotSupported,
            format!(
                "{method} is a method of protocol 1.0, but the request says A2A-Version {}: send the header `A2A-Version: 1.0`",
                other.version()
            ),
        )),
        AskedVersion::Unknown(_) => Err(Error::of(ErrorKind::VersionNotSupported)),
    }
}

fn version_in_query(query: &str) -> Option<String> {
    query.split('&').find_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        name.eq_ignore_ascii_case("A2A-Version").then(|| percent_decoded(value))
    })
}

/// Some clients escape every character they can, the dot among them.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = match rest {
            [b'%', high, low, ..] => hex(*high).zip(hex(*low)).map(|(high, low)| high << 4 | low),
            _ => None,
        };
        bytes.push(escaped.unwrap_or(byte));
        rest = if escaped.is_some() { &rest[3..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// A header that is not text is not missing: it must fail the check it is for, so it is read with marks where
/// its bytes make no sense.
fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<Cow<'a, str>> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()))
}

fn extensions(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all("a2a-extensions").iter().filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .map(|uri| uri.trim().to_owned())
        .filter(|uri| !uri.is_empty())
        .collect()
}

/// JSON by any of its names. A missing type is let through: the body tells.
fn check_content_type(headers: &HeaderMap) -> Result<(), Error> {
    let Some(content_type) = header(headers, CONTENT_TYPE.as_str()) else { return Ok(()) };
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json")) {
        return Ok(());
    }
    let essence: String = essence.chars().take(64).collect();
    let message = format!("Content-Type is {essence:?}; send the request as application/json");
    Err(Error::new(ErrorKind::MediaTypeNotSupported, message))
}

async fn read_body(service: &Service, headers: &HeaderMap, body: Body) -> Result<bytes::Bytes, Error> {
    let most = service.limits().max_body_bytes;
    let too_large =
        || Error::new(ErrorKind::PayloadTooLarge, format!("Request body is larger than {most} bytes"));
    // Refused before it is read, where the client says how long it is.
    let said = header(headers, CONTENT_LENGTH.as_str()).and_then(|length| length.parse::<usize>().ok());
    if said.is_some_and(|length| length > most) {
        return Err(too_large());
    }
    to_bytes(body, most).await.map_err(|error| {
        let limit = std::error::Error::source(&error)
            .is_some_and(|cause| cause.is::<http_body_util::LengthLimitError>());
        if limit { too_large() } else { Error::of(ErrorKind::InvalidRequest).with_log(error) }
    })
}

fn error_response(id: Option<&RpcId>, error: &Error) -> Response<Body> {
    let row = error.kind().row();
    match error.log() {
        Some(cause) if matches!(error.kind(), ErrorKind::Internal) => {
            tracing::error!(kind = row.reason, cause, "a request failed");
        }
        Some(cause) => tracing::warn!(kind = row.reason, cause, "a request was refused"),
        None => tracing::debug!(kind = row.reason, "a request was refused"),
    }
    let mut json = Vec::with_capacity(512);
    jsonrpc::write_error(&mut json, id, Generation::V1, error);
    let status = StatusCode::from_u16(row.rpc_http).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json_response(status, json);
    if let Some(seconds) = error.retry_after_seconds() {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn json_response(status: StatusCode, json: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::from(json));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn mark_replay(mut response: Response<Body>, replayed: bool) -> Response<Body> {
    if replayed {
        response.headers_mut().insert(REPLAY_HEADER, HeaderValue::from_static("true"));
    }
    response
}
