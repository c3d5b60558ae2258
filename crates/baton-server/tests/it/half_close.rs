use baton_server::{AgentError, Connections, Turn};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::agents::obedient;
use crate::fixtures::Gate;
use crate::frames::{self, DATA, END_HEADERS, END_STREAM, HEADERS, PREFACE, SETTINGS, frame, header_block};
use crate::harness::{TestServer, id, message, serve, serve_agent, state, with_agent};
use crate::socket::{self, replies};

/// A server whose agent waits at the gate.
async fn serve_waiting(gate: &Gate) -> TestServer {
    let gate = gate.clone();
    serve_agent(move |turn: Turn| {
        let gate = gate.clone();
        async move {
            gate.pass().await;
            turn.text_artifact("echo", turn.text()).await?;
            Ok::<_, AgentError>(())
        }
    })
    .await
}

fn call(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

fn post(method: &str, params: &Value) -> String {
    let body = call(method, params);
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nA2A-Version: 1.0\r\n";
    format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// Gives the server time to notice a closed connection.
async fn some_round_trips(server: &TestServer) {
    for _ in 0..20 {
        server.call("ListTasks", json!({})).await.result();
    }
}

/// Sends these bytes and closes the sending side, like `printf … | nc -N`.
async fn say(server: &TestServer, bytes: &[u8]) -> TcpStream {
    let mut stream = socket::connect(server).await;
    stream.write_all(bytes).await.unwrap();
    stream.shutdown().await.unwrap();
    stream
}

#[tokio::test]
async fn whoever_has_said_all_gets_the_answer() {
    let gate = Gate::new();
    let server = serve_waiting(&gate).await;
    let mut stream = say(&server, post("SendMessage", &message("hello")).as_bytes()).await;
    some_round_trips(&server).await;
    gate.let_pass(1);
    let replies = replies(&socket::until_closed(&mut stream).await);
    let [reply] = &replies[..] else { panic!("{replies:?}") };
    let answer: Value = serde_json::from_str(&reply.body).unwrap();
    assert_eq!((reply.status, state(&answer["result"]["task"])), (200, "COMPLETED"));
}

#[tokio::test]
async fn and_the_answers_to_all_requests_sent_ahead() {
    let gate = Gate::new();
    let server = serve_waiting(&gate).await;
    let card = "GET /.well-known/agent-card.json HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let send = |text| post("SendMessage", &message(text));
    let requests = [&send("a"), card, &send("b"), card, "GET /half"].concat();
    let mut stream = say(&server, requests.as_bytes()).await;
    some_round_trips(&server).await;
    gate.let_pass(1);
    some_round_trips(&server).await;
    gate.let_pass(1);
    let replies = replies(&socket::until_closed(&mut stream).await);
    let statuses: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
    assert_eq!(statuses, [200; 4], "{replies:?}");
}

/// An answer that takes many writes, to a slow reader.
#[tokio::test]
async fn and_all_of_a_large_answer() {
    let server = serve_agent(obedient).await;
    let task = server.send(&"large ".repeat(500_000)).await;
    let mut stream = say(&server, post("GetTask", &json!({"id": id(&task)})).as_bytes()).await;
    some_round_trips(&server).await;
    let replies = replies(&socket::until_closed(&mut stream).await);
    let [reply] = &replies[..] else { panic!("{} answers", replies.len()) };
    let answer: Value = serde_json::from_str(&reply.body).unwrap();
    assert_eq!((reply.status, id(&answer["result"])), (200, id(&task)));
    assert!(reply.body.len() > 6_000_000);
}

#[tokio::test]
async fn half_a_request_is_none() {
    let server = serve_agent(obedient).await;
    let whole = post("SendMessage", &message("hello"));
    for part in ["GET /", &whole[..whole.len() - 1]] {
        let mut stream = say(&server, part.as_bytes()).await;
        let came = socket::until_closed(&mut stream).await;
        assert!(!came.windows(8).any(|some| some == b"\"result\""), "{}", came.escape_ascii());
    }
    assert_eq!(server.task_count().await, 0);
}

/// A half-close ends a stream, and frees its place for another.
#[tokio::test]
async fn a_stream_ends_with_what_its_reader_says() {
    let mut connections = Connections::default();
    connections.max_streams = 1;
    let server = serve(with_agent(obedient).connections(connections)).await;
    for version in ["1.1", "1.0"] {
        let request =
            post("SendStreamingMessage", &message("hold")).replacen("/1.1", &format!("/{version}"), 1);
        // Closed directly after the request, and after the first events.
        let mut stream = say(&server, request.as_bytes()).await;
        socket::until_closed(&mut stream).await;
        let mut stream = loop {
            // The place is free a moment after the close.
            let mut stream = socket::connect(&server).await;
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut begun = [0; 12];
            tokio::io::AsyncReadExt::read_exact(&mut stream, &mut begun).await.unwrap();
            if begun.ends_with(b"200") {
                break stream;
            }
        };
        some_round_trips(&server).await;
        stream.shutdown().await.unwrap();
        socket::until_closed(&mut stream).await;
    }
}

fn http2(requests: &[(u32, &str, &str)]) -> Vec<u8> {
    let block = header_block("POST", "/", &[("content-type", "application/json"), ("a2a-version", "1.0")]);
    let mut all = [PREFACE, &frame(SETTINGS, 0, 0, b"")].concat();
    for (stream, method, text) in requests {
        all.extend(frame(HEADERS, END_HEADERS, *stream, &block));
        all.extend(frame(DATA, END_STREAM, *stream, call(method, &message(text)).as_bytes()));
    }
    all
}

#[tokio::test]
async fn in_http2_every_request_gets_its_answer_too() {
    let gate = Gate::new();
    let server = serve_waiting(&gate).await;
    let requests = [(1, "SendMessage", "a"), (3, "SendMessage", "b")];
    let mut stream = say(&server, &http2(&requests)).await;
    some_round_trips(&server).await;
    gate.let_pass(1);
    some_round_trips(&server).await;
    gate.let_pass(1);
    let came = frames::rest(&mut stream).await;
    for (stream, ..) in requests {
        let data = came.iter().filter(|came| came.kind == DATA && came.stream == stream);
        let body: Vec<u8> = data.flat_map(|came| came.payload.clone()).collect();
        let answer: Value = serde_json::from_slice(&body).unwrap_or_else(|_| panic!("{came:?}"));
        assert_eq!(state(&answer["result"]["task"]), "COMPLETED");
    }
}

#[tokio::test]
async fn in_http2_a_stream_ends_with_what_its_reader_says() {
    let server = serve_agent(obedient).await;
    let mut stream = say(&server, &http2(&[(1, "SendStreamingMessage", "hold")])).await;
    frames::rest(&mut stream).await;
    // In the same connection as a call that is answered.
    let requests = [(1, "SendStreamingMessage", "hold"), (3, "SendMessage", "hello")];
    let mut stream = say(&server, &http2(&requests)).await;
    let came = frames::rest(&mut stream).await;
    assert!(came.iter().any(|came| came.kind == DATA && came.stream == 3), "{came:?}");
}
