//! A reader that stops reading costs one buffer, delays no other, and is disconnected after a while; it can resume.

use std::time::Duration;

use baton_protocol::wire::sse::SseParser;
use baton_server::Options;
use baton_server::{AgentError, Turn};
use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::fixtures::{Gate, agent_with, connections, resident_mib};
use crate::harness::{TEST_TIMEOUT, TestServer, message, serve, with_agent};
use crate::socket;
use crate::speakers::envelope;

/// Together larger than the sockets' buffers.
const EVENTS: usize = 500;
const EVENT_BYTES: usize = 16 * 1024;

/// Readers that are stuck at the same time.
const READERS: usize = 40;

async fn serve_talker(gate: &Gate, max_streams: usize) -> TestServer {
    async fn talk(gate: Gate, turn: Turn) -> Result<(), AgentError> {
        gate.pass().await;
        for n in 0..EVENTS {
            turn.progress(format!("{n} {}", "x".repeat(EVENT_BYTES))).await?;
        }
        turn.text_artifact("done", "done").await?;
        Ok(())
    }
    let limits = connections(|all| {
        all.reader_stall = Duration::from_millis(500);
        all.max_streams = max_streams;
    });
    // No snapshots while the turn runs: encoding this large task again and again would be slow.
    let mut options = Options::default();
    (options.snapshot_events, options.snapshot_bytes) = (u64::MAX, usize::MAX);
    serve(with_agent(agent_with(gate, talk)).connections(limits).options(options)).await
}

/// Opens a stream, reads its first bytes, and then nothing more.
async fn stuck(server: &TestServer, method: &str, params: &Value) -> TcpStream {
    let body = envelope(method, params);
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(socket::address(server)).await.unwrap();
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nA2A-Version: 1.0\r\n";
    stream.write_all(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).await.unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    stream
}

/// The numbers of the complete events in the received bytes.
fn numbers(bytes: &[u8]) -> Vec<u64> {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().filter_map(|line| line.strip_prefix("id: "));
    let mut all: Vec<u64> = lines.filter_map(|id| id.trim().parse().ok()).collect();
    // The last event may be incomplete.
    all.pop();
    all
}

#[tokio::test]
async fn a_stuck_reader_is_cut_off_and_resumes_without_a_gap() {
    let gate = Gate::new();
    let server = serve_talker(&gate, 1).await;
    let mut reader = stuck(&server, "SendStreamingMessage", &message("go")).await;
    gate.let_pass(1);
    // Only one stream is allowed: when another can be opened, this one was closed.
    let task = server.call("ListTasks", json!({})).await.result()["tasks"][0]["id"].clone();
    let resume = |seen: u64| {
        let server = &server;
        let params = json!({"id": task});
        async move { server.stream("SubscribeToTask", params, Some(&seen.to_string())).await }
    };
    let give_up = tokio::time::Instant::now() + TEST_TIMEOUT;
    let probe = loop {
        match resume(1).await {
            Ok(stream) => break stream,
            Err(full) => assert_eq!(full.status, 503, "{}", full.body),
        }
        assert!(tokio::time::Instant::now() < give_up, "it is not cut off");
    };
    drop(probe);
    // The reader still gets what had been sent; a new stream continues after its last event.
    let mut got = Vec::new();
    let _ = tokio::time::timeout(TEST_TIMEOUT, reader.read_to_end(&mut got)).await.expect("it is closed");
    let mut all = numbers(&got);
    let seen = *all.last().expect("something was read");
    let mut rest = loop {
        match resume(seen).await {
            Ok(stream) => break stream,
            Err(full) => assert_eq!(full.status, 503, "{}", full.body),
        }
        assert!(tokio::time::Instant::now() < give_up, "the probe's place is free again");
    };
    while let Some(event) = rest.next().await {
        all.extend(event.id);
    }
    assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "in order, each once");
    assert!(all.len() > EVENTS, "nothing is missing: {}", all.len());
}

#[tokio::test]
async fn stuck_readers_cost_little_and_hold_nobody_up() {
    let gate = Gate::new();
    let server = serve_talker(&gate, 1000).await;
    let task = server.start("go").await;
    let watch = json!({"id": task["id"]});
    let mut readers = Vec::new();
    for _ in 0..READERS {
        readers.push(stuck(&server, "SubscribeToTask", &watch).await);
    }
    let mut healthy = server.stream("SubscribeToTask", watch, None).await.ok().unwrap();
    assert_eq!(healthy.next().await.unwrap().kind(), "task");
    let before = resident_mib();
    gate.let_pass(1);
    let mut count = 0;
    while let Some(event) = healthy.next().await {
        assert!(event.id.is_some());
        count += 1;
    }
    assert!(count > EVENTS, "{count}");
    // The store holds all events in memory; what exceeds that is held for the readers.
    let (log, after) = ((EVENTS * EVENT_BYTES) as u64 >> 20, resident_mib());
    let buffers = READERS as u64 * 256 / 1024;
    assert!(after < before + 3 * log + buffers, "{before} MiB before, {after} after");
}

/// In HTTP/2 only the unread stream is reset; the connection stays open.
#[tokio::test]
async fn a_stuck_http2_stream_is_reset_and_its_neighbour_is_not() {
    let gate = Gate::new();
    let server = serve_talker(&gate, 1000).await;
    let task = server.start("go").await;
    let stream = TcpStream::connect(socket::address(&server)).await.unwrap();
    // The connection's window is large enough: only the stream's window is exhausted.
    let mut builder = h2::client::Builder::new();
    builder.initial_connection_window_size(64 << 20);
    let (mut send, connection) = builder.handshake::<_, Bytes>(stream).await.unwrap();
    tokio::spawn(connection);
    let mut watch = async || {
        let request = Request::post(format!("{}/", server.url))
            .header("content-type", "application/json")
            .header("a2a-version", "1.0");
        send = send.clone().ready().await.unwrap();
        let (response, mut body) = send.send_request(request.body(()).unwrap(), false).unwrap();
        body.send_data(envelope("SubscribeToTask", &json!({"id": task["id"]})).into(), true).unwrap();
        let response = response.await.unwrap();
        assert_eq!(response.status(), 200);
        response.into_body()
    };
    let (mut stuck, mut healthy) = (watch().await, watch().await);
    gate.let_pass(1);
    let mut parser = SseParser::new(16 << 20);
    let mut count = 0;
    while let Some(data) = tokio::time::timeout(TEST_TIMEOUT, healthy.data()).await.expect("it goes on") {
        let data = data.expect("the neighbour is not cut off");
        healthy.flow_control().release_capacity(data.len()).unwrap();
        parser.feed(&data).unwrap();
        while parser.next_event().is_some() {
            count += 1;
        }
    }
    assert!(count > EVENTS, "{count}");
    // The client reads nothing, so the window stays exhausted until the server resets the stream.
    let error = loop {
        match tokio::time::timeout(TEST_TIMEOUT, stuck.data()).await.expect("it is ended") {
            Some(Ok(_)) => {}
            Some(Err(error)) => break error,
            None => panic!("it ended as if all had been read"),
        }
    };
    assert_eq!(error.reason(), Some(h2::Reason::CANCEL), "{error}");
    drop(watch().await);
}
