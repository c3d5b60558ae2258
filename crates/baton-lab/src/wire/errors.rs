//! Errors by name, according to the specification's tables. Written separately on purpose: the lab must not use the
//! table of the server that it tests.

use serde_json::Value;

use crate::generation::Generation;

/// Name, JSON-RPC code, HTTP status, reason of 1.0.
const V1: &[(&str, i64, u16, &str)] = &[
    ("TaskNotFoundError", -32001, 404, "TASK_NOT_FOUND"),
    ("TaskNotCancelableError", -32002, 400, "TASK_NOT_CANCELABLE"),
    ("PushNotificationNotSupportedError", -32003, 400, "PUSH_NOTIFICATION_NOT_SUPPORTED"),
    ("UnsupportedOperationError", -32004, 400, "UNSUPPORTED_OPERATION"),
    ("ContentTypeNotSupportedError", -32005, 400, "CONTENT_TYPE_NOT_SUPPORTED"),
    ("InvalidAgentResponseError", -32006, 500, "INVALID_AGENT_RESPONSE"),
    ("ExtendedAgentCardNotConfiguredError", -32007, 400, "EXTENDED_AGENT_CARD_NOT_CONFIGURED"),
    ("ExtensionSupportRequiredError", -32008, 400, "EXTENSION_SUPPORT_REQUIRED"),
    ("VersionNotSupportedError", -32009, 400, "VERSION_NOT_SUPPORTED"),
];

/// Errors of JSON-RPC itself.
const RPC: &[(&str, i64)] = &[
    ("JSONParseError", -32700),
    ("InvalidRequestError", -32600),
    ("MethodNotFoundError", -32601),
    ("InvalidParamsError", -32602),
    ("InternalError", -32603),
];

const V0_3: &[(&str, i64)] = &[
    ("TaskNotFoundError", -32001),
    ("TaskNotCancelableError", -32002),
    ("PushNotificationNotSupportedError", -32003),
    ("UnsupportedOperationError", -32004),
    ("ContentTypeNotSupportedError", -32005),
    ("InvalidAgentResponseError", -32006),
    ("AuthenticatedExtendedCardNotConfiguredError", -32007),
];

const V0_1: &[(&str, i64)] = &[
    ("TaskNotFoundError", -32001),
    ("TaskNotCancelableError", -32002),
    ("PushNotificationNotSupportedError", -32003),
    ("UnsupportedOperationError", -32004),
    ("ContentTypeNotSupportedError", -32005),
];

/// By JSON-RPC code.
pub fn of_code(generation: Generation, code: i64) -> Option<&'static str> {
    if let Some((name, _)) = RPC.iter().find(|(_, known)| *known == code) {
        return Some(name);
    }
    let older =
        |table: &'static [(&'static str, i64)]| table.iter().find(|row| row.1 == code).map(|row| row.0);
    match generation {
        Generation::V1 => V1.iter().find(|row| row.1 == code).map(|row| row.0),
        Generation::V0_3 => older(V0_3),
        Generation::V0_1 => older(V0_1),
    }
}

/// By the reason of an ErrorInfo.
pub fn of_reason(reason: &str) -> Option<&'static str> {
    V1.iter().find(|row| row.3 == reason).map(|row| row.0)
}

/// By HTTP status, if only one error has it.
pub fn of_status(status: u16) -> Option<&'static str> {
    let mut rows = V1.iter().filter(|row| row.2 == status);
    let first = rows.next()?;
    rows.next().is_none().then_some(first.0)
}

/// The HTTP status 1.0.1 gives an error.
pub fn http_status(name: &str) -> Option<u16> {
    V1.iter().find(|row| row.0 == name).map(|row| row.2)
}

/// The HTTP status 1.0.0 gave an error, where 1.0.1 gives another.
pub fn first_http_status(name: &str) -> Option<u16> {
    match name {
        "TaskNotCancelableError" => Some(409),
        "ContentTypeNotSupportedError" => Some(415),
        "InvalidAgentResponseError" => Some(502),
        _ => None,
    }
}

