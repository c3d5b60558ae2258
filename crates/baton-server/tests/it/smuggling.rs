//! An ambiguous request is refused, and nothing after it on the connection is served.

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use crate::agents::obedient;
use crate::harness::{TestServer, message_with_id, serve_agent};
use crate::smuggling_corpus::corpus;
use crate::socket::{self, Reply, replies, talk};

/// A request that would create a task, so that it is noticed if served.
fn smuggled(id: &str) -> Vec<u8> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message_with_id(id, "smuggled")});
    let body = body.to_string();
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nA2A-Version: 1.0\r\n";
    format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

async fn tasks(server: &TestServer) -> u64 {
    server.task_count().await
}

#[track_caller]
fn check(name: &str, replies: &[Reply], status: u16) {
    let [reply] = replies else { panic!("{name}: {} answers: {replies:?}", replies.len()) };
    assert_eq!(reply.status, status, "{name}: {reply:?}");
    assert_eq!(reply.header("connection"), Some("close"), "{name}: {reply:?}");
    assert!(reply.body.len() > 20, "{name}: it says why: {reply:?}");
}

/// One write with the bad request and one that must not be served. The server closes the connection after its answer.
#[tokio::test]
async fn what_is_ambiguous_is_refused_and_what_follows_it_is_not_served() {
    let server = serve_agent(obedient).await;
    let corpus = corpus();
    assert!(corpus.len() >= 120, "{}", corpus.len());
    for (name, bytes, status) in &corpus {
        let answer = talk(&server, &[&bytes[..], &smuggled(name)].concat()).await;
        check(name, &replies(&answer), *status);
    }
    assert_eq!(tasks(&server).await, 0, "nothing got through");
    // The check is able to notice a served request.
    let mut stream = socket::connect(&server).await;
    stream.write_all(&smuggled("honest")).await.unwrap();
    assert_eq!(socket::one_reply(&mut stream).await.status, 200);
    assert_eq!(tasks(&server).await, 1);
}

/// What one reader takes for a body, another reader could take for a request, without any of our checks.
#[tokio::test]
async fn what_only_one_reader_takes_for_a_body_is_not_served() {
    let server = serve_agent(obedient).await;
    for name in ["Content_Length", "content.length", "ContentLength"] {
        let inner = String::from_utf8(smuggled(name)).unwrap();
        // A request that the filter would refuse: lines that end with LF only, and two hosts.
        let (head, body) = inner.split_once("\r\n\r\n").unwrap();
        let inner = format!("{}\nHost: other\n\n{body}", head.replace("\r\n", "\n"));
        let outer = format!(
            "GET /.well-known/agent-card.json HTTP/1.1\r\nHost: localhost\r\n{name}: {}\r\n\r\n",
            inner.len()
        );
        check(name, &replies(&talk(&server, format!("{outer}{inner}").as_bytes()).await), 400);
    }
    assert_eq!(tasks(&server).await, 0, "nothing got through");
}

/// Refused whether the filter or hyper notices it, and however much arrives together with the head.
#[tokio::test]
async fn a_body_whose_framing_breaks_is_refused_in_every_binding() {
    let server = serve_agent(obedient).await;
    let extended = format!("1;{}\r\n \r\n", "e".repeat(1000)).repeat(20);
    let broken = [
        ("Transfer-Encoding: chunked", "zz\r\n{}\r\n0\r\n\r\n", false),
        ("Transfer-Encoding: chunked", "2\r\n{}x0\r\n\r\n", false),
        ("Transfer-Encoding: chunked", extended.as_str(), false),
        ("Transfer-Encoding: chunked", "5\r\n{", true),
        ("Transfer-Encoding: chunked", "2\r\n{}\r\n", true),
        ("Content-Length: 20", "{}", true),
    ];
    for path in ["/", "/message:send", "/v1/message:send"] {
        for (framing, body, ends) in broken {
            for at_once in [true, false] {
                let head = format!(
                    "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{}{framing}\r\n\r\n",
                    if path.starts_with("/v1") { "" } else { "A2A-Version: 1.0\r\n" }
                );
                let mut stream = socket::connect(&server).await;
                if at_once {
                    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
                } else {
                    stream.write_all(head.as_bytes()).await.unwrap();
                    tokio::task::yield_now().await;
                    stream.write_all(body.as_bytes()).await.unwrap();
                }
                if ends {
                    stream.shutdown().await.unwrap();
                }
                let name = format!("{path} {framing} {:.20}", body);
                let replies = replies(&socket::until_closed(&mut stream).await);
                let [reply] = &replies[..] else { panic!("{name}: {replies:?}") };
                assert_eq!(reply.status, 400, "{name}: {reply:?}");
            }
        }
    }
}

/// Pipelined requests are passed on one by one; all of them are answered, in order.
#[tokio::test]
async fn many_requests_in_one_write_are_all_answered() {
    let server = serve_agent(obedient).await;
    let card = "GET /.well-known/agent-card.json HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let missing =
        "POST /nothing HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
    let last = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let all = format!("{}{last}", [card, missing].concat().repeat(50));
    let replies = replies(&talk(&server, all.as_bytes()).await);
    let statuses: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
    assert_eq!(statuses, [[200, 404].repeat(50), vec![200]].concat());
}

/// The same after a valid request, which is answered first.
#[tokio::test]
async fn an_honest_request_before_it_is_answered() {
    let server = serve_agent(obedient).await;
    let honest = b"GET /.well-known/agent-card.json HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for (name, bytes, status) in corpus().iter().step_by(4) {
        let answer = talk(&server, &[&honest[..], bytes, &smuggled(name)].concat()).await;
        let replies = replies(&answer);
        assert_eq!(replies[0].status, 200, "{name}");
        check(name, &replies[1..], *status);
    }
    assert_eq!(tasks(&server).await, 0);
}

