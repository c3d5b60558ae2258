//! One connection's life: which protocol, requests and answers, and an end that the client can read.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::BytesMut;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

use super::bodies::Watch;
use super::caps::Seat;
use super::executor::StreamExecutor;
use super::guard::{Caller, Door};
use super::lent::{Chunks, Tray};
use super::patience::{Clock, RanOut};
use super::preface::{self, Protocol};
use super::pulse::{Order, Pulse};
use super::refusal::Refusal;
use super::socket::{Http1Filter, Http2Filter, Socket};
use crate::telemetry::OpenConnection;

/// A client that is still sending would not read an answer if the socket were closed under it: what it sends is read
/// for so long, and so much of it.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 16 * 1024 * 1024;

/// How hyper's buffers grow beyond the head, so that the filter's bound is the one that counts.
const BEYOND_HEAD: usize = 8 * 1024;

/// Pings find out whether a client of HTTP/2 is still there.
const PING_EVERY: Duration = Duration::from_secs(20);
const PING_PATIENCE: Duration = Duration::from_secs(10);

/// `open` counts the connection for as long as it is there.
pub(super) async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    door: Arc<Door>,
    seat: Seat,
    open: Option<OpenConnection>,
) {
    // Small frames must leave at once: Nagle's algorithm costs a stream 40 ms per event.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
    let mut clock = Clock::new();
    let pulse = Arc::clone(&seat.pulse);
    let read = preface::read(&stream, &pulse, &mut clock, &door.options).await;
    let Some((protocol, first)) = read else { return };
    clock.speaks(protocol);
    let answers = door.answers.of_connection(peer.ip());
    let caller = Caller { door, pulse, peer, tray: None, answers };
    match protocol {
        Protocol::Http1 => http1(stream, first, caller, clock).await,
        // Much larger, and rarer.
        Protocol::Http2 => Box::pin(http2(stream, first, caller, clock)).await,
    }
    drop((seat, open));
}

async fn http1(stream: TcpStream, first: BytesMut, mut caller: Caller, mut clock: Clock) {
    let tray = Arc::new(Tray::default());
    caller.tray = Some(Arc::clone(&tray));
    let options = Arc::clone(&caller.door.options);
    let filter = Http1Filter::new(options.max_head_bytes, first, &caller.pulse, Arc::clone(&tray));
    let mut socket = Socket::new(stream, Arc::clone(&caller.pulse), filter);
    let mut builder = http1::Builder::new();
    // The filter knows when a head begins; hyper would count the time between requests, too.
    builder
        .header_read_timeout(None)
        .max_buf_size(options.write_buffer.max(options.max_head_bytes + BEYOND_HEAD));
    let ended = loop {
        let service = service_fn(|request| caller.clone().answer(request, None));
        // In a box, so that nothing is left of it while a stream waits.
        let mut connection = Box::pin(builder.serve_connection(TokioIo::new(&mut socket), service));
        let shut_down = http1::Connection::graceful_shutdown;
        let ended = drive(connection.as_mut(), shut_down, || tray.take_back(), &caller, &mut clock).await;
        drop(connection);
        let Some((chunks, closes)) = tray.taken() else { break ended };
        let sending = pin!(send(chunks, &mut socket));
        match drive(sending, |_| {}, || false, &caller, &mut clock).await {
            Ended::Served if !closes => {}
            ended => break ended,
        }
    };
    let (mut stream, filter) = socket.into_parts();
    if ended != Ended::Cut && filter.ended_early() {
        linger(&mut stream, &caller.pulse).await;
    }
}

/// The rest of an event stream, unless its reader leaves before the end.
async fn send(mut chunks: Chunks, socket: &mut Socket<TcpStream, Http1Filter>) -> io::Result<()> {
    poll_fn(|cx| match chunks.poll_send(cx, socket) {
        Poll::Pending => socket.poll_hung_up(cx).map(|()| Err(io::ErrorKind::UnexpectedEof.into())),
        sent => sent,
    })
    .await
}

