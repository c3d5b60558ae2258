//! Serves one connection: finds its protocol, runs hyper on it, and closes it so that the client can read the last answer.

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

use super::application::Application;
use super::bodies::Watch;
use super::caps::Seat;
use super::client_certificates::ClientCertificates;
use super::executor::StreamExecutor;
use super::guard::{Caller, Opened, Shared};
use super::in_flight::InFlight;
use super::lent::{Chunks, Tray};
use super::options::Connections;
use super::patience::{ConnectionTimer, RanOut};
use super::preface::{self, Protocol};
use super::pulse::{Order, Pulse};
use super::refusal::Refusal;
use super::socket::{Http1Filter, Http2Filter, Socket};
use super::transport::Transport;
#[cfg(feature = "tls")]
use {
    super::accept,
    super::tls::{self, Greeting, Secured},
    http::StatusCode,
};

/// The answer to plain HTTP on a listener with TLS.
#[cfg(feature = "tls")]
const NEEDS_TLS: &str =
    "This port speaks HTTPS, and this request came in plain HTTP; use https:// in the address";

/// hyper's buffer may be larger than the largest head by so much, so that the filter's limit applies first.
pub(super) const BEYOND_HEAD: usize = 8 * 1024;

/// HTTP/2 pings find clients that are gone.
const PING_EVERY: Duration = Duration::from_secs(20);
const PING_PATIENCE: Duration = Duration::from_secs(10);

/// `open` tells the observer when the connection is gone.
pub(super) async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    shared: Arc<Shared<impl Application>>,
    seat: Seat,
    open: Opened,
) {
    // Nagle's algorithm would delay each event of a stream by up to 40 ms.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
    let mut timer = ConnectionTimer::new();
    let pulse = Arc::clone(&seat.pulse);
    // Boxed: its future is large, and its memory is free when the connection is open.
    let Some(opened) = Box::pin(open_transport(stream, &shared, &pulse, &mut timer)).await else { return };
    let (mut stream, known, certificates) = opened;
    let read = preface::read(&mut stream, known, &pulse, &mut timer, &shared.options).await;
    let Some((protocol, first)) = read else { return stream.say_goodbye().await };
    timer.speaks(protocol);
    let answers = shared.answers.of_connection();
    let caller = Caller { shared, pulse, peer, tray: None, answers, certificates };
    match protocol {
        Protocol::Http1 => http1(stream, first, caller, timer).await,
        // Boxed: its future is much larger, and most connections are HTTP/1.
        Protocol::Http2 => Box::pin(http2(stream, first, caller, timer)).await,
    }
    drop((seat, open));
}

/// The stream, the protocol if it is known, and what the client has shown. On a listener with TLS the handshake is done.
async fn open_transport(
    stream: TcpStream,
    shared: &Shared<impl Application>,
    pulse: &Pulse,
    timer: &mut ConnectionTimer,
) -> Option<(Transport, Option<Protocol>, Option<ClientCertificates>)> {
    #[cfg(feature = "tls")]
    if let Some(tls) = &shared.tls {
        return match tls::greet(stream, tls, pulse, timer, &shared.options).await {
            Greeting::Tls(secured) => {
                let Secured { stream, protocol, certificates } = *secured;
                Some((Transport::Tls(Box::new(stream)), protocol, certificates))
            }
            Greeting::Plain(stream) => {
                shared.refused(StatusCode::BAD_REQUEST);
                accept::tell(stream, StatusCode::BAD_REQUEST, "", NEEDS_TLS).await;
                None
            }
            Greeting::Gone => None,
        };
    }
    let _ = (shared, pulse, timer);
    Some((Transport::Plain(stream), None, None))
}

async fn http1(
    stream: Transport,
    first: BytesMut,
    mut caller: Caller<impl Application>,
    mut timer: ConnectionTimer,
) {
    let tray = Arc::new(Tray::default());
    caller.tray = Some(Arc::clone(&tray));
    let options = Arc::clone(&caller.shared.options);
    let filter = Http1Filter::new(options.max_head_bytes, first, &caller.pulse, Arc::clone(&tray));
    let mut socket = Socket::new(stream, Arc::clone(&caller.pulse), filter);
    let mut builder = http1::Builder::new();
    // Our own timer starts with the first byte of a head; hyper's would also count the time between requests.
    builder
        .header_read_timeout(None)
        .max_buf_size(options.write_buffer.max(options.max_head_bytes + BEYOND_HEAD));
    let ended = loop {
        let service = service_fn(|request| caller.clone().answer(request, None));
        // Boxed, so that its memory is free while an event stream waits without hyper.
        let mut connection = Box::pin(builder.serve_connection(TokioIo::new(&mut socket), service));
        let shut_down = http1::Connection::graceful_shutdown;
        let ended = drive(connection.as_mut(), shut_down, || tray.take_back(), &caller, &mut timer).await;
        drop(connection);
        let Some((chunks, closes)) = tray.taken() else { break ended };
        let sending = pin!(send(chunks, &mut socket));
        match drive(sending, |_| {}, || false, &caller, &mut timer).await {
            Ended::Served if !closes => {}
            ended => break ended,
        }
    };
    let (mut stream, filter) = socket.into_parts();
    if ended != Ended::ClosedByUs && filter.ended_early() {
        linger(&mut stream, &caller.shared.options, &caller.pulse).await;
    }
    stream.say_goodbye().await;
}

