//! The JSON-RPC 2.0 envelope, the same in every generation.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny};
use serde_json::value::RawValue;

use super::dialect::Dialect;
use super::members::Members;
use super::read::object;
use super::v1::{has_error_details, write_error_details};
use super::write::Object;
use crate::error::{Error, ErrorKind};
use crate::generation::Generation;

/// Longest request id, in bytes as sent. It is limited because it is repeated in every event of a stream.
pub const MAX_RPC_ID_BYTES: usize = 256;

/// A request's id: the raw JSON text of a string, a number or null, repeated unchanged in answers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RpcId(Box<str>);

impl RpcId {
    pub fn number(number: u64) -> Self {
        RpcId(number.to_string().into_boxed_str())
    }

    /// The raw JSON text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn from_raw(raw: &str) -> Result<Self, &'static str> {
        match raw.as_bytes().first() {
            // Two more for the quotes.
            _ if raw.len() > MAX_RPC_ID_BYTES + 2 => Err("is longer than 256 bytes"),
            // Half a surrogate pair is not valid text: most clients could not read an answer that repeats it.
            Some(b'"') if raw.contains('\\') && serde_json::from_str::<String>(raw).is_err() => {
                Err("must be a string of Unicode text")
            }
            Some(b'"' | b'-' | b'0'..=b'9' | b'n') => Ok(RpcId(raw.into())),
            _ => Err("must be a string, a number or null"),
        }
    }
}

/// A request whose parameters are not decoded yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request<'a> {
    /// `None` if it is missing. A request without an id is refused; but errors in its method or parameters are reported
    /// first.
    pub id: Option<RpcId>,
    pub method: Cow<'a, str>,
    pub params: Option<&'a str>,
}

/// A body that is not a valid request.
#[derive(Debug, Clone)]
pub struct NoRequest {
    /// The id, if it could be read.
    pub id: Option<RpcId>,
    pub error: Error,
}

impl From<Error> for NoRequest {
    fn from(error: Error) -> Self {
        NoRequest { id: None, error }
    }
}

/// Reads the envelope of a request.
pub fn parse_request(body: &[u8]) -> Result<Request<'_>, NoRequest> {
    let text = std::str::from_utf8(body).map_err(|error| {
        Error::new(ErrorKind::ParseError, format!("Invalid JSON payload: not UTF-8 ({error})"))
    })?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let envelope = object::<RequestTwin<'_>, _>(&mut deserializer)
        .and_then(|envelope| deserializer.end().map(|()| envelope))
        .map_err(|error| not_a_request(text, &error))?;
    let RequestTwin { jsonrpc, method, params, id } = envelope;
    let id = match id.map(|raw| RpcId::from_raw(raw.get())).transpose() {
        Ok(id) => id,
        Err(problem) => return Err(invalid(format!("id {problem}")).into()),
    };
    match jsonrpc.map(read_string) {
        Some(Some(version)) if version == "2.0" => {}
        _ => return Err(NoRequest { id, error: invalid("jsonrpc must be \"2.0\"") }),
    }
    match method.map(read_string) {
        Some(Some(method)) if !method.is_empty() => {
            Ok(Request { id, method, params: params.map(RawValue::get) })
        }
        _ => Err(NoRequest { id, error: invalid("method must be the name of a method, as a string") }),
    }
}

/// The error for a request without an id whose method and parameters are valid.
#[cold]
pub fn without_id() -> Error {
    invalid("id must be a string, a number or null; notifications are not supported")
}

#[cold]
fn not_a_request(text: &str, error: &serde_json::Error) -> NoRequest {
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        return Error::new(ErrorKind::ParseError, format!("Invalid JSON payload: {error}")).into();
    }
    NoRequest { id: the_id(text), error: why_not(text, error) }
}

/// The id of an object that is not a valid request, if it has exactly one.
fn the_id(text: &str) -> Option<RpcId> {
    let members = Members::of(text)?;
    let mut ids = members.0.iter().filter(|(name, _)| name == "id");
    let (_, id) = ids.next()?;
    ids.next().is_none().then(|| RpcId::from_raw(id.get()).ok())?
}

fn why_not(text: &str, error: &serde_json::Error) -> Error {
    let message = error.to_string();
    if text.trim_start().starts_with('[') {
        invalid("batches are not supported; send each request on its own")
    } else if let Some(rest) = message.strip_prefix("duplicate field `") {
        invalid(format!("{} is given twice", rest.split('`').next().unwrap_or_default()))
    } else {
        invalid("the body must be a JSON object")
    }
}

