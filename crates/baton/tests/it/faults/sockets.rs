//! Many streams on one task, each a plain socket: an HTTP client would cost more than the server.

use std::time::Duration;

use baton_protocol::wire::sse::SseParser;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use super::runs::HANG;
use crate::served::Served;

/// How many streams this process and the server may have, if `wanted` are wanted.
pub(crate) fn affordable(wanted: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let all = Rlimit { current: limit.maximum, maximum: limit.maximum };
    setrlimit(Resource::Nofile, all).unwrap();
    limit.maximum.map_or(wanted, |most| wanted.min(most.saturating_sub(1000)))
}

/// Resident memory of a process.
pub(crate) fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse().unwrap()
}

/// One stream: what it has shown so far.
pub(crate) struct Stream {
    socket: TcpStream,
    parser: SseParser,
    /// Bytes of chunks that are not whole.
    raw: Vec<u8>,
    pub(crate) last: u64,
    pub(crate) numbers: Vec<u64>,
    pub(crate) frames: Vec<Value>,
}

pub(crate) fn address(server: &Served) -> String {
    server.url.trim_start_matches("http://").to_owned()
}

impl Stream {
    /// Subscribes; with `after`, from there. Answers when the response has begun.
    pub(crate) async fn open(
        address: &str,
        path: &str,
        task: &str,
        after: Option<u64>,
        buffer: Option<u32>,
    ) -> std::io::Result<Self> {
        let params = json!({"id": task});
        let body =
            json!({"jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": params}).to_string();
        let resume = after.map(|after| format!("Last-Event-ID: {after}\r\n")).unwrap_or_default();
        let request = format!(
            "POST {path}/ HTTP/1.1\r\nHost: localhost\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\n\
             {resume}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let socket = TcpSocket::new_v4()?;
        if let Some(bytes) = buffer {
            socket.set_recv_buffer_size(bytes)?;
        }
        let mut socket = socket.connect(address.parse().unwrap()).await?;
        socket.write_all(request.as_bytes()).await?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(socket.read_u8().await?);
        }
        let head = String::from_utf8(head).unwrap();
        assert!(head.starts_with("HTTP/1.1 200") && head.contains("text/event-stream"), "{head}");
        let last = after.unwrap_or_default();
        let parser = SseParser::new(1 << 24);
        Ok(Stream { socket, parser, raw: Vec::new(), last, numbers: Vec::new(), frames: Vec::new() })
    }

    /// Reads until `done`, the stream's end or a break. Answers whether it ended in order.
    pub(crate) async fn read_until(&mut self, done: impl Fn(&Stream) -> bool) -> bool {
        let mut buffer = vec![0; 16 * 1024];
        while !done(self) {
            let read =
                tokio::time::timeout(HANG, self.socket.read(&mut buffer)).await.expect("a stream hangs");
            match read {
                Ok(0) | Err(_) => return false,
                Ok(count) => self.raw.extend_from_slice(&buffer[..count]),
            }
            if self.take_chunks() {
                return true;
            }
        }
        true
    }

    /// Answers whether the last chunk was there.
    fn take_chunks(&mut self) -> bool {
        loop {
            let Some(line) = self.raw.windows(2).position(|two| two == b"\r\n") else { return false };
            let size = usize::from_str_radix(std::str::from_utf8(&self.raw[..line]).unwrap(), 16).unwrap();
            let end = line + 2 + size;
            if self.raw.len() < end + 2 {
                return false;
            }
            self.parser.feed(&self.raw[line + 2..end]).unwrap();
            self.raw.drain(..end + 2);
            while let Some(event) = self.parser.next_event() {
                let number = event.id.and_then(|id| id.parse().ok()).expect("every frame has a number");
                self.last = number;
                let mut frame: Value = serde_json::from_str(&event.data).unwrap();
                let frame = frame["result"].take();
                if frame.get("task").is_none() {
                    self.numbers.push(number);
                }
                self.frames.push(frame);
            }
            if size == 0 {
                return true;
            }
        }
    }

    /// Opens again where it stands, as often as it takes.
    pub(crate) async fn resume(&mut self, address: &str, path: &str, task: &str) {
        let since = std::time::Instant::now();
        loop {
            if let Ok(next) = Stream::open(address, path, task, Some(self.last), None).await {
                (self.socket, self.parser, self.raw) = (next.socket, next.parser, next.raw);
                return;
            }
            assert!(since.elapsed() < HANG, "nobody lets it in");
            tokio::time::sleep(Duration::from_millis(20)).await; // tidy: allow-sleep a client that comes back later
        }
    }

    /// Has it shown the task's end?
    pub(crate) fn is_over(&self) -> bool {
        let end = |frame: &Value| {
            let state = frame["statusUpdate"]["status"]["state"].as_str().unwrap_or_default();
            ["COMPLETED", "FAILED", "CANCELED", "REJECTED"].iter().any(|end| state.ends_with(end))
        };
        self.frames.last().is_some_and(end)
    }
}
