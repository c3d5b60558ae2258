//! One HTTP/1 connection that stays open, for tests in which it matters that there is no other: a pool opens a second one if
//! the first is not back in time.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::faults::sockets::address;
use crate::served::Served;

pub(crate) struct Connection(BufReader<TcpStream>);

/// A call of 1.0 over JSON-RPC, as it is sent.
pub(crate) fn request(method: &str, params: Value, headers: &[(&str, &str)]) -> String {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nA2A-Version: 1.0\r\n\
         {more}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

impl Connection {
    pub(crate) fn to(server: &Served) -> Self {
        Connection(BufReader::new(TcpStream::connect(address(server)).unwrap()))
    }

    /// Sends a request and reads its answer, which says how long it is: status and body.
    pub(crate) fn exchange(&mut self, request: &str) -> (u16, Vec<u8>) {
        self.0.get_mut().write_all(request.as_bytes()).unwrap();
        let (mut status, mut length, mut line) = (None, 0, String::new());
        while self.0.read_line(&mut line).unwrap() > 2 {
            if let Some(rest) = line.strip_prefix("HTTP/1.1 ") {
                status = Some(rest[..3].parse().unwrap());
            }
            if let Some(rest) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = rest.trim().parse().unwrap();
            }
            line.clear();
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).unwrap();
        (status.expect("the server closed the connection"), body)
    }

    /// The result of a call that must succeed.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        let (status, body) = self.exchange(&request(method, params, &[]));
        let mut answer: Value = serde_json::from_slice(&body).unwrap();
        assert!(status == 200 && answer["result"].is_object(), "{method}: {status} {answer}");
        answer["result"].take()
    }
}
