//! A server on a plain socket, which sends whatever bytes it is told to.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cli::scripted::card;

/// A request.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    /// Request line and headers.
    pub(super) head: String,
    /// Null if there is none.
    pub(super) body: Value,
    /// The server's own address.
    pub(super) url: String,
    /// How many requests came before it, the card's apart.
    pub(super) before: usize,
}

impl Asked {
    pub(super) fn is_card(&self) -> bool {
        self.head.starts_with("GET /.well-known/")
    }

    pub(super) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    pub(super) fn streams(&self) -> bool {
        matches!(self.method(), "SendStreamingMessage" | "SubscribeToTask")
    }
}

/// What comes back.
pub(super) enum Sent {
    /// These bytes, then the connection is closed.
    Bytes(Vec<u8>),
    /// These bytes, then nothing until the client closes the connection.
    Stall(Vec<u8>),
    /// The first bytes, then the others again and again, as fast as the client reads.
    Endless(Vec<u8>, Vec<u8>),
    /// One byte at a time.
    Drip(Vec<u8>, Duration),
}

pub(super) struct Hostile {
    pub(super) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Hostile {
    pub(super) fn start(answer: impl Fn(&Asked) -> Sent + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (answer, seen, own) = (Arc::new(answer), Arc::clone(&asked), url.clone());
        thread::spawn(move || {
            for socket in listener.incoming() {
                let (answer, seen, own) = (Arc::clone(&answer), Arc::clone(&seen), own.clone());
                thread::spawn(move || {
                    let socket = socket.unwrap();
                    let Some((head, body)) = read(&socket) else { return };
                    let asked = {
                        let mut seen = seen.lock().unwrap();
                        let before = seen.iter().filter(|asked: &&Asked| !asked.is_card()).count();
                        seen.push(Asked { head, body, url: own, before });
                        seen.last().unwrap().clone()
                    };
                    send(socket, answer(&asked));
                });
            }
        });
        Hostile { url, asked }
    }

    /// Everything that it was asked.
    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

/// The request, up to the end of its body.
fn read(socket: &TcpStream) -> Option<(String, Value)> {
    let mut reader = BufReader::new(socket);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some((head, serde_json::from_slice(&body).unwrap_or_default()))
}

/// Errors mean that the client has had enough.
fn send(mut socket: TcpStream, sent: Sent) {
    let _ = match sent {
        Sent::Bytes(bytes) => socket.write_all(&bytes),
        Sent::Stall(bytes) => {
            let written = socket.write_all(&bytes);
            let _ = socket.read(&mut [0]);
            written
        }
        Sent::Endless(first, again) => (|| {
            socket.write_all(&first)?;
            loop {
                socket.write_all(&again)?;
            }
        })(),
        Sent::Drip(bytes, pause) => bytes.iter().try_for_each(|byte| {
            socket.write_all(&[*byte])?;
            thread::sleep(pause); // tidy: allow-sleep slowness is what is tested
            Ok(())
        }),
    };
}

/// Status line and headers; the body ends with the connection.
pub(super) fn head(status: &str, headers: &[&str]) -> Vec<u8> {
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    format!("HTTP/1.1 {status}\r\n{headers}connection: close\r\n\r\n").into_bytes()
}

const JSON: &str = "content-type: application/json";
pub(super) const EVENTS: &str = "content-type: text/event-stream";

/// A body that is called JSON.
pub(super) fn body(text: impl AsRef<[u8]>) -> Sent {
    let text = text.as_ref();
    let mut bytes = head("200 OK", &[JSON, &format!("content-length: {}", text.len())]);
    bytes.extend_from_slice(text);
    Sent::Bytes(bytes)
}

/// The right envelope around a result.
pub(super) fn envelope(asked: &Asked, result: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": asked.body["id"], "result": result}).to_string()
}

pub(super) fn result(asked: &Asked, value: &Value) -> Sent {
    body(envelope(asked, value))
}

/// The bytes of a stream, which is not closed yet.
pub(super) fn stream(asked: &Asked, events: &[Value]) -> Vec<u8> {
    let frames = events.iter().map(|event| format!("data: {}\n\n", envelope(asked, event)));
    [head("200 OK", &[EVENTS]), frames.collect::<String>().into_bytes()].concat()
}

pub(super) fn task(state: &str) -> Value {
    crate::cli::scripted::task(&format!("TASK_STATE_{state}"))
}

pub(super) fn status(state: &str) -> Value {
    let state = format!("TASK_STATE_{state}");
    json!({"statusUpdate": {"taskId": "t-1", "contextId": "c-1", "status": {"state": state}}})
}

/// What an agent without a fault says: the card, a stream of three events, the task, a list.
pub(super) fn right(asked: &Asked) -> Sent {
    if asked.is_card() {
        return body(right_card(&asked.url).to_string());
    }
    match asked.method() {
        "SendStreamingMessage" | "SubscribeToTask" => {
            let events = [json!({"task": task("SUBMITTED")}), status("WORKING"), status("COMPLETED")];
            Sent::Bytes(stream(asked, &events))
        }
        "ListTasks" => {
            let page =
                json!({"tasks": [task("COMPLETED")], "nextPageToken": "", "pageSize": 1, "totalSize": 1});
            result(asked, &page)
        }
        "SendMessage" => result(asked, &json!({"task": task("COMPLETED")})),
        _ => result(asked, &task("COMPLETED")),
    }
}

pub(super) fn right_card(url: &str) -> Value {
    card(url, json!({"capabilities": {"streaming": true}}))
}
