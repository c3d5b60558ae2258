//! The status with which a call ends: its code, its message, its details.

use serde_json::{Value, json};

use super::decode;
use super::encode::from_base64;
use super::schema::Schema;

/// Number, name, and the HTTP status that says the same.
const CODES: &[(u8, &str, u16)] = &[
    (0, "OK", 200),
    (1, "CANCELLED", 499),
    (2, "UNKNOWN", 500),
    (3, "INVALID_ARGUMENT", 400),
    (4, "DEADLINE_EXCEEDED", 504),
    (5, "NOT_FOUND", 404),
    (6, "ALREADY_EXISTS", 409),
    (7, "PERMISSION_DENIED", 403),
    (8, "RESOURCE_EXHAUSTED", 429),
    (9, "FAILED_PRECONDITION", 400),
    (10, "ABORTED", 409),
    (11, "OUT_OF_RANGE", 400),
    (12, "UNIMPLEMENTED", 501),
    (13, "INTERNAL", 500),
    (14, "UNAVAILABLE", 503),
    (15, "DATA_LOSS", 500),
    (16, "UNAUTHENTICATED", 401),
];

/// `code` is the number.
pub(crate) fn name(code: i64) -> &'static str {
    CODES.iter().find(|row| i64::from(row.0) == code).map_or("a code that gRPC has not", |row| row.1)
}

/// The HTTP status of a code: the checks know whether the caller, the agent or nobody is to blame by it.
pub(crate) fn http(code: i64) -> u16 {
    CODES.iter().find(|row| i64::from(row.0) == code).map_or(500, |row| row.2)
}

/// How a call ended, read from its trailers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Status {
    pub(crate) code: i64,
    pub(crate) message: String,
    /// As in the details of an HTTP+JSON error; null if there are none.
    pub(crate) details: Value,
    /// What is wrong with `grpc-status-details-bin`.
    pub(crate) trouble: Option<String>,
}

impl Status {
    /// `None` if there is no `grpc-status`.
    pub(crate) fn read(headers: &[(String, String)]) -> Option<Self> {
        let header = |name: &str| {
            let found = headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.as_str())
        };
        let code = header("grpc-status")?.trim().parse().unwrap_or(-1);
        let message = percent_decoded(header("grpc-message").unwrap_or_default());
        let (details, trouble) = match header("grpc-status-details-bin").map(|text| details(text, code)) {
            None => (Value::Null, None),
            Some(Ok(details)) => (details, None),
            Some(Err(trouble)) => (Value::Null, Some(trouble)),
        };
        Some(Status { code, message, details, trouble })
    }

    /// The error in the form of HTTP+JSON, with the number of gRPC as its code.
    pub(crate) fn body(&self) -> Value {
        json!({"error": {"code": self.code, "status": name(self.code), "message": self.message,
            "details": self.details}})
    }
}

/// The details of a `google.rpc.Status`, which repeats the code.
fn details(text: &str, code: i64) -> Result<Value, String> {
    let bytes = from_base64(text.trim()).ok_or("grpc-status-details-bin is not base64")?;
    let read = decode::message(Schema::errors(), "Status", &bytes)
        .map_err(|malformed| format!("grpc-status-details-bin is no google.rpc.Status: {malformed}"))?;
    let own = read.value.get("code").and_then(Value::as_i64).unwrap_or_default();
    if own != code {
        return Err(format!("grpc-status-details-bin has the code {own}, grpc-status {code}"));
    }
    if let Some(odd) = read.odd.first() {
        return Err(format!("grpc-status-details-bin: {odd}"));
    }
    Ok(read.value.get("details").cloned().unwrap_or_default())
}

fn percent_decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&byte, after)) = rest.split_first() {
        let hex = after.get(..2).filter(|_| byte == b'%').and_then(|two| std::str::from_utf8(two).ok());
        let escaped = hex.and_then(|two| u8::from_str_radix(two, 16).ok());
        bytes.push(escaped.unwrap_or(byte));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD_NO_PAD;

    use super::super::protobuf::{put_bytes, put_number};
    use super::*;

    fn details_of(code: u64) -> String {
        let (mut info, mut any, mut status) = (Vec::new(), Vec::new(), Vec::new());
        put_bytes(&mut info, 1, b"TASK_NOT_FOUND");
        put_bytes(&mut info, 2, b"a2a-protocol.org");
        put_bytes(&mut any, 1, b"type.googleapis.com/google.rpc.ErrorInfo");
        put_bytes(&mut any, 2, &info);
        put_number(&mut status, 1, code);
        put_bytes(&mut status, 3, &any);
        STANDARD_NO_PAD.encode(status)
    }

    fn read(details: &str) -> Status {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        Status::read(&[
            header("grpc-status", "5"),
            header("grpc-message", "no such t%C3%A4sk 100%"),
            header("grpc-status-details-bin", details),
        ])
        .unwrap()
    }

    #[test]
    fn a_status_is_read_with_its_details() {
        let status = read(&details_of(5));
        assert_eq!((status.code, status.message.as_str()), (5, "no such täsk 100%"));
        assert_eq!(
            status.details,
            json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND",
                "domain": "a2a-protocol.org"}])
        );
        assert_eq!(status.body()["error"]["status"], "NOT_FOUND");
        for wrong in ["!", "Kg", &details_of(3)] {
            let status = read(wrong);
            assert!(status.trouble.is_some() && status.details.is_null(), "{wrong}");
        }
        assert_eq!(Status::read(&[]), None);
    }
}
