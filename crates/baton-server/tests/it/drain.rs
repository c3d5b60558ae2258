//! Graceful stop: no new work, running calls finish, idle connections are closed, and no client can delay it for ever.

use std::time::Duration;

use baton_server::{AgentError, Builder, Turn};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::fixtures::{Gate, agent_with, connections};
use crate::frames::{self, DATA, END_HEADERS, END_STREAM, HEADERS, frame, header_block};
use crate::harness::{TEST_TIMEOUT, TestServer, message, serve, with_agent};
use crate::socket::{self, one_reply, replies, until_closed};
use crate::speakers::envelope;

/// An agent that waits at the gate, on a server with a long drain time.
fn gated(gate: &Gate) -> Builder {
    async fn wait(gate: Gate, turn: Turn) -> Result<(), AgentError> {
        gate.pass().await;
        turn.text_artifact("late", "late").await?;
        Ok(())
    }
    with_agent(agent_with(gate, wait)).drain(TEST_TIMEOUT)
}

/// Starts stopping the server, and waits until it accepts no more connections.
async fn stopping(server: TestServer) -> JoinHandle<()> {
    let address = socket::address(&server);
    let stopping = tokio::spawn(server.stop());
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    stopping
}

async fn ended(stopping: JoinHandle<()>) {
    tokio::time::timeout(TEST_TIMEOUT, stopping).await.expect("it stops").unwrap();
}

const CARD: &[u8] = b"GET /.well-known/agent-card.json HTTP/1.1\r\nHost: localhost\r\n\r\n";
const HEAD: &str =
    "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nA2A-Version: 1.0\r\n";

