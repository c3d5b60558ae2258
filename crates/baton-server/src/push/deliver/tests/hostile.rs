//! Receivers that hang, drip, cut off, redirect, and send too much or nonsense.

use std::net::IpAddr;
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::mpsc;

use super::sinks::{OK, Sink, read_request, until_closed};
use super::{deliverer, failure, http, patient, post, quick, status};
use crate::push::deliver::{DeliverOptions, Deliverer};
use crate::push::schedule::Answer;
use crate::push::target::resolver::Resolve;
use crate::push::target::tests::NameStub;
use crate::push::target::{Guard, TargetRules};

/// Sends the parts one after the other, each in a packet of its own, and then nothing more.
async fn stall(mut stream: TcpStream, parts: &[&str]) {
    read_request(&mut stream).await;
    for part in parts {
        stream.write_all(part.as_bytes()).await.unwrap();
    }
    until_closed(&mut stream).await;
}

#[tokio::test]
async fn receivers_that_never_answer_time_out() {
    for parts in [
        &[][..],
        &["HTTP/1.1 "],
        &["HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx:"],
        &["HTTP/1.1 100 Continue\r\n\r\n"],
    ] {
        let sink = Sink::new(move |stream| stall(stream, parts)).await;
        let outcome = deliverer(NameStub::default(), quick()).post(&http(sink.address), post()).await;
        assert_eq!(failure(&outcome).0, "timeout", "{parts:?}");
        assert_eq!(outcome.answer(), Answer::Failed { retry_after: None });
    }
}

/// Between the 10 and 30 s that the specification recommends.
#[test]
fn calls_time_out_after_15_seconds_unless_the_operator_says_otherwise() {
    assert_eq!(crate::PushOptions::default().timeout, Duration::from_secs(15));
}

/// A head that grows by a byte now and then is not an answer, however long it goes on.
#[tokio::test]
async fn a_head_that_drips_times_out() {
    let drip = |mut stream: TcpStream| async move {
        read_request(&mut stream).await;
        let head = b"HTTP/1.1 200 OK\r\nx: ".iter().copied().chain(std::iter::repeat(b'x'));
        for byte in head {
            // tidy: allow-sleep the receiver is slow, that is what is tested
            tokio::time::sleep(Duration::from_millis(5)).await;
            if stream.write_all(&[byte]).await.is_err() {
                return;
            }
        }
    };
    let sink = Sink::new(drip).await;
    let outcome = deliverer(NameStub::default(), quick()).post(&http(sink.address), post()).await;
    assert_eq!(failure(&outcome).0, "timeout");
}

/// The status is the answer. A body that does not come, or does not end, costs the connection and nothing else.
#[tokio::test]
async fn the_status_counts_whatever_the_body_does() {
    for parts in [
        &["HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n"][..],
        &["HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n", "a", "b"],
        &["HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n"],
        &["HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\nxxx"],
        &["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n"],
        &["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnonsense"],
        &["HTTP/1.1 200 OK\r\n\r\nuntil the end"],
    ] {
        let (closed, mut when_closed) = mpsc::channel(1);
        let sink = Sink::new(move |stream| {
            let closed = closed.clone();
            async move {
                stall(stream, parts).await;
                closed.send(()).await.unwrap();
            }
        })
        .await;
        let options = DeliverOptions { drain_timeout: Duration::from_millis(50), ..patient() };
        let deliverer = deliverer(NameStub::default(), options);
        assert_eq!(status(&deliverer.post(&http(sink.address), post()).await), 200, "{parts:?}");
        when_closed.recv().await.unwrap();
        assert_eq!(deliverer.0.pool.count(), 0, "{parts:?}");
    }
}

#[tokio::test]
async fn an_endless_body_is_not_read_to_its_end() {
    let (closed, mut when_closed) = mpsc::channel(1);
    let sink = Sink::new(move |mut stream: TcpStream| {
        let closed = closed.clone();
        async move {
            read_request(&mut stream).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
            let chunk = format!("1000\r\n{}\r\n", "x".repeat(4096));
            while stream.write_all(chunk.as_bytes()).await.is_ok() {}
            closed.send(()).await.unwrap();
        }
    })
    .await;
    let outcome = deliverer(NameStub::default(), patient()).post(&http(sink.address), post()).await;
    assert_eq!(status(&outcome), 200);
    assert_eq!(outcome.for_owner(), "delivered (status 200)");
    when_closed.recv().await.unwrap();
}

