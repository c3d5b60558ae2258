//! HTTP/2 on the same port, and clients that abuse it: the connection is closed, memory is bounded, others are served.

use bytes::Bytes;
use h2::client::SendRequest;
use http::Request;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::agents::obedient;
use crate::fixtures::resident_mib;
use crate::frames::{
    self, ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, PRIORITY, RST_STREAM,
    SETTINGS, WINDOW_UPDATE, frame, header_block,
};
use crate::harness::{TEST_TIMEOUT, TestServer, message, serve_agent};
use crate::socket;

struct Client {
    send: SendRequest<Bytes>,
}

async fn client(server: &TestServer) -> Client {
    let stream = TcpStream::connect(socket::address(server)).await.unwrap();
    let (send, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    Client { send }
}

fn post(server: &TestServer, method: &str, params: Value) -> (Request<()>, Bytes) {
    let request = Request::post(format!("{}/", server.url))
        .header("content-type", "application/json")
        .header("a2a-version", "1.0")
        .body(())
        .unwrap();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    (request, body.to_string().into())
}

impl Client {
    async fn call(&self, server: &TestServer, method: &str, params: Value) -> (u16, Value) {
        let (request, body) = post(server, method, params);
        let mut send = self.send.clone().ready().await.unwrap();
        let (response, mut stream) = send.send_request(request, false).unwrap();
        stream.send_data(body, true).unwrap();
        let response = tokio::time::timeout(TEST_TIMEOUT, response).await.expect("an answer").unwrap();
        let (status, mut body) = (response.status().as_u16(), response.into_body());
        let mut all = Vec::new();
        while let Some(data) = body.data().await {
            let data = data.unwrap();
            body.flow_control().release_capacity(data.len()).unwrap();
            all.extend_from_slice(&data);
        }
        (status, serde_json::from_slice(&all).unwrap_or(Value::Null))
    }
}

#[tokio::test]
async fn http2_is_spoken_with_those_who_know_it() {
    let server = serve_agent(obedient).await;
    let client = client(&server).await;
    let (status, answer) = client.call(&server, "SendMessage", message("hello")).await;
    assert_eq!((status, &answer["result"]["task"]["status"]["state"]), (200, &json!("TASK_STATE_COMPLETED")));

    // Many at once on one connection, and a stream of events among them.
    let (request, body) = post(&server, "SendStreamingMessage", message("hello"));
    let mut send = client.send.clone().ready().await.unwrap();
    let (events, mut stream) = send.send_request(request, false).unwrap();
    stream.send_data(body, true).unwrap();
    let calls = (0..100).map(|_| client.call(&server, "ListTasks", json!({})));
    for (status, answer) in futures_util::future::join_all(calls).await {
        assert_eq!(status, 200, "{answer}");
    }
    let mut events = events.await.unwrap().into_body();
    let mut all = Vec::new();
    while let Some(data) = events.data().await {
        all.extend_from_slice(&data.unwrap());
    }
    assert!(String::from_utf8(all).unwrap().contains("TASK_STATE_COMPLETED"));
}

#[tokio::test]
async fn http2_heads_are_checked_like_the_others() {
    let server = serve_agent(obedient).await;
    let client = client(&server).await;
    for (request, status) in [
        (Request::post("http://evil.test/"), 421),
        (Request::post(&server.url).header("host", "evil.test"), 400),
        (Request::post(&server.url).header("origin", "http://evil.test"), 403),
        (Request::builder().method("TRACE").uri(&server.url), 400),
        (Request::builder().method("REFUSED-BY-BATON").uri(format!("{}/1", server.url)), 404),
        (Request::get(format!("{}/.well-known/agent-card.json", server.url)), 200),
    ] {
        let mut send = client.send.clone().ready().await.unwrap();
        let (response, _) = send.send_request(request.body(()).unwrap(), true).unwrap();
        let response = tokio::time::timeout(TEST_TIMEOUT, response).await.expect("an answer").unwrap();
        assert_eq!(response.status(), status);
    }
    let many = (0..200)
        .fold(Request::get(&server.url), |request, n| request.header(format!("x-{n}"), "y".repeat(200)));
    let mut send = client.send.clone().ready().await.unwrap();
    let (response, _) = send.send_request(many.body(()).unwrap(), true).unwrap();
    match response.await {
        Ok(response) => assert_eq!(response.status(), 431),
        Err(error) => assert!(error.is_reset() || error.is_go_away(), "{error}"),
    }
}

/// Sends frames as fast as possible until the server closes the connection.
async fn flood(name: &str, opening: Vec<u8>, unit: impl Fn(u32) -> Vec<u8> + Send + 'static) {
    let server = serve_agent(obedient).await;
    let before = resident_mib();
    let mut stream = frames::connect(&server).await;
    stream.write_all(&opening).await.unwrap();
    let (mut reader, mut writer) = stream.into_split();
    let flooding = tokio::spawn(async move {
        for n in 0_u32.. {
            let some: Vec<u8> = (0..100).flat_map(|m| unit(n * 100 + m)).collect();
            if writer.write_all(&some).await.is_err() {
                return n;
            }
        }
        u32::MAX
    });
    let reading = async {
        let mut came = Vec::new();
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = tokio::io::AsyncReadExt::read(&mut reader, &mut buffer).await {
            if came.len() < 1 << 20 {
                came.extend_from_slice(&buffer[..count]);
            }
        }
        came
    };
    let honest = async {
        loop {
            server.send("hello").await;
        }
    };
    tokio::select! {
        ended = tokio::time::timeout(TEST_TIMEOUT, reading) => drop(ended.unwrap_or_else(|_| panic!("{name}: not ended"))),
        () = honest => {}
    }
    tokio::time::timeout(TEST_TIMEOUT, flooding).await.expect("it cannot go on").unwrap();
    server.send("hello").await;
    assert!(resident_mib() < before + 64, "{name}: {before} MiB before, {} after", resident_mib());
}

#[tokio::test]
async fn a_flood_of_frames_that_ask_for_nothing_ends_the_connection() {
    let block = header_block("POST", "/", &[("content-type", "application/json")]);
    let open = frame(HEADERS, END_HEADERS, 1, &block);
    flood("ping", vec![], |_| frame(PING, 0, 0, &[0; 8])).await;
    flood("settings", vec![], |_| frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 9])).await;
    flood("ping ack", vec![], |_| frame(PING, ACK, 0, &[0; 8])).await;
    flood("settings ack", vec![], |_| frame(SETTINGS, ACK, 0, b"")).await;
    flood("window update", vec![], |_| frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])).await;
    flood("priority", vec![], |n| frame(PRIORITY, 0, 2 * n + 1, &[0, 0, 0, 0, 9])).await;
    flood("unknown", vec![], |_| frame(99, 0, 0, &[0; 8])).await;
    flood("empty data", open, |_| frame(DATA, 0, 1, b"")).await;
    let begun = frame(HEADERS, 0, 1, &block);
    flood("continuation", begun, |_| frame(CONTINUATION, 0, 1, b"\0\x01x\x01y")).await;
    flood("empty continuation", frame(HEADERS, 0, 1, &block), |_| frame(CONTINUATION, 0, 1, b"")).await;
}