fn invalid(problem: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::InvalidRequest, format!("Request payload validation error: {problem}"))
}

#[derive(Deserialize)]
struct RequestTwin<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    /// `null` is an id, too: some clients send it.
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
}

fn read_string(raw: &RawValue) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_str::<Text<'_>>(raw.get()).ok().map(|text| text.0)
}

/// Writes a complete response with a result.
pub fn write_result(out: &mut Vec<u8>, id: &RpcId, write: impl FnOnce(&mut Vec<u8>)) {
    result_prefix(out, id);
    write(out);
    out.extend_from_slice(RESULT_SUFFIX);
}

/// Writes what comes before a result. Streams frame stored bytes between this and [`RESULT_SUFFIX`].
pub fn result_prefix(out: &mut Vec<u8>, id: &RpcId) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.as_str().as_bytes());
    out.extend_from_slice(b",\"result\":");
}

/// What comes after a result.
pub const RESULT_SUFFIX: &[u8] = b"}";

/// Writes a complete error response. `None` if the request's id is unknown.
pub fn write_error(out: &mut Vec<u8>, id: Option<&RpcId>, generation: Generation, error: &Error) {
    let reader = Dialect::in_jsonrpc(generation);
    let mut object = Object::begin(out);
    object.string("jsonrpc", "2.0");
    object.raw("id", id.map_or("null", RpcId::as_str));
    let mut inner = Object::begin(object.member("error"));
    inner.number("code", error.kind().json_rpc_code(generation));
    inner.string("message", &error.told(reader));
    match (generation, error.kind().told_reason()) {
        (Generation::V1 | Generation::V0_3, _) if has_error_details(error) => {
            write_error_details(inner.member("data"), error, reader);
        }
        // Codes of 0.1 have two meanings each; the reason distinguishes them.
        (Generation::V0_1, Some(reason)) => {
            let mut data = Object::begin(inner.member("data"));
            data.string("reason", reason);
            data.end();
        }
        _ => {}
    }
    inner.end();
    object.end();
}

/// Writes a complete request: the client's side of [`parse_request`].
pub fn write_request(out: &mut Vec<u8>, id: &RpcId, method: &str, write_params: impl FnOnce(&mut Vec<u8>)) {
    let mut object = Object::begin(out);
    object.string("jsonrpc", "2.0");
    object.raw("id", id.as_str());
    object.string("method", method);
    write_params(object.member("params"));
    object.end();
}

/// A server's answer; the result is not decoded yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response<'a> {
    Result(&'a str),
    Error { code: i32, message: String, data: Option<&'a str> },
}

/// Reads the envelope of a response. If it has both a null result and an error, the error counts.
pub fn parse_response(body: &[u8]) -> Result<(Option<RpcId>, Response<'_>), Error> {
    let text = std::str::from_utf8(body).map_err(|error| bad_response(format!("not UTF-8 ({error})")))?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let envelope = object::<ResponseTwin<'_>, _>(&mut deserializer)
        .and_then(|envelope| deserializer.end().map(|()| envelope))
        .map_err(|error| bad_response(format!("not a JSON-RPC response ({:?} error)", error.classify())))?;
    let id = match envelope.id {
        Some(raw) => {
            Some(RpcId::from_raw(raw.get()).map_err(|problem| bad_response(format!("id {problem}")))?)
        }
        None => None,
    };
    match (envelope.error, envelope.result) {
        (Some(error), _) => {
            let ErrorTwin { code, message, data } = error;
            Ok((id, Response::Error { code, message, data: data.map(RawValue::get) }))
        }
        (None, Some(result)) => Ok((id, Response::Result(result.get()))),
        // The Python SDK leaves out null members, also the result of deleting a webhook.
        (None, None) if id.is_some() => Ok((id, Response::Result("null"))),
        (None, None) => Err(bad_response("neither a result nor an error")),
    }
}

fn bad_response(problem: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::InvalidAgentResponse, format!("Invalid response: {problem}"))
}

#[derive(Deserialize)]
struct ResponseTwin<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    /// `null` is a result, too: it is the answer to deleting a webhook.
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<ErrorTwin<'a>>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

#[derive(Deserialize)]
struct ErrorTwin<'a> {
    #[serde(deserialize_with = "super::read::one::<(), _, _>")]
    code: i32,
    #[serde(default)]
    message: String,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}