#[tokio::test]
async fn cut_connections_and_nonsense_are_failures() {
    let huge = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "x".repeat(1024 * 1024));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(1000));
    for (answer, part) in [
        (String::new(), "connection closed before message completed"),
        ("HTTP/1.1 200".to_owned(), "connection closed before message completed"),
        ("SSH-2.0-OpenSSH_9.6\r\n".to_owned(), "invalid HTTP version"),
        ("\0\0\0\x12\x04\0\0\0\0\0".to_owned(), "no answer"),
        ("<html>200 OK</html>\r\n\r\n".to_owned(), "invalid HTTP version"),
        ("HTTP/1.1 2000 OK\r\n\r\n".to_owned(), "no answer"),
        ("HTTP/1.1 200 OK\r\nbad header\r\n\r\n".to_owned(), "no answer"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n".to_owned(), "no answer"),
        (huge, "too large"),
        (many, "too large"),
    ] {
        let shown = answer.chars().take(40).collect::<String>();
        let sink = Sink::new(move |mut stream: TcpStream| {
            let answer = answer.clone();
            async move {
                read_request(&mut stream).await;
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        })
        .await;
        let outcome = deliverer(NameStub::default(), patient()).post(&http(sink.address), post()).await;
        let (kind, log) = failure(&outcome);
        assert!(kind == "http" && log.contains(part), "{shown:?}: {log}");
        assert_eq!(sink.connections(), 1, "{shown:?}");
    }
}

#[tokio::test]
async fn a_reset_is_a_failure() {
    for reads_first in [false, true] {
        let sink = Sink::new(move |mut stream: TcpStream| async move {
            if reads_first {
                read_request(&mut stream).await;
            }
            stream.set_zero_linger().unwrap();
        })
        .await;
        let outcome = deliverer(NameStub::default(), patient()).post(&http(sink.address), post()).await;
        assert_eq!(failure(&outcome).0, "http");
    }
}

#[tokio::test]
async fn every_status_is_classified() {
    for (answer, status_of, expected, owner) in [
        (OK, 200, Answer::Accepted, "delivered (status 200)"),
        ("HTTP/1.1 204 No Content\r\n\r\n", 204, Answer::Accepted, "delivered (status 204)"),
        (
            "HTTP/1.0 202 Accepted\r\ncontent-length: 0\r\n\r\n",
            202,
            Answer::Accepted,
            "delivered (status 202)",
        ),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            200,
            Answer::Accepted,
            "delivered (status 200)",
        ),
        (
            "HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n",
            500,
            Answer::Failed { retry_after: None },
            "the webhook answered with status 500",
        ),
        (
            "HTTP/1.1 503 Busy\r\nretry-after: 9\r\ncontent-length: 0\r\n\r\n",
            503,
            Answer::Failed { retry_after: Some(Duration::from_secs(9)) },
            "the webhook answered with status 503",
        ),
        (
            "HTTP/1.1 429 Slower\r\nRetry-After: 7\r\ncontent-length: 0\r\n\r\n",
            429,
            Answer::Overloaded { retry_after: Some(Duration::from_secs(7)) },
            "the webhook answered with status 429",
        ),
        (
            "HTTP/1.1 429 Slower\r\nRetry-After: soon\r\ncontent-length: 0\r\n\r\n",
            429,
            Answer::Overloaded { retry_after: None },
            "the webhook answered with status 429",
        ),
        (
            "HTTP/1.1 502 Bad\r\ncontent-length: 0\r\n\r\n",
            502,
            Answer::Overloaded { retry_after: None },
            "the webhook answered with status 502",
        ),
        (
            "HTTP/1.1 504 Late\r\ncontent-length: 0\r\n\r\n",
            504,
            Answer::Overloaded { retry_after: None },
            "the webhook answered with status 504",
        ),
        (
            "HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n",
            410,
            Answer::Gone,
            "the webhook answered with status 410",
        ),
        (
            "HTTP/1.1 404 What\r\ncontent-length: 0\r\n\r\n",
            404,
            Answer::Failed { retry_after: None },
            "the webhook answered with status 404",
        ),
    ] {
        let sink = Sink::answering(answer).await;
        let outcome = deliverer(NameStub::default(), patient()).post(&http(sink.address), post()).await;
        assert_eq!(status(&outcome), status_of);
        assert_eq!((outcome.answer(), outcome.for_owner().as_str()), (expected, owner), "{answer}");
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let other = Sink::answering(OK).await;
    for code in [300, 301, 302, 303, 305, 307, 308] {
        let to = other.address;
        let sink = Sink::new(move |mut stream: TcpStream| async move {
            read_request(&mut stream).await;
            let answer =
                format!("HTTP/1.1 {code} Moved\r\nlocation: http://{to}/x\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.unwrap();
            until_closed(&mut stream).await;
        })
        .await;
        let outcome = deliverer(NameStub::default(), patient()).post(&http(sink.address), post()).await;
        assert_eq!(status(&outcome), code);
        assert_eq!(outcome.answer(), Answer::Failed { retry_after: None });
        assert!(outcome.for_owner().contains("redirect"), "{}", outcome.for_owner());
    }
    assert_eq!(other.connections(), 0);
}

#[derive(Debug)]
struct SilentNames;

#[async_trait]
impl Resolve for SilentNames {
    async fn addresses(&self, _: &str) -> std::io::Result<Vec<IpAddr>> {
        std::future::pending().await
    }
}

/// The owner reads the same about a name that does not exist, a port that is closed, one that is filtered, one at which
/// something else listens, and an address that may not be called.
#[tokio::test]
async fn the_owner_cannot_tell_networks_apart() {
    let closed = TcpSocket::new_v4().unwrap();
    closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    // Its queue of connections is full: further ones get no answer at all, as behind a firewall.
    let full = TcpSocket::new_v4().unwrap();
    full.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let full = full.listen(0).unwrap();
    let address = full.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(Ok(stream)) =
        tokio::time::timeout(Duration::from_millis(100), TcpStream::connect(address)).await
    {
        waiting.push(stream);
    }
    let silent = Sink::new(|stream| stall(stream, &[])).await;
    let names = NameStub::default().with("private.example", &[&["10.0.0.1"]]);
    // Which stage a timeout ends in depends on how busy the machine is.
    let (quick, patient) = (deliverer(NameStub::default(), quick()), deliverer(names, patient()));
    for (deliverer, url, kind, log) in [
        (&patient, http(closed.local_addr().unwrap()), "connect", "no connection: Connection refused"),
        (&quick, http(address), "timeout", "timed out"),
        (&quick, http(silent.address), "timeout", "timed out"),
        (&quick, format!("https://{}/", silent.address), "timeout", "timed out"),
        (&patient, "http://missing.localhost/".to_owned(), "dns", "no such name"),
        (&patient, "https://private.example/".to_owned(), "refused_target", "10.0.0.1"),
        (&patient, "https://10.0.0.1/".to_owned(), "refused_target", "on the internet"),
    ] {
        let (failed, shown) = failure(&deliverer.post(&url, post()).await);
        assert!(failed == kind && shown.contains(log), "{url}: {failed}: {shown}");
    }
    let rules = TargetRules::default();
    let slow = Deliverer::new(Guard::new(rules, std::sync::Arc::new(SilentNames)), super::quick()).unwrap();
    let outcome = slow.post("https://slow.example/", post()).await;
    assert_eq!(failure(&outcome).1, "timed out while the host's name was resolved");
}

/// The next address is tried if one cannot be reached; all within the timeout.
#[tokio::test]
async fn one_address_after_the_other_is_tried() {
    let sink = Sink::answering(OK).await;
    let names = NameStub::default().with("several.localhost", &[&["::1", "127.0.0.9", "127.0.0.1"]]);
    let outcome = deliverer(names, DeliverOptions::default())
        .post(&format!("http://several.localhost:{}/", sink.address.port()), post())
        .await;
    assert_eq!(status(&outcome), 200);
    assert_eq!(sink.connections(), 1);
}
