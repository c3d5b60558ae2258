//! hyper's HTTP/1 connection, with nothing between it and the client.

use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum_core::body::Body;
use bytes::Bytes;
use http::header::CONNECTION;
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Frame, Incoming};
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::time::timeout;

use super::{Log, Noted};
use crate::options::Connections;
use crate::refusal::Refusal;

const GET: &str = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";

/// The clock of these tests moves when nothing is left to do.
const UNTIL_QUIET: Duration = Duration::from_secs(1);

/// Both ends of a connection, of which hyper's is noted.
fn connection() -> (DuplexStream, Noted, Log) {
    let ((client, stream), log) = (tokio::io::duplex(1 << 20), Log::default());
    (client, Noted { stream, log: log.clone() }, log)
}

/// What hyper answers to these bytes, with a service that reads each request and says `served`; and what the service saw:
/// method, target, and the body or why there is none.
async fn answers(bytes: &[u8]) -> (String, Vec<String>) {
    let (mut client, server, _) = connection();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let service = service_fn(|request: Request<Incoming>| async {
        let (head, body) = request.into_parts();
        let body = match body.collect().await {
            Ok(body) => String::from_utf8(body.to_bytes().to_vec()).unwrap(),
            Err(error) => error.to_string(),
        };
        seen.lock().unwrap().push(format!("{} {} {body}", head.method, head.uri));
        let mut response = Response::new(Full::new(Bytes::from_static(b"served")));
        if Refusal::of(&Request::from_parts(head, ())).is_some() {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        Ok::<_, Infallible>(response)
    });
    let options = Connections::default();
    let mut builder = Builder::new();
    builder.max_buf_size(options.max_head_bytes + crate::connection::BEYOND_HEAD);
    client.write_all(bytes).await.unwrap();
    let _ = timeout(UNTIL_QUIET, builder.serve_connection(TokioIo::new(server), service)).await;
    let mut came = String::new();
    client.read_to_string(&mut came).await.unwrap();
    let seen = seen.lock().unwrap().clone();
    (came, seen)
}

/// The filter passes on heads up to these bounds. If hyper took less it would answer in its own words.
#[tokio::test(start_paused = true)]
async fn heads_up_to_our_bounds_are_read() {
    let headers: String = (1..crate::head::MAX_HEADERS).map(|n| format!("x-{n}: {n}\r\n")).collect();
    let target = "a".repeat(crate::head::MAX_TARGET - 1);
    let max = Connections::default().max_head_bytes;
    let mut largest = format!("GET / HTTP/1.1\r\nhost: a\r\nx: {}", "b".repeat(max));
    largest.truncate(max - 4);
    for head in [
        format!("GET / HTTP/1.1\r\nhost: a\r\n{headers}\r\n"),
        format!("GET /{target} HTTP/1.1\r\nhost: a\r\n\r\n"),
        largest + "\r\n\r\n",
    ] {
        let (came, seen) = answers(head.as_bytes()).await;
        assert_eq!(seen.len(), 1, "{came}");
    }
}

/// `head::Named` refuses names that only look like these, and passes on everything else.
#[tokio::test(start_paused = true)]
async fn only_the_exact_names_decide_where_a_request_ends() {
    for (header, body) in [
        ("content-length: 5", "12345"),
        ("CONTENT-LENGTH: 5", "12345"),
        ("content_length: 5", ""),
        ("content.length: 5", ""),
        ("transfer_encoding: chunked", ""),
        ("x-content-length: 5", ""),
    ] {
        let (_, seen) =
            answers(format!("POST /a HTTP/1.1\r\nhost: a\r\n{header}\r\n\r\n12345").as_bytes()).await;
        assert_eq!(seen.first().map(String::as_str), Some(format!("POST /a {body}").as_str()), "{header}");
    }
}

/// `Requests::announce` compares this length with the one that the filter has read.
#[tokio::test(start_paused = true)]
async fn the_length_of_a_body_is_known_when_the_service_is_called() {
    for (headers, length) in
        [("", Some(0)), ("content-length: 5\r\n", Some(5)), ("transfer-encoding: chunked\r\n", None)]
    {
        let (mut client, server, log) = connection();
        let service = service_fn(|request: Request<Incoming>| {
            assert_eq!(request.body().size_hint().exact(), length, "{headers}");
            log.note("called");
            pending::<Result<Response<Body>, Infallible>>()
        });
        client.write_all(format!("POST / HTTP/1.1\r\nhost: a\r\n{headers}\r\n").as_bytes()).await.unwrap();
        let _ = timeout(UNTIL_QUIET, Builder::new().serve_connection(TokioIo::new(server), service)).await;
        assert_eq!(log.count("called"), 1);
    }
}

/// The filter passes on one head at a time and takes it for announced when hyper comes back for more. It also returns
/// `Pending` without a waker until then, so hyper has to come back by itself.
#[tokio::test(start_paused = true)]
async fn the_service_is_called_before_anything_more_is_read() {
    let (mut client, server, log) = connection();
    let service = service_fn(|_: Request<Incoming>| {
        log.note("called");
        pending::<Result<Response<Body>, Infallible>>()
    });
    client.write_all(GET.as_bytes()).await.unwrap();
    let _ = timeout(UNTIL_QUIET, Builder::new().serve_connection(TokioIo::new(server), service)).await;
    assert_eq!(log.all()[..3], ["read", "called", "asked"]);
}

/// The counts of `Requests`, and one `Tray` for each connection.
#[tokio::test(start_paused = true)]
async fn the_next_request_is_announced_after_the_answer_before_it() {
    let (mut client, server, log) = connection();
    let service = service_fn(|_: Request<Incoming>| {
        log.note("called");
        let log = log.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            log.note("answered");
            Ok::<_, Infallible>(Response::new(Body::from("served")))
        }
    });
    client.write_all(GET.repeat(3).as_bytes()).await.unwrap();
    let _ = timeout(UNTIL_QUIET, Builder::new().serve_connection(TokioIo::new(server), service)).await;
    let calls: Vec<_> =
        log.all().into_iter().filter(|noted| matches!(*noted, "called" | "answered")).collect();
    assert_eq!(calls, ["called", "answered"].repeat(3));
}

