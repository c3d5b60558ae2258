//! hyper's HTTP/2 connection and the h2 crate below it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::{Request, Response, StatusCode};
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, ReadBuf};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::Log;
use crate::frames::MALFORMED;
use crate::preface::HTTP2_PREFACE;

/// The clock of these tests moves when nothing is left to do.
const UNTIL_QUIET: Duration = Duration::from_secs(1);

const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
const GOAWAY: u8 = 7;

/// Runs streams, and keeps them by the order they came in.
#[derive(Debug, Clone, Default)]
struct Spawns {
    log: Log,
    streams: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Spawns {
    fn execute(&self, stream: F) {
        self.log.note("stream");
        self.streams.lock().unwrap().push(tokio::spawn(stream));
    }
}

impl Spawns {
    fn is_finished(&self, stream: usize) -> bool {
        self.streams.lock().unwrap()[stream].is_finished()
    }
}

/// A part of an answer that counts what is taken of it.
struct Counted {
    bytes: Bytes,
    taken: Arc<AtomicUsize>,
}

impl Buf for Counted {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        self.taken.fetch_add(count, SeqCst);
    }
}

/// An answer in pieces of so many bytes.
#[derive(Clone)]
struct Pieces {
    sizes: VecDeque<usize>,
    /// There is nothing after the last of them.
    ends: bool,
    taken: Arc<AtomicUsize>,
}

fn pieces(sizes: &[usize], ends: bool) -> Pieces {
    Pieces { sizes: sizes.iter().copied().collect(), ends, taken: Arc::default() }
}

