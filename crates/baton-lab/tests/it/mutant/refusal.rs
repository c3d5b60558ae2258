//! Errors of the agent: written down from the specification's tables, and shared with nobody.

use baton_lab::generation::{Binding, Generation};
use serde_json::{Value, json};

use super::fault::Place;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    TaskNotFound,
    TaskNotCancelable,
    PushNotSupported,
    Unsupported,
    ContentType,
    ExtensionRequired,
    Version,
    Parse,
    InvalidRequest,
    MethodNotFound,
    InvalidParams,
    Internal,
    Unauthenticated,
    Forbidden,
    /// Over gRPC alone.
    TooLate,
}

impl Kind {
    /// JSON-RPC code, HTTP status, gRPC name, reason.
    fn row(self) -> (i64, u16, &'static str, &'static str) {
        match self {
            Self::TaskNotFound => (-32001, 404, "NOT_FOUND", "TASK_NOT_FOUND"),
            Self::TaskNotCancelable => (-32002, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE"),
            Self::PushNotSupported => (-32003, 400, "FAILED_PRECONDITION", "PUSH_NOTIFICATION_NOT_SUPPORTED"),
            Self::Unsupported => (-32004, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"),
            Self::ContentType => (-32005, 400, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED"),
            Self::ExtensionRequired => (-32008, 400, "FAILED_PRECONDITION", "EXTENSION_SUPPORT_REQUIRED"),
            Self::Version => (-32009, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED"),
            Self::Parse => (-32700, 400, "INVALID_ARGUMENT", ""),
            Self::InvalidRequest => (-32600, 400, "INVALID_ARGUMENT", ""),
            Self::MethodNotFound => (-32601, 404, "UNIMPLEMENTED", ""),
            Self::InvalidParams => (-32602, 400, "INVALID_ARGUMENT", ""),
            Self::Internal => (-32603, 500, "INTERNAL", ""),
            Self::Unauthenticated => (-32000, 401, "UNAUTHENTICATED", ""),
            Self::Forbidden => (-32000, 403, "PERMISSION_DENIED", ""),
            Self::TooLate => (-32000, 504, "DEADLINE_EXCEEDED", ""),
        }
    }
}

/// Why a request is not answered. `None` as kind: the agent hangs up.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub(crate) kind: Option<Kind>,
    message: String,
    /// The parameter that is wrong.
    field: Option<String>,
}

impl Refusal {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Refusal { kind: Some(kind), message: message.into(), field: None }
    }

    pub(crate) fn hang_up() -> Self {
        Refusal { kind: None, message: String::new(), field: None }
    }

    pub(crate) fn about(mut self, field: &str) -> Self {
        self.field = Some(field.to_owned());
        self
    }

    /// HTTP status and the error object as a generation and binding have them.
    pub(crate) fn spelled(&self, kind: Kind, place: &Place) -> (u16, Value) {
        let (code, status, name, reason) = kind.row();
        // gRPC of 0.3 has no form of its own either: this agent has that of 1.0.
        let v1 = place.generation == Generation::V1 || place.binding == Binding::Grpc;
        let mut details = Vec::new();
        if v1 && !reason.is_empty() {
            details.push(json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason,
                "domain": "a2a-protocol.org", "metadata": {}}));
        }
        if let Some(field) = self.field.as_ref().filter(|_| v1) {
            details.push(json!({"@type": "type.googleapis.com/google.rpc.BadRequest",
                "fieldViolations": [{"field": field, "description": self.message}]}));
        }
        match place.binding {
            Binding::Jsonrpc => {
                // A2A fixes no status for these; what cannot be read or nobody may ask is told by HTTP, too.
                let status = if matches!(status, 401 | 403) || kind == Kind::Parse { status } else { 200 };
                let mut error = json!({"code": code, "message": self.message});
                if !details.is_empty() {
                    error["data"] = json!(details);
                }
                (status, error)
            }
            Binding::Rest | Binding::Grpc if v1 => {
                let error =
                    json!({"code": status, "status": name, "message": self.message, "details": details});
                (status, error)
            }
            // 0.3 has no form of its own; this is one of those in the field.
            Binding::Rest | Binding::Grpc => (status, json!({"code": code, "message": self.message})),
        }
    }
}
