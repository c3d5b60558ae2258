//! Those who abuse a server, each in one way, over and over until they are ended. What becomes of their own connections
//! does not matter to them.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::served::text;

/// One after the other without a pause would only show that attackers use up the cores that they share with the server.
pub(super) fn pace(milliseconds: u64) -> Interval {
    let mut pace = interval(Duration::from_millis(milliseconds));
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    pace
}

/// The server, and what it answered to abuse.
pub(super) struct Target {
    pub(super) address: String,
    answers: Mutex<BTreeMap<(&'static str, u16), u64>>,
}

impl Target {
    pub(super) fn new(address: String) -> Self {
        Target { address, answers: Mutex::default() }
    }

    fn note(&self, what: &'static str, status: u16) {
        *self.answers.lock().unwrap().entry((what, status)).or_default() += 1;
    }

    /// The statuses of one kind of abuse, and how often each came.
    pub(super) fn answers(&self, what: &str) -> BTreeMap<u16, u64> {
        let answers = self.answers.lock().unwrap();
        let of_this = answers.iter().filter(|((kind, _), _)| *kind == what);
        of_this.map(|((_, status), count)| (*status, *count)).collect()
    }

    async fn post(
        &self,
        client: &reqwest::Client,
        what: &'static str,
        header: (&str, &str),
        body: impl Into<reqwest::Body>,
    ) {
        let request = client.post(format!("http://{}/", self.address)).header("A2A-Version", "1.0");
        let request =
            request.header("Content-Type", "application/json").header(header.0, header.1).body(body);
        // One whose body is too large may find the connection closed.
        if let Ok(answer) = request.send().await {
            self.note(what, answer.status().as_u16());
            let _ = answer.bytes().await;
        }
    }
}

fn call(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

/// A request as it is sent on a plain socket.
fn plain(credential: &str, body: &str) -> String {
    format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\n\
         Authorization: {credential}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Kinds of HTTP/2 frames that are sent without end.
#[derive(Debug, Clone, Copy)]
pub(super) enum Frames {
    Pings,
    Settings,
    EmptyData,
    Continuations,
    Resets,
}

impl Frames {
    pub(super) const ALL: [Frames; 5] =
        [Frames::Pings, Frames::Settings, Frames::EmptyData, Frames::Continuations, Frames::Resets];

    fn opening(self, block: &[u8]) -> Vec<u8> {
        match self {
            Frames::EmptyData => frame(HEADERS, END_HEADERS, 1, block),
            Frames::Continuations => frame(HEADERS, 0, 1, block),
            Frames::Pings | Frames::Settings | Frames::Resets => Vec::new(),
        }
    }

    fn next(self, n: u32, block: &[u8]) -> Vec<u8> {
        match self {
            Frames::Pings => frame(PING, 0, 0, &[0; 8]),
            Frames::Settings => frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 9]),
            Frames::EmptyData => frame(DATA, 0, 1, b""),
            Frames::Continuations => frame(CONTINUATION, 0, 1, b"\0\x01x\x01y"),
            Frames::Resets => {
                let request = frame(HEADERS, END_HEADERS | END_STREAM, 2 * n + 1, block);
                [request, frame(RST_STREAM, 0, 2 * n + 1, &[0, 0, 0, 8])].concat()
            }
        }
    }
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Literal header fields, with lengths of one byte.
fn header_block(credential: &str) -> Vec<u8> {
    let fields = [
        (":method", "GET"),
        (":scheme", "http"),
        (":authority", "localhost"),
        (":path", "/tasks"),
        ("a2a-version", "1.0"),
        ("authorization", credential),
    ];
    let texts = fields.iter().flat_map(|(name, value)| [(true, *name), (false, *value)]);
    texts.fold(Vec::new(), |mut block, (first, text)| {
        if first {
            block.push(0);
        }
        block.push(u8::try_from(text.len()).ok().filter(|length| *length < 127).unwrap());
        block.extend_from_slice(text.as_bytes());
        block
    })
}

/// Frames as fast as they are taken, until the server ends the connection; then again.
pub(super) async fn floods(target: &Target, frames: Frames, credential: &str, every: u64) {
    let (block, mut pace) = (header_block(credential), pace(every));
    loop {
        pace.tick().await;
        let Ok(mut stream) = TcpStream::connect(&target.address).await else { continue };
        let opening = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(SETTINGS, 0, 0, b"")].concat();
        let opening = [opening, frames.opening(&block)].concat();
        if stream.write_all(&opening).await.is_err() {
            continue;
        }
        let (mut reader, mut writer) = stream.split();
        let writing = async {
            for n in 0_u32.. {
                let some: Vec<u8> = (0..100).flat_map(|m| frames.next(n * 100 + m, &block)).collect();
                if writer.write_all(&some).await.is_err() {
                    break;
                }
            }
        };
        let mut buffer = vec![0; 16 * 1024];
        let reading = async { while let Ok(1..) = reader.read(&mut buffer).await {} };
        tokio::select! {
            () = writing => {}
            () = reading => {}
        }
        target.note("HTTP/2 floods", 0);
    }
}

/// A head (without credential) or a body that comes byte by byte.
pub(super) async fn trickles(target: &Target, credential: Option<&str>) {
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ".to_owned();
    let body = |credential| plain(credential, &"[".repeat(3_000_000))[..400].to_owned();
    let (opening, mut pace) = (credential.map_or(head, body), pace(300));
    loop {
        pace.tick().await;
        let Ok(mut stream) = TcpStream::connect(&target.address).await else { continue };
        let mut sent = stream.write_all(opening.as_bytes()).await;
        while sent.is_ok() {
            pace.tick().await;
            sent = stream.write_all(b"[").await;
        }
        target.note("slow requests", 0);
    }
}

/// An owner's requests that are large, deep or wide.
pub(super) async fn large_json(target: &Target, credential: &str, bytes: usize) {
    let keys: serde_json::Map<String, Value> = (0..50_000).map(|n| (format!("k{n}"), json!(n))).collect();
    let mut wide = text("wide", "wide");
    wide["metadata"] = Value::Object(keys);
    let mut parts = text("parts", "parts");
    parts["parts"] = json!(vec![json!({"text": "x"}); 20_000]);
    let bodies = [
        "[".repeat(bytes),
        "{\"a\":".repeat(bytes / 6),
        call("SendMessage", &json!({"message": wide})),
        call("SendMessage", &json!({"message": parts})),
        format!("[{}1]", "1,".repeat(bytes / 4)),
        call("GetTask", &json!({"id": "x".repeat(bytes)})),
        "x".repeat(6_000_000),
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"GetTask\",\"params\":{\"id\":1e400}}".to_owned(),
    ];
    let (client, mut pace) = (reqwest::Client::new(), pace(50));
    for body in bodies.iter().cycle() {
        pace.tick().await;
        target.post(&client, "large JSON", ("Authorization", credential), body.clone()).await;
    }
}

/// Credentials that are wrong: keys, passwords of a user that exists and of others, tokens, JWTs.
pub(super) async fn failed_authentication(target: &Target, user: &str, number: u64, every: u64) {
    let (client, mut pace) = (reqwest::Client::new(), pace(every));
    let body = call("ListTasks", &json!({}));
    for n in 0_u64.. {
        let basic = |user: &str| {
            ("Authorization", format!("Basic {}", STANDARD.encode(format!("{user}:wrong-{number}-{n}"))))
        };
        let (name, value) = match n % 5 {
            0 => ("X-API-Key", format!("baton_{number:08}_{n:032}")),
            1 => ("Authorization", format!("Bearer unknown-{number}-{n}")),
            2 => {
                let head = "eyJhbGciOiJFUzI1NiIsImtpZCI6IjEifQ";
                let claims = json!({"iss": "https://login.example.com", "aud": "agent", "exp": 9_999_999_999_u64,
                    "sub": format!("{number}-{n}")});
                let claims = URL_SAFE_NO_PAD.encode(claims.to_string());
                ("Authorization", format!("Bearer {head}.{claims}.{}", "A".repeat(86)))
            }
            // Last: hashing takes long.
            3 => basic(user),
            _ => basic(&format!("user-{number}-{n}")),
        };
        pace.tick().await;
        target.post(&client, "failed authentication", (name, &value), body.clone()).await;
    }
}

/// One owner's tasks that never end.
pub(super) async fn endless_tasks(target: &Target, credential: &str, number: u64) {
    let (client, mut pace) = (reqwest::Client::new(), pace(20));
    for n in 0_u64.. {
        pace.tick().await;
        let message = text(&format!("endless-{number}-{n}"), "wait until I cancel");
        let params = json!({"message": message, "configuration": {"returnImmediately": true}});
        let body = call("SendMessage", &params);
        target.post(&client, "endless tasks", ("Authorization", credential), body).await;
    }
}

/// One owner's streams on a task that does not end.
pub(super) async fn streams(target: &Target, credential: &str, task: &Value) {
    let request = plain(credential, &call("SubscribeToTask", &json!({"id": task["id"]})));
    let (mut pace, mut buffer) = (pace(200), vec![0; 4096]);
    loop {
        pace.tick().await;
        let Ok(mut stream) = TcpStream::connect(&target.address).await else { continue };
        let (Ok(()), Ok(read)) = (stream.write_all(request.as_bytes()).await, stream.read(&mut buffer).await)
        else {
            continue;
        };
        let head = String::from_utf8_lossy(&buffer[..read]);
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        target.note("streams", status.unwrap_or_default());
        if status == Some(200) {
            while let Ok(1..) = stream.read(&mut buffer).await {}
        }
    }
}

/// Large bodies of an owner that come but for their last byte.
pub(super) async fn held_bodies(target: &Target, credential: &str, bytes: usize) {
    let request = plain(credential, &"[".repeat(bytes));
    let (mut pace, mut buffer) = (pace(1000), vec![0; 4096]);
    loop {
        pace.tick().await;
        let Ok(mut stream) = TcpStream::connect(&target.address).await else { continue };
        // It may be refused before all of it is sent.
        let _ = stream.write_all(&request.as_bytes()[..request.len() - 1]).await;
        let read = stream.read(&mut buffer).await.unwrap_or_default();
        let head = String::from_utf8_lossy(&buffer[..read]);
        if let Some(status) = head.split(' ').nth(1).and_then(|status| status.parse().ok()) {
            target.note("held bodies", status);
        }
    }
}

/// Large answers that an owner asks for and does not read.
pub(super) async fn unread(target: &Target, credential: &str, task: &Value) {
    let request = plain(credential, &call("GetTask", &json!({"id": task["id"]})));
    let mut pace = pace(3000);
    let mut held = None;
    loop {
        pace.tick().await;
        drop(held.take());
        let Ok(mut stream) = TcpStream::connect(&target.address).await else { continue };
        if stream.write_all(request.as_bytes()).await.is_ok() {
            target.note("unread answers", 0);
        }
        held = Some(stream);
    }
}
