use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{HANG, TestServer};

/// A request's head up to the blank line, without the headers that frame its body.
pub(crate) const HEAD: &str = "POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\na2a-version: 1.0\r\ncontent-type: application/json\r\n";

/// The answer to exactly these bytes.
pub(crate) async fn exchange(server: &TestServer, request: &[u8]) -> (u16, Value) {
    let address = server.url.strip_prefix("http://").unwrap();
    let talk = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // A server that has heard enough may close before everything is sent.
        let _ = stream.write_all(request).await;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        String::from_utf8(answer).unwrap()
    };
    let answer = tokio::time::timeout(HANG, talk).await.expect("an answer came");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status line");
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

/// A whole request with more headers, given as bytes, and a body.
pub(crate) fn request(headers: &[u8], body: &[u8]) -> Vec<u8> {
    let framing = format!("content-length: {}\r\n\r\n", body.len());
    [HEAD.as_bytes(), headers, framing.as_bytes(), body].concat()
}
