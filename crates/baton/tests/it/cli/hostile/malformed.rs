//! Servers that talk nonsense: what they send is not of the protocol, or not HTTP.

use serde_json::{Value, json};

use super::server::{Asked, EVENTS, Sent, body, envelope, head, result, stream, task};
use super::{BAD, INTERNAL, LOST, OK, Row, calls, check, each_call, nothing, streams};

fn raw(text: &str) -> Sent {
    Sent::Bytes(text.as_bytes().to_vec())
}

/// One event, with this data.
fn event(data: impl AsRef<[u8]>) -> Sent {
    Sent::Bytes([&head("200 OK", &[EVENTS])[..], b"data: ", data.as_ref(), b"\n\n"].concat())
}

/// The right answer with other bytes in the middle.
fn replaced(asked: &Asked, from: &str, to: &[u8]) -> Sent {
    let value = match asked.method() {
        "ListTasks" => json!({"tasks": [task("COMPLETED")]}),
        "GetTask" => task("COMPLETED"),
        _ => json!({"task": task("COMPLETED")}),
    };
    let text = envelope(asked, &value);
    let (before, after) = text.split_once(from).unwrap();
    body([before.as_bytes(), to, after.as_bytes()].concat())
}

#[test]
fn p09_what_is_not_of_the_protocol_is_an_invalid_response() {
    let rows: &[Row] = &[
        calls("a word", BAD, |_| body("hello")),
        calls("a web page", BAD, |_| {
            raw("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<h1>Welcome</h1>")
        }),
        calls("nothing", BAD, |_| body("")),
        calls("no content", BAD, |_| raw("HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")),
        calls("half of the JSON", BAD, |asked| body(&envelope(asked, &task("COMPLETED"))[..60])),
        calls("two documents", BAD, |asked| body(envelope(asked, &task("COMPLETED")).repeat(2))),
        calls("not UTF-8", BAD, |asked| replaced(asked, "c-1", b"c\xff\xfe")),
        calls("half a surrogate", BAD, |asked| replaced(asked, "t-1", b"\\ud800")),
        calls("an empty object", BAD, |_| body("{}")),
        calls("a list", BAD, |_| body("[]")),
        calls("the result is a number", BAD, |asked| result(asked, &json!(7))),
        calls("the result is a text", BAD, |asked| result(asked, &json!("task"))),
        calls("the result is a list", BAD, |asked| result(asked, &json!([]))),
        calls("the result is null", BAD, |asked| result(asked, &Value::Null)),
        calls("everything is a number", BAD, |asked| {
            result(asked, &json!({"task": 1, "tasks": 2, "id": 3, "status": 4}))
        }),
        calls("ids are numbers", BAD, |asked| {
            let task = json!({"id": 1, "contextId": 2, "status": {"state": "TASK_STATE_COMPLETED"}});
            result(asked, &json!({"id": 1, "task": task, "tasks": [task]}))
        }),
        each_call("an object without members", [BAD, BAD, BAD, BAD, OK], |asked| result(asked, &json!({}))),
        calls("another request's id", BAD, |_| {
            body(json!({"jsonrpc": "2.0", "id": 77, "result": task("COMPLETED")}).to_string())
        }),
        calls("the error is a number", BAD, |asked| {
            body(json!({"jsonrpc": "2.0", "id": asked.body["id"], "error": 7}).to_string())
        }),
        calls("the error has no code", BAD, |asked| {
            body(json!({"jsonrpc": "2.0", "id": asked.body["id"], "error": {"message": "no"}}).to_string())
        }),
        calls("a proxy's error page", INTERNAL, |_| {
            raw(
                "HTTP/1.1 502 Bad Gateway\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<h1>Bad gateway</h1>",
            )
        }),
        calls("a stream of nothing", BAD, |_| event("")),
        calls("a compressed answer that nobody asked for", BAD, |_| {
            let gzip = ["content-type: application/json", "content-encoding: gzip"];
            Sent::Bytes(
                [&head("200 OK", &gzip)[..], b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xab\x56\x2a"]
                    .concat(),
            )
        }),
        // A content type is a label; what counts is what is inside.
        each_call("a wrong content type", [OK, OK, OK, OK, OK], |asked| {
            let value = match asked.method() {
                "ListTasks" => json!({"tasks": [task("COMPLETED")]}),
                "GetTask" => task("COMPLETED"),
                _ => json!({"task": task("COMPLETED")}),
            };
            let plain = head("200 OK", &["content-type: text/plain"]);
            Sent::Bytes([plain, envelope(asked, &value).into_bytes()].concat())
        }),
    ];
    check(rows, &[], |_, server, _| {
        let compressed =
            server.asked().iter().any(|asked| asked.head.to_lowercase().contains("accept-encoding"));
        assert!(!compressed, "what is not asked for cannot explode");
    });
}

/// The wait of `send` and the others goes on with the task itself, once it is known.
#[test]
fn p09_events_that_are_not_of_the_protocol() {
    let rows: &[Row] = &[
        streams("not JSON", [BAD, BAD, BAD], |_| event("hello")),
        streams("half an event", [BAD, BAD, BAD], |asked| {
            event(&envelope(asked, &json!({"task": task("WORKING")}))[..50])
        }),
        streams("neither task nor message", [BAD, BAD, BAD], |asked| event(envelope(asked, &json!({})))),
        streams("two at once", [BAD, BAD, BAD], |asked| {
            event(envelope(
                asked,
                &json!({"task": task("WORKING"), "message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "x"}]}}),
            ))
        }),
        streams("of another request", [BAD, BAD, BAD], |_| {
            event(json!({"jsonrpc": "2.0", "id": 77, "result": {"task": task("WORKING")}}).to_string())
        }),
        streams("nonsense after a task", [OK, OK, OK], |asked| {
            Sent::Bytes(
                [stream(asked, &[json!({"task": task("WORKING")})]), b"data: nonsense\n\n".to_vec()].concat(),
            )
        }),
        streams("wrong types after a task", [OK, OK, OK], |asked| {
            Sent::Bytes(stream(
                asked,
                &[json!({"task": task("WORKING")}), json!({"statusUpdate": {"taskId": 7}})],
            ))
        }),
        streams("not UTF-8", [OK, OK, OK], |asked| {
            let mut said = task("COMPLETED");
            said["status"]["message"] =
                json!({"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "?"}]});
            let text = envelope(asked, &json!({"task": said}));
            let (before, after) = text.split_once('?').unwrap();
            event([before.as_bytes(), b"\xff\xfe", after.as_bytes()].concat())
        }),
        streams("an id that no header can have", [OK, OK, OK], |asked| match asked.before {
            0 => {
                let first = envelope(asked, &json!({"task": task("WORKING")}));
                let id = format!("id: \u{1}é\u{7f}\ndata: {first}\n\n");
                Sent::Bytes([head("200 OK", &[EVENTS]), id.into_bytes()].concat())
            }
            _ => super::server::right(asked),
        }),
    ];
    check(rows, &[], nothing);
}

#[test]
fn p09_what_is_not_http_is_no_connection() {
    let rows: &[Row] = &[
        calls("SSH", LOST, |_| raw("SSH-2.0-OpenSSH_9.2\r\n")),
        calls("no status", LOST, |_| raw("HTTP/1.1 OK\r\n\r\n{}")),
        calls("another protocol", LOST, |_| raw("\0\0\x12\x04\0\0\0\0\0\0\x03\0\0\0\x64")),
        calls("JSON without a head", LOST, |_| raw("{\"jsonrpc\":\"2.0\"}")),
        calls("a chunk of no size", LOST, |_| {
            raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n{}\r\n0\r\n\r\n")
        }),
        calls("two lengths", LOST, |_| {
            raw("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 20\r\n\r\n{}")
        }),
    ];
    check(rows, &[], nothing);
}
