//! Errors as a client reads them: the reverse of `jsonrpc::write_error` and `http_json::write_error`, for the servers
//! of every generation and SDK.
//!
//! Nothing here fails: an answer that says little still is an error answer, and what it does say is kept. The kind is
//! taken from the first of these that tells it: `ErrorInfo.reason`, the error's type name, the JSON-RPC code (whose
//! meaning depends on the generation), the HTTP status.

use serde::Deserialize;

use super::members::{Members, items};
use crate::domain::JsonText;
use crate::error::{ERROR_DOMAIN, ErrorKind, FieldViolation, TABLE};
use crate::generation::Generation;

/// An error that a peer answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerError {
    /// The generation of the answer: codes mean different things in each.
    pub generation: Generation,
    /// `None` if nothing in the answer tells it.
    pub kind: Option<ErrorKind>,
    /// The JSON-RPC code, if the answer has one.
    pub code: Option<i32>,
    pub http_status: Option<u16>,
    /// The number of the gRPC code, if the answer came by gRPC.
    pub grpc_code: Option<i32>,
    /// For people; empty if the peer sent none.
    pub message: String,
    /// `ErrorInfo.reason`.
    pub reason: Option<String>,
    /// JSON-RPC `data` or HTTP+JSON `details`, as they were sent; of gRPC, as HTTP+JSON would have them.
    pub details: Option<JsonText>,
    /// Members of the request that broke a rule.
    pub violations: Vec<FieldViolation>,
    /// From `RetryInfo`.
    pub retry_after_seconds: Option<u32>,
}

/// Longest message kept of a body that is no JSON, in characters.
const MAX_PLAIN_MESSAGE: usize = 200;

impl PeerError {
    /// The error of a JSON-RPC response. `http_status` is that of the answer it came in.
    pub fn of_rpc(
        generation: Generation,
        code: i32,
        message: String,
        data: Option<&str>,
        http_status: Option<u16>,
    ) -> Self {
        let mut error = PeerError { code: Some(code), message, ..Self::of_status(generation, http_status) };
        error.read_details(data);
        // 0.1 has no details; our own servers name the reason beside its ambiguous codes.
        if error.reason.is_none() {
            error.reason = data.and_then(Members::of).and_then(|data| string(data.get("reason")?));
        }
        error.kind = error.find_kind(None);
        error
    }

    /// The error of an HTTP+JSON answer, or the data of an error event on its stream.
    pub fn of_http(generation: Generation, http_status: Option<u16>, body: &str) -> Self {
        let mut error = Self::of_status(generation, http_status);
        let Some(outer) = Members::of(body) else {
            error.message = body.trim().chars().take(MAX_PLAIN_MESSAGE).collect();
            error.kind = http_status.and_then(of_bare_status);
            return error;
        };
        let inner = outer.get("error").and_then(Members::of);
        let said = |name: &str| inner.as_ref().and_then(|it| it.get(name)).or_else(|| outer.get(name));
        // The last two are how problem documents (RFC 9457) and FastAPI name it.
        let messages = ["message", "detail", "title"];
        error.message = messages.iter().find_map(|name| string(said(name)?)).unwrap_or_default();
        // 1.0 repeats the HTTP status as `code`; older servers send the JSON-RPC code, inside or outside.
        let codes = [outer.get("code"), inner.as_ref().and_then(|it| it.get("code"))];
        error.code =
            codes.into_iter().flatten().filter_map(|code| code.parse().ok()).find(|code: &i32| *code < 0);
        let details = ["details", "data"].iter().find_map(|name| said(name)).map(str::to_owned);
        error.read_details(details.as_deref());
        let type_name = outer.get("type").and_then(string);
        error.kind = error.find_kind(type_name.as_deref());
        error
    }

    /// The error of a gRPC call. `details` is the value of `grpc-status-details-bin`, or empty.
    #[cfg(feature = "grpc")]
    pub fn of_grpc(generation: Generation, code: i32, message: String, details: &[u8]) -> Self {
        let mut error = PeerError { grpc_code: Some(code), message, ..Self::of_status(generation, None) };
        error.read_details(super::pb::status::details_as_json(details).as_deref());
        // The Python SDK of 0.3 sends no details; its messages begin with the name, and so do ours in 0.3.
        let (type_name, told) = error.message.split_once(": ").unzip();
        error.kind = error.find_kind(type_name);
        if let Some(told) = told.filter(|_| type_name.is_some_and(|name| is_a2a_name(name, generation))) {
            error.message = told.to_owned();
        }
        error
    }

