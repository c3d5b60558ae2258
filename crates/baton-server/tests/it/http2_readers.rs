//! In HTTP/2 each stream's reader is watched separately: one that reads slowly is served to the end, one that reads nothing
//! is reset, whatever else its connection does.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::agents::obedient;
use crate::fixtures::connections;
use crate::frames::{
    self, DATA, END_HEADERS, END_STREAM, Frame, HEADERS, PREFACE, RST_STREAM, SETTINGS, WINDOW_UPDATE, frame,
    header_block,
};
use crate::harness::{TEST_TIMEOUT, TestServer, message, serve, with_agent};
use crate::socket;
use crate::speakers::envelope;

const STALL: Duration = Duration::from_millis(1500);

async fn server() -> TestServer {
    serve(with_agent(obedient).connections(connections(|all| all.reader_stall = STALL))).await
}

/// A connection on which every stream has this initial window.
async fn connect(server: &TestServer, window: u32) -> TcpStream {
    const INITIAL_WINDOW_SIZE: [u8; 2] = [0, 4];
    let mut stream = socket::connect(server).await;
    stream.set_nodelay(true).unwrap();
    let setting = [&INITIAL_WINDOW_SIZE[..], &window.to_be_bytes()].concat();
    stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &setting)].concat()).await.unwrap();
    stream
}

async fn post(connection: &mut TcpStream, stream: u32, method: &str, params: &Value) {
    let more = [("content-type", "application/json"), ("a2a-version", "1.0")];
    let head = frame(HEADERS, END_HEADERS, stream, &header_block("POST", "/", &more));
    let body = envelope(method, params).into_bytes();
    let parts: Vec<u8> = body.chunks(16_000).flat_map(|part| frame(DATA, 0, stream, part)).collect();
    let end = frame(DATA, END_STREAM, stream, b"");
    connection.write_all(&[head, parts, end].concat()).await.unwrap();
}

/// Opens the window of a stream by this many bytes; stream 0 is the connection.
async fn open(connection: &mut TcpStream, stream: u32, bytes: u32) {
    connection.write_all(&frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())).await.unwrap();
}

async fn next(connection: &mut TcpStream) -> Frame {
    frames::next(connection).await.expect("the connection goes on")
}

#[tokio::test]
async fn one_that_takes_a_little_all_the_time_gets_everything() {
    const STEP: u32 = 1000;
    let server = server().await;
    let mut connection = connect(&server, STEP).await;
    // The first event is the task with its message: reading it takes longer than a reader may stall.
    post(&mut connection, 1, "SendStreamingMessage", &message(&format!("fail {}", "x".repeat(30_000)))).await;
    let mut took = 0;
    loop {
        let came = next(&mut connection).await;
        match came.kind {
            DATA if came.flags & END_STREAM != 0 => break,
            DATA => {
                took += came.payload.len();
                tokio::time::sleep(STALL / 20).await; // tidy: allow-sleep what a slow reader does
                open(&mut connection, 1, came.payload.len() as u32).await;
                open(&mut connection, 0, came.payload.len() as u32).await;
            }
            RST_STREAM => panic!("cut off after {took} bytes"),
            _ => {}
        }
    }
    assert!(took > 30_000, "{took}");
}

/// Makes a request on a stream of its own and reads its answer; answers whether stream `watched` was reset meanwhile.
async fn another(connection: &mut TcpStream, stream: u32, watched: u32) -> bool {
    let head = header_block("GET", "/.well-known/agent-card.json", &[]);
    connection.write_all(&frame(HEADERS, END_HEADERS | END_STREAM, stream, &head)).await.unwrap();
    open(connection, stream, 1 << 20).await;
    let mut reset = false;
    loop {
        let came = next(connection).await;
        assert!(came.kind != RST_STREAM || came.stream == watched, "{came:?}");
        reset |= came.kind == RST_STREAM;
        if came.kind == DATA && came.stream == stream {
            if !came.payload.is_empty() {
                open(connection, 0, came.payload.len() as u32).await;
            }
            if came.flags & END_STREAM != 0 {
                return reset;
            }
        }
    }
}

#[tokio::test]
async fn one_that_takes_nothing_is_cut_off_while_its_connection_is_busy() {
    let server = server().await;
    let small = server.send(&format!("say {}", "x".repeat(2000))).await;
    let large = server.send(&format!("say {}", "x".repeat(200_000))).await;
    let get = |task: &Value| ("GetTask", json!({"id": task["id"]}));
    let watch = ("SendStreamingMessage", message("hold"));
    // The window is exhausted from the start, in the middle of an answer, or within its last part.
    let cases =
        [(0, get(&small)), (0, watch), (1000, get(&small)), (70, get(&large)), (100_000, get(&large))];
    let cut_off = cases.into_iter().map(async |(window, (method, params))| {
        let mut connection = connect(&server, window).await;
        open(&mut connection, 0, 1 << 20).await;
        post(&mut connection, 1, method, &params).await;
        let give_up = tokio::time::Instant::now() + TEST_TIMEOUT;
        let mut stream = 3;
        while !another(&mut connection, stream, 1).await {
            stream += 2;
            assert!(tokio::time::Instant::now() < give_up, "kept with a window of {window}: {method}");
        }
        // Other streams of the connection still work.
        assert!(!another(&mut connection, stream + 2, 1).await);
    });
    futures_util::future::join_all(cut_off).await;
}

#[tokio::test]
async fn head_is_answered_without_a_body() {
    let server = server().await;
    let mut connection = connect(&server, 1 << 20).await;
    let paths = ["/.well-known/agent-card.json", "/nowhere", "/healthz", "/tasks", "/v1/tasks"];
    for (stream, path) in (1..).step_by(4).zip(paths) {
        let version = if path == "/tasks" { "1.0" } else { "0.3" };
        let head = header_block("HEAD", path, &[("a2a-version", version)]);
        connection.write_all(&frame(HEADERS, END_HEADERS | END_STREAM, stream, &head)).await.unwrap();
        let came = loop {
            let came = next(&mut connection).await;
            if came.stream == stream {
                break came;
            }
        };
        assert_eq!((came.kind, came.flags & END_STREAM), (HEADERS, END_STREAM), "{path}: {came:?}");
        // Nothing follows on that stream: the next answer is of another stream.
        assert!(!another(&mut connection, stream + 2, stream).await, "{path}");
    }
}
