//! Hundreds of requests with one fault each: every one gets the right client error, and nothing is stored.

use serde_json::{Value, json};

use crate::agents::obedient;
use crate::harness::{TestServer, serve_agent};
use crate::socket;

const JSON: [(&str, &str); 2] = [("content-type", "application/json"), ("a2a-version", "1.0")];

fn good(method: &str) -> Value {
    let message = json!({
        "messageId": "m", "contextId": "c", "role": "ROLE_USER", "parts": [{"text": "a", "metadata": {}}],
        "metadata": {"a": 1}, "extensions": ["https://example.com"], "referenceTaskIds": ["t"],
    });
    let configuration =
        json!({"historyLength": 1, "returnImmediately": true, "acceptedOutputModes": ["text/plain"]});
    let params = json!({"message": message, "configuration": configuration, "metadata": {}, "tenant": ""});
    json!({"jsonrpc": "2.0", "id": 9, "method": method, "params": params})
}

async fn check(server: &TestServer, body: String, status: u16, code: i64) {
    let answer = server.post(&JSON, body.clone()).await;
    let start: String = body.chars().take(600).collect();
    assert_eq!((answer.status, answer.error_code()), (status, code), "{start}: {}", answer.body);
    let text = answer.body["error"]["message"].as_str().unwrap_or_default();
    assert!(!text.is_empty() && text.len() < 1000, "{start}: {text}");
}

async fn nothing_is_stored(server: &TestServer) {
    assert_eq!(server.call("ListTasks", json!({})).await.result()["totalSize"], 0);
}

/// Invalid values by path.
fn bad_values() -> Vec<(&'static str, Vec<Value>)> {
    let long = json!("x".repeat(300));
    let not_object = || vec![json!(1), json!("x"), json!([]), json!(true)];
    let not_list = || vec![json!(1), json!("x"), json!({}), json!([1]), json!([null]), json!([[]])];
    let not_id =
        || vec![json!(1), json!([]), json!({}), json!(true), long.clone(), json!("a\nb"), json!("\u{0}")];
    let joined = |mut values: Vec<Value>, more: Vec<Value>| {
        values.extend(more);
        values
    };
    vec![
        ("/params", vec![json!([]), json!("x"), json!(1), json!({}), json!([{"message": {}}])]),
        ("/params/message", joined(not_object(), vec![Value::Null, json!({})])),
        ("/params/message/messageId", joined(not_id(), vec![Value::Null, json!("")])),
        ("/params/message/contextId", not_id()),
        ("/params/message/taskId", not_id()),
        (
            "/params/message/role",
            vec![
                Value::Null,
                json!("user"),
                json!("ROLE_UNSPECIFIED"),
                json!("ROLE_AGENT"),
                json!(0),
                json!(3),
                json!([]),
            ],
        ),
        (
            "/params/message/parts",
            joined(
                not_list(),
                vec![Value::Null, json!([]), json!([{}]), json!(["a"]), json!([{"kind": "text"}])],
            ),
        ),
        (
            "/params/message/parts/0",
            vec![
                json!({"text": 1}),
                json!({"text": null}),
                json!({"text": ["a"]}),
                json!({"text": "a", "url": "https://example.com"}),
                json!({"text": "a", "data": null}),
                json!({"raw": "***"}),
                json!({"raw": [1, 2]}),
                json!({"url": 1}),
                json!({"text": "a", "filename": 1}),
                json!({"text": "a", "mediaType": {}}),
                json!({"file": {"uri": "https://example.com"}}),
            ],
        ),
        ("/params/message/parts/0/metadata", not_object()),
        ("/params/message/metadata", not_object()),
        ("/params/message/extensions", not_list()),
        ("/params/message/referenceTaskIds", joined(not_list(), vec![json!([""]), json!([long.clone()])])),
        ("/params/configuration", not_object()),
        (
            "/params/configuration/historyLength",
            vec![
                json!(-1),
                json!(1.5),
                json!("x"),
                json!([]),
                json!({}),
                json!(true),
                json!(1e10),
                json!(1e300),
            ],
        ),
        ("/params/configuration/returnImmediately", vec![json!("true"), json!(1), json!([]), json!({})]),
        ("/params/configuration/acceptedOutputModes", not_list()),
        (
            "/params/configuration/taskPushNotificationConfig",
            joined(not_object(), vec![json!({}), json!({"url": 1})]),
        ),
        ("/params/metadata", not_object()),
        (
            "/params/tenant",
            vec![json!(1), json!([]), json!({}), json!("a/b"), json!("ü"), json!("a b"), long],
        ),
    ]
}

#[tokio::test]
async fn p02_members_of_the_wrong_shape_are_invalid_params() {
    let server = serve_agent(obedient).await;
    let mut count = 0;
    for method in ["SendMessage", "SendStreamingMessage"] {
        for (place, values) in bad_values() {
            for value in values {
                let mut body = good(method);
                let (parent, member) = place.rsplit_once('/').unwrap();
                match body.pointer_mut(parent).unwrap() {
                    Value::Array(items) => items[member.parse::<usize>().unwrap()] = value,
                    object => object[member] = value,
                }
                check(&server, body.to_string(), 200, -32602).await;
                count += 1;
            }
        }
    }
    assert!(count >= 200, "{count}");
    nothing_is_stored(&server).await;
}

