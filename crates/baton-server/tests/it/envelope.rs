//! S-01. JSON-RPC 2.0 section 4: a request has `jsonrpc`, `method` and, since every A2A call has an answer, an `id`;
//! section 5: the answer has the same id, also with an error, or null if the id could not be read.

use serde_json::{Value, json};

use crate::agents::obedient;
use crate::harness::{TestServer, message, serve_agent};

const HEADERS: [(&str, &str); 2] = [("content-type", "application/json"), ("a2a-version", "1.0")];

/// The body is refused, and the answer's id is null.
async fn check(server: &TestServer, body: impl AsRef<[u8]>, status: u16, code: i64) {
    check_with(server, body, status, code, Value::Null).await;
}

async fn check_with(server: &TestServer, body: impl AsRef<[u8]>, status: u16, code: i64, id: Value) {
    let body = body.as_ref();
    let shown = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
    let answer = server.post(&HEADERS, body.to_vec()).await;
    assert_eq!((answer.status, answer.error_code()), (status, code), "{shown}: {}", answer.body);
    assert_eq!(answer.body["jsonrpc"], "2.0", "{shown}");
    assert_eq!(answer.body.get("id"), Some(&id), "{shown}");
    assert_eq!(answer.header("content-type"), Some("application/json"), "{shown}");
    assert!(answer.body["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{shown}");
}

async fn text_of(server: &TestServer, body: String) -> String {
    server.send_raw(&HEADERS, body).await.text().await.unwrap()
}

#[tokio::test]
async fn s01_what_is_not_json_is_a_parse_error() {
    let server = serve_agent(obedient).await;
    let deep = "[".repeat(100_000);
    for body in [
        "",
        " ",
        "{",
        "}",
        "nonsense",
        "NaN",
        "{'jsonrpc': '2.0'}",
        r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"a"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"GetTask",}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"GetTask"} {}"#,
        r#"{"jsonrpc":"2.0","id":01,"method":"GetTask"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":tru}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"Get"#,
        r#"{"jsonrpc":"2.0","id":"\x","method":"GetTask"}"#,
        "{\"jsonrpc\":\"2.0\",\"id\":\"a\nb\",\"method\":\"GetTask\"}",
        "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"GetTask\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"GetTask\"}\0",
        &deep,
    ] {
        check(&server, body, 400, -32700).await;
    }
}

#[tokio::test]
async fn s01_what_is_not_utf8_is_a_parse_error() {
    let server = serve_agent(obedient).await;
    // A stray byte, a cut sequence, an overlong slash, half of a surrogate pair.
    for bytes in [&b"\xff"[..], b"\xe2\x82", b"\xc0\xaf", b"\xed\xa0\x80"] {
        let mut body = br#"{"jsonrpc":"2.0","method":"GetTask","params":{"id":"x"},"id":""#.to_vec();
        body.extend_from_slice(bytes);
        body.extend_from_slice(b"\"}");
        check(&server, body, 400, -32700).await;
    }
    let utf16: Vec<u8> = r#"{"jsonrpc":"2.0"}"#.encode_utf16().flat_map(u16::to_le_bytes).collect();
    check(&server, utf16, 400, -32700).await;
}

