//! Every error that a peer can see, in one table: its names and codes in each generation and binding.
//!
//! The specification's rows are those of 1.0.1; rows that it lacks (resource exhausted, unavailable…) use codes of the
//! implementation-defined range, and their reason identifies them.

mod name;
mod short;

use std::borrow::Cow;
use std::fmt;

pub use name::Name;

use crate::generation::Generation;
use crate::wire::dialect::Dialect;

/// `ErrorInfo.domain` of every A2A error.
pub const ERROR_DOMAIN: &str = "a2a-protocol.org";

/// gRPC status codes by name; HTTP+JSON bodies carry the name, gRPC the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrpcCode {
    InvalidArgument,
    DeadlineExceeded,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    FailedPrecondition,
    Unimplemented,
    Internal,
    Unavailable,
    Unauthenticated,
}

impl GrpcCode {
    pub fn number(self) -> u8 {
        match self {
            Self::InvalidArgument => 3,
            Self::DeadlineExceeded => 4,
            Self::NotFound => 5,
            Self::PermissionDenied => 7,
            Self::ResourceExhausted => 8,
            Self::FailedPrecondition => 9,
            Self::Unimplemented => 12,
            Self::Internal => 13,
            Self::Unavailable => 14,
            Self::Unauthenticated => 16,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::NotFound => "NOT_FOUND",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Self::FailedPrecondition => "FAILED_PRECONDITION",
            Self::Unimplemented => "UNIMPLEMENTED",
            Self::Internal => "INTERNAL",
            Self::Unavailable => "UNAVAILABLE",
            Self::Unauthenticated => "UNAUTHENTICATED",
        }
    }
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    pub kind: ErrorKind,
    /// `ErrorInfo.reason`, and the label in metrics.
    pub reason: &'static str,
    /// JSON-RPC code in 1.0, 0.3 and 0.1.
    pub v1: i32,
    pub v0_3: i32,
    pub v0_1: i32,
    /// HTTP status of an HTTP+JSON answer in 1.0 and in 0.3.
    pub http: u16,
    pub http_v0_3: u16,
    /// HTTP status of a JSON-RPC error: 200 unless a proxy or a client must act on it.
    pub rpc_http: u16,
    /// gRPC code in 1.0 and in 0.3. 0.3 has no table: these are the codes of its Python SDK, as its HTTP statuses are.
    pub grpc: GrpcCode,
    pub grpc_v0_3: GrpcCode,
    /// The standard message.
    pub message: &'static str,
}

macro_rules! error_table {
    ($($kind:ident $reason:literal $v1:literal $v0_3:literal $v0_1:literal $http:literal $http03:literal $rpc:literal $grpc:ident $grpc03:ident $message:literal)*) => {
        /// What went wrong, independent of the binding.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorKind { $($kind),* }

        /// All rows, in the order of the enum.
        pub const TABLE: &[Row] = &[$(Row {
            kind: ErrorKind::$kind, reason: $reason, v1: $v1, v0_3: $v0_3, v0_1: $v0_1,
            http: $http, http_v0_3: $http03, rpc_http: $rpc, grpc: GrpcCode::$grpc, grpc_v0_3: GrpcCode::$grpc03,
            message: $message,
        }),*];
    };
}