/// A body that says one thing and then nothing.
struct OneThing(Option<&'static str>);

impl hyper::body::Body for OneThing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.0.take() {
            Some(text) => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(text.as_bytes()))))),
            None => Poll::Pending,
        }
    }
}

/// `lent`: an idle event stream is taken from hyper, which is dropped, and goes on in chunks of our own. So hyper must
/// have written and flushed what it was given, end nothing when it is dropped, and leave the socket to the next hyper.
#[tokio::test(start_paused = true)]
async fn an_idle_answer_is_flushed_and_can_be_taken_from_hyper() {
    let (mut client, mut server, log) = connection();
    client.write_all(GET.as_bytes()).await.unwrap();
    let service = service_fn(|_: Request<Incoming>| async {
        Ok::<_, Infallible>(Response::new(OneThing(Some("hello"))))
    });
    let _ = timeout(UNTIL_QUIET, Builder::new().serve_connection(TokioIo::new(&mut server), service)).await;
    let noted = log.all();
    let (wrote, flushed) =
        (noted.iter().rposition(|at| *at == "wrote"), noted.iter().rposition(|at| *at == "flushed"));
    assert!(flushed > wrote, "{noted:?}");
    assert_eq!(log.count("shut"), 0);
    server.write_all(b"5\r\nagain\r\n0\r\n\r\n").await.unwrap();
    client.write_all(GET.as_bytes()).await.unwrap();
    let service =
        service_fn(|_: Request<Incoming>| async { Ok::<_, Infallible>(Response::new(Body::from("next"))) });
    let _ = timeout(UNTIL_QUIET, Builder::new().serve_connection(TokioIo::new(server), service)).await;
    let mut came = String::new();
    client.read_to_string(&mut came).await.unwrap();
    let (first, next) = came.split_once("0\r\n\r\n").unwrap();
    assert!(first.contains("transfer-encoding: chunked\r\n"), "{first}");
    assert!(first.ends_with("\r\n\r\n5\r\nhello\r\n5\r\nagain\r\n"), "{first}");
    assert!(next.starts_with("HTTP/1.1 200 OK\r\n") && next.ends_with("next"), "{next}");
}

/// `half_close` holds the end back from hyper, since told of it hyper forgets the request…
#[tokio::test(start_paused = true)]
async fn the_end_of_what_a_client_sends_drops_its_request() {
    let (mut client, server, _) = connection();
    client.write_all(GET.as_bytes()).await.unwrap();
    client.shutdown().await.unwrap();
    let service = service_fn(|_: Request<Incoming>| async {
        tokio::time::sleep(UNTIL_QUIET).await;
        Ok::<_, Infallible>(Response::new(Body::from("served")))
    });
    let _ = timeout(UNTIL_QUIET * 2, Builder::new().serve_connection(TokioIo::new(server), service)).await;
    let mut came = String::new();
    client.read_to_string(&mut came).await.unwrap();
    assert_eq!(came, "");
}