/// Sends the rest of an event stream; an error if the client closes the connection before the end.
async fn send(mut chunks: Chunks, socket: &mut Socket<Transport, Http1Filter>) -> io::Result<()> {
    poll_fn(|cx| match chunks.poll_send(cx, socket) {
        Poll::Pending => socket.poll_hung_up(cx).map(|()| Err(io::ErrorKind::UnexpectedEof.into())),
        sent => sent,
    })
    .await
}

async fn http2(
    stream: Transport,
    first: BytesMut,
    mut caller: Caller<impl Application>,
    mut timer: ConnectionTimer,
) {
    let options = Arc::clone(&caller.shared.options);
    let is_proxy = caller.shared.registry.is_proxy(caller.peer.ip());
    let most =
        if is_proxy { options.max_concurrent_requests_of_proxy } else { options.max_concurrent_requests };
    // A proxy sends the requests of many on one connection. No single customer may keep the others from it.
    let of_one = is_proxy.then(|| InFlight::new(most as usize / 2));
    caller.answers = caller.shared.answers.of_http2(of_one);
    let filter = Http2Filter::new(&options, first, &caller.pulse);
    let mut socket = Socket::new(stream, Arc::clone(&caller.pulse), filter);
    let executor = StreamExecutor::new(options.reader_stall);
    let service = service_fn(|request| {
        let watch = Arc::new(Watch::new());
        executor.announce(&watch);
        // Boxed, so that its memory is freed when the answer begins: otherwise hyper keeps it as long as the stream is
        // open, and the stream's task has it twice.
        Box::pin(caller.clone().answer(request, Some(watch)))
    });
    let mut builder = http2::Builder::new(executor.clone());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(most)
        .max_pending_accept_reset_streams(20)
        .max_local_error_reset_streams(64)
        .max_header_list_size(options.max_header_list_bytes)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_PATIENCE)
        // How much a client may send before the application reads it, in all and per request.
        .initial_connection_window_size(1024 * 1024)
        .initial_stream_window_size(256 * 1024)
        // Per stream. An application may hold several times as much for each.
        .max_send_buf_size(options.write_buffer / 4);
    {
        let connection = pin!(builder.serve_connection(TokioIo::new(&mut socket), service));
        drive(connection, http2::Connection::graceful_shutdown, || false, &caller, &mut timer).await;
    }
    socket.into_parts().0.say_goodbye().await;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// All requests are answered, or hyper has been left for an event stream that waits.
    Served,
    /// The client sent something that cannot be read, or the connection broke.
    Broken,
    /// Closed by the server: a limit or the shutdown.
    ClosedByUs,
}

/// Polls hyper, carries out orders and time limits, and returns when the connection ends or `may_stop` says so.
async fn drive<C, E>(
    mut connection: Pin<&mut C>,
    shut_down: impl Fn(Pin<&mut C>),
    may_stop: impl Fn() -> bool,
    caller: &Caller<impl Application>,
    timer: &mut ConnectionTimer,
) -> Ended
where
    C: Future<Output = Result<(), E>>,
    E: std::fmt::Display,
{
    let (pulse, options) = (&caller.pulse, &caller.shared.options);
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
                Order::Leave => return Poll::Ready(Ended::ClosedByUs),
                Order::MakeRoom if pulse.is_spare() => return Poll::Ready(Ended::ClosedByUs),
                Order::MakeRoom | Order::LeaveWhenQuiet => pulse.is_quiet(),
                Order::Finish => true,
                Order::None => false,
            };
            // In HTTP/1 the filter tells hyper itself that the client has closed its side, when all is answered.
            let leave = leave || (timer.speaks_http2() && pulse.half_close.is_over_late());
            if leave && !leaving {
                leaving = true;
                shut_down(connection.as_mut());
                continue;
            }
            if leaving {
                timer.leaving(pulse);
            }
            match timer.poll(cx, pulse, options) {
                Poll::Pending => return Poll::Pending,
                // The filter refuses the request at hyper's next read.
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
                        tracing::debug!("a connection was closed: the client does not read its answer");
                    }
                    return Poll::Ready(Ended::ClosedByUs);
                }
            }
        }
    })
    .await
}

/// Reads and drops what the client still sends, so that a reset does not discard the answer.
async fn linger(stream: &mut Transport, options: &Connections, pulse: &Pulse) {
    let discard = async {
        let mut buffer = vec![0; 16 * 1024];
        let mut read = 0;
        while read < options.linger_bytes {
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
        () = tokio::time::sleep(options.linger) => {}
    }
}