error_table! {
    // kind                     reason                                 1.0    0.3    0.1    http 0.3h rpc  grpc               grpc of 0.3
    ParseError                  "PARSE_ERROR"                        -32700 -32700 -32700   400  400  400  InvalidArgument    InvalidArgument    "Invalid JSON payload"
    InvalidRequest              "INVALID_REQUEST"                    -32600 -32600 -32600   400  400  200  InvalidArgument    InvalidArgument    "Request payload validation error"
    MethodNotFound              "METHOD_NOT_FOUND"                   -32601 -32601 -32601   404  404  200  Unimplemented      Unimplemented      "Method not found"
    InvalidParams               "INVALID_PARAMS"                     -32602 -32602 -32602   400  400  200  InvalidArgument    InvalidArgument    "Invalid parameters"
    Internal                    "INTERNAL_ERROR"                     -32603 -32603 -32603   500  500  200  Internal           Internal           "Internal error"
    TaskNotFound                "TASK_NOT_FOUND"                     -32001 -32001 -32001   404  404  200  NotFound           NotFound           "Task not found"
    TaskNotCancelable           "TASK_NOT_CANCELABLE"                -32002 -32002 -32002   400  409  200  FailedPrecondition Unimplemented      "Task cannot be canceled"
    PushNotSupported            "PUSH_NOTIFICATION_NOT_SUPPORTED"    -32003 -32003 -32003   400  501  200  FailedPrecondition Unimplemented      "Push notifications are not supported"
    UnsupportedOperation        "UNSUPPORTED_OPERATION"              -32004 -32004 -32004   400  501  200  FailedPrecondition Unimplemented      "This operation is not supported"
    ContentTypeNotSupported     "CONTENT_TYPE_NOT_SUPPORTED"         -32005 -32005 -32005   400  415  200  InvalidArgument    Unimplemented      "Content type not supported"
    InvalidAgentResponse        "INVALID_AGENT_RESPONSE"             -32006 -32006 -32603   500  502  200  Internal           Internal           "The agent gave an invalid response"
    ExtendedCardNotConfigured   "EXTENDED_AGENT_CARD_NOT_CONFIGURED" -32007 -32007 -32004   400  404  200  FailedPrecondition FailedPrecondition "Extended agent card is not configured"
    ExtensionSupportRequired    "EXTENSION_SUPPORT_REQUIRED"         -32008 -32008 -32004   400  400  200  FailedPrecondition FailedPrecondition "A required extension was not declared by the client"
    VersionNotSupported         "VERSION_NOT_SUPPORTED"              -32009 -32009 -32004   400  400  200  FailedPrecondition FailedPrecondition "Protocol version not supported"
    // A message to an ended task: a separate row because 0.1 has another code for it.
    TaskEnded                   "UNSUPPORTED_OPERATION"              -32004 -32004 -32002   400  400  200  FailedPrecondition FailedPrecondition "The task has ended and takes no more messages"
    WebhookUrlRefused           "INVALID_PARAMS"                     -32602 -32602 -32004   400  400  200  InvalidArgument    InvalidArgument    "The webhook URL is not acceptable"
    Unauthenticated             "UNAUTHENTICATED"                    -32000 -32000 -32000   401  401  401  Unauthenticated    Unauthenticated    "Authentication required"
    Forbidden                   "PERMISSION_DENIED"                  -32000 -32000 -32000   403  403  403  PermissionDenied   PermissionDenied   "Permission denied"
    // The caller's own quota; other callers are still served.
    QuotaExceeded               "RESOURCE_EXHAUSTED"                 -32050 -32050 -32003   429  429  429  ResourceExhausted  ResourceExhausted  "Too many requests or tasks for this caller"
    // The server or its disk is full; no caller is served.
    ResourceExhausted           "RESOURCE_EXHAUSTED"                 -32050 -32050 -32003   503  503  503  Unavailable        Unavailable        "The server is at its capacity"
    Unavailable                 "UNAVAILABLE"                        -32603 -32603 -32603   503  503  503  Unavailable        Unavailable        "The server cannot do this right now"
    PayloadTooLarge             "PAYLOAD_TOO_LARGE"                  -32600 -32600 -32600   413  413  413  ResourceExhausted  ResourceExhausted  "Request body is too large"
    // Only gRPC has deadlines.
    DeadlineExceeded            "DEADLINE_EXCEEDED"                  -32603 -32603 -32603   504  504  200  DeadlineExceeded   DeadlineExceeded   "The deadline of the call has passed; what it began goes on"
    // An HTTP+JSON path, requested with the wrong HTTP method.
    MethodNotAllowed            "METHOD_NOT_ALLOWED"                 -32600 -32600 -32600   405  405  200  Unimplemented      Unimplemented      "This path takes another method"
    // The HTTP body itself is not JSON: an error of HTTP. The A2A row is about the media types of parts.
    MediaTypeNotSupported       "UNSUPPORTED_MEDIA_TYPE"             -32600 -32600 -32600   415  415  415  InvalidArgument    InvalidArgument    "Content-Type must be application/json"
}

