//! Event streams with pauses: events after a pause, and requests after the stream on the same connection.

use baton_server::{AgentError, Turn};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::fixtures::{Gate, agent_with, connections};
use crate::harness::{TEST_TIMEOUT, TestServer, message, serve, with_agent};
use crate::socket::{self, one_reply, until_closed};
use crate::speakers::envelope;

const CARD: &[u8] = b"GET /.well-known/agent-card.json HTTP/1.1\r\nHost: localhost\r\n\r\n";
const END: &str = "\r\n0\r\n\r\n";

/// A server whose agent sends three parts, each when the gate lets it pass.
async fn serve_hesitant(gate: &Gate, max_streams: usize) -> TestServer {
    async fn talk(gate: Gate, turn: Turn) -> Result<(), AgentError> {
        for n in 0..3 {
            gate.pass().await;
            turn.progress(format!("part {n}")).await?;
        }
        Ok(())
    }
    let limits = connections(|all| all.max_streams = max_streams);
    serve(with_agent(agent_with(gate, talk)).connections(limits)).await
}

fn ask_for_stream(more: &str) -> Vec<u8> {
    let body = envelope("SendStreamingMessage", &message("go"));
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nA2A-Version: 1.0\r\n";
    format!("{head}{more}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// Reads until `mark` has arrived, and returns everything up to its end.
async fn read_to(stream: &mut TcpStream, seen: &mut Vec<u8>, mark: &str) -> String {
    loop {
        if let Some(at) = seen.windows(mark.len()).position(|part| part == mark.as_bytes()) {
            let rest = seen.split_off(at + mark.len());
            return String::from_utf8(std::mem::replace(seen, rest)).unwrap();
        }
        let read = tokio::time::timeout(TEST_TIMEOUT, stream.read_buf(seen)).await;
        assert!(read.expect("more comes").unwrap() > 0, "closed before {mark:?}: {}", seen.escape_ascii());
    }
}

/// Lets the agent send its three parts, each after the previous one was read.
async fn hear_all(gate: &Gate, stream: &mut TcpStream, seen: &mut Vec<u8>) {
    let first = read_to(stream, seen, "WORKING").await;
    assert!(first.starts_with("HTTP/1.1 200 OK\r\n"), "{first}");
    for n in 0..3 {
        gate.let_pass(1);
        read_to(stream, seen, &format!("part {n}")).await;
    }
    read_to(stream, seen, "COMPLETED").await;
    read_to(stream, seen, END).await;
}

#[tokio::test]
async fn the_connection_of_a_stream_that_waited_serves_on() {
    let gate = Gate::new();
    let server = serve_hesitant(&gate, 100).await;
    let (mut stream, mut seen) = (socket::connect(&server).await, Vec::new());
    for _ in 0..3 {
        stream.write_all(&ask_for_stream("")).await.unwrap();
        hear_all(&gate, &mut stream, &mut seen).await;
        assert!(seen.is_empty(), "nothing after the end");
        stream.write_all(CARD).await.unwrap();
        assert_eq!(one_reply(&mut stream).await.status, 200);
    }
}

#[tokio::test]
async fn what_was_sent_ahead_is_answered_after_the_stream() {
    let gate = Gate::new();
    let server = serve_hesitant(&gate, 100).await;
    let (half, other_half) = CARD.split_at(CARD.len() / 2);
    // The next request is sent together with the first (so it is in the server's buffer), in two parts, or later.
    for (with_it, later, after) in [
        (CARD, &b""[..], &b""[..]),
        (half, other_half, b""),
        (half, b"", other_half),
        (b"", CARD, b""),
        (b"", half, other_half),
    ] {
        let (mut stream, mut seen) = (socket::connect(&server).await, Vec::new());
        stream.write_all(&[&ask_for_stream("")[..], with_it].concat()).await.unwrap();
        read_to(&mut stream, &mut seen, "SUBMITTED").await;
        // A round trip on another connection gives the server time to notice that the stream is idle.
        server.call("ListTasks", json!({})).await.result();
        stream.write_all(later).await.unwrap();
        server.call("ListTasks", json!({})).await.result();
        gate.let_pass(3);
        read_to(&mut stream, &mut seen, "COMPLETED").await;
        read_to(&mut stream, &mut seen, END).await;
        stream.write_all(after).await.unwrap();
        let answer = read_to(&mut stream, &mut seen, "\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }
}

#[tokio::test]
async fn a_client_that_wants_no_more_is_let_go_with_the_end() {
    let gate = Gate::new();
    let server = serve_hesitant(&gate, 100).await;
    let (mut stream, mut seen) = (socket::connect(&server).await, Vec::new());
    stream.write_all(&ask_for_stream("Connection: Keep-Alive, Close\r\n")).await.unwrap();
    hear_all(&gate, &mut stream, &mut seen).await;
    assert_eq!(until_closed(&mut stream).await, b"");
}

#[tokio::test]
async fn a_reader_that_hangs_up_while_nothing_happens_makes_room() {
    let gate = Gate::new();
    let server = serve_hesitant(&gate, 1).await;
    let half_a_head = &CARD[..CARD.len() / 2];
    for (ahead, half_closed) in [(&b""[..], false), (b"", true), (half_a_head, true), (b"", true)] {
        let (mut stream, mut seen) = (socket::connect(&server).await, Vec::new());
        // The previous reader's place is free once the server has noticed its close.
        let start = std::time::Instant::now();
        loop {
            stream.write_all(&[&ask_for_stream("")[..], ahead].concat()).await.unwrap();
            if read_to(&mut stream, &mut seen, "\r\n\r\n").await.starts_with("HTTP/1.1 200") {
                break;
            }
            assert!(start.elapsed() < TEST_TIMEOUT, "there is no room yet");
            stream = socket::connect(&server).await;
            seen.clear();
        }
        read_to(&mut stream, &mut seen, "WORKING").await;
        if half_closed {
            stream.shutdown().await.unwrap();
            until_closed(&mut stream).await;
        }
    }
}