/// The same, sent byte by byte.
#[tokio::test]
async fn pieces_make_no_difference() {
    let server = serve_agent(obedient).await;
    for (name, bytes, status) in corpus().iter().filter(|case| case.1.len() < 1000).step_by(9) {
        let mut stream = socket::connect(&server).await;
        stream.set_nodelay(true).unwrap();
        for byte in bytes.iter().chain(&smuggled(name)) {
            // The server may refuse it before all is sent.
            if stream.write_all(&[*byte]).await.is_err() {
                break;
            }
        }
        let mut answer = Vec::new();
        // Bytes sent after the close may reset the connection; the answer was read before that.
        let _ = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut answer).await;
        check(name, &replies(&answer), *status);
    }
    assert_eq!(tasks(&server).await, 0);
}

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks"}"#;

/// Unusual but unambiguous requests are served.
#[tokio::test]
async fn what_is_clear_is_served() {
    let server = serve_agent(obedient).await;
    let address = socket::address(&server);
    let chunked = |extension: &str, end: &str| format!("{:x}{extension}\r\n{LIST}\r\n{end}", LIST.len());
    let length = format!("Content-Length: {}\r\n\r\n{LIST}", LIST.len());
    let encoding = "Transfer-Encoding: chunked\r\n\r\n";
    for (name, line, headers, rest) in [
        ("plain", "POST / HTTP/1.1", "Host: localhost\r\n", length.clone()),
        ("a blank line first", "\r\nPOST / HTTP/1.1", "Host: localhost\r\n", length.clone()),
        ("no blanks", "POST / HTTP/1.1", "Host:localhost\r\n", length.clone()),
        ("many blanks", "POST / HTTP/1.1", "Host: \t localhost \t\r\n", length.clone()),
        ("a port", "POST / HTTP/1.1", &format!("hOsT: {address}\r\n"), length.clone()),
        ("a URL", "POST http://localhost/ HTTP/1.1", "Host: localhost\r\n", length.clone()),
        ("a URL with its port", "POST http://LOCALHOST:80/ HTTP/1.1", "Host: localhost\r\n", length.clone()),
        (
            "an upgrade",
            "POST / HTTP/1.1",
            "Host: localhost\r\nConnection: upgrade\r\nUpgrade: h2c\r\n",
            length.clone(),
        ),
        ("expected", "POST / HTTP/1.1", "Host: localhost\r\nExpect: 100-Continue\r\n", length.clone()),
        ("HTTP/1.0", "POST / HTTP/1.0", "Host: localhost\r\n", length.clone()),
        ("HTTP/1.0 without a host", "POST / HTTP/1.0", "", length.clone()),
        ("HTTP/1.0 to be kept", "POST / HTTP/1.0", "Host: localhost\r\nConnection: keep-alive\r\n", length),
        (
            "chunks",
            "POST / HTTP/1.1",
            "Host: localhost\r\n",
            format!("{encoding}{}", chunked("", "0\r\n\r\n")),
        ),
        (
            "chunks with all there is",
            "POST / HTTP/1.1",
            "Host: localhost\r\n",
            format!("{encoding}{}", chunked(";a=\"b c\"", "00;d\r\nX-Y: z\r\nA:\r\n\r\n")),
        ),
        (
            "an encoding in capitals",
            "POST / HTTP/1.1",
            "Host: localhost\r\n",
            format!("TRANSFER-ENCODING: Chunked\t\r\n\r\n{}", chunked("", "0\r\n\r\n")),
        ),
    ] {
        let head = format!("{line}\r\n{headers}Content-Type: application/json\r\nA2A-Version: 1.0\r\n");
        let mut stream = socket::connect(&server).await;
        stream.write_all(format!("{head}{rest}").as_bytes()).await.unwrap();
        let reply = socket::one_reply(&mut stream).await;
        assert_eq!(reply.status, 200, "{name}: {reply:?}");
        let body: Value = serde_json::from_str(&reply.body).unwrap();
        assert_eq!(body["result"]["totalSize"], 0, "{name}");
        assert!(!reply.head.to_ascii_lowercase().contains("upgrade"), "{name}: {reply:?}");
        if name.starts_with("HTTP/1.0") {
            assert!(socket::until_closed(&mut stream).await.is_empty(), "{name}: it is closed");
        } else {
            // The connection can still be used.
            stream
                .write_all(b"GET /.well-known/agent-card.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
                .await
                .unwrap();
            assert_eq!(socket::one_reply(&mut stream).await.status, 200, "{name}");
        }
    }
}

/// A server that answers before it has read a body must not take the rest of it for a request.
#[tokio::test]
async fn the_rest_of_a_body_that_nobody_read_is_no_request() {
    let server = serve_agent(obedient).await;
    let inner = smuggled("inner");
    for (line, headers, status) in [
        ("POST / HTTP/1.1", "Content-Type: text/plain\r\n", 415),
        ("PUT / HTTP/1.1", "", 405),
        ("POST /nothing/here HTTP/1.1", "A2A-Version: 1.0\r\n", 404),
    ] {
        let head = format!(
            "{line}\r\nHost: localhost\r\n{headers}Content-Length: {}\r\n\r\n",
            100_000 + inner.len()
        );
        let bytes = [head.as_bytes(), &vec![b' '; 100_000], &inner].concat();
        let replies = replies(&talk(&server, &bytes).await);
        assert_eq!(replies.iter().map(|reply| reply.status).collect::<Vec<_>>(), [status], "{line}");
    }
    assert_eq!(tasks(&server).await, 0);
}