impl Body for Pieces {
    type Data = Counted;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Counted>, Infallible>>> {
        let taken = Arc::clone(&self.taken);
        match self.sizes.pop_front() {
            Some(size) => {
                Poll::Ready(Some(Ok(Frame::data(Counted { bytes: vec![b'a'; size].into(), taken }))))
            }
            None if self.ends => Poll::Ready(None),
            None => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ends && self.sizes.is_empty()
    }
}

/// A client of a hyper that gives everybody the same answer, `delay` after each request.
async fn client_of(answer: Pieces, delay: Duration, window: u32) -> (h2::client::SendRequest<Bytes>, Spawns) {
    let (client, server) = tokio::io::duplex(1 << 20);
    let spawns = Spawns::default();
    let log = spawns.log.clone();
    let service = service_fn(move |_: Request<Incoming>| {
        log.note("called");
        let answer = answer.clone();
        async move {
            sleep(delay).await;
            Ok::<_, Infallible>(Response::new(answer))
        }
    });
    let mut builder = Builder::new(spawns.clone());
    builder.max_header_list_size(16 * 1024);
    tokio::spawn(builder.serve_connection(TokioIo::new(server), service));
    let mut builder = h2::client::Builder::new();
    let (client, connection) = builder.initial_window_size(window).handshake(client).await.unwrap();
    tokio::spawn(connection);
    (client, spawns)
}

fn get() -> Request<()> {
    Request::get("http://a/").body(()).unwrap()
}

/// `StreamExecutor` hands a request's `Watch` to the stream that is started next.
#[tokio::test(start_paused = true)]
async fn each_call_of_the_service_is_followed_by_its_stream() {
    let (mut client, spawns) = client_of(pieces(&[1], true), Duration::ZERO, 100).await;
    let mut answers = Vec::new();
    for _ in 0..20 {
        client = client.ready().await.unwrap();
        answers.push(client.send_request(get(), true).unwrap().0);
    }
    for answer in answers {
        assert_eq!(answer.await.unwrap().status(), StatusCode::OK);
    }
    assert_eq!(spawns.log.all(), ["called", "stream"].repeat(20));
}

/// `StreamExecutor` ends a stream whose reader is stuck by dropping it; the others go on.
#[tokio::test(start_paused = true)]
async fn a_stream_that_is_dropped_is_reset_and_its_neighbour_is_not() {
    let (mut client, spawns) = client_of(pieces(&[1], false), Duration::ZERO, 100).await;
    let (stuck, _) = client.send_request(get(), true).unwrap();
    let mut stuck = stuck.await.unwrap().into_body();
    let (fine, _) = client.send_request(get(), true).unwrap();
    let mut fine = fine.await.unwrap().into_body();
    assert_eq!(stuck.data().await.unwrap().unwrap().len(), 1);
    spawns.streams.lock().unwrap()[0].abort();
    let error = stuck.data().await.unwrap().unwrap_err();
    assert_eq!(error.reason(), Some(h2::Reason::CANCEL));
    assert_eq!(fine.data().await.unwrap().unwrap().len(), 1);
    assert!(timeout(UNTIL_QUIET, fine.data()).await.is_err(), "it is open");
}

/// `Parcel` sees by this that a slow reader reads.
#[tokio::test(start_paused = true)]
async fn a_part_is_advanced_by_what_the_window_takes() {
    let answer = pieces(&[3000], false);
    let (mut client, _) = client_of(answer.clone(), Duration::ZERO, 1000).await;
    let (reply, _) = client.send_request(get(), true).unwrap();
    let mut body = reply.await.unwrap().into_body();
    sleep(UNTIL_QUIET).await;
    assert_eq!(answer.taken.load(SeqCst), 1000);
    assert_eq!(body.data().await.unwrap().unwrap().len(), 1000);
    body.flow_control().release_capacity(1000).unwrap();
    sleep(UNTIL_QUIET).await;
    assert_eq!(answer.taken.load(SeqCst), 2000);
}

/// `ObservedBody` gives the last byte of an answer by itself: with it hyper ends the stream's future, whether the byte can be
/// sent or not, and then nothing is left that could be dropped to cut off the reader.
#[tokio::test(start_paused = true)]
async fn the_end_of_an_answer_ends_its_stream_and_waits_for_the_window_only_by_itself() {
    for (sizes, finished) in [(&[3000][..], true), (&[2999, 1], false)] {
        let answer = pieces(sizes, true);
        let (mut client, spawns) = client_of(answer.clone(), Duration::ZERO, 1000).await;
        let (reply, _) = client.send_request(get(), true).unwrap();
        let mut body = reply.await.unwrap().into_body();
        sleep(UNTIL_QUIET).await;
        assert_eq!((answer.taken.load(SeqCst), spawns.is_finished(0)), (1000, finished), "{sizes:?}");
        let mut read = 0;
        while let Some(data) = body.data().await {
            let length = data.unwrap().len();
            body.flow_control().release_capacity(length).unwrap();
            read += length;
        }
        assert_eq!((read, spawns.is_finished(0)), (3000, true));
    }
}

/// Of HEAD the guard takes the body away itself.
#[tokio::test(start_paused = true)]
async fn head_is_answered_with_a_body() {
    let (mut client, _) = client_of(pieces(&[5], true), Duration::ZERO, 1000).await;
    let (reply, _) = client.send_request(Request::head("http://a/").body(()).unwrap(), true).unwrap();
    let read = reply.await.unwrap().into_body().data().await;
    assert!(read.is_some_and(|data| data.is_err()), "the client's h2 refuses such an answer");
}

/// `max_header_list_bytes`.
#[tokio::test(start_paused = true)]
async fn headers_above_the_bound_are_answered_with_431() {
    let (mut client, spawns) = client_of(pieces(&[5], true), Duration::ZERO, 1000).await;
    let request = Request::get("http://a/").header("x", "a".repeat(20 * 1024)).body(()).unwrap();
    let (reply, _) = client.send_request(request, true).unwrap();
    assert_eq!(reply.await.unwrap().status(), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    assert_eq!(spawns.log.count("called"), 0);
}

/// Types and payloads of the frames in there.
fn frames(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut frames = Vec::new();
    while let Some((header, rest)) = bytes.split_at_checked(9) {
        let length = u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize;
        frames.push((header[3], rest[..length].to_vec()));
        bytes = &rest[length..];
    }
    frames
}

/// The filter ends a connection that floods the server with a frame that cannot be.
#[tokio::test(start_paused = true)]
async fn a_ping_without_its_length_is_answered_with_goaway() {
    let (mut client, server) = tokio::io::duplex(1 << 16);
    client.write_all(&[HTTP2_PREFACE, SETTINGS, MALFORMED].concat()).await.unwrap();
    let service =
        service_fn(|_: Request<Incoming>| async { Ok::<_, Infallible>(Response::new(pieces(&[], true))) });
    let connection = Builder::new(Spawns::default()).serve_connection(TokioIo::new(server), service);
    assert!(timeout(UNTIL_QUIET, connection).await.unwrap().is_err());
    let mut came = Vec::new();
    client.read_to_end(&mut came).await.unwrap();
    let (kind, payload) = frames(&came).pop().unwrap();
    assert_eq!(kind, GOAWAY);
    assert_ne!(payload[4..8], [0; 4], "it says why");
}

/// `patience` bounds how long a client may take for its part.
#[tokio::test(start_paused = true)]
async fn a_graceful_shutdown_says_so_and_waits_for_the_client() {
    let (mut client, server) = tokio::io::duplex(1 << 16);
    client.write_all(&[HTTP2_PREFACE, SETTINGS].concat()).await.unwrap();
    let service =
        service_fn(|_: Request<Incoming>| async { Ok::<_, Infallible>(Response::new(pieces(&[], true))) });
    let builder = Builder::new(Spawns::default());
    let mut connection = pin!(builder.serve_connection(TokioIo::new(server), service));
    assert!(timeout(UNTIL_QUIET, connection.as_mut()).await.is_err());
    connection.as_mut().graceful_shutdown();
    assert!(timeout(UNTIL_QUIET, connection.as_mut()).await.is_err(), "it ends without the client");
    let mut came = vec![0; 1000];
    let read = client.read(&mut came).await.unwrap();
    assert!(frames(&came[..read]).iter().any(|(kind, _)| *kind == GOAWAY));
}

/// A connection that is closed by the client when a test says so.
struct Ends {
    stream: DuplexStream,
    ended: Arc<AtomicBool>,
}

impl AsyncRead for Ends {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ended.load(SeqCst) {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Ends {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// `Http2Filter` holds the end back, and shuts the connection down in order when all is answered.
#[tokio::test(start_paused = true)]
async fn the_end_of_what_a_client_sends_drops_what_is_not_sent() {
    let (client, stream) = tokio::io::duplex(1 << 16);
    let ended = Arc::new(AtomicBool::new(false));
    let service = service_fn(|_: Request<Incoming>| async {
        sleep(UNTIL_QUIET).await;
        Ok::<_, Infallible>(Response::new(pieces(&[5], true)))
    });
    let server = TokioIo::new(Ends { stream, ended: Arc::clone(&ended) });
    let mut server = pin!(Builder::new(Spawns::default()).serve_connection(server, service));
    let asking = tokio::spawn(async move {
        let (mut client, connection) = h2::client::handshake(client).await.unwrap();
        tokio::spawn(connection);
        client.send_request(get(), true).unwrap().0.await
    });
    assert!(timeout(UNTIL_QUIET / 2, server.as_mut()).await.is_err());
    ended.store(true, SeqCst);
    let _ = timeout(UNTIL_QUIET * 2, server).await;
    assert!(asking.await.unwrap().is_err());
}
