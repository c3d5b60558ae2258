use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{TEST_TIMEOUT, TestServer};

/// A request's head up to the blank line, without the headers that frame its body.
pub(crate) const HEAD: &str = "POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\na2a-version: 1.0\r\ncontent-type: application/json\r\n";

pub(crate) fn address(server: &TestServer) -> SocketAddr {
    server.url.strip_prefix("http://").unwrap().parse().unwrap()
}

pub(crate) async fn connect(server: &TestServer) -> TcpStream {
    TcpStream::connect(address(server)).await.unwrap()
}

/// Sends exactly these bytes and returns status and body of the only answer.
pub(crate) async fn exchange(server: &TestServer, request: &[u8]) -> (u16, Value) {
    let replies = replies(&talk(server, request).await);
    let [reply] = &replies[..] else { panic!("not one answer: {replies:?}") };
    (reply.status, serde_json::from_str(&reply.body).unwrap_or(Value::Null))
}

/// Sends these bytes and returns everything the server sends until it closes the connection.
pub(crate) async fn talk(server: &TestServer, bytes: &[u8]) -> Vec<u8> {
    let mut stream = connect(server).await;
    // The server may close the connection before everything is sent.
    let _ = stream.write_all(bytes).await;
    until_closed(&mut stream).await
}

pub(crate) async fn until_closed(stream: &mut TcpStream) -> Vec<u8> {
    let mut answer = Vec::new();
    let read = tokio::time::timeout(TEST_TIMEOUT, stream.read_to_end(&mut answer)).await;
    read.expect("the server closes the connection").unwrap();
    answer
}

/// Waits for one answer on a connection that stays open; skips `100 Continue`.
pub(crate) async fn one_reply(stream: &mut TcpStream) -> Reply {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some((reply, rest)) = split_reply(&bytes) {
            if reply.status != 100 {
                assert!(rest.is_empty(), "more than one answer");
                return reply;
            }
            bytes = rest.to_vec();
            continue;
        }
        let count = tokio::time::timeout(TEST_TIMEOUT, stream.read(&mut buffer))
            .await
            .expect("an answer came")
            .unwrap();
        assert!(count > 0, "closed within an answer: {:?}", bytes.escape_ascii().to_string());
        bytes.extend_from_slice(&buffer[..count]);
    }
}

/// An HTTP/1 response as text.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

/// Splits received bytes into answers; skips `100 Continue`. Bodies must have a Content-Length.
pub(crate) fn replies(mut bytes: &[u8]) -> Vec<Reply> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let Some((reply, rest)) = split_reply(bytes) else {
            panic!("not an answer: {:?}", bytes.escape_ascii().to_string());
        };
        if reply.status != 100 {
            all.push(reply);
        }
        bytes = rest;
    }
    all
}

fn split_reply(bytes: &[u8]) -> Option<(Reply, &[u8])> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).unwrap();
    let status =
        head.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse().ok()).expect("a status line");
    let mut reply = Reply { status, head: head.to_owned(), body: String::new() };
    let length = reply.header("content-length").map_or(0, |length| length.parse().unwrap());
    let rest = &bytes[end + 4..];
    let body = rest.get(..length)?;
    reply.body = String::from_utf8(body.to_vec()).unwrap();
    Some((reply, &rest[length..]))
}

/// A whole request with these additional header lines and this body.
pub(crate) fn request(headers: &[u8], body: &[u8]) -> Vec<u8> {
    let framing = format!("content-length: {}\r\n\r\n", body.len());
    [HEAD.as_bytes(), headers, framing.as_bytes(), body].concat()
}