#[tokio::test]
async fn s01_json_that_is_no_request_is_refused() {
    let server = serve_agent(obedient).await;
    let good = r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{}}"#;
    assert!(text_of(&server, good.to_owned()).await.contains("\"result\""));

    let long_string = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"ListTasks"}}"#, "x".repeat(257));
    let huge_string = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"ListTasks"}}"#, "x".repeat(1 << 20));
    let long_number = format!(r#"{{"jsonrpc":"2.0","id":{},"method":"ListTasks"}}"#, "1".repeat(300));
    let closed_deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let batch = format!("[{good}]");
    for body in [
        // Not an object; batches, too.
        "null",
        "true",
        "1",
        "\"SendMessage\"",
        "[]",
        "[1]",
        &batch,
        &closed_deep,
        "{}",
        // Invalid ids.
        r#"{"jsonrpc":"2.0","id":true,"method":"ListTasks"}"#,
        r#"{"jsonrpc":"2.0","id":[1],"method":"ListTasks"}"#,
        r#"{"jsonrpc":"2.0","id":{"a":1},"method":"ListTasks"}"#,
        r#"{"jsonrpc":"2.0","id":true,"method":"NoSuchMethod"}"#,
        &long_string,
        &huge_string,
        &long_number,
        // Two ids: the client may wait for either.
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ListTasks"}"#,
        r#"{"jsonrpc":"2.0","id":1,"\u0069d":2,"method":"ListTasks"}"#,
    ] {
        check(&server, body, 200, -32600).await;
    }
    for (rest, id) in [
        // jsonrpc.
        (r#""method":"ListTasks""#, "1"),
        (r#""jsonrpc":null,"method":"ListTasks""#, "1"),
        (r#""jsonrpc":2.0,"method":"ListTasks""#, r#""a""#),
        (r#""jsonrpc":"1.0","method":"ListTasks""#, "1"),
        (r#""jsonrpc":"2","method":"ListTasks""#, "null"),
        (r#""jsonrpc":"","method":"ListTasks""#, "1"),
        (r#""jsonrpc":["2.0"],"method":"ListTasks""#, "-1.5"),
        (r#""JSONRPC":"2.0","method":"ListTasks""#, "1"),
        // method.
        (r#""jsonrpc":"2.0""#, "1"),
        (r#""jsonrpc":"2.0","method":null"#, r#""""#),
        (r#""jsonrpc":"2.0","method":1"#, "1"),
        (r#""jsonrpc":"2.0","method":"""#, "1"),
        (r#""jsonrpc":"2.0","method":["ListTasks"]"#, "1"),
        (r#""jsonrpc":"2.0","method":{"name":"ListTasks"}"#, "1"),
        // Members given twice: two readers could understand two different requests.
        (r#""jsonrpc":"2.0","jsonrpc":"2.0","method":"ListTasks""#, "1"),
        (r#""jsonrpc":"2.0","method":"ListTasks","method":"GetTask""#, r#""b""#),
        (r#""jsonrpc":"2.0","method":"ListTasks","params":{},"params":{}"#, "1"),
    ] {
        let known = serde_json::from_str(id).unwrap();
        check_with(&server, format!(r#"{{"id":{id},{rest}}}"#), 200, -32600, known).await;
        check_with(&server, format!(r#"{{{rest}}}"#), 200, -32600, Value::Null).await;
    }
}

/// A request without an id is not carried out; this is checked last, after method and params.
#[tokio::test]
async fn s01_a_missing_id_is_told_last_and_runs_nothing() {
    let server = serve_agent(obedient).await;
    let send = message("hello").to_string();
    let legacy = crate::speakers::task("t", "hello").to_string();
    for (version, method, params, code) in [
        ("1.0", "NoSuchMethod", "{}", -32601),
        ("", "message/nothing", "{}", -32601),
        ("2.0", "ListTasks", "{}", -32009),
        ("1.0", "SendMessage", "{}", -32602),
        ("1.0", "ListTasks", "[]", -32602),
        ("", "tasks/send", "{}", -32602),
        ("1.0", "ListTasks", "{}", -32600),
        ("1.0", "SendMessage", &send, -32600),
        ("1.0", "SendStreamingMessage", &send, -32600),
        ("", "tasks/send", &legacy, -32600),
        ("", "tasks/sendSubscribe", &legacy, -32600),
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#);
        let headers = [("content-type", "application/json"), ("a2a-version", version)];
        let answer = server.post(&headers, body).await;
        assert_eq!((answer.status, answer.error_code()), (200, code), "{method}: {}", answer.body);
        assert_eq!(answer.body.get("id"), Some(&Value::Null), "{method}");
    }
    assert_eq!(server.call("ListTasks", json!({})).await.result()["totalSize"], 0, "nothing ran");
    // Null is accepted as an id: an existing client sends it.
    let send = message("hello");
    let body = json!({"jsonrpc": "2.0", "id": null, "method": "SendMessage", "params": send});
    let answer = server.post(&HEADERS, body.to_string()).await;
    assert_eq!((answer.status, answer.body.get("id")), (200, Some(&Value::Null)));
    assert!(answer.result()["task"]["id"].is_string());
}

#[tokio::test]
async fn s01_the_id_is_echoed_as_it_was_spelled() {
    let server = serve_agent(obedient).await;
    let longest = format!("\"{}\"", "x".repeat(256));
    for id in [
        "null",
        "0",
        "1",
        "-7",
        "-0",
        "1.5",
        "1.0",
        "1e2",
        "1E+2",
        "12345678901234567890123456789",
        "0.1000000000000000055511151231257827",
        r#""""#,
        r#""1""#,
        r#""null""#,
        r#""ünï 😀""#,
        r#""\u00fc\ud83d\ude00""#,
        r#""a\"b\\c\/d\n""#,
        &longest,
    ] {
        let prefix = format!(r#"{{"jsonrpc":"2.0","id":{id},"#);
        for (method, member) in
            [("ListTasks", "\"result\":"), ("GetTask", "\"error\":"), ("NoSuchMethod", "\"error\":")]
        {
            let body = format!(r#"{{"method":"{method}","id": {id} ,"jsonrpc":"2.0"}}"#);
            let text = text_of(&server, body).await;
            let rest = text.strip_prefix(&prefix).unwrap_or_else(|| panic!("{id}: {text}"));
            assert!(rest.starts_with(member), "{id}: {text}");
        }
    }
}

#[tokio::test]
async fn s01_an_unknown_method_is_told_with_the_id() {
    let server = serve_agent(obedient).await;
    let long = "x".repeat(100_000);
    for method in ["Nothing", "sendMessage", " ListTasks", "ListTasks\u{0}", "rpc.discover", "ünï", &long] {
        let answer = server.call(method, json!({})).await;
        assert_eq!((answer.status, answer.error_code()), (200, -32601), "{method}");
        assert_eq!(answer.body["id"], 1);
        assert_eq!(answer.body["error"]["data"][0]["reason"], "METHOD_NOT_FOUND");
        let told = answer.body["error"]["message"].as_str().unwrap();
        assert!(told.len() < 1000, "a client's own text is not sent back at length");
    }
}

#[tokio::test]
async fn s01_params_are_an_object_or_nothing() {
    let server = serve_agent(obedient).await;
    for params in ["[]", r#"["a"]"#, r#""a""#, "1", "true"] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":"p","method":"ListTasks","params":{params}}}"#);
        let answer = server.post(&HEADERS, body).await;
        assert_eq!((answer.status, answer.error_code()), (200, -32602), "{params}");
        assert_eq!(answer.body["id"], "p");
    }
    for rest in ["", r#","params":null"#, r#","params":{}"#, r#","params":{"unknown":[1]},"unknown":{}"#] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":"p","method":"ListTasks"{rest}}}"#);
        assert_eq!(server.post(&HEADERS, body).await.result()["totalSize"], 0, "{rest}");
    }
}

#[tokio::test]
async fn s01_deep_nesting_costs_an_error_and_no_more() {
    let server = serve_agent(obedient).await;
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let inner = if open == "[" { "" } else { "1" };
        let deep = format!("{}{inner}{}", open.repeat(100_000), close.repeat(100_000));
        for message in [
            format!(
                r#"{{"messageId":"m","role":"ROLE_USER","parts":[{{"text":"a"}}],"metadata":{{"a":{deep}}}}}"#
            ),
            format!(r#"{{"messageId":"m","role":"ROLE_USER","parts":[{{"data":{deep}}}]}}"#),
            format!(r#"{{"messageId":"m","role":"ROLE_USER","parts":{deep}}}"#),
            deep.clone(),
        ] {
            let params = format!(r#"{{"message":{message}}}"#);
            let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{params}}}"#);
            let answer = server.post(&HEADERS, body).await;
            assert_eq!((answer.status, answer.error_code()), (200, -32602), "{}", answer.body);
        }
        // In members that are not read it does no harm.
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{{"unknown":{deep}}}}}"#);
        assert_eq!(server.post(&HEADERS, body).await.result()["totalSize"], 0);
    }
}

#[tokio::test]
async fn s01_equal_ids_on_many_connections_do_not_cross() {
    let server = serve_agent(obedient).await;
    let calls = (0..50).map(|number| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message(&format!("n{number}"))});
        // A client, and so a connection, of its own.
        let request = reqwest::Client::new().post(&server.url).body(body.to_string());
        let request = request.header("a2a-version", "1.0").header("content-type", "application/json");
        async move { (number, request.send().await.unwrap().text().await.unwrap()) }
    });
    for (number, text) in futures_util::future::join_all(calls).await {
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(answer["id"], 1);
        let echoed = &answer["result"]["task"]["artifacts"][0]["parts"][0]["text"];
        assert_eq!(*echoed, format!("n{number}"));
    }
}
