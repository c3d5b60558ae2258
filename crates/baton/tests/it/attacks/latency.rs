//! How long others wait for small answers while an attack is under way. Printed, never asserted: a busy machine is slow.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::faults::sockets::address;
use crate::served::Served;

/// All but one in a hundred of so many calls of an owner are faster. On a thread and a connection of its own: it is the server that is
/// asked, not the runtime of the attackers.
pub(super) async fn p99(server: &Served, credential: &str, small: &Value, calls: u64) -> Duration {
    let body =
        json!({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": small["id"]}}).to_string();
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\n";
    let request =
        format!("{head}Authorization: {credential}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let mut socket = TcpStream::connect(address(server)).unwrap();
    let measured = tokio::task::spawn_blocking(move || {
        let mut took: Vec<_> = (0..calls).map(|_| one(&mut socket, request.as_bytes())).collect();
        took.sort_unstable();
        took[took.len() * 99 / 100]
    });
    measured.await.unwrap()
}

/// Sends the request and reads the answer, which says how long it is.
fn one(socket: &mut TcpStream, request: &[u8]) -> Duration {
    let since = Instant::now();
    socket.write_all(request).unwrap();
    let mut came = Vec::new();
    loop {
        let mut some = [0; 4096];
        let read = socket.read(&mut some).unwrap();
        assert!(read > 0, "it was hung up on: {}", String::from_utf8_lossy(&came));
        came.extend_from_slice(&some[..read]);
        let Some(end) = came.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&came[..end]).to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 200"), "{head}");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        if came.len() == end + 4 + length.trim().parse::<usize>().unwrap() {
            return since.elapsed();
        }
    }
}