    /// The name of the error in the specification, if it has one.
    pub fn a2a_name(&self) -> Option<&'static str> {
        self.kind.and_then(|kind| kind.a2a_name(self.generation))
    }

    fn of_status(generation: Generation, http_status: Option<u16>) -> Self {
        PeerError {
            generation,
            kind: None,
            code: None,
            http_status,
            grpc_code: None,
            message: String::new(),
            reason: None,
            details: None,
            violations: Vec::new(),
            retry_after_seconds: None,
        }
    }

    fn read_details(&mut self, details: Option<&str>) {
        self.details = details.and_then(|text| JsonText::parse(text).ok());
        for detail in details.and_then(items).unwrap_or_default() {
            let Ok(detail) = serde_json::from_str::<DetailTwin>(detail.get()) else { continue };
            if detail.domain.as_deref() == Some(ERROR_DOMAIN) {
                self.reason = self.reason.take().or(detail.reason);
            }
            let violations = detail.field_violations.unwrap_or_default().into_iter();
            self.violations.extend(violations.map(|it| FieldViolation {
                field: it.field.unwrap_or_default(),
                description: it.description.unwrap_or_default(),
            }));
            let delay = detail.retry_delay.and_then(|delay| seconds(&delay));
            self.retry_after_seconds = self.retry_after_seconds.or(delay);
        }
    }

    fn find_kind(&self, type_name: Option<&str>) -> Option<ErrorKind> {
        let by_reason = || self.reason.as_deref().and_then(|reason| self.of_reason(reason));
        let by_type = || {
            let named = TABLE.iter().find(|row| row.kind.a2a_name(self.generation) == type_name);
            named.map(|row| row.kind).filter(|_| type_name.is_some_and(|name| name != "InternalError"))
        };
        let by_code = || self.code.and_then(|code| self.of_code(code));
        let by_status = || self.http_status.and_then(|status| self.of_http_status(status));
        let by_grpc_code = || self.grpc_code.and_then(of_grpc_code);
        by_reason().or_else(by_type).or_else(by_code).or_else(by_status).or_else(by_grpc_code)
    }

    fn of_reason(&self, reason: &str) -> Option<ErrorKind> {
        // One of the Rust SDKs spells it so.
        if reason == "UNSUPPORTED_CONTENT_TYPE" {
            return Some(ErrorKind::ContentTypeNotSupported);
        }
        let rows = || TABLE.iter().filter(|row| row.reason == reason);
        let fits = |row: &&crate::error::Row| {
            self.http_status.is_some_and(|status| row.rpc_http == status)
                || self.grpc_code.is_some_and(|code| i32::from(row.grpc.number()) == code)
        };
        rows().find(fits).or_else(|| rows().next()).map(|row| row.kind)
    }

    fn of_code(&self, code: i32) -> Option<ErrorKind> {
        if self.generation == Generation::V0_1
            && let Some(kind) = legacy_kind(code)
        {
            return Some(kind);
        }
        // Codes that several rows share, and that other servers use for errors of their own.
        if matches!(code, -32000 | -32050) {
            return self.http_status.and_then(of_bare_status);
        }
        TABLE.iter().find(|row| row.kind.json_rpc_code(self.generation) == code).map(|row| row.kind)
    }

    /// Only a guess: many errors share a status. The answer did have the form of an A2A error.
    fn of_http_status(&self, status: u16) -> Option<ErrorKind> {
        match status {
            400 | 422 => Some(ErrorKind::InvalidParams),
            404 => Some(ErrorKind::TaskNotFound),
            409 => Some(ErrorKind::TaskNotCancelable),
            501 => Some(ErrorKind::UnsupportedOperation),
            _ => of_bare_status(status),
        }
    }
}

#[cfg(feature = "grpc")]
fn is_a2a_name(name: &str, generation: Generation) -> bool {
    TABLE.iter().any(|row| row.kind.a2a_name(generation) == Some(name))
}

/// Only a guess: many errors share a code.
fn of_grpc_code(code: i32) -> Option<ErrorKind> {
    match code {
        3 => Some(ErrorKind::InvalidParams),
        4 => Some(ErrorKind::DeadlineExceeded),
        5 => Some(ErrorKind::TaskNotFound),
        7 => Some(ErrorKind::Forbidden),
        8 => Some(ErrorKind::QuotaExceeded),
        9 | 12 => Some(ErrorKind::UnsupportedOperation),
        13 => Some(ErrorKind::Internal),
        14 => Some(ErrorKind::Unavailable),
        16 => Some(ErrorKind::Unauthenticated),
        _ => None,
    }
}

/// Statuses that mean the same whoever sent them: a proxy, too, answers with these.
fn of_bare_status(status: u16) -> Option<ErrorKind> {
    match status {
        401 => Some(ErrorKind::Unauthenticated),
        403 => Some(ErrorKind::Forbidden),
        405 => Some(ErrorKind::MethodNotAllowed),
        413 => Some(ErrorKind::PayloadTooLarge),
        415 => Some(ErrorKind::MediaTypeNotSupported),
        429 => Some(ErrorKind::QuotaExceeded),
        500 => Some(ErrorKind::Internal),
        502..=504 => Some(ErrorKind::Unavailable),
        _ => None,
    }
}

/// Codes of 0.1 with another meaning than in later generations.
fn legacy_kind(code: i32) -> Option<ErrorKind> {
    match code {
        -32006 => Some(ErrorKind::UnsupportedOperation),
        -32007 => Some(ErrorKind::Unauthenticated),
        -32008 => Some(ErrorKind::Forbidden),
        -32009 => Some(ErrorKind::TaskEnded),
        -32010 => Some(ErrorKind::QuotaExceeded),
        -32011 => Some(ErrorKind::Unavailable),
        _ => None,
    }
}

/// `3s`, `1.5s`: rounded up.
fn seconds(delay: &str) -> Option<u32> {
    let number: f64 = delay.strip_suffix('s')?.parse().ok()?;
    (0.0..=86_400.0).contains(&number).then(|| number.ceil() as u32)
}

fn string(json: &str) -> Option<String> {
    serde_json::from_str(json).ok()
}

/// All detail types in one: members of different types do not collide.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DetailTwin {
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    domain: Option<String>,
    #[serde(default)]
    field_violations: Option<Vec<ViolationTwin>>,
    #[serde(default)]
    retry_delay: Option<String>,
}

#[derive(Deserialize)]
struct ViolationTwin {
    #[serde(default)]
    field: Option<String>,
    #[serde(default)]
    description: Option<String>,
}

/// The error on a stream of HTTP+JSON, if this event is one: named `error`, or an object with an `error` member.
pub fn error_event<'a>(name: Option<&str>, data: &'a str) -> Option<&'a str> {
    let is_error = name == Some("error") || {
        let members = Members::of(data);
        members.is_some_and(|members| members.get("error").is_some_and(|error| error != "null"))
    };
    is_error.then_some(data)
}
