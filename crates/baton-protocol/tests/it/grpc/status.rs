use baton_protocol::error::{ERROR_DOMAIN, TABLE};
use baton_protocol::wire::pb::Package;
use baton_protocol::wire::peer_error::PeerError;
use baton_protocol::{Error, ErrorKind, Generation, Member, Name};
use prost_reflect::prost::Message as _;
use prost_reflect::{DynamicMessage, MessageDescriptor};

use super::oracle::pool;

fn google_rpc_status() -> MessageDescriptor {
    pool().get_message_by_name("google.rpc.Status").unwrap()
}

fn received(package: Package, error: &Error) -> PeerError {
    let status = package.status(error);
    PeerError::of_grpc(package.generation(), status.code.into(), status.message, &status.details)
}

/// Section 5.4 of 1.0.1, and what the Python SDK of 0.3 does, which has no table.
#[test]
fn p02_the_nine_errors_have_their_grpc_codes() {
    use ErrorKind::*;
    let (invalid, not_found, precondition, unimplemented, internal) = (3, 5, 9, 12, 13);
    for (kind, v1, v0_3) in [
        (TaskNotFound, not_found, not_found),
        (TaskNotCancelable, precondition, unimplemented),
        (PushNotSupported, precondition, unimplemented),
        (UnsupportedOperation, precondition, unimplemented),
        (ContentTypeNotSupported, invalid, unimplemented),
        (InvalidAgentResponse, internal, internal),
        (ExtendedCardNotConfigured, precondition, precondition),
        (ExtensionSupportRequired, precondition, precondition),
        (VersionNotSupported, precondition, precondition),
        (Unauthenticated, 16, 16),
        (Forbidden, 7, 7),
    ] {
        for (package, code) in [(Package::V1, v1), (Package::V0_3, v0_3)] {
            assert_eq!(package.status(&Error::of(kind)).code, code, "{kind:?} in {package:?}");
        }
    }
}

#[test]
fn p02_details_are_those_of_google_rpc() {
    let error = Error::invalid(Name::Member(Member::Parts), "must hold text")
        .with_info("taskId", "t-1")
        .with_retry_after(5)
        .with_log("not for the peer");
    // The name in front is where the Python SDK's clients of 0.3 look for it.
    for (package, name, parts) in
        [(Package::V1, "", "message.parts"), (Package::V0_3, "InvalidParamsError: ", "message.content")]
    {
        let status = package.status(&error);
        let message = format!("{name}Invalid parameters: {parts} must hold text");
        assert_eq!((status.code, status.message.as_str()), (3, message.as_str()));
        let expected = serde_json::json!({
            "code": 3,
            "message": message,
            "details": [
                {
                    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                    "reason": "INVALID_PARAMS",
                    "domain": ERROR_DOMAIN,
                    "metadata": {"taskId": "t-1"},
                },
                {
                    "@type": "type.googleapis.com/google.rpc.BadRequest",
                    "fieldViolations": [{"field": parts, "description": "must hold text"}],
                },
                {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "5s"},
            ],
        });
        let details = DynamicMessage::decode(google_rpc_status(), status.details).unwrap();
        assert_eq!(serde_json::to_value(details).unwrap(), expected);
    }
}

/// A client reads the kind that the server meant, except that some kinds are the same error in the protocol.
#[test]
fn p02_every_error_survives_grpc() {
    for package in Package::ALL {
        for row in TABLE {
            let error =
                Error::of(row.kind).with_info("taskId", "t").with_violation("a", "b").with_retry_after(3);
            let read = received(package, &error);
            let expected = match row.kind {
                ErrorKind::TaskEnded => ErrorKind::UnsupportedOperation,
                ErrorKind::WebhookUrlRefused => ErrorKind::InvalidParams,
                // Has no reason, since it is about HTTP.
                ErrorKind::MediaTypeNotSupported => ErrorKind::InvalidParams,
                kind => kind,
            };
            assert_eq!(read.kind, Some(expected), "{package:?}");
            assert_eq!(read.message, row.message);
            assert_eq!(read.grpc_code, Some(row.kind.grpc_code(package.generation()).number().into()));
            assert_eq!((read.violations.len(), read.retry_after_seconds), (1, Some(3)));
            assert_eq!(read.reason.as_deref(), row.kind.told_reason());
        }
    }
}

/// Other servers: without details, with details that cannot be read, with fractions of a second.
#[test]
fn p02_errors_of_others_are_understood_by_what_they_say() {
    for (generation, code, message, kind) in [
        (Generation::V0_3, 5, "TaskNotFoundError: Task not found", Some(ErrorKind::TaskNotFound)),
        (Generation::V0_3, 12, "TaskNotCancelableError: no", Some(ErrorKind::TaskNotCancelable)),
        (Generation::V0_3, 12, "unknown method", Some(ErrorKind::UnsupportedOperation)),
        (Generation::V1, 5, "", Some(ErrorKind::TaskNotFound)),
        (Generation::V1, 16, "who are you?", Some(ErrorKind::Unauthenticated)),
        (Generation::V1, 8, "slow down", Some(ErrorKind::QuotaExceeded)),
        (Generation::V1, 14, "tcp connect error", Some(ErrorKind::Unavailable)),
        (Generation::V1, 1, "cancelled", None),
        (Generation::V1, 2, "unknown", None),
        (Generation::V1, 99, "", None),
    ] {
        for details in [&b""[..], b"\xff\xff", b"\x1a\x02\x0a\x00"] {
            let read = PeerError::of_grpc(generation, code, message.to_owned(), details);
            assert_eq!((read.kind, read.grpc_code), (kind, Some(code)), "{message}");
            let told = message.split_once("Error: ").map_or(message, |(_, told)| told);
            assert_eq!(read.message, told, "the name is not told twice");
        }
    }
    let details = serde_json::json!({
        "details": [
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1.5s"},
            {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND", "domain": "example.org"},
            {"@type": "type.googleapis.com/google.protobuf.Empty", "value": {}},
        ],
    });
    let details = DynamicMessage::deserialize(google_rpc_status(), details).unwrap().encode_to_vec();
    let read = PeerError::of_grpc(Generation::V1, 8, String::new(), &details);
    assert_eq!((read.retry_after_seconds, read.reason.as_deref()), (Some(2), None));
    assert_eq!(
        read.details.unwrap().as_str(),
        r#"[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1.5s"},{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_FOUND","domain":"example.org","metadata":{}},{"@type":"type.googleapis.com/google.protobuf.Empty"}]"#
    );
}
