//! P-07. Spec 3.6: `A2A-Version` is `Major.Minor` in a header or the query; absent means 0.3; patch numbers are ignored; an
//! unsupported version is VersionNotSupported.

use serde_json::{Value, json};

use crate::agents::obedient;
use crate::harness::{TestServer, serve_agent};
use crate::socket;

const LIST: &str = r#"{"jsonrpc":"2.0","id":7,"method":"ListTasks"}"#;

async fn ask(server: &TestServer, header: Option<&str>, query: &str, body: &str) -> (u16, Value) {
    let url = format!("{}/{query}", server.url);
    let mut request = reqwest::Client::new().post(url).header("content-type", "application/json");
    if let Some(version) = header {
        request = request.header("A2A-Version", version);
    }
    let response = request.body(body.to_owned()).send().await.unwrap();
    let status = response.status().as_u16();
    (status, serde_json::from_str(&response.text().await.unwrap()).unwrap())
}

/// `expected_text` is a part of the error's text, or `None` if the call succeeds.
async fn check(server: &TestServer, header: Option<&str>, query: &str, expected_text: Option<&str>) {
    let (status, body) = ask(server, header, query, LIST).await;
    assert_eq!((status, &body["id"]), (200, &json!(7)), "{header:?} {query}");
    match expected_text {
        None => assert_eq!(body["result"]["totalSize"], 0, "{header:?} {query}: {body}"),
        Some(expected_text) => {
            assert_eq!(body["error"]["code"], -32009, "{header:?} {query}: {body}");
            assert_eq!(body["error"]["data"][0]["reason"], "VERSION_NOT_SUPPORTED");
            let message = body["error"]["message"].as_str().unwrap();
            assert!(message.contains(expected_text), "{header:?} {query}: {message}");
        }
    }
}

const SEND_IT: Option<&str> = Some("send the header `A2A-Version: 1.0`");
const NOT_SPOKEN: Option<&str> = Some("this agent speaks 1.0");

#[tokio::test]
async fn p07_the_version_header_decides() {
    let server = serve_agent(obedient).await;
    for (header, expected_text) in [
        (Some("1.0"), None),
        (Some("1.0.0"), None),
        (Some("1.0.1"), None),
        (Some("1.0.99999"), None),
        (None, SEND_IT),
        (Some(""), SEND_IT),
        (Some("0.3"), SEND_IT),
        (Some("0.3.0"), SEND_IT),
        (Some("0.2"), SEND_IT),
        (Some("0.1"), SEND_IT),
        (Some("1.1"), NOT_SPOKEN),
        (Some("1.5"), NOT_SPOKEN),
        (Some("2.0"), NOT_SPOKEN),
        (Some("10.0"), NOT_SPOKEN),
        (Some("1"), NOT_SPOKEN),
        (Some("1."), NOT_SPOKEN),
        (Some("1.0."), NOT_SPOKEN),
        (Some("1.0.x"), NOT_SPOKEN),
        (Some("1.0.1.1"), NOT_SPOKEN),
        (Some("01.0"), NOT_SPOKEN),
        (Some("v1.0"), NOT_SPOKEN),
        (Some("-1.0"), NOT_SPOKEN),
        (Some("1.0, 0.3"), NOT_SPOKEN),
        (Some("latest"), NOT_SPOKEN),
        (Some("{\"a\":1}"), NOT_SPOKEN),
    ] {
        check(&server, header, "", expected_text).await;
    }
    let long = "9".repeat(5000);
    check(&server, Some(&long), "", NOT_SPOKEN).await;
}

#[tokio::test]
async fn p07_the_query_may_stand_in_for_the_header() {
    let server = serve_agent(obedient).await;
    for (header, query, expected_text) in [
        (None, "?A2A-Version=1.0", None),
        (None, "?a2a-version=1.0", None),
        (None, "?x=y&A2A-Version=1.0.1&z", None),
        (None, "?A2A-Version=1%2E0", None),
        (Some(""), "?A2A-Version=1.0", None),
        (Some("1.0"), "?A2A-Version=0.3", None),
        (Some("0.3"), "?A2A-Version=1.0", SEND_IT),
        (Some("2.0"), "?A2A-Version=1.0", NOT_SPOKEN),
        (None, "?A2A-Version=0.3", SEND_IT),
        (None, "?A2A-Version=", SEND_IT),
        (None, "?A2A-Version", SEND_IT),
        (None, "?version=1.0", SEND_IT),
        (None, "?A2A-Version=2.0", NOT_SPOKEN),
        (None, "?A2A-Version=%FF", NOT_SPOKEN),
        (None, "?A2A-Version=%", NOT_SPOKEN),
    ] {
        check(&server, header, query, expected_text).await;
    }
}

#[tokio::test]
async fn p07_bytes_that_are_no_text_are_a_version_nobody_speaks() {
    let server = serve_agent(obedient).await;
    let head = "POST /?A2A-Version=1.0 HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\na2a-version: ";
    let tail = format!("\r\ncontent-length: {}\r\n\r\n{LIST}", LIST.len());
    let bytes = [head.as_bytes(), b"1.0\xff", tail.as_bytes()].concat();
    let (status, body) = socket::exchange(&server, &bytes).await;
    assert_eq!((status, &body["error"]["code"]), (200, &json!(-32009)), "{body}");
}

/// An unknown method is unknown in every supported version.
#[tokio::test]
async fn p07_an_unknown_method_needs_no_version() {
    let server = serve_agent(obedient).await;
    for (header, code) in
        [(None, -32601), (Some("1.0"), -32601), (Some("0.3"), -32601), (Some("2.0"), -32009)]
    {
        let body = r#"{"jsonrpc":"2.0","id":7,"method":"NoSuchMethod"}"#;
        let (status, body) = ask(&server, header, "", body).await;
        assert_eq!((status, &body["error"]["code"]), (200, &json!(code)), "{header:?}");
    }
}

/// The card is served for every version.
#[tokio::test]
async fn p07_the_card_asks_for_no_version() {
    let server = serve_agent(obedient).await;
    for header in ["", "0.3", "1.0", "2.0", "nonsense"] {
        let url = format!("{}/.well-known/agent-card.json", server.url);
        let response = reqwest::Client::new().get(url).header("a2a-version", header).send().await.unwrap();
        assert_eq!(response.status(), 200, "{header}");
    }
}