impl ErrorKind {
    pub fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// The `ErrorInfo.reason` that peers get. `None` for errors of HTTP itself.
    pub fn told_reason(self) -> Option<&'static str> {
        (self != Self::MediaTypeNotSupported).then_some(self.row().reason)
    }

    /// The error's name in the specification; `None` if the protocol does not name it (authentication, quotas, HTTP).
    pub fn a2a_name(self, generation: Generation) -> Option<&'static str> {
        Some(match self {
            Self::ParseError => "JSONParseError",
            Self::InvalidRequest => "InvalidRequestError",
            Self::MethodNotFound => "MethodNotFoundError",
            Self::InvalidParams | Self::WebhookUrlRefused => "InvalidParamsError",
            Self::Internal => "InternalError",
            Self::TaskNotFound => "TaskNotFoundError",
            Self::TaskNotCancelable => "TaskNotCancelableError",
            Self::PushNotSupported => "PushNotificationNotSupportedError",
            Self::UnsupportedOperation | Self::TaskEnded => "UnsupportedOperationError",
            Self::ContentTypeNotSupported => "ContentTypeNotSupportedError",
            Self::InvalidAgentResponse => "InvalidAgentResponseError",
            Self::ExtendedCardNotConfigured if generation == Generation::V1 => {
                "ExtendedAgentCardNotConfiguredError"
            }
            Self::ExtendedCardNotConfigured => "AuthenticatedExtendedCardNotConfiguredError",
            Self::ExtensionSupportRequired => "ExtensionSupportRequiredError",
            Self::VersionNotSupported => "VersionNotSupportedError",
            Self::Unauthenticated
            | Self::Forbidden
            | Self::QuotaExceeded
            | Self::ResourceExhausted
            | Self::Unavailable
            | Self::PayloadTooLarge
            | Self::DeadlineExceeded
            | Self::MethodNotAllowed
            | Self::MediaTypeNotSupported => return None,
        })
    }

    /// 0.1 has no gRPC.
    pub fn grpc_code(self, generation: Generation) -> GrpcCode {
        match generation {
            Generation::V1 => self.row().grpc,
            Generation::V0_3 | Generation::V0_1 => self.row().grpc_v0_3,
        }
    }

    pub fn json_rpc_code(self, generation: Generation) -> i32 {
        let row = self.row();
        match generation {
            Generation::V1 => row.v1,
            Generation::V0_3 => row.v0_3,
            Generation::V0_1 => row.v0_1,
        }
    }
}

/// An error: what a peer may see, and separately what only the log may have.
///
/// Error texts are made before the reader's generation is known. So members and methods whose names differ between
/// generations are placeholders in them ([`Name`]), and [`Error::told`] replaces them with the reader's names.
///
/// Texts are cut where they are too long for an error, so that they may quote what a peer sent.
#[derive(Debug, Clone)]
pub struct Error(Box<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    kind: ErrorKind,
    message: Cow<'static, str>,
    violations: Vec<FieldViolation>,
    info: Vec<(&'static str, String)>,
    retry_after_seconds: Option<u32>,
    log: Option<String>,
}

/// A request member that broke a rule. Both texts may contain [`Name`]s.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldViolation {
    pub field: String,
    pub description: String,
}

impl Error {
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Error(Box::new(Inner {
            kind,
            message: short::cut(message.into(), short::MESSAGE),
            violations: Vec::new(),
            info: Vec::new(),
            retry_after_seconds: None,
            log: None,
        }))
    }

    /// The kind with its standard message.
    pub fn of(kind: ErrorKind) -> Self {
        Self::new(kind, kind.row().message)
    }

    /// Invalid parameters, with the member and what is wrong with it.
    pub fn invalid(field: impl Into<String>, description: impl Into<String>) -> Self {
        let (field, description) = (field.into(), description.into());
        let error = Self::new(ErrorKind::InvalidParams, format!("Invalid parameters: {field} {description}"));
        error.with_violation(field, description)
    }

    /// Adds another member and what is wrong with it.
    pub fn with_violation(mut self, field: impl Into<String>, description: impl Into<String>) -> Self {
        if self.0.violations.len() < short::ENTRIES {
            let cut = |text: String, most| short::cut(text.into(), most).into_owned();
            let (field, description) = (field.into(), description.into());
            let (field, description) = (cut(field, short::VALUE), cut(description, short::MESSAGE));
            self.0.violations.push(FieldViolation { field, description });
        }
        self
    }

    /// A pair for `ErrorInfo.metadata`, such as the task id.
    pub fn with_info(mut self, key: &'static str, value: impl Into<String>) -> Self {
        if self.0.info.len() < short::ENTRIES {
            self.0.info.push((key, short::cut(value.into().into(), short::VALUE).into_owned()));
        }
        self
    }

    pub fn with_retry_after(mut self, seconds: u32) -> Self {
        self.0.retry_after_seconds = Some(seconds);
        self
    }

    /// Adds a cause for the log, which the peer must not see.
    pub fn with_log(mut self, cause: impl fmt::Display) -> Self {
        self.0.log = Some(cause.to_string());
        self
    }

    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message, with names of the reader's generation.
    pub fn told(&self, reader: Dialect) -> Cow<'_, str> {
        short::cut(name::spelled(&self.0.message, reader), short::MESSAGE)
    }

    /// The members that broke a rule, with names of the reader's generation.
    pub fn violations(&self, reader: Dialect) -> Vec<FieldViolation> {
        let spelled = |text: &str, most| short::cut(name::spelled(text, reader), most).into_owned();
        let told = |it: &FieldViolation| FieldViolation {
            field: spelled(&it.field, short::VALUE),
            description: spelled(&it.description, short::MESSAGE),
        };
        self.0.violations.iter().map(told).collect()
    }

    pub fn has_violations(&self) -> bool {
        !self.0.violations.is_empty()
    }

    pub fn info(&self) -> &[(&'static str, String)] {
        &self.0.info
    }

    pub fn retry_after_seconds(&self) -> Option<u32> {
        self.0.retry_after_seconds
    }

    pub fn log(&self) -> Option<&str> {
        self.0.log.as_deref()
    }
}