/// Texts that are valid by JSON's grammar but not as params, and texts that our encoder would not write.
#[tokio::test]
async fn p02_odd_spellings_are_invalid_params() {
    let server = serve_agent(obedient).await;
    for message in [
        r#"{"messageId":"m","role":"ROLE_USER","parts":[{"text":"\ud800"}]}"#,
        r#"{"messageId":"m","role":"ROLE_USER","parts":[{"text":"\udc00\ud800"}]}"#,
        r#"{"messageId":"\ud800","role":"ROLE_USER","parts":[{"text":"a"}]}"#,
        r#"{"messageId":"m","role":"ROLE_USER","parts":[{"data":"\ud800"}]}"#,
        r#"{"messageId":"m","role":"ROLE_USER","parts":[{"data":{"a":1,"a":2}}]}"#,
        r#"{"messageId":"m","role":"ROLE_USER","parts":[{"data":{"a":1,"\u0061":2}}]}"#,
        r#"{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a"}],"metadata":{"a":1,"a":2}}"#,
        r#"{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a"}],"metadata":{"\ud800":1}}"#,
        r#"{"messageId":"m","messageId":"n","role":"ROLE_USER","parts":[{"text":"a"}]}"#,
        r#"{"messageId":"m","message_id":"n","role":"ROLE_USER","parts":[{"text":"a"}]}"#,
        r#"{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a","text":"b"}]}"#,
        r#"{"messageId":"m","role":1e99999,"parts":[{"text":"a"}]}"#,
        r#"["m","c",null,"ROLE_USER",[{"text":"a"}]]"#,
    ] {
        let params = format!(r#"{{"message":{message}}}"#);
        let body = format!(r#"{{"jsonrpc":"2.0","id":9,"method":"SendMessage","params":{params}}}"#);
        check(&server, body, 200, -32602).await;
    }
    for (method, params) in [
        ("GetTask", r#"{}"#),
        ("GetTask", r#"{"id":null}"#),
        ("GetTask", r#"{"id":["a"]}"#),
        ("GetTask", r#"{"name":"tasks/a"}"#),
        ("GetTask", r#"{"id":"a","id":"b"}"#),
        ("GetTask", r#"{"id":"a","historyLength":1e99999}"#),
        ("CancelTask", r#"{"id":"a","metadata":[]}"#),
        ("CancelTask", r#"{"id":{}}"#),
        ("SubscribeToTask", r#"{"id":1}"#),
        ("SubscribeToTask", r#"[]"#),
        ("ListTasks", r#"{"pageSize":1,"page_size":1}"#),
        ("ListTasks", r#"{"pageSize":99999999999999999999}"#),
        ("ListTasks", r#"{"tenant":["a"]}"#),
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":9,"method":"{method}","params":{params}}}"#);
        check(&server, body, 200, -32602).await;
    }
    nothing_is_stored(&server).await;
}

#[tokio::test]
async fn s01_a_request_cut_anywhere_is_a_parse_error() {
    let server = serve_agent(obedient).await;
    let whole = good("SendMessage").to_string();
    for end in 0..whole.len() {
        check(&server, whole[..end].to_owned(), 400, -32700).await;
    }
    nothing_is_stored(&server).await;
}

/// Replaces every byte of a valid request in turn by one that is invalid anywhere in JSON.
#[tokio::test]
async fn s01_a_byte_that_is_no_json_is_a_parse_error_wherever_it_stands() {
    let server = serve_agent(obedient).await;
    let whole = good("SendMessage").to_string();
    for at in 0..whole.len() {
        let mut body = whole.clone().into_bytes();
        body[at] = if at % 2 == 0 { 0xff } else { 0x01 };
        let answer = server.post(&JSON, body).await;
        assert_eq!((answer.status, answer.error_code()), (400, -32700), "at {at}");
    }
    nothing_is_stored(&server).await;
}

#[tokio::test]
async fn p07_bad_headers_start_nothing() {
    let server = serve_agent(obedient).await;
    let body = good("SendStreamingMessage").to_string();
    for (headers, status, code) in [
        (&b"last-event-id: x\r\n"[..], 200, -32602),
        (b"last-event-id: -1\r\n", 200, -32602),
        (b"last-event-id: 1.0\r\n", 200, -32602),
        (b"last-event-id: 1 2\r\n", 200, -32602),
        (b"last-event-id: 99999999999999999999\r\n", 200, -32602),
        (b"last-event-id: \xff\r\n", 200, -32602),
        // A Last-Event-ID with a new message is refused.
        (b"last-event-id: 1\r\n", 200, -32001),
    ] {
        let (got, answer) = socket::exchange(&server, &socket::request(headers, body.as_bytes())).await;
        let shown = String::from_utf8_lossy(headers);
        assert_eq!((got, &answer["error"]["code"]), (status, &json!(code)), "{shown}: {answer}");
    }
    // Requests that are not HTTP: refused by the HTTP layer with a client error.
    for headers in [
        &b"no colon\r\n"[..],
        b"a b: c\r\n",
        b"x: a\0b\r\n",
        b"content-length: x\r\n",
        b"content-length: 1\r\ncontent-length: 2\r\n",
        b"content-length: -1\r\n",
        b"transfer-encoding: nonsense\r\n",
    ] {
        let (got, answer) = socket::exchange(&server, &socket::request(headers, body.as_bytes())).await;
        assert!((400..500).contains(&got), "{}: {got} {answer}", String::from_utf8_lossy(headers));
    }
    nothing_is_stored(&server).await;
}
