//! Connections that are used again.

use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::sinks::{OK, Sink, answer_all, read_request, until_closed};
use super::{deliverer, http, patient, post, status};
use crate::push::deliver::DeliverOptions;
use crate::push::target::tests::NameStub;

/// Nothing of the request's head but what we want in it, spelled as it should be.
#[tokio::test]
async fn the_request_is_what_it_should_be() {
    let (seen, mut requests) = mpsc::channel(1);
    let sink = Sink::new(move |mut stream: TcpStream| {
        let seen = seen.clone();
        async move {
            seen.send(read_request(&mut stream).await.unwrap()).await.unwrap();
            stream.write_all(OK.as_bytes()).await.unwrap();
        }
    })
    .await;
    deliverer(NameStub::default(), patient()).post(&http(sink.address), post()).await;
    let request = requests.recv().await.unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let mut lines: Vec<&str> = head.split("\r\n").collect();
    assert_eq!(lines.remove(0), "POST /hook?x=1 HTTP/1.1");
    lines.sort_unstable();
    let host = format!("host: {}", sink.address);
    let agent = concat!("user-agent: baton/", env!("CARGO_PKG_VERSION"));
    assert_eq!(
        lines,
        ["content-length: 11", "content-type: application/json", host.as_str(), agent, "webhook-id: wh_1"]
    );
    assert_eq!(body, r#"{"task":{}}"#);
}

#[tokio::test]
async fn one_connection_carries_many_deliveries() {
    let sink = Sink::answering(OK).await;
    let deliverer = deliverer(NameStub::default(), patient());
    for _ in 0..50 {
        assert_eq!(status(&deliverer.post(&http(sink.address), post()).await), 200);
    }
    assert_eq!((sink.connections(), deliverer.0.pool.count()), (1, 1));
}

/// The receiver closes the connection after each answer: politely, silently, or only when the next request comes.
#[tokio::test]
async fn closed_connections_are_replaced() {
    for (answer, waits) in [
        ("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n", false),
        (OK, false),
        (OK, true),
    ] {
        let sink = Sink::new(move |mut stream: TcpStream| async move {
            read_request(&mut stream).await;
            stream.write_all(answer.as_bytes()).await.unwrap();
            if waits {
                read_request(&mut stream).await;
            }
        })
        .await;
        let deliverer = deliverer(NameStub::default(), patient());
        for count in 1..=5 {
            assert_eq!(status(&deliverer.post(&http(sink.address), post()).await), 200);
            assert_eq!(sink.connections(), count);
        }
    }
}

/// An answer that nobody asked for, sent ahead, must not pass for the answer to the next delivery.
#[tokio::test]
async fn an_answer_sent_ahead_does_not_count() {
    let sink = Sink::new(|mut stream: TcpStream| async move {
        read_request(&mut stream).await;
        stream.write_all(format!("{OK}{OK}").as_bytes()).await.unwrap();
        until_closed(&mut stream).await;
    })
    .await;
    let deliverer = deliverer(NameStub::default(), patient());
    for count in 1..=3 {
        assert_eq!(status(&deliverer.post(&http(sink.address), post()).await), 200);
        assert_eq!(sink.connections(), count);
    }
}

/// A name that has another address now is called at that address, and a kept connection to the old one is not used.
#[tokio::test]
async fn a_connection_belongs_to_its_address() {
    let one = Sink::at("127.0.0.1:0", |stream| answer_all(stream, OK)).await;
    let port = one.address.port();
    let two = Sink::at(&format!("127.0.0.2:{port}"), |stream| answer_all(stream, OK)).await;
    let names =
        NameStub::default().with("moving.localhost", &[&["127.0.0.1"], &["127.0.0.2"], &["127.0.0.3"]]);
    let deliverer = deliverer(names, patient());
    let url = format!("http://moving.localhost:{port}/");
    for round in 0..5 {
        assert_eq!(status(&deliverer.post(&url, post()).await), 200, "{round}");
        assert_eq!(status(&deliverer.post(&url, post()).await), 200, "{round}");
        // Nobody listens there; the kept connections are to other addresses.
        assert_eq!(super::failure(&deliverer.post(&url, post()).await).0, "connect");
        assert_eq!((one.connections(), two.connections()), (1, 1), "{round}");
    }
}

/// The same address by another name is another place: the certificate was checked for one name only.
#[tokio::test]
async fn a_connection_belongs_to_its_host() {
    let sink = Sink::answering(OK).await;
    let names =
        NameStub::default().with("a.localhost", &[&["127.0.0.1"]]).with("b.localhost", &[&["127.0.0.1"]]);
    let deliverer = deliverer(names, patient());
    for name in ["a.localhost", "b.localhost", "a.localhost", "b.localhost"] {
        let url = format!("http://{name}:{}/", sink.address.port());
        assert_eq!(status(&deliverer.post(&url, post()).await), 200);
    }
    assert_eq!(sink.connections(), 2);
}

#[tokio::test]
async fn idle_connections_have_bounds() {
    let sink = Sink::answering(OK).await;
    let few = deliverer(NameStub::default(), DeliverOptions { max_idle: 3, ..patient() });
    let url = http(sink.address);
    let many = futures_util::future::join_all((0..20).map(|_| few.post(&url, post()))).await;
    assert!(many.iter().all(|outcome| status(outcome) == 200));
    assert_eq!(few.0.pool.count(), 3);
}

#[tokio::test]
async fn idle_connections_are_closed_after_a_while() {
    let (closed, mut when_closed) = mpsc::channel(1);
    let sink = Sink::new(move |stream: TcpStream| {
        let closed = closed.clone();
        async move {
            answer_all(stream, OK).await;
            closed.send(()).await.unwrap();
        }
    })
    .await;
    let options = DeliverOptions { idle_time: Duration::from_millis(20), ..patient() };
    let deliverer = deliverer(NameStub::default(), options);
    assert_eq!(status(&deliverer.post(&http(sink.address), post()).await), 200);
    when_closed.recv().await.unwrap();
    assert_eq!(deliverer.0.pool.count(), 0);
}

/// Whoever stops waiting ends the attempt.
#[tokio::test]
async fn a_dropped_attempt_closes_its_connection() {
    let (closed, mut when_closed) = mpsc::channel(2);
    let sink = Sink::new(move |mut stream: TcpStream| {
        let closed = closed.clone();
        async move {
            read_request(&mut stream).await;
            closed.send(()).await.unwrap();
            until_closed(&mut stream).await;
            closed.send(()).await.unwrap();
        }
    })
    .await;
    let deliverer = deliverer(NameStub::default(), DeliverOptions::default());
    let url = http(sink.address);
    tokio::select! {
        _ = deliverer.post(&url, post()) => panic!("the receiver does not answer"),
        _ = when_closed.recv() => {}
    }
    when_closed.recv().await.unwrap();
}
