//! T11: receivers that hang, drip, cut off, redirect and lie, all at once, beside one that is well.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use baton_server::{AgentError, PushOptions, Turn};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::harness::{TEST_TIMEOUT, TestServer, id, message, serve, with_agent};

/// How a receiver behaves once it has read a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sink {
    Answers(&'static str),
    /// Says this, then nothing, and keeps the connection open.
    SaysThenHangs(&'static str),
    /// A byte of a head now and then, without end.
    Drips,
    /// A success whose body does not end.
    Endless,
    HugeHead,
    Resets,
    ClosesUnread,
}

const ATTEMPTS: usize = 10;
const EVENTS: usize = 6;
const OK: Sink = Sink::Answers("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");

/// Each receiver, with how many requests it gets: all attempts at the first event, every event once, or one.
const ZOO: &[(&str, Sink, usize)] = &[
    ("is well", OK, EVENTS),
    ("never ends its body", Sink::Endless, EVENTS),
    (
        "promises more body than it sends",
        Sink::SaysThenHangs("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx"),
        EVENTS,
    ),
    ("is gone", Sink::Answers("HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n"), 1),
    ("hangs", Sink::SaysThenHangs(""), ATTEMPTS),
    ("hangs within its head", Sink::SaysThenHangs("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx:"), ATTEMPTS),
    ("drips", Sink::Drips, ATTEMPTS),
    ("has a huge head", Sink::HugeHead, ATTEMPTS),
    ("resets", Sink::Resets, ATTEMPTS),
    ("closes at once", Sink::ClosesUnread, ATTEMPTS),
    ("is no HTTP", Sink::Answers("SSH-2.0-OpenSSH_9.6\r\n"), ATTEMPTS),
    ("fails", Sink::Answers("HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n"), ATTEMPTS),
    (
        "is busy",
        Sink::Answers("HTTP/1.1 429 Slower\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n"),
        ATTEMPTS,
    ),
];

impl Sink {
    async fn serve(self, mut stream: TcpStream, requests: &AtomicUsize) -> std::io::Result<()> {
        if self == Sink::ClosesUnread {
            requests.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        while read_request(&mut stream).await? {
            requests.fetch_add(1, Ordering::Relaxed);
            match self {
                Sink::Answers(answer) => stream.write_all(answer.as_bytes()).await?,
                Sink::SaysThenHangs(text) => {
                    stream.write_all(text.as_bytes()).await?;
                    until_closed(&mut stream).await;
                }
                Sink::Drips => {
                    stream.write_all(b"HTTP/1.1 200 OK\r\nx: ").await?;
                    loop {
                        tokio::time::sleep(Duration::from_millis(5)).await; // tidy: allow-sleep a slow receiver
                        stream.write_all(b"x").await?;
                    }
                }
                Sink::Endless => {
                    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
                    loop {
                        stream.write_all(&[b'x'; 4096]).await?;
                    }
                }
                Sink::HugeHead => {
                    stream.write_all(b"HTTP/1.1 200 OK\r\nx: ").await?;
                    stream.write_all(&vec![b'x'; 1024 * 1024]).await?;
                }
                Sink::Resets => {
                    stream.set_zero_linger()?;
                    return Ok(());
                }
                Sink::ClosesUnread => unreachable!(),
            }
        }
        Ok(())
    }
}

/// False at the end of the connection.
async fn read_request(stream: &mut TcpStream) -> std::io::Result<bool> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).await? == 0 {
            return Ok(false);
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next()).unwrap();
    stream.read_exact(&mut vec![0; length.parse().unwrap()]).await?;
    Ok(true)
}

async fn until_closed(stream: &mut TcpStream) {
    let mut rest = [0; 64];
    while stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
}

/// Serves it on a host of its own. Answers its address, and the number of requests that it has had.
async fn start(sink: Sink) -> (String, Arc<AtomicUsize>) {
    static NEXT: AtomicU8 = AtomicU8::new(2);
    start_on(&format!("127.0.0.{}", NEXT.fetch_add(1, Ordering::Relaxed)), sink).await
}

/// On a port of its own.
async fn start_on(host: &str, sink: Sink) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((host, 0)).await.unwrap();
    let (address, requests) = (listener.local_addr().unwrap(), Arc::<AtomicUsize>::default());
    let counted = Arc::clone(&requests);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let counted = Arc::clone(&counted);
            tokio::spawn(async move { sink.serve(stream, &counted).await });
        }
    });
    (address.to_string(), requests)
}