/// Requests that are reset, at once or after the server has begun to work on them.
#[tokio::test]
async fn a_flood_of_resets_ends_the_connection() {
    let reset = |n: u32| frame(RST_STREAM, 0, 2 * n + 1, &[0, 0, 0, 8]);
    let get = header_block("GET", "/.well-known/agent-card.json", &[]);
    flood("reset", vec![], move |n| {
        let request = frame(HEADERS, END_HEADERS | END_STREAM, 2 * n + 1, &get);
        [request, reset(n)].concat()
    })
    .await;
    let post = header_block("POST", "/", &[("content-type", "application/json"), ("a2a-version", "1.0")]);
    let body =
        json!({"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": message("hold")});
    flood("late reset", vec![], move |n| {
        let id = 2 * n + 1;
        let request = [
            frame(HEADERS, END_HEADERS, id, &post),
            frame(DATA, END_STREAM, id, body.to_string().as_bytes()),
        ];
        [request.concat(), if n >= 50 { reset(n - 50) } else { vec![] }].concat()
    })
    .await;
}

/// A client may update its windows often and in small steps.
#[tokio::test]
async fn a_reader_with_a_small_window_is_no_flood() {
    let server = serve_agent(obedient).await;
    let mut stream = frames::connect(&server).await;
    let settings = frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 200]);
    let get = header_block("GET", "/.well-known/agent-card.json", &[]);
    stream.write_all(&settings).await.unwrap();
    let mut updates = 0;
    // One request after the other, until there were more window updates than the flood limit.
    for id in (1..).step_by(2) {
        let request = frame(HEADERS, END_HEADERS | END_STREAM, id, &get);
        stream.write_all(&request).await.unwrap();
        loop {
            let came = frames::next(&mut stream).await.expect("the connection goes on");
            assert_ne!(came.kind, GOAWAY, "after {updates} updates");
            if came.kind == DATA && !came.payload.is_empty() {
                let more = (came.payload.len() as u32).to_be_bytes();
                let both = [frame(WINDOW_UPDATE, 0, 0, &more), frame(WINDOW_UPDATE, 0, id, &more)].concat();
                // The update of the stream may arrive after the stream's end.
                stream.write_all(&both).await.unwrap();
                updates += 2;
            }
            if came.kind == DATA && came.flags & END_STREAM > 0 {
                break;
            }
        }
        if updates > 4_000 {
            return;
        }
    }
}

/// A client that still reads gets a GOAWAY.
#[tokio::test]
async fn a_flood_is_answered_with_goaway() {
    let server = serve_agent(obedient).await;
    let mut stream = frames::connect(&server).await;
    let pings = frame(PING, 0, 0, &[0; 8]).repeat(3_000);
    stream.write_all(&pings).await.unwrap();
    let came = frames::rest(&mut stream).await;
    assert!(came.iter().any(|frame| frame.kind == GOAWAY), "{} frames", came.len());
}
