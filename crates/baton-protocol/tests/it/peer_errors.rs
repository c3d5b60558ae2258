//! Errors as clients read them: what our own servers write, and what others do.

use baton_protocol::error::TABLE;
use baton_protocol::wire::http_json;
use baton_protocol::wire::jsonrpc::{self, Response};
use baton_protocol::wire::peer_error::{PeerError, error_event};
use baton_protocol::{Error, ErrorKind, Generation};

const GENERATIONS: [Generation; 3] = [Generation::V1, Generation::V0_3, Generation::V0_1];

fn by_rpc(generation: Generation, error: &Error) -> PeerError {
    let mut out = Vec::new();
    jsonrpc::write_error(&mut out, None, generation, error);
    let (_, Response::Error { code, message, data }) = jsonrpc::parse_response(&out).unwrap() else {
        panic!("an error was written")
    };
    PeerError::of_rpc(generation, code, message, data, Some(error.kind().row().rpc_http))
}

fn by_http(generation: Generation, error: &Error) -> PeerError {
    let mut out = Vec::new();
    http_json::write_error(&mut out, generation, error);
    let status = http_json::http_status(generation, error.kind());
    PeerError::of_http(generation, Some(status), std::str::from_utf8(&out).unwrap())
}

/// Rows that the wire cannot tell from another row. The last has no reason, and shares its code with the general one.
fn same(kind: ErrorKind) -> ErrorKind {
    match kind {
        ErrorKind::MediaTypeNotSupported => ErrorKind::InvalidRequest,
        ErrorKind::TaskEnded => ErrorKind::UnsupportedOperation,
        ErrorKind::WebhookUrlRefused => ErrorKind::InvalidParams,
        kind => kind,
    }
}

#[test]
fn p09_every_error_of_ours_is_recognised_in_every_binding() {
    for row in TABLE {
        let error = Error::of(row.kind).with_info("taskId", "t-1").with_retry_after(7);
        for generation in GENERATIONS {
            let read = by_rpc(generation, &error);
            assert_eq!(read.kind, Some(same(row.kind)), "{generation:?} {row:?}");
            assert_eq!(read.code, Some(row.kind.json_rpc_code(generation)));
            assert_eq!(read.message, row.message);
            if generation != Generation::V0_1 {
                assert_eq!(read.retry_after_seconds, Some(7));
            }
        }
        for generation in [Generation::V1, Generation::V0_3] {
            let read = by_http(generation, &error);
            // In 1.0 there is neither code nor reason, so that the status tells.
            let by_status = generation == Generation::V1 && row.kind == ErrorKind::MediaTypeNotSupported;
            let expected = if by_status { row.kind } else { same(row.kind) };
            assert_eq!(read.kind, Some(expected), "{generation:?} {row:?}");
            assert_eq!(read.http_status, Some(http_json::http_status(generation, row.kind)));
            assert_eq!(read.message, row.message);
            assert_eq!(read.retry_after_seconds, Some(7));
        }
    }
}

#[test]
fn p09_violations_are_read() {
    let error = Error::invalid("message.parts", "must not be empty");
    for read in [by_rpc(Generation::V1, &error), by_http(Generation::V1, &error)] {
        assert_eq!(read.violations[0].field, "message.parts");
        assert_eq!(read.violations[0].description, "must not be empty");
        assert_eq!(read.a2a_name(), Some("InvalidParamsError"));
    }
}

/// Bodies of deployed servers.
#[test]
fn p09_errors_of_other_servers() {
    let v1 = Generation::V1;
    for (generation, status, body, kind, message) in [
        (Generation::V0_3, 404, r#"{"message":"no task"}"#, Some(ErrorKind::TaskNotFound), "no task"),
        (Generation::V0_3, 500, r#"{"code":-32001,"message":"gone"}"#, Some(ErrorKind::TaskNotFound), "gone"),
        (
            Generation::V0_3,
            500,
            r#"{"type":"TaskNotCancelableError","message":"no"}"#,
            Some(ErrorKind::TaskNotCancelable),
            "no",
        ),
        (v1, 422, r#"{"detail":"bad field"}"#, Some(ErrorKind::InvalidParams), "bad field"),
        (v1, 400, r#"{"title":"Bad","detail":"worse"}"#, Some(ErrorKind::InvalidParams), "worse"),
        (v1, 502, "<html>bad gateway</html>", Some(ErrorKind::Unavailable), "<html>bad gateway</html>"),
        (v1, 404, "not here", None, "not here"),
        (v1, 418, "", None, ""),
        (v1, 401, "null", Some(ErrorKind::Unauthenticated), "null"),
    ] {
        let read = PeerError::of_http(generation, Some(status), body);
        assert_eq!((read.kind, read.message.as_str()), (kind, message), "{status} {body}");
    }
}

/// The same code, another error: only the generation tells.
#[test]
fn p09_codes_of_0_1_have_their_own_meaning() {
    for (code, legacy, later) in [
        (-32006, ErrorKind::UnsupportedOperation, ErrorKind::InvalidAgentResponse),
        (-32007, ErrorKind::Unauthenticated, ErrorKind::ExtendedCardNotConfigured),
        (-32009, ErrorKind::TaskEnded, ErrorKind::VersionNotSupported),
    ] {
        let read = |generation| PeerError::of_rpc(generation, code, String::new(), None, None).kind;
        assert_eq!((read(Generation::V0_1), read(Generation::V1)), (Some(legacy), Some(later)), "{code}");
    }
}

#[test]
fn p09_an_error_on_a_stream_is_told_from_an_event() {
    assert!(error_event(Some("error"), "{}").is_some());
    assert!(error_event(None, r#"{"error":{"code":500}}"#).is_some());
    assert!(error_event(None, r#"{"task":{},"error":null}"#).is_none());
    assert!(error_event(None, r#"{"statusUpdate":{"error":1}}"#).is_none());
}