async fn busy(turn: Turn) -> Result<(), AgentError> {
    turn.progress("reading").await?;
    turn.text_artifact("answer", "forty-two").await?;
    turn.progress("checking").await
}

/// The value of one of the server's numbers.
async fn number(server: &TestServer, name: &str) -> f64 {
    let numbers = server.server.metrics().await;
    let line = numbers.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in {numbers}"))
}

fn zoo_options() -> PushOptions {
    let mut options = PushOptions::default();
    options.development = true;
    options.timeout = Duration::from_millis(400);
    // 75 hours in 27 ms: every attempt is seen.
    options.pace = 1e-7;
    options
}

#[tokio::test]
async fn s14_each_receiver_of_the_zoo_is_treated_as_it_deserves_and_delays_no_other() {
    let server = serve(with_agent(busy).push(zoo_options())).await;
    // A redirect leads here.
    let (elsewhere, redirected) = start(OK).await;
    let location =
        format!("HTTP/1.1 301 Moved\r\nlocation: http://{elsewhere}/\r\ncontent-length: 0\r\n\r\n");
    let redirect: &'static str = location.leak();
    let mut zoo = Vec::new();
    for (name, sink, expected) in
        ZOO.iter().copied().chain([("redirects", Sink::Answers(redirect), ATTEMPTS)])
    {
        let (address, requests) = start(sink).await;
        zoo.push((name, requests, expected));
        told(&server, &format!("http://{address}/")).await;
    }
    // What nobody answers: a port without a listener, a name that does not exist, TLS towards a port that has none.
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let (plain, handshakes) = start(OK).await;
    let unreached = [
        format!("http://{closed}/"),
        "https://no-such-name.invalid/".to_owned(),
        format!("https://{plain}/"),
    ];
    for url in &unreached {
        told(&server, url).await;
    }
    let failing = zoo.iter().filter(|(.., expected)| *expected == ATTEMPTS).count() + unreached.len();
    let settled = async {
        while number(&server, "baton_webhooks_open").await > 0.0 {
            tokio::task::yield_now().await;
        }
    };
    assert!(tokio::time::timeout(TEST_TIMEOUT, settled).await.is_ok(), "some are never given up");
    for (name, requests, expected) in &zoo {
        assert_eq!(requests.load(Ordering::Relaxed), *expected, "the receiver that {name}");
    }
    assert_eq!((redirected.load(Ordering::Relaxed), handshakes.load(Ordering::Relaxed)), (0, 0));
    let calls = async |result: &str| {
        number(&server, &format!("baton_webhook_calls_total{{result=\"{result}\"}}")).await as usize
    };
    assert_eq!(calls("delivered").await, 3 * EVENTS);
    assert_eq!(calls("gone").await, 1);
    assert_eq!(calls("failed").await, failing);
    assert_eq!(calls("retried").await, failing * (ATTEMPTS - 1));
}

/// Sends a message whose task has this webhook.
async fn told(server: &TestServer, url: &str) -> Value {
    let mut params = message("go");
    params["configuration"] = json!({"taskPushNotificationConfig": {"url": url}, "returnImmediately": true});
    server.call("SendMessage", params).await.result()["task"].clone()
}

/// A receiver that hangs holds the places of its own host only.
#[tokio::test]
async fn s14_a_receiver_that_is_well_is_called_while_many_others_hang() {
    let mut options = zoo_options();
    // Longer than the test may take.
    options.timeout = TEST_TIMEOUT * 3;
    let server = serve(with_agent(busy).push(options)).await;
    // A port gives a host no further places.
    let mut hanging = Vec::new();
    for _ in 0..4 {
        hanging.push(start_on("127.0.0.1", Sink::SaysThenHangs("")).await);
    }
    for n in 0..100 {
        told(&server, &format!("http://{}/", hanging[n % 4].0)).await;
    }
    let (well, got) = start(OK).await;
    let task = told(&server, &format!("http://{well}/")).await;
    let delivered = async {
        while got.load(Ordering::Relaxed) < EVENTS {
            tokio::task::yield_now().await;
        }
    };
    assert!(
        tokio::time::timeout(TEST_TIMEOUT, delivered).await.is_ok(),
        "{} events",
        got.load(Ordering::Relaxed)
    );
    let requests: usize = hanging.iter().map(|(_, requests)| requests.load(Ordering::Relaxed)).sum();
    assert_eq!(requests, 4, "calls at a time to one host");
    server.eventually(id(&task), "COMPLETED").await;
}
