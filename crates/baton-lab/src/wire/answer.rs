//! Answers without the envelope of their binding.

use serde_json::Value;

use super::errors;
use super::evidence::Received;
use super::grpc;
use super::json;
use super::proto_json;
use super::sse::Event;
use crate::generation::{Binding, Generation};

/// An answer without its envelope.
#[derive(Debug, Clone)]
pub enum Answer {
    Reply {
        status: u16,
        headers: Vec<(String, String)>,
        /// The A2A object itself; `None` if there is none (an empty body).
        root: Option<Value>,
        /// The raw body, if it is JSON.
        body: Option<Value>,
    },
    Error(WireError),
    Stream {
        status: u16,
        headers: Vec<(String, String)>,
        /// Each event's A2A object.
        events: Vec<Value>,
        /// The raw events.
        frames: Vec<Event>,
        /// The server closed the stream (and not our timeout).
        closed: bool,
        /// An error frame that ended it.
        error: Option<WireError>,
    },
}

#[derive(Debug, Clone)]
pub struct WireError {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub code: Option<i64>,
    /// The error's name in the specification, if it can be determined.
    pub name: Option<String>,
    pub message: Option<String>,
    /// JSON-RPC `error.data`, REST `error.details`.
    pub details: Value,
    pub body: Option<Value>,
}

impl Answer {
    pub fn status(&self) -> u16 {
        match self {
            Self::Reply { status, .. } | Self::Stream { status, .. } => *status,
            Self::Error(error) => error.status,
        }
    }

    pub fn headers(&self) -> &[(String, String)] {
        match self {
            Self::Reply { headers, .. } | Self::Stream { headers, .. } => headers,
            Self::Error(error) => &error.headers,
        }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers().iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// A short description for a report.
    pub fn summary(&self) -> String {
        match self {
            Self::Reply { status, root: Some(root), .. } => {
                format!("HTTP {status} with {}", crate::acts::assertion::show(root))
            }
            Self::Reply { status, body: Some(_), .. } => format!("HTTP {status} without a result"),
            Self::Reply { status, .. } => {
                let kind = self.header("content-type").unwrap_or("no content type");
                format!("HTTP {status} without JSON ({kind})")
            }
            Self::Error(error) => error.summary(),
            Self::Stream { events, closed, .. } => {
                format!("a stream of {} events{}", events.len(), if *closed { "" } else { ", still open" })
            }
        }
    }
}

impl WireError {
    /// The code of gRPC, for an error over gRPC.
    pub fn grpc_code(&self) -> Option<i64> {
        let status = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("grpc-status"))?;
        status.1.trim().parse().ok()
    }

    pub fn summary(&self) -> String {
        let name = self.name.as_deref().unwrap_or("an error without a known name");
        if let Some(code) = self.grpc_code() {
            let message = self.message.as_deref().unwrap_or_default();
            return format!("{name}, gRPC {} ({code}): {message}", grpc::status::name(code));
        }
        let code = self.code.map(|code| format!(" ({code})")).unwrap_or_default();
        let message = self.message.as_deref().map(|text| format!(": {text}")).unwrap_or_default();
        format!("{name}{code}, HTTP {}{message}", self.status)
    }
}

/// Removes the envelope of a whole answer.
pub fn read(generation: Generation, binding: Binding, received: &Received, body: &[u8]) -> Answer {
    let (status, headers) = (received.status, received.headers.clone());
    let body = json::read(body);
    let error = match binding {
        Binding::Jsonrpc => body.as_ref().and_then(|body| body.get("error")).filter(|error| !error.is_null()),
        Binding::Rest | Binding::Grpc => {
            body.as_ref().filter(|_| status >= 400).map(|body| body.get("error").unwrap_or(body))
        }
    };
    if let Some(error) = error {
        let mut error = read_error(generation, binding, error, status);
        error.headers = headers;
        error.body = body;
        return Answer::Error(error);
    }
    if status >= 400 {
        // An A2A error has a body; a web server's plain 404 does not mean a missing task.
        let (code, name, message, details) = (None, None, None, Value::Null);
        return Answer::Error(WireError { status, headers, code, name, message, details, body });
    }
    let root = match binding {
        Binding::Jsonrpc => body.as_ref().and_then(|body| body.get("result")).cloned(),
        Binding::Rest | Binding::Grpc if generation == Generation::V0_3 => {
            body.as_ref().map(proto_json::reply)
        }
        Binding::Rest | Binding::Grpc => body.clone(),
    };
    Answer::Reply { status, headers, root, body }
}

pub fn read_error(generation: Generation, binding: Binding, error: &Value, status: u16) -> WireError {
    let details = match binding {
        Binding::Jsonrpc => error.get("data"),
        Binding::Rest | Binding::Grpc => error.get("details"),
    };
    let details = details.cloned().unwrap_or(Value::Null);
    let code = error.get("code").and_then(Value::as_i64);
    let by_reason = errors::reason_in(&details).and_then(errors::of_reason);
    let message = error.get("message").and_then(Value::as_str);
    let name = match binding {
        Binding::Jsonrpc => by_reason.or_else(|| errors::of_code(generation, code?)),
        Binding::Grpc if generation == Generation::V0_3 => {
            by_reason.or_else(|| errors::of_message(message.unwrap_or_default()))
        }
        // Some servers of 0.3 put the JSON-RPC code into the body of a REST error.
        Binding::Rest | Binding::Grpc => by_reason
            .or_else(|| errors::of_code(generation, code.filter(|code| *code < 0)?))
            .or_else(|| errors::of_status(status).filter(|_| generation == Generation::V1)),
    };
    WireError {
        status,
        headers: Vec::new(),
        code,
        name: name.map(str::to_owned),
        message: message.map(str::to_owned),
        details,
        body: None,
    }
}

/// The object of one stream event, or the error it carries.
#[allow(clippy::result_large_err, reason = "an error is what many cases are about, not the rare way out")]
pub fn read_event(generation: Generation, binding: Binding, event: &Event) -> Result<Value, WireError> {
    let value: Value = match json::read(event.data.as_bytes()) {
        Some(value) => value,
        None => {
            let message = Some(format!("an event that is not JSON: {}", event.data));
            let (headers, details) = (Vec::new(), Value::Null);
            return Err(WireError {
                status: 200,
                headers,
                code: None,
                name: None,
                message,
                details,
                body: None,
            });
        }
    };
    let error = match binding {
        Binding::Jsonrpc => value.get("error").filter(|error| !error.is_null()).cloned(),
        _ if event.name.as_deref() == Some("error") => Some(value.get("error").unwrap_or(&value).clone()),
        _ => value.get("error").filter(|error| error.get("code").is_some()).cloned(),
    };
    if let Some(error) = error {
        // Within a stream an error has no status of HTTP; a code of gRPC stands for one.
        let code = error.get("code").and_then(Value::as_i64).filter(|_| binding == Binding::Grpc);
        return Err(read_error(generation, binding, &error, code.map_or(200, grpc::status::http)));
    }
    Ok(match binding {
        Binding::Jsonrpc => value.get("result").cloned().unwrap_or(Value::Null),
        Binding::Rest | Binding::Grpc if generation == Generation::V0_3 => proto_json::reply(&value),
        Binding::Rest | Binding::Grpc => value,
    })
}