fn post(body: &str) -> Vec<u8> {
    format!("{HEAD}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

#[tokio::test]
async fn a_stopping_server_ends_what_is_under_way_and_takes_nothing_new() {
    let gate = Gate::new();
    let server = serve(gated(&gate)).await;
    let mut stream = server.stream("SendStreamingMessage", message("go"), None).await.ok().unwrap();
    assert_eq!(stream.next().await.unwrap().kind(), "task");
    let mut blocking = socket::connect(&server).await;
    let task = server.call("ListTasks", json!({})).await.result()["tasks"][0]["id"].clone();
    blocking.write_all(&post(&envelope("SendMessage", &message("go too")))).await.unwrap();
    let mut idle = socket::connect(&server).await;
    idle.write_all(CARD).await.unwrap();
    assert_eq!(one_reply(&mut idle).await.status, 200);
    let mut silent = socket::connect(&server).await;
    let mut half_asked = socket::connect(&server).await;
    half_asked.write_all(HEAD.as_bytes()).await.unwrap();
    // Both turns are running, and the server has read all that was sent.
    while server.call("ListTasks", json!({})).await.result()["totalSize"] != 2 {}

    let stopping = stopping(server).await;
    assert_eq!(until_closed(&mut idle).await, b"");
    assert_eq!(until_closed(&mut silent).await, b"");
    half_asked.write_all(b"Content-Length: 2\r\n\r\n{}").await.unwrap();
    let refused = replies(&until_closed(&mut half_asked).await);
    assert_eq!(refused.iter().map(|reply| reply.status).collect::<Vec<_>>(), [503]);
    assert_eq!(
        (refused[0].header("retry-after"), refused[0].header("connection")),
        (Some("1"), Some("close"))
    );

    gate.let_pass(2);
    let kinds: Vec<_> = stream.rest().await.iter().map(|event| event.kind()).collect();
    assert_eq!(kinds.last().unwrap(), "completed", "{task}: {kinds:?}");
    let answers = replies(&until_closed(&mut blocking).await);
    assert_eq!((answers.len(), answers[0].status), (1, 200));
    assert!(answers[0].body.contains("TASK_STATE_COMPLETED"));
    assert_eq!(answers[0].header("connection"), Some("close"));
    ended(stopping).await;
}

/// The body of the answer to a new request on a connection that stays open for an earlier stream.
async fn body_of(stream: &mut TcpStream, id: u32, path: &str) -> String {
    let block = header_block("GET", path, &[("a2a-version", "1.0")]);
    stream.write_all(&frame(HEADERS, END_HEADERS | END_STREAM, id, &block)).await.unwrap();
    let mut text = Vec::new();
    loop {
        let came = frames::next(stream).await.expect("the connection is kept");
        if came.stream == id && came.kind == DATA {
            text.extend_from_slice(&came.payload);
        }
        if came.stream == id && came.flags & END_STREAM != 0 {
            return String::from_utf8(text).unwrap();
        }
    }
}

#[tokio::test]
async fn new_requests_on_a_kept_connection_are_refused_but_for_its_health() {
    let gate = Gate::new();
    let server = serve(gated(&gate)).await;
    let mut kept = frames::connect(&server).await;
    let block = header_block("POST", "/", &[("content-type", "application/json"), ("a2a-version", "1.0")]);
    let body = envelope("SendStreamingMessage", &message("go"));
    kept.write_all(&frame(HEADERS, END_HEADERS, 1, &block)).await.unwrap();
    kept.write_all(&frame(DATA, END_STREAM, 1, body.as_bytes())).await.unwrap();
    while server.call("ListTasks", json!({})).await.result()["totalSize"] != 1 {}
    assert!(body_of(&mut kept, 3, "/tasks").await.contains("totalSize"));

    let stopping = stopping(server).await;
    let refused = "The server is stopping; try again in a moment\n";
    assert_eq!(body_of(&mut kept, 5, "/tasks").await, refused);
    for (id, path) in [(7, "/healthz"), (9, "/readyz")] {
        assert_ne!(body_of(&mut kept, id, path).await, refused, "{path} is still served");
    }
    gate.let_pass(1);
    let rest = frames::rest(&mut kept).await;
    let events: Vec<u8> =
        rest.iter().filter(|frame| frame.kind == DATA).flat_map(|frame| frame.payload.clone()).collect();
    assert!(String::from_utf8(events).unwrap().contains("TASK_STATE_COMPLETED"));
    ended(stopping).await;
}

/// A stream that ends before its task has a comment and a `retry` at its end.
#[tokio::test]
async fn a_stream_that_the_server_ends_says_when_to_come_back() {
    let server = serve(gated(&Gate::new()).drain(Duration::from_millis(100))).await;
    let mut reader = socket::connect(&server).await;
    reader.write_all(&post(&envelope("SendStreamingMessage", &message("go")))).await.unwrap();
    let mut first = [0; 12];
    reader.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    let stopping = stopping(server).await;
    let text = String::from_utf8(until_closed(&mut reader).await).unwrap();
    let last = ": the server is stopping; resume with Last-Event-ID\n\nretry: 1000\n\n\r\n0\r\n\r\n";
    assert!(text.ends_with(last), "the chunked body is complete: {text}");
    ended(stopping).await;
}

/// Clients that never finish their requests do not keep the process running.
#[tokio::test]
async fn nobody_holds_up_the_end() {
    let limits = connections(|all| all.last_patience = Duration::from_millis(200));
    let server = serve(gated(&Gate::new()).drain(Duration::ZERO).connections(limits)).await;
    let mut unfinished = socket::connect(&server).await;
    unfinished.write_all(format!("{HEAD}Content-Length: 1000\r\n\r\n{{").as_bytes()).await.unwrap();
    let mut dawdling = frames::connect(&server).await;
    let block = header_block("POST", "/", &[("content-type", "application/json")]);
    dawdling.write_all(&frame(HEADERS, END_HEADERS, 1, &block)).await.unwrap();
    server.call("ListTasks", json!({})).await;
    let began = std::time::Instant::now();
    ended(stopping(server).await).await;
    assert!(began.elapsed() < Duration::from_secs(10), "much shorter than the timeout for bodies");
    until_closed(&mut unfinished).await;
    frames::rest(&mut dawdling).await;
}

/// Dropping the serving future closes all connections.
#[tokio::test]
async fn a_server_that_is_dropped_leaves_no_connection_behind() {
    let server = gated(&Gate::new()).build().await.unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move { server.serve_until(listener, std::future::pending()).await });
    let mut idle = TcpStream::connect(address).await.unwrap();
    idle.write_all(CARD).await.unwrap();
    assert_eq!(one_reply(&mut idle).await.status, 200);
    let mut reader = TcpStream::connect(address).await.unwrap();
    reader.write_all(&post(&envelope("SendStreamingMessage", &message("go")))).await.unwrap();
    let mut first = [0; 12];
    reader.read_exact(&mut first).await.unwrap();
    serving.abort();
    until_closed(&mut idle).await;
    until_closed(&mut reader).await;
}