/// The gRPC code that 1.0.1 gives an error.
pub fn grpc_code(name: &str) -> Option<i64> {
    Some(match name {
        "TaskNotFoundError" => 5,
        "TaskNotCancelableError"
        | "PushNotificationNotSupportedError"
        | "UnsupportedOperationError"
        | "ExtendedAgentCardNotConfiguredError"
        | "ExtensionSupportRequiredError"
        | "VersionNotSupportedError" => 9,
        "ContentTypeNotSupportedError" | "InvalidParamsError" | "InvalidRequestError" | "JSONParseError" => 3,
        "InvalidAgentResponseError" | "InternalError" => 13,
        "MethodNotFoundError" => 12,
        _ => return None,
    })
}

/// The gRPC code 1.0.0 gave an error, where 1.0.1 gives another.
pub fn first_grpc_code(name: &str) -> Option<i64> {
    let was_unimplemented =
        ["PushNotificationNotSupportedError", "UnsupportedOperationError", "VersionNotSupportedError"];
    was_unimplemented.contains(&name).then_some(12)
}

/// True if the gRPC code is acceptable for this error. 0.3 has no table: there the codes of deployed servers are
/// accepted, and those of 1.0.
pub fn fits_grpc(generation: Generation, name: &str, code: i64) -> bool {
    if grpc_code(name) == Some(code) || first_grpc_code(name) == Some(code) {
        return true;
    }
    generation == Generation::V0_3
        && match name {
            "TaskNotCancelableError" | "ContentTypeNotSupportedError" => code == 12,
            "AuthenticatedExtendedCardNotConfiguredError" => [5, 9, 12].contains(&code),
            _ => false,
        }
}

/// The name with which a message begins, as some servers of 0.3 tell it over gRPC.
pub fn of_message(message: &str) -> Option<&'static str> {
    let word = message.split(':').next()?.trim();
    let known = V0_3.iter().chain(RPC).map(|row| row.0);
    known.into_iter().find(|name| *name == word)
}

/// True if the HTTP status is acceptable for this error in 0.3. The specification asks for "appropriate" statuses and
/// has no table, so statuses that deployed servers use, and those of 1.0, are accepted.
pub fn fits_v0_3(name: &str, status: u16) -> bool {
    let statuses: &[u16] = match name {
        "TaskNotFoundError" => &[404, 410],
        "TaskNotCancelableError" => &[400, 409, 422, 501],
        "PushNotificationNotSupportedError" => &[400, 404, 405, 501],
        "UnsupportedOperationError" => &[400, 404, 405, 409, 422, 501],
        "ContentTypeNotSupportedError" => &[400, 406, 415, 422],
        "InvalidAgentResponseError" => &[500, 502],
        "AuthenticatedExtendedCardNotConfiguredError" => &[400, 404, 501],
        "JSONParseError" | "InvalidRequestError" | "InvalidParamsError" => &[400, 415, 422],
        "MethodNotFoundError" => &[404, 405, 501],
        "InternalError" => &[500],
        _ => &[],
    };
    statuses.contains(&status)
}

/// The JSON-RPC code of a name.
pub fn code_of(generation: Generation, name: &str) -> Option<i64> {
    if let Some(row) = RPC.iter().find(|row| row.0 == name) {
        return Some(row.1);
    }
    let older = |table: &[(&str, i64)]| table.iter().find(|row| row.0 == name).map(|row| row.1);
    match generation {
        Generation::V1 => V1.iter().find(|row| row.0 == name).map(|row| row.1),
        Generation::V0_3 => older(V0_3),
        Generation::V0_1 => older(V0_1),
    }
}

/// The reason of the first ErrorInfo among error details.
pub fn reason_in(details: &Value) -> Option<&str> {
    let list = details.as_array()?;
    let info = list.iter().find(|detail| {
        detail.get("@type").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("google.rpc.ErrorInfo"))
    })?;
    info.get("reason")?.as_str()
}
