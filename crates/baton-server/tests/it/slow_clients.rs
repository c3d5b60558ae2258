//! A slow client loses its connection: one that sends nothing, or stops within a line, a head or a body.

use std::time::Duration;

use baton_server::Connections;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::agents::obedient;
use crate::fixtures::connections;
use crate::frames::{self, DATA, END_HEADERS, GOAWAY, HEADERS, PREFACE, SETTINGS, frame, header_block};
use crate::harness::{TestServer, message, serve, with_agent};
use crate::socket::{self, replies, until_closed};

const SHORT: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(600);

/// All timeouts are longer than any test, except those that `change` sets.
async fn serve_with(change: impl FnOnce(&mut Connections)) -> TestServer {
    let connections = connections(|all| {
        (all.first_byte, all.head, all.idle, all.body_total, all.body_grace) = (LONG, LONG, LONG, LONG, LONG);
        change(all);
    });
    serve(with_agent(obedient).connections(connections)).await
}

/// Connects and sends this; the connection stays open on the client's side.
async fn sent(server: &TestServer, bytes: &[u8]) -> TcpStream {
    let mut stream = socket::connect(server).await;
    stream.write_all(bytes).await.unwrap();
    stream
}

#[tokio::test]
async fn a_silent_client_is_let_go_and_others_are_served() {
    let server = serve_with(|all| all.first_byte = SHORT).await;
    let mut silent = Vec::new();
    for _ in 0..500 {
        silent.push(socket::connect(&server).await);
    }
    server.send("hello").await;
    for stream in &mut silent {
        assert_eq!(until_closed(stream).await, b"", "nothing was asked");
    }
    server.send("hello").await;
}

#[tokio::test]
async fn an_unfinished_head_is_told_and_let_go() {
    let server = serve_with(|all| all.head = SHORT).await;
    for begun in [
        "P",
        "POST / HTTP/1.1",
        "POST / HTTP/1.1\r",
        "POST / HTTP/1.1\r\n",
        "POST / HTTP/1.1\r\nHost: localh",
        "POST / HTTP/1.1\r\nHost: localhost\r\n",
        "\r\n",
    ] {
        let answer = until_closed(&mut sent(&server, begun.as_bytes()).await).await;
        // A `P` may be the beginning of HTTP/2's preface, where an HTTP/1 answer would be wrong.
        let expected: &[u16] = if begun == "P" { &[] } else { &[408] };
        let statuses: Vec<u16> = replies(&answer).iter().map(|reply| reply.status).collect();
        assert_eq!(statuses, expected, "{begun:?}");
    }
}

/// The timeout runs from the first byte; further bytes do not reset it.
#[tokio::test]
async fn a_head_that_trickles_in_is_let_go() {
    let server = serve_with(|all| all.head = SHORT).await;
    for begun in ["POST / HTTP/1.1\r\nHost: localhost\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r"] {
        let mut stream = sent(&server, b"").await;
        let (mut reader, mut writer) = stream.split();
        let trickle = async {
            for byte in begun.bytes().chain("X-Y: z\r\n".repeat(10_000).bytes()) {
                if writer.write_all(&[byte]).await.is_err() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await; // tidy: allow-sleep what a slow client does
            }
        };
        let closed = async {
            let mut answer = Vec::new();
            let _ = tokio::io::AsyncReadExt::read_to_end(&mut reader, &mut answer).await;
        };
        tokio::select! {
            () = trickle => panic!("it was heard to the end: {begun:?}"),
            () = closed => {}
        }
    }
    server.send("hello").await;
}

const BODY_HEAD: &str =
    "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nA2A-Version: 1.0\r\n";

#[tokio::test]
async fn an_unfinished_body_is_told_and_let_go() {
    for change in [
        (|all| all.body_grace = SHORT) as fn(&mut Connections),
        |all| all.body_total = SHORT,
        |all| (all.body_grace, all.body_rate) = (SHORT, 1 << 30),
    ] {
        let server = serve_with(change).await;
        for begun in [
            "Content-Length: 1000\r\n\r\n",
            "Content-Length: 1000\r\n\r\n{\"jsonrpc\":",
            "Transfer-Encoding: chunked\r\n\r\n",
            "Transfer-Encoding: chunked\r\n\r\n5\r\nhel",
            "Content-Length: 1000\r\nExpect: 100-continue\r\n\r\n",
        ] {
            let answer =
                until_closed(&mut sent(&server, format!("{BODY_HEAD}{begun}").as_bytes()).await).await;
            let replies = replies(&answer);
            assert_eq!(replies.iter().map(|reply| reply.status).collect::<Vec<_>>(), [408], "{begun:?}");
            assert_eq!(replies[0].header("connection"), Some("close"));
            assert!(replies[0].body.contains("took too long"), "{:?}", replies[0]);
        }
        server.send("hello").await;
    }
}

