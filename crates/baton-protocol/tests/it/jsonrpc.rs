//! S-01: what is a request, what is not, and what is answered.

use baton_protocol::wire::jsonrpc::{self, NoRequest, Response, RpcId, parse_request, parse_response};
use baton_protocol::{Error, ErrorKind, Generation};

fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).unwrap()
}

fn id(text: &str) -> RpcId {
    parse_request(format!(r#"{{"jsonrpc":"2.0","method":"m","id":{text}}}"#).as_bytes()).unwrap().id.unwrap()
}

#[test]
fn s01_requests_are_read() {
    for (body, id, method, params) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"t"}}"#,
            "1",
            "GetTask",
            Some(r#"{"id":"t"}"#),
        ),
        (r#" {"params" : [ 1 ] ,"method":"a/b","id":"x","jsonrpc":"2.0"} "#, r#""x""#, "a/b", Some("[ 1 ]")),
        (r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, "null", "m", None),
        (r#"{"jsonrpc":"2.0","id":"","method":"m","params":null}"#, r#""""#, "m", None),
        (r#"{"jsonrpc":"2.0","id":-1.50e3,"method":"m"}"#, "-1.50e3", "m", None),
        (r#"{"jsonrpc":"2.0","id":"\u00e9\n","method":"\u006d"}"#, r#""\u00e9\n""#, "m", None),
        (
            r#"{"jsonrpc":"2\u002e0","id":12345678901234567890123,"method":"m","x":{}}"#,
            "12345678901234567890123",
            "m",
            None,
        ),
    ] {
        let request = parse_request(body.as_bytes()).unwrap_or_else(|no| panic!("{body}: {}", no.error));
        assert_eq!(
            (request.id.unwrap().as_str(), &*request.method, request.params),
            (id, method, params),
            "{body}"
        );
    }
}

#[test]
fn s01_what_is_not_a_request_is_refused() {
    use ErrorKind::{InvalidRequest, ParseError};
    let long = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"m"}}"#, "x".repeat(257));
    for (body, kind, words) in [
        ("", ParseError, "EOF"),
        ("{", ParseError, "EOF"),
        ("nonsense", ParseError, "expected"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m"} {}"#, ParseError, "trailing"),
        (r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":1"#, ParseError, "EOF"),
        ("[]", InvalidRequest, "batches are not supported"),
        (r#" [{"jsonrpc":"2.0","id":1,"method":"m"}]"#, InvalidRequest, "batches are not supported"),
        ("[", ParseError, "EOF"),
        ("5", InvalidRequest, "must be a JSON object"),
        ("null", InvalidRequest, "must be a JSON object"),
        ("\"x\"", InvalidRequest, "must be a JSON object"),
        ("{}", InvalidRequest, "jsonrpc must be"),
        (r#"{"id":1,"method":"m"}"#, InvalidRequest, "jsonrpc must be"),
        (r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#, InvalidRequest, "jsonrpc must be"),
        (r#"{"jsonrpc":2.0,"id":1,"method":"m"}"#, InvalidRequest, "jsonrpc must be"),
        (r#"{"jsonrpc":null,"id":1,"method":"m"}"#, InvalidRequest, "jsonrpc must be"),
        (r#"{"jsonrpc":"2.0","id":1}"#, InvalidRequest, "method must be"),
        (r#"{"jsonrpc":"2.0","id":1,"method":""}"#, InvalidRequest, "method must be"),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, InvalidRequest, "method must be"),
        (r#"{"jsonrpc":"2.0","id":1,"method":["m"]}"#, InvalidRequest, "method must be"),
        (r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, InvalidRequest, "id must be"),
        (r#"{"jsonrpc":"2.0","id":[1],"method":"m"}"#, InvalidRequest, "id must be"),
        (r#"{"jsonrpc":"2.0","id":true,"method":"m"}"#, InvalidRequest, "id must be"),
        (&long, InvalidRequest, "id is longer"),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#, InvalidRequest, "id is given twice"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","method":"m"}"#, InvalidRequest, "method is given twice"),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{},"params":{}}"#,
            InvalidRequest,
            "params is given twice",
        ),
    ] {
        let NoRequest { id, error } = parse_request(body.as_bytes()).expect_err(body);
        assert_eq!(error.kind(), kind, "{body}: {error}");
        assert!(error.to_string().contains(words), "{body}: {error}");
        // Whatever else is wrong, an id that can be read is repeated.
        let readable =
            kind == InvalidRequest && body.contains(r#"{"jsonrpc":"#) || body.starts_with(r#"{"id""#);
        let readable = readable && body.matches(r#""id":1"#).count() == 1 && !body.contains(r#""id":2"#);
        let readable = readable && !body.trim_start().starts_with('[') && kind == InvalidRequest;
        assert_eq!(id.is_some(), readable, "{body}");
    }
    assert_eq!(parse_request(b"{\"jsonrpc\":\"\xff\"}").unwrap_err().error.kind(), ErrorKind::ParseError);
    assert_eq!(parse_request(br#"{"jsonrpc":"2.0","method":"m"}"#).unwrap().id, None, "told last");
    assert!(
        parse_request(format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"m"}}"#, "x".repeat(256)).as_bytes())
            .is_ok()
    );
}

#[test]
fn s01_every_answer_has_the_version_and_the_id() {
    let result =
        written(|out| jsonrpc::write_result(out, &id(r#""a\u0062""#), |out| out.extend_from_slice(b"null")));
    assert_eq!(result, r#"{"jsonrpc":"2.0","id":"a\u0062","result":null}"#);

    let not_found = Error::of(ErrorKind::TaskNotFound).with_info("taskId", "t");
    for (id, generation, error, expected) in [
        (
            Some(id("7")),
            Generation::V1,
            not_found.clone(),
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32001,"message":"Task not found","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_FOUND","domain":"a2a-protocol.org","metadata":{"taskId":"t"}}]}}"#,
        ),
        (
            None,
            Generation::V1,
            parse_request(b"{").unwrap_err().error,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Invalid JSON payload: EOF while parsing an object at line 1 column 1","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"PARSE_ERROR","domain":"a2a-protocol.org"}]}}"#,
        ),
        (
            Some(id("7")),
            Generation::V0_1,
            Error::of(ErrorKind::TaskEnded),
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32002,"message":"The task has ended and takes no more messages","data":{"reason":"UNSUPPORTED_OPERATION"}}}"#,
        ),
    ] {
        assert_eq!(written(|out| jsonrpc::write_error(out, id.as_ref(), generation, &error)), expected);
    }
}

#[test]
fn responses_are_read() {
    let body =
        written(|out| jsonrpc::write_error(out, None, Generation::V1, &Error::of(ErrorKind::Internal)));
    let (none, Response::Error { code, message, data }) = parse_response(body.as_bytes()).unwrap() else {
        panic!("{body}")
    };
    assert_eq!((none, code, message.as_str()), (None, -32603, "Internal error"));
    assert!(data.unwrap().starts_with('['));

    for (body, expected) in [
        (r#"{"jsonrpc":"2.0","id":1,"result":null}"#, Response::Result("null")),
        // As the Python SDK writes it.
        (r#"{"jsonrpc":"2.0","id":1}"#, Response::Result("null")),
        (r#"{"id":1,"result":{"a": 1}}"#, Response::Result(r#"{"a": 1}"#)),
        (
            r#"{"id":1,"result":null,"error":{"code":-32001}}"#,
            Response::Error { code: -32001, message: String::new(), data: None },
        ),
    ] {
        assert_eq!(parse_response(body.as_bytes()).unwrap(), (Some(RpcId::number(1)), expected), "{body}");
    }
    for body in [
        "",
        "[]",
        "{}",
        r#"{"id":{},"result":1}"#,
        r#"{"id":1,"error":{"code":"x"}}"#,
        r#"{"id":1,"error":5}"#,
    ] {
        assert_eq!(
            parse_response(body.as_bytes()).unwrap_err().kind(),
            ErrorKind::InvalidAgentResponse,
            "{body}"
        );
    }
}

#[test]
fn what_the_client_writes_the_server_reads() {
    let body = written(|out| {
        jsonrpc::write_request(out, &RpcId::number(3), "GetTask", |out| {
            out.extend_from_slice(br#"{"id":"t"}"#)
        })
    });
    let request = parse_request(body.as_bytes()).unwrap();
    assert_eq!(
        (request.id, &*request.method, request.params),
        (Some(RpcId::number(3)), "GetTask", Some(r#"{"id":"t"}"#))
    );
}
