//! How many connections and streams there may be, and the answer to the next one.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::agents::obedient;
use crate::callers::ByHeader;
use crate::fixtures::connections;
use crate::frames::{self, DATA, END_HEADERS, HEADERS, WINDOW_UPDATE, frame, header_block};
use crate::harness::{Answer, TEST_TIMEOUT, TestServer, message, serve, with_agent};
use crate::socket::{self, Reply, replies, until_closed};
use crate::speakers::{envelope, message_03, read, request};

const CARD: &[u8] = b"GET /.well-known/agent-card.json HTTP/1.1\r\nHost: localhost\r\n\r\n";

const HEAD: &str =
    "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nA2A-Version: 1.0\r\n";

async fn asked(server: &TestServer) -> (TcpStream, Reply) {
    let mut stream = socket::connect(server).await;
    stream.write_all(CARD).await.unwrap();
    let reply = socket::one_reply(&mut stream).await;
    (stream, reply)
}

/// A connection with an open event stream.
async fn busy(server: &TestServer) -> TcpStream {
    let body = envelope("SendStreamingMessage", &message("hold"));
    let mut stream = socket::connect(server).await;
    stream.write_all(format!("{HEAD}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).await.unwrap();
    let mut first = [0; 16];
    stream.read_exact(&mut first).await.unwrap();
    assert!(first.starts_with(b"HTTP/1.1 200"), "{first:?}");
    stream
}

#[tokio::test]
async fn in_a_full_house_the_longest_quiet_makes_room() {
    let server = serve(with_agent(obedient).connections(connections(|all| all.max_connections = 4))).await;
    let working = busy(&server).await;
    let mut quiet = Vec::new();
    for _ in 0..3 {
        quiet.push(asked(&server).await.0);
    }
    // The first of them makes a request, so it is no longer the one that has been idle longest.
    quiet[0].write_all(CARD).await.unwrap();
    assert_eq!(socket::one_reply(&mut quiet[0]).await.status, 200);
    let mut newcomers = Vec::new();
    for next in [1, 2, 0] {
        let (newcomer, reply) = asked(&server).await;
        assert_eq!(reply.status, 200);
        assert_eq!(until_closed(&mut quiet[next]).await, b"", "number {next} made room");
        newcomers.push(newcomer);
    }
    drop(working);
}

/// A connection without any request counts as idle: opening many of them keeps no other client out.
#[tokio::test]
async fn silent_connections_keep_nobody_out() {
    let server = serve(with_agent(obedient).connections(connections(|all| all.max_connections = 50))).await;
    let mut silent = Vec::new();
    for n in 0..500 {
        silent.push(socket::connect(&server).await);
        if n % 25 == 0 {
            assert_eq!(asked(&server).await.1.status, 200, "{n}");
        }
    }
}

#[tokio::test]
async fn when_all_are_at_work_the_newcomer_is_told_to_come_back() {
    let server = serve(with_agent(obedient).connections(connections(|all| all.max_connections = 2))).await;
    let (first, second) = (busy(&server).await, busy(&server).await);
    for _ in 0..3 {
        let mut stream = socket::connect(&server).await;
        // The server may have refused the connection before the request is written.
        let _ = stream.write_all(CARD).await;
        let replies = replies(&until_closed(&mut stream).await);
        assert_eq!(replies.iter().map(|reply| reply.status).collect::<Vec<_>>(), [503]);
        assert_eq!(
            (replies[0].header("retry-after"), replies[0].header("connection")),
            (Some("5"), Some("close"))
        );
    }
    drop(first);
    let give_up = tokio::time::Instant::now() + TEST_TIMEOUT;
    while asked(&server).await.1.status != 200 {
        assert!(tokio::time::Instant::now() < give_up, "its place is free again");
    }
    drop(second);
}

async fn stream_as(server: &TestServer, owner: &str) -> reqwest::Response {
    let headers = [("content-type", "application/json"), ("a2a-version", "1.0"), ("x-owner", owner)];
    let body = envelope("SendStreamingMessage", &message("hold"));
    request(server, http::Method::POST, "/", &headers, body).await
}

#[track_caller]
fn check_full(answer: &Answer, status: u16) {
    assert_eq!((answer.status, &answer.body["error"]["code"]), (status, &json!(-32050)), "{}", answer.body);
    assert!(answer.header("retry-after").unwrap().parse::<u32>().unwrap() > 0);
}

#[tokio::test]
async fn streams_of_one_caller_have_their_bound() {
    let limits = connections(|all| all.max_streams_per_owner = 2);
    let server = serve(with_agent(obedient).authenticator(Arc::new(ByHeader)).connections(limits)).await;
    let mut open = vec![stream_as(&server, "ada").await, stream_as(&server, "ada").await];
    check_full(&read(stream_as(&server, "ada").await).await, 429);
    assert_eq!(stream_as(&server, "bob").await.status(), 200, "others are served");

    let ada = |path: &'static str, version: &'static str, body: Value| {
        let headers = [("content-type", "application/json"), ("a2a-version", version), ("x-owner", "ada")];
        let server = &server;
        async move { read(request(server, http::Method::POST, path, &headers, body.to_string()).await).await }
    };
    // Refused in every binding, and no task was started.
    let answer = ada("/message:stream", "1.0", message("hold")).await;
    assert_eq!((answer.status, &answer.body["error"]["status"]), (429, &json!("RESOURCE_EXHAUSTED")));
    let body = serde_json::from_str(&envelope("message/stream", &message_03("hold"))).unwrap();
    check_full(&ada("/", "0.3", body).await, 429);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks"});
    let tasks = ada("/", "1.0", list).await;
    assert_eq!(tasks.body["result"]["totalSize"], 2, "{}", tasks.body);
    // A subscription counts as a stream, too.
    let id = &tasks.body["result"]["tasks"][0]["id"];
    let watch = json!({"jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": {"id": id}});
    check_full(&ada("/", "1.0", watch).await, 429);

    drop(open.pop());
    let give_up = tokio::time::Instant::now() + TEST_TIMEOUT;
    while stream_as(&server, "ada").await.status() != 200 {
        assert!(tokio::time::Instant::now() < give_up, "its place is free again");
    }
}

#[tokio::test]
async fn streams_of_everybody_have_theirs() {
    let limits = connections(|all| (all.max_streams, all.max_streams_per_owner) = (5, 1));
    let server = serve(with_agent(obedient).connections(limits)).await;
    let mut open = Vec::new();
    for _ in 0..5 {
        // The limit per owner does not apply to `anonymous`, which stands for many callers.
        open.push(server.stream("SendStreamingMessage", message("hold"), None).await.ok().expect("a place"));
    }
    let refused = server.stream("SendStreamingMessage", message("hold"), None).await.err().expect("no place");
    check_full(&refused, 503);
    server.send("what is no stream is answered").await;
    drop(open);
    let give_up = tokio::time::Instant::now() + TEST_TIMEOUT;
    while server.stream("SendStreamingMessage", message("hold"), None).await.is_err() {
        assert!(tokio::time::Instant::now() < give_up, "the places are free again");
    }
}

/// Half-sent bodies share a memory limit, however small each of them is. Of one caller's, the one that has brought nothing
/// for the longest time gives way.
#[tokio::test]
async fn bodies_on_their_way_have_their_bound_together() {
    let limits = connections(|all| all.max_bodies_bytes = 1 << 20);
    let server = serve(with_agent(obedient).connections(limits)).await;
    let half_sent = format!("{HEAD}Content-Length: 1000000\r\n\r\n{}", " ".repeat(600_000));
    let mut first = socket::connect(&server).await;
    first.write_all(half_sent.as_bytes()).await.unwrap();
    let mut second = socket::connect(&server).await;
    let _ = second.write_all(half_sent.as_bytes()).await;
    // One of them exceeds the limit, and which one that is depends on what is read first.
    let (mut one, mut two) = (Vec::new(), Vec::new());
    let refused = tokio::select! {
        _ = first.read_to_end(&mut one) => &one,
        _ = second.read_to_end(&mut two) => &two,
        () = tokio::time::sleep(TEST_TIMEOUT) => panic!("both are kept"), // tidy: allow-sleep the limit on a hang
    };
    let refused = replies(refused);
    assert_eq!(refused.iter().map(|reply| reply.status).collect::<Vec<_>>(), [429]);
    assert_eq!(
        (refused[0].header("retry-after"), refused[0].header("connection")),
        (Some("1"), Some("close"))
    );
    // The other one gives way to a body that comes.
    let body = envelope("ListTasks", &json!({})) + &" ".repeat(900_000);
    let whole = format!("{HEAD}Content-Length: {}\r\n\r\n{body}", body.len());
    for _ in 0..3 {
        let mut stream = socket::connect(&server).await;
        stream.write_all(whole.as_bytes()).await.unwrap();
        assert_eq!(socket::one_reply(&mut stream).await.status, 200);
    }
}

const OWNED: &str = "x-owner: greedy\r\nContent-Length: 1000000\r\n\r\n";

/// Fills the room with half-sent bodies of one owner over HTTP/1, until one of them has to give way.
async fn hold_bodies(server: &TestServer) -> Vec<TcpStream> {
    let half_sent = format!("{HEAD}{OWNED}{}", " ".repeat(150_000));
    let mut held = Vec::new();
    for _ in 0..20 {
        let mut stream = socket::connect(server).await;
        stream.write_all(half_sent.as_bytes()).await.unwrap();
        held.push(stream);
    }
    let mut given_up = Vec::new();
    for stream in &mut held[..4] {
        given_up.push(socket::one_reply(stream).await.status);
    }
    assert_eq!(given_up, [429; 4]);
    held
}

/// The same on one HTTP/2 connection.
async fn hold_streams(server: &TestServer) -> TcpStream {
    let mut connection = frames::connect(server).await;
    let more = [("content-type", "application/json"), ("a2a-version", "1.0"), ("x-owner", "greedy")];
    // The window of the connection; that of each stream is 64 KiB.
    let (mut window, mut next) = (65_535, 1);
    loop {
        let came = frames::next(&mut connection).await.expect("the connection goes on");
        match came.kind {
            WINDOW_UPDATE if came.stream == 0 => {
                window += u32::from_be_bytes(came.payload[..4].try_into().unwrap());
            }
            HEADERS => return connection,
            _ => {}
        }
        while window > 60_000 {
            window -= 60_000;
            let head = frame(HEADERS, END_HEADERS, next, &header_block("POST", "/", &more));
            let parts = frame(DATA, 0, next, &[b' '; 15_000]).repeat(4);
            connection.write_all(&[head, parts].concat()).await.unwrap();
            next += 2;
        }
    }
}

#[tokio::test]
async fn s12_bodies_that_one_owner_holds_cost_another_nothing() {
    let limits = connections(|all| all.max_bodies_bytes = 1 << 20);
    let server = serve(with_agent(obedient).authenticator(Arc::new(ByHeader)).connections(limits)).await;
    let body = envelope("ListTasks", &json!({})) + &" ".repeat(450_000);
    let whole = format!("{HEAD}x-owner: calm\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    for http2 in [false, true] {
        for _ in 0..5 {
            // It pauses in the middle, and holds less than the other owner.
            let mut stream = socket::connect(&server).await;
            let (first, rest) = whole.as_bytes().split_at(300_000);
            stream.write_all(first).await.unwrap();
            let held = if http2 { vec![hold_streams(&server).await] } else { hold_bodies(&server).await };
            let _ = stream.write_all(rest).await;
            assert_eq!(socket::one_reply(&mut stream).await.status, 200);
            drop(held);
        }
    }
}
