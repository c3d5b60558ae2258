//! The protocol's errors, as scripted agents send them.

use serde_json::{Value, json};

use super::variant::Variant;
use crate::generation::Generation;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: i32,
    /// The name in SDKs.
    pub(super) name: &'static str,
    pub(super) reason: &'static str,
    pub(super) message: &'static str,
    pub(super) status: u16,
    grpc: &'static str,
}

macro_rules! refusals {
    ($($id:ident $code:literal $name:literal $reason:literal $message:literal $status:literal $grpc:literal;)*) => {
        $(pub(super) static $id: Refusal = Refusal {
            code: $code, name: $name, reason: $reason, message: $message, status: $status, grpc: $grpc,
        };)*
    };
}

refusals! {
    NOT_FOUND -32001 "TaskNotFound" "TASK_NOT_FOUND" "Task not found" 404 "NOT_FOUND";
    NOT_CANCELABLE -32002 "TaskNotCancelable" "TASK_NOT_CANCELABLE" "Task cannot be canceled" 400 "FAILED_PRECONDITION";
    NO_PUSH -32003 "PushNotificationNotSupported" "PUSH_NOTIFICATION_NOT_SUPPORTED" "Push Notification is not supported" 400 "FAILED_PRECONDITION";
    UNSUPPORTED -32004 "UnsupportedOperation" "UNSUPPORTED_OPERATION" "This operation is not supported" 400 "FAILED_PRECONDITION";
    CONTENT_TYPE -32005 "ContentTypeNotSupported" "CONTENT_TYPE_NOT_SUPPORTED" "Incompatible content types" 400 "INVALID_ARGUMENT";
    BAD_RESPONSE -32006 "InvalidAgentResponse" "INVALID_AGENT_RESPONSE" "Invalid agent response type" 500 "INTERNAL";
    NO_CARD -32007 "ExtendedAgentCardNotConfigured" "EXTENDED_AGENT_CARD_NOT_CONFIGURED" "Extended card is not configured" 400 "FAILED_PRECONDITION";
    NO_EXTENSION -32008 "ExtensionSupportRequired" "EXTENSION_SUPPORT_REQUIRED" "Extension support is required" 400 "FAILED_PRECONDITION";
    VERSION -32009 "VersionNotSupported" "VERSION_NOT_SUPPORTED" "This version is not supported" 400 "FAILED_PRECONDITION";
    UNKNOWN_METHOD -32601 "MethodNotFound" "METHOD_NOT_FOUND" "Method not found" 404 "NOT_FOUND";
    INTERNAL -32603 "Internal" "INTERNAL_ERROR" "Internal error" 500 "INTERNAL";
}

impl Refusal {
    /// The HTTP status: 200 for JSON-RPC errors.
    pub(super) fn http(&self, variant: Variant) -> u16 {
        if variant.is_rest() { self.status } else { 200 }
    }

    /// The whole body.
    pub(super) fn body(&self, variant: Variant, id: &Value) -> Value {
        let details = json!([{
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": self.reason, "domain": "a2a-protocol.org"}]);
        if variant.is_rest() {
            return json!({"error": {
                "code": self.status, "status": self.grpc, "message": self.message, "details": details}});
        }
        let mut error = json!({"code": self.code, "message": self.message});
        if variant.generation == Generation::V1 {
            error["data"] = details;
        }
        json!({"jsonrpc": "2.0", "id": id, "error": error})
    }

    /// True if a client's output identifies this error.
    pub(super) fn is_told_in(&self, text: &str) -> bool {
        let plain = |text: &str| -> String {
            text.chars().filter(|c| c.is_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect()
        };
        let said = plain(text);
        text.contains(&self.code.to_string())
            || [self.name, self.reason, self.message].iter().any(|name| said.contains(&plain(name)))
    }
}