/// …and wakes hyper when it may know, which must then read again, whatever else it waits for.
#[tokio::test(start_paused = true)]
async fn while_an_answer_is_made_each_poll_reads() {
    let (mut client, server, log) = connection();
    client.write_all(GET.as_bytes()).await.unwrap();
    let service = service_fn(|_: Request<Incoming>| pending::<Result<Response<Body>, Infallible>>());
    let mut connection = pin!(Builder::new().serve_connection(TokioIo::new(server), service));
    for polls in 1..4 {
        poll_fn(|cx| {
            assert!(connection.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        assert_eq!(log.count("asked"), polls);
    }
}

/// The filter breaks off a body with an error, and the guard's answer says why.
#[tokio::test(start_paused = true)]
async fn a_body_that_cannot_be_read_is_answered_all_the_same() {
    let (mut client, server) = tokio::io::duplex(1 << 16);
    client.write_all(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n12").await.unwrap();
    let service = service_fn(|request: Request<Incoming>| async {
        let read = request.into_body().collect().await;
        assert!(read.is_err());
        Ok::<_, Infallible>(Response::new(Body::from("told")))
    });
    let server = Breaks { stream: server, after: 1 };
    let _ = timeout(UNTIL_QUIET, Builder::new().serve_connection(TokioIo::new(server), service)).await;
    let mut came = String::new();
    client.read_to_string(&mut came).await.unwrap();
    assert!(came.ends_with("told"), "{came}");
}

/// A connection that cannot be read any more after some reads.
struct Breaks {
    stream: DuplexStream,
    after: usize,
}

impl tokio::io::AsyncRead for Breaks {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut tokio::io::ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if self.after == 0 {
            return Poll::Ready(Err(std::io::ErrorKind::InvalidData.into()));
        }
        self.after -= 1;
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl tokio::io::AsyncWrite for Breaks {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// `refusal`: hyper is given a request of our own in place of one that is refused, behind earlier ones.
#[tokio::test(start_paused = true)]
async fn a_request_that_stands_in_for_a_refused_one_reaches_the_service_and_is_the_last() {
    let bytes = [GET.as_bytes(), &Refusal::BareLf.stand_in(), GET.as_bytes()].concat();
    let (came, seen) = answers(&bytes).await;
    assert_eq!((seen.len(), came.matches("served").count()), (2, 2), "{came}");
    assert!(seen[1].starts_with(crate::refusal::METHOD), "{seen:?}");
    assert!(came.contains("connection: close\r\n"), "{came}");
}

/// The filter passes `Upgrade` on.
#[tokio::test(start_paused = true)]
async fn an_upgrade_is_ignored() {
    let upgrade = "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n";
    let (came, seen) = answers(format!("{upgrade}{GET}").as_bytes()).await;
    assert_eq!(seen, ["GET / ", "GET / "]);
    assert!(came.starts_with("HTTP/1.1 200 OK\r\n"), "{came}");
}

/// The guard leaves it to hyper.
#[tokio::test(start_paused = true)]
async fn head_is_answered_without_a_body_and_a_body_that_is_expected_is_asked_for() {
    let (came, _) = answers(b"HEAD / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert!(came.contains("content-length: 6\r\n") && came.ends_with("\r\n\r\n"), "{came}");
    let expects = "POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n12";
    let (came, seen) = answers(expects.as_bytes()).await;
    assert!(came.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"), "{came}");
    assert_eq!(seen, ["POST / 12"]);
}

/// `connection::drive` ends a connection by this.
#[tokio::test(start_paused = true)]
async fn a_graceful_shutdown_ends_an_idle_connection_and_answers_what_is_under_way() {
    for (sent, expected) in [("", ""), (GET, "served")] {
        let (mut client, server, _) = connection();
        client.write_all(sent.as_bytes()).await.unwrap();
        let service = service_fn(|_: Request<Incoming>| async {
            tokio::time::sleep(UNTIL_QUIET).await;
            Ok::<_, Infallible>(Response::new(Body::from("served")))
        });
        let mut connection = pin!(Builder::new().serve_connection(TokioIo::new(server), service));
        assert!(timeout(UNTIL_QUIET / 2, connection.as_mut()).await.is_err());
        connection.as_mut().graceful_shutdown();
        timeout(UNTIL_QUIET, connection).await.unwrap().unwrap();
        let mut came = String::new();
        client.read_to_string(&mut came).await.unwrap();
        assert!(came.ends_with(expected) && came.is_empty() == expected.is_empty(), "{came}");
    }
}