async fn http2(stream: TcpStream, first: BytesMut, mut caller: Caller, mut clock: Clock) {
    caller.answers = caller.door.answers.of_http2(caller.peer.ip());
    let options = Arc::clone(&caller.door.options);
    let filter = Http2Filter::new(first, &caller.pulse);
    let mut socket = Socket::new(stream, Arc::clone(&caller.pulse), filter);
    let executor = StreamExecutor::new(options.reader_stall);
    let service = service_fn(|request| {
        let watch = Arc::new(Watch::new());
        executor.announce(&watch);
        caller.clone().answer(request, Some(watch))
    });
    let mut builder = http2::Builder::new(executor.clone());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(options.max_concurrent_requests)
        .max_pending_accept_reset_streams(20)
        .max_local_error_reset_streams(64)
        .max_header_list_size(options.max_header_list_bytes)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_PATIENCE)
        // What clients may send before it is read, in all and per request.
        .initial_connection_window_size(1024 * 1024)
        .initial_stream_window_size(256 * 1024)
        // Per stream; as much again is being made, and twice as much was read from the log.
        .max_send_buf_size(options.write_buffer / 4);
    let connection = pin!(builder.serve_connection(TokioIo::new(&mut socket), service));
    drive(connection, http2::Connection::graceful_shutdown, || false, &caller, &mut clock).await;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// Done with it, or with what it waits for next.
    Served,
    /// Something came that cannot be read, or nobody reads what is sent.
    Broken,
    /// We are.
    Cut,
}

/// Lets hyper work, and sees to it that the connection ends when it should. It stops where `may_stop` says so.
async fn drive<C, E>(
    mut connection: Pin<&mut C>,
    shut_down: impl Fn(Pin<&mut C>),
    may_stop: impl Fn() -> bool,
    caller: &Caller,
    clock: &mut Clock,
) -> Ended
where
    C: Future<Output = Result<(), E>>,
    E: std::fmt::Display,
{
    let (pulse, options) = (&caller.pulse, &caller.door.options);
    let (mut leaving, mut timed_out) = (false, false);
    poll_fn(move |cx| {
        pulse.listen(cx.waker());
        loop {
            if let Poll::Ready(served) = connection.as_mut().poll(cx) {
                let Err(error) = served else { return Poll::Ready(Ended::Served) };
                tracing::trace!(%error, "a connection broke");
                return Poll::Ready(Ended::Broken);
            }
            if may_stop() {
                return Poll::Ready(Ended::Served);
            }
            let leave = match pulse.order() {
                Order::Leave => return Poll::Ready(Ended::Cut),
                Order::MakeRoom if pulse.is_spare() => return Poll::Ready(Ended::Cut),
                Order::MakeRoom | Order::LeaveWhenQuiet => pulse.is_quiet(),
                Order::Finish => true,
                Order::None => false,
            };
            // Of HTTP/1 hyper is told the end itself, as soon as all is answered.
            let leave = leave || (clock.speaks_http2() && pulse.half_close.is_over_late());
            if leave && !leaving {
                leaving = true;
                shut_down(connection.as_mut());
                continue;
            }
            if leaving {
                clock.leaving(pulse);
            }
            match clock.poll(cx, pulse, options) {
                Poll::Pending => return Poll::Pending,
                // The filter makes a refusal of it, at hyper's next read.
                Poll::Ready(ran_out @ (RanOut::Head | RanOut::Body)) if !timed_out => {
                    timed_out = true;
                    pulse.time_out(match ran_out {
                        RanOut::Head => Refusal::HeadTimeout,
                        _ => Refusal::BodyTimeout,
                    });
                }
                Poll::Ready(RanOut::Idle) if !leaving => {
                    leaving = true;
                    shut_down(connection.as_mut());
                }
                Poll::Ready(ran_out) => {
                    if ran_out == RanOut::Reader {
                        tracing::debug!("a connection was cut: its reader takes nothing");
                    }
                    return Poll::Ready(Ended::Cut);
                }
            }
        }
    })
    .await
}

/// Reads what is still coming, so that the answer is not lost in a reset.
async fn linger(stream: &mut TcpStream, pulse: &Pulse) {
    let discard = async {
        let mut buffer = vec![0; 16 * 1024];
        let mut read = 0;
        while read < LINGER_BYTES {
            match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(count) => read += count,
            }
        }
    };
    let told = poll_fn(|cx| {
        pulse.listen(cx.waker());
        if pulse.order() >= Order::MakeRoom { Poll::Ready(()) } else { Poll::Pending }
    });
    tokio::select! {
        () = discard => {}
        () = told => {}
        () = tokio::time::sleep(LINGER) => {}
    }
}
