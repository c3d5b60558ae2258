//! Connections over TLS behave as plain ones do.

use std::time::Duration;

use super::*;

async fn with_streams(
    count: usize,
) -> (Authority, Running, Vec<mpsc::UnboundedSender<&'static str>>, Arc<AtomicUsize>) {
    let authority = Authority::new();
    let (senders, receivers) = (0..count).map(|_| mpsc::unbounded_channel()).unzip();
    let app = Echo::streams(receivers);
    let open = Arc::clone(&app.open_streams);
    let server = serve(&Tls::new(config(authority.signs("localhost"))), app).await;
    (authority, server, senders, open)
}

const EVENTS: &str = "GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// Polls until it is so; the time limit of the test runner is the only one.
async fn becomes(so: impl Fn() -> bool) {
    while !so() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn events_come_one_by_one_and_the_connection_serves_on() {
    let (authority, server, senders, open) = with_streams(1).await;
    let mut stream = connect(&usual_client(&authority), server.address).await.unwrap();
    stream.write_all(EVENTS.as_bytes()).await.unwrap();
    for event in ["data: 1\n\n", "data: 2\n\n", "data: 3\n\n"] {
        senders[0].send(event).unwrap();
        assert!(read_until(&mut stream, event).await.contains(event));
    }
    drop(senders);
    read_until(&mut stream, "0\r\n\r\n").await;
    assert_eq!(open.load(SeqCst), 0);
    assert!(ask(&mut stream, GET).await.contains("200 OK"));
}

/// By `close_notify`, and by the end of the TCP connection alone.
#[tokio::test]
async fn a_reader_that_leaves_ends_its_stream() {
    let (authority, server, senders, open) = with_streams(2).await;
    for politely in [true, false] {
        let mut stream = connect(&usual_client(&authority), server.address).await.unwrap();
        stream.write_all(EVENTS.as_bytes()).await.unwrap();
        for sender in &senders {
            let _gone = sender.send("data: 1\n\n");
        }
        read_until(&mut stream, "data: 1").await;
        assert_eq!(open.load(SeqCst), 1);
        if politely {
            stream.shutdown().await.unwrap();
        }
        drop(stream);
        becomes(|| open.load(SeqCst) == 0).await;
    }
}

/// A client that has sent its request and closes its side still gets the answer, and the end of the session.
#[tokio::test]
async fn a_client_may_close_its_side_first() {
    let authority = Authority::new();
    let server = serve(&Tls::new(config(authority.signs("localhost"))), Echo::default()).await;
    let mut stream = connect(&usual_client(&authority), server.address).await.unwrap();
    stream.write_all(GET.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    // An end without `close_notify` would be an error.
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("0 bytes\n."), "{answer}");
}

#[tokio::test]
async fn every_end_is_told_by_close_notify() {
    let (authority, server, senders, _) = with_streams(1).await;
    let client = usual_client(&authority);
    let mut closing = connect(&client, server.address).await.unwrap();
    closing.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    closing.read_to_string(&mut answer).await.unwrap();
    assert!(answer.contains("200 OK"));
    // An event stream that ends with its connection.
    let mut events = connect(&client, server.address).await.unwrap();
    let closes = EVENTS.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n");
    events.write_all(closes.as_bytes()).await.unwrap();
    senders[0].send("data: 1\n\n").unwrap();
    read_until(&mut events, "data: 1").await;
    drop(senders);
    let mut rest = String::new();
    events.read_to_string(&mut rest).await.unwrap();
    assert!(rest.ends_with("0\r\n\r\n"));
    // Idle connections when the server stops: silent, between two requests, and with HTTP/2.
    let mut silent = connect(&client, server.address).await.unwrap();
    let mut idle = connect(&client, server.address).await.unwrap();
    assert!(ask(&mut idle, GET).await.contains("200 OK"));
    server.stop.send(()).unwrap();
    server.served.await.unwrap().unwrap();
    for stream in [&mut silent, &mut idle] {
        assert_eq!(stream.read_buf(&mut Vec::new()).await.unwrap(), 0);
    }
}

/// A stream that does not end in time is cut off when the server stops, and that is told as well.
#[tokio::test]
async fn a_stream_that_is_cut_off_ends_with_close_notify() {
    let authority = Authority::new();
    let (sender, receiver) = mpsc::unbounded_channel();
    let tls = Tls::new(config(authority.signs("localhost")));
    let change = |connections: &mut Connections| connections.last_patience = Duration::from_millis(10);
    let server = serve_with(Some(&tls), Echo::streams(vec![receiver]), change).await;
    let mut stream = connect(&usual_client(&authority), server.address).await.unwrap();
    stream.write_all(EVENTS.as_bytes()).await.unwrap();
    sender.send("data: 1\n\n").unwrap();
    read_until(&mut stream, "data: 1").await;
    server.stop.send(()).unwrap();
    server.served.await.unwrap().unwrap();
    assert!(sender.is_closed());
    let mut rest = String::new();
    stream.read_to_string(&mut rest).await.unwrap();
    assert!(!rest.contains("0\r\n\r\n"), "the answer is not whole");
}

/// What is encrypted and not sent does not hide that the client does not read.
#[tokio::test]
async fn a_client_that_does_not_read_is_cut_off() {
    let authority = Authority::new();
    let tls = Tls::new(config(authority.signs("localhost")));
    let change = |connections: &mut Connections| connections.reader_stall = Duration::from_millis(100);
    let server = serve_with(Some(&tls), Echo::default(), change).await;
    // The kernel bounds what is not sent for connections that come when the server serves.
    let mut first = connect(&usual_client(&authority), server.address).await.unwrap();
    assert!(ask(&mut first, GET).await.contains("200 OK"));
    drop(first);
    // The client's kernel takes little, so that most of the answer stays with the server.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(16 * 1024).unwrap();
    let stream = socket.connect(server.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = usual_client(&authority).connect(name, stream).await.unwrap();
    stream.write_all(GET.replace("GET /", "GET /large").as_bytes()).await.unwrap();
    becomes(|| server.open.load(SeqCst) == 0).await;
    let mut came = Vec::new();
    let _cut = stream.read_to_end(&mut came).await;
    assert!(came.len() < LARGE);
}

/// More than every buffer on the way holds, to a reader that does not begin at once.
#[tokio::test]
async fn a_large_answer_arrives_whole() {
    let authority = Authority::new();
    let server = serve(&Tls::new(config(authority.signs("localhost"))), Echo::default()).await;
    let mut stream = connect(&usual_client(&authority), server.address).await.unwrap();
    let request = GET.replace("GET /", "GET /large").replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    let mut came = Vec::new();
    stream.read_to_end(&mut came).await.unwrap();
    assert!(came.len() > LARGE && came.ends_with(&[b'x'; 1024]));
    // And a large request.
    let mut stream = connect(&usual_client(&authority), server.address).await.unwrap();
    let head = format!("POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: {LARGE}\r\n\r\n");
    let (mut reading, mut writing) = tokio::io::split(&mut stream);
    let body = vec![b'x'; LARGE];
    let sent = async {
        writing.write_all(head.as_bytes()).await.unwrap();
        writing.write_all(&body).await.unwrap();
        writing.flush().await.unwrap();
    };
    let ((), answer) = tokio::join!(sent, read_until(&mut reading, "\n."));
    assert!(answer.contains(&format!("{LARGE} bytes")), "{answer}");
}

/// `Strict-Transport-Security`, on answers of the application and on refusals; for names of this machine never.
#[tokio::test]
async fn browsers_are_told_to_stay_with_https() {
    let authority = Authority::new();
    let tls = Tls::new(config(authority.signs("localhost"))).hsts(HeaderValue::from_static("max-age=7"));
    let server = serve(&tls, Echo::default()).await;
    let mut stream = connect(&usual_client(&authority), server.address).await.unwrap();
    // The allowed host has port 443, which is also the one of a host without port.
    for (host, status, told) in
        [("agent.example", 200, true), ("agent.example:443", 200, true), ("localhost", 200, false)]
    {
        let answer = ask(&mut stream, &GET.replace("localhost", host)).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{host}: {answer}");
        assert_eq!(answer.contains("strict-transport-security: max-age=7\r\n"), told, "{host}: {answer}");
    }
    let request = GET.replace("localhost", "agent.example:80");
    stream.write_all(request.as_bytes()).await.unwrap();
    let refused = read_until(&mut stream, "allowed_hosts").await;
    assert!(
        refused.starts_with("HTTP/1.1 421") && refused.contains("strict-transport-security"),
        "{refused}"
    );
}

#[cfg(target_os = "linux")]
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// Gives the socket away and forgets the client's session, whose memory would count too.
#[cfg(target_os = "linux")]
async fn idle_stream_costs(client: &TlsConnector, address: SocketAddr) -> usize {
    const STREAMS: usize = 160;
    let (mut before, mut open) = (0, Vec::new());
    for number in 0..STREAMS + 40 {
        if number == 40 {
            before = resident();
        }
        let mut stream = connect(client, address).await.unwrap();
        stream.write_all(EVENTS.as_bytes()).await.unwrap();
        read_until(&mut stream, "data: 1").await;
        open.push(stream.into_inner().0.into_std().unwrap());
    }
    std::mem::forget(open);
    (resident() - before) / STREAMS
}

/// An open event stream on which nothing happens: at most 16 kB, of which rustls needs about 8.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_idle_stream_costs_less_than_16_kb() {
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let (authority, server, senders, _) = with_streams(200).await;
        for sender in &senders {
            sender.send("data: 1\n\n").unwrap();
        }
        let client = client(&authority, &[version], &["http/1.1"], None);
        let cost = idle_stream_costs(&client, server.address).await;
        assert!(cost < 16_000, "{version:?}: {cost}");
        std::mem::forget(senders);
    }
}