/// With the names of 1.0, for logs.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told(Dialect::V1))
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_the_enum() {
        for row in TABLE {
            assert_eq!(row.kind.row().kind, row.kind);
        }
    }

    /// The nine errors of the specification, section 5.4 of 1.0.1.
    #[test]
    fn p02_the_nine_specified_errors_have_their_codes() {
        use ErrorKind::*;
        for (kind, code, reason, http, grpc) in [
            (TaskNotFound, -32001, "TASK_NOT_FOUND", 404, "NOT_FOUND"),
            (TaskNotCancelable, -32002, "TASK_NOT_CANCELABLE", 400, "FAILED_PRECONDITION"),
            (PushNotSupported, -32003, "PUSH_NOTIFICATION_NOT_SUPPORTED", 400, "FAILED_PRECONDITION"),
            (UnsupportedOperation, -32004, "UNSUPPORTED_OPERATION", 400, "FAILED_PRECONDITION"),
            (ContentTypeNotSupported, -32005, "CONTENT_TYPE_NOT_SUPPORTED", 400, "INVALID_ARGUMENT"),
            (InvalidAgentResponse, -32006, "INVALID_AGENT_RESPONSE", 500, "INTERNAL"),
            (
                ExtendedCardNotConfigured,
                -32007,
                "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
                400,
                "FAILED_PRECONDITION",
            ),
            (ExtensionSupportRequired, -32008, "EXTENSION_SUPPORT_REQUIRED", 400, "FAILED_PRECONDITION"),
            (VersionNotSupported, -32009, "VERSION_NOT_SUPPORTED", 400, "FAILED_PRECONDITION"),
        ] {
            let row = kind.row();
            assert_eq!(
                (row.v1, row.reason, row.http, row.grpc.name()),
                (code, reason, http, grpc),
                "{kind:?}"
            );
        }
    }

    /// Ruling 10: the A2A reason comes with its row, 400 in HTTP+JSON; what HTTP itself refuses has none.
    #[test]
    fn p07_only_http_matters_have_no_reason() {
        let silent: Vec<_> = TABLE.iter().filter(|row| row.kind.told_reason().is_none()).collect();
        assert_eq!(silent.iter().map(|row| row.kind).collect::<Vec<_>>(), [ErrorKind::MediaTypeNotSupported]);
        for row in TABLE.iter().filter(|row| row.reason == "CONTENT_TYPE_NOT_SUPPORTED") {
            assert_eq!((row.http, row.v1), (400, -32005), "{:?}", row.kind);
        }
    }

    /// 0.1 uses only codes that 0.1 clients know.
    #[test]
    fn legacy_codes_stay_in_their_range() {
        for row in TABLE {
            assert!(
                (-32005..=-32000).contains(&row.v0_1) || row.v0_1 <= -32600,
                "{:?} sends {}",
                row.kind,
                row.v0_1
            );
        }
    }

    /// A caller at its own limit gets another status than callers of a full server.
    #[test]
    fn s12_no_room_is_429_for_one_caller_and_503_for_all() {
        for (kind, http, grpc) in [
            (ErrorKind::QuotaExceeded, 429, "RESOURCE_EXHAUSTED"),
            (ErrorKind::ResourceExhausted, 503, "UNAVAILABLE"),
        ] {
            let row = kind.row();
            assert_eq!((row.v1, row.v0_3, row.v0_1), (-32050, -32050, -32003), "{kind:?}");
            assert_eq!((row.http, row.http_v0_3, row.rpc_http), (http, http, http), "{kind:?}");
            assert_eq!((row.reason, row.grpc.name()), ("RESOURCE_EXHAUSTED", grpc), "{kind:?}");
        }
        let at_429 = TABLE.iter().filter(|row| [row.http, row.http_v0_3, row.rpc_http].contains(&429));
        assert_eq!(at_429.map(|row| row.kind).collect::<Vec<_>>(), [ErrorKind::QuotaExceeded]);
    }

    #[test]
    fn json_rpc_errors_travel_with_200_but_for_the_listed_ones() {
        for row in TABLE {
            assert!([200, 400, 401, 403, 413, 415, 429, 503].contains(&row.rpc_http), "{:?}", row.kind);
            assert_eq!(row.rpc_http == 400, row.v1 == -32700, "{:?}", row.kind);
        }
    }
}