/// A body that arrives at the minimum rate has no time limit.
#[tokio::test]
async fn a_slow_but_steady_body_is_heard_to_its_end() {
    let server = serve_with(|all| (all.body_grace, all.body_rate) = (SHORT, 100)).await;
    let body = format!("{:2000}", r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks"}"#);
    let mut stream =
        sent(&server, format!("{BODY_HEAD}Content-Length: {}\r\n\r\n", body.len()).as_bytes()).await;
    for part in body.as_bytes().chunks(100) {
        tokio::time::sleep(SHORT / 6).await; // tidy: allow-sleep what a slow client does
        stream.write_all(part).await.unwrap();
    }
    assert_eq!(socket::one_reply(&mut stream).await.status, 200);
}

const CARD: &[u8] = b"GET /.well-known/agent-card.json HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[tokio::test]
async fn an_idle_connection_is_closed_and_a_busy_one_is_not() {
    let server = serve_with(|all| all.idle = SHORT).await;
    let mut watched = server.stream("SendStreamingMessage", message("hold"), None).await.ok().unwrap();
    assert_eq!(watched.next().await.unwrap().kind(), "task");
    let mut idle = sent(&server, CARD).await;
    assert_eq!(socket::one_reply(&mut idle).await.status, 200);
    assert_eq!(until_closed(&mut idle).await, b"", "closed without another byte");
    // Three times the idle timeout.
    for _ in 0..3 {
        let mut idle = sent(&server, CARD).await;
        socket::one_reply(&mut idle).await;
        until_closed(&mut idle).await;
    }
    let task = server.call("ListTasks", serde_json::json!({})).await.result()["tasks"][0].clone();
    server.call("CancelTask", serde_json::json!({"id": task["id"]})).await;
    let kinds: Vec<_> = watched.rest().await.iter().map(|event| event.kind()).collect();
    assert_eq!(kinds.last().unwrap(), "canceled", "it was open all the while: {kinds:?}");
}

/// The server closes at once if the client closes its sending side within a request.
#[tokio::test]
async fn a_half_closed_connection_is_closed_at_once() {
    let server = serve_with(|_| {}).await;
    let body = format!("{BODY_HEAD}Content-Length: 1000\r\n\r\n{{");
    for begun in ["", "POST / HTTP", "POST / HTTP/1.1\r\nHost: localhost\r\n", &body] {
        let mut stream = sent(&server, begun.as_bytes()).await;
        stream.shutdown().await.unwrap();
        until_closed(&mut stream).await;
    }
    server.send("hello").await;
}

#[tokio::test]
async fn an_http2_client_that_owes_a_frame_is_let_go() {
    let server = serve_with(|all| all.head = SHORT).await;
    let settings = frame(SETTINGS, 0, 0, b"");
    let block = header_block("GET", "/.well-known/agent-card.json", &[]);
    for begun in [
        vec![],
        settings[..5].to_vec(),
        [&settings[..], &[0]].concat(),
        [&settings[..], &frame(HEADERS, END_HEADERS, 1, &block)[..20]].concat(),
        [settings.clone(), frame(HEADERS, 0, 1, &block)].concat(),
    ] {
        let mut stream = sent(&server, &[PREFACE, &begun].concat()).await;
        frames::rest(&mut stream).await;
    }
    server.send("hello").await;
}

#[tokio::test]
async fn an_idle_http2_connection_is_told_goodbye() {
    let server = serve_with(|all| all.idle = SHORT).await;
    let mut stream = frames::connect(&server).await;
    let came = frames::rest(&mut stream).await;
    assert!(came.iter().any(|frame| frame.kind == GOAWAY), "{came:?}");
}

#[tokio::test]
async fn an_http2_body_that_dawdles_is_told() {
    let server = serve_with(|all| all.body_grace = SHORT).await;
    let mut stream = frames::connect(&server).await;
    let more = [("content-type", "application/json"), ("a2a-version", "1.0")];
    let block = header_block("POST", "/", &more);
    stream.write_all(&frame(HEADERS, END_HEADERS, 1, &block)).await.unwrap();
    stream.write_all(&frame(DATA, 0, 1, b"{")).await.unwrap();
    let mut text = Vec::new();
    while !text.ends_with(b"\n") {
        let came = frames::next(&mut stream).await.expect("the connection goes on");
        if came.kind == DATA {
            text.extend_from_slice(&came.payload);
        }
    }
    assert_eq!(String::from_utf8(text).unwrap(), "The request's body took too long to arrive\n");
}
