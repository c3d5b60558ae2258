//! Why hyper alone is not enough: the same bytes are sent to hyper alone and to this crate.

use std::convert::Infallible;
use std::future::pending;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum_core::body::Body;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::{Application, Asker, Settings};

/// Answers with an event stream that has one event and stays open.
#[derive(Debug)]
struct Quiet;

#[derive(Debug)]
struct OneEvent(bool);

impl hyper::body::Body for OneEvent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if std::mem::take(&mut self.0) {
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"data: served\n\n")))));
        }
        Poll::Pending
    }
}

fn event_stream() -> Response<Body> {
    let mut response = Response::new(Body::new(OneEvent(true)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
}

impl Application for Quiet {
    async fn answer(&self, _: Request<Body>, _: SocketAddr, _: Asker) -> Response<Body> {
        event_stream()
    }
}

async fn serve(application: impl Application) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let network = Settings::default().check().unwrap();
    tokio::spawn(async move { network.serve(listener, application, None, pending(), pending()).await });
    address
}

async fn hyper_alone() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let service = service_fn(async |_: Request<Incoming>| Ok::<_, Infallible>(event_stream()));
            tokio::spawn(Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    address
}

/// The status of the answer, once an event or the end has come, and the connection.
async fn ask(address: SocketAddr, bytes: &str) -> (u16, TcpStream) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    let mut came = Vec::new();
    while !came.ends_with(b"data: served\n\n\r\n") && stream.read_buf(&mut came).await.unwrap() > 0 {}
    let status = str::from_utf8(&came).unwrap().get(9..12).unwrap_or_default().parse().unwrap();
    (status, stream)
}

/// What another reader of the same bytes, such as a proxy, may understand otherwise.
#[tokio::test]
async fn what_can_be_read_in_two_ways_is_served_by_hyper_and_refused_here() {
    let (ours, hyper) = (serve(Quiet).await, hyper_alone().await);
    for (name, request) in [
        ("bare LF", "GET / HTTP/1.1\nhost: localhost\n\n"),
        (
            "two lengths",
            "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\n12",
        ),
        (
            "a length and chunks",
            "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
        ("two hosts", "GET / HTTP/1.1\r\nhost: localhost\r\nhost: 127.0.0.1\r\n\r\n"),
        ("no host", "GET / HTTP/1.1\r\n\r\n"),
        ("another host in the target", "GET http://a/ HTTP/1.1\r\nhost: localhost\r\n\r\n"),
        ("a name like a length", "POST / HTTP/1.1\r\nhost: localhost\r\ncontent_length: 2\r\n\r\n12"),
        ("a zero before the length", "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 02\r\n\r\n12"),
        (
            "an encoding before chunked",
            "POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        ),
    ] {
        assert_eq!((ask(hyper, request).await.0, ask(ours, request).await.0), (200, 400), "{name}");
    }
    assert_eq!(ask(ours, "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.0, 200);
}

/// Bytes of memory of this process.
#[cfg(target_os = "linux")]
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// An event stream on which nothing happens, in HTTP/1.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_idle_event_stream_costs_a_third_of_what_hyper_alone_needs() {
    const STREAMS: usize = 400;
    // Ours first: what is freed would hide what the second one takes.
    let mut costs = Vec::new();
    let mut open = Vec::new();
    for address in [serve(Quiet).await, hyper_alone().await] {
        let mut before = 0;
        for number in 0..STREAMS + 20 {
            if number == 20 {
                before = resident();
            }
            let (status, stream) = ask(address, "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
            assert_eq!(status, 200);
            open.push(stream.into_std().unwrap());
        }
        costs.push((resident() - before) / STREAMS);
    }
    assert!(costs[0] * 3 < costs[1], "{costs:?}");
}

/// An application whose future is so large until it answers.
#[cfg(target_os = "linux")]
#[derive(Debug)]
struct Large<const SIZE: usize>;

#[cfg(target_os = "linux")]
impl<const SIZE: usize> Application for Large<SIZE> {
    async fn answer(&self, _: Request<Body>, _: SocketAddr, _: Asker) -> Response<Body> {
        let kept = [1_u8; SIZE];
        tokio::task::yield_now().await;
        assert!(std::hint::black_box(&kept).iter().all(|byte| *byte == 1));
        event_stream()
    }
}

/// What each of many idle event streams costs in HTTP/2.
#[cfg(target_os = "linux")]
async fn http2_stream_of(application: impl Application) -> usize {
    const CONNECTIONS: usize = 20;
    const STREAMS: u8 = 100;
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    /// `GET / http localhost`, of which the first three are in the static table.
    const GET: &[u8] = b"\x82\x86\x84\x41\x09localhost";
    let address = serve(application).await;
    let (mut before, mut open) = (0, Vec::new());
    for number in 0..CONNECTIONS + 1 {
        if number == 1 {
            before = resident();
        }
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(&[crate::preface::HTTP2_PREFACE, &SETTINGS].concat()).await.unwrap();
        for id in 0..STREAMS {
            let header = [0, 0, GET.len() as u8, 1, 5, 0, 0, 0, id * 2 + 1];
            stream.write_all(&[&header, GET].concat()).await.unwrap();
        }
        let mut came = Vec::new();
        while came.windows(12).filter(|part| *part == b"data: served").count() < usize::from(STREAMS) {
            stream.read_buf(&mut came).await.unwrap();
        }
        open.push(stream.into_std().unwrap());
    }
    // Not given back: that would hide what the next one takes.
    std::mem::forget(open);
    (resident() - before) / (CONNECTIONS * usize::from(STREAMS))
}

/// hyper keeps the room of a request's future as long as its stream is open, so it is given a box.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_open_http2_stream_does_not_keep_the_future_that_made_its_answer() {
    let (small, large) = (http2_stream_of(Large::<1>).await, http2_stream_of(Large::<9000>).await);
    assert!(small < 9_000 && large < small + 1_000, "{small} {large}");
}
