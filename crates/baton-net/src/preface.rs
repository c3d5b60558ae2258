//! Finds out by the first bytes whether a client speaks HTTP/1 or HTTP/2, within the usual time limits.
//!
//! hyper-util's own detection reads before any of its timers runs: a client that sends half a preface would stay for ever.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;

use super::options::Connections;
use super::patience::ConnectionTimer;
use super::pulse::{Order, Phase, Pulse};
use super::transport::Transport;

/// The first bytes of an HTTP/2 client (with prior knowledge).
pub(super) const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

/// The protocol of these first bytes; `None` while it could be either.
fn spoken(bytes: &[u8]) -> Option<Protocol> {
    if bytes.starts_with(HTTP2_PREFACE) {
        Some(Protocol::Http2)
    } else if HTTP2_PREFACE.starts_with(bytes) {
        None
    } else {
        Some(Protocol::Http1)
    }
}

/// Reads until the protocol is known; if it is known before (by ALPN), until something has come. `None` if the client sent
/// nothing in time or left, or if the connection has to close.
pub(super) async fn read(
    stream: &mut Transport,
    known: Option<Protocol>,
    pulse: &Pulse,
    timer: &mut ConnectionTimer,
    options: &Connections,
) -> Option<(Protocol, BytesMut)> {
    // Allocates nothing before the client sends something.
    let mut bytes = BytesMut::new();
    let protocol = within_limits(pulse, timer, options, |cx| {
        loop {
            match ready!(stream.poll_read_first(cx, &mut bytes)) {
                Ok(0) | Err(_) => return Poll::Ready(None),
                Ok(_) => pulse.enter(Phase::Head),
            }
            if let Some(protocol) = known.or_else(|| spoken(&bytes)) {
                return Poll::Ready(Some(protocol));
            }
        }
    });
    let protocol = protocol.await??;
    Some((protocol, bytes))
}

/// Polls until it is ready. `None` if a time limit runs out before, or if the connection has to close.
pub(super) async fn within_limits<T>(
    pulse: &Pulse,
    timer: &mut ConnectionTimer,
    options: &Connections,
    mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
) -> Option<T> {
    poll_fn(|cx| {
        pulse.listen(cx.waker());
        let leave = match pulse.order() {
            Order::None => false,
            Order::LeaveWhenQuiet => pulse.is_quiet(),
            Order::MakeRoom | Order::Finish | Order::Leave => true,
        };
        if leave {
            return Poll::Ready(None);
        }
        match poll(cx) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending => timer.poll(cx, pulse, options).map(|_ran_out| None),
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_that_differs_decides() {
        for length in 0..HTTP2_PREFACE.len() {
            let part = &HTTP2_PREFACE[..length];
            assert_eq!(spoken(part), None, "{length}");
            assert_eq!(spoken(&[part, b"\0"].concat()), Some(Protocol::Http1), "{length}");
        }
        assert_eq!(spoken(HTTP2_PREFACE), Some(Protocol::Http2));
        assert_eq!(spoken(&[HTTP2_PREFACE, b"more"].concat()), Some(Protocol::Http2));
        assert_eq!(spoken(b"POST / HTTP/1.1\r\n"), Some(Protocol::Http1));
        assert_eq!(spoken(b"PUT"), Some(Protocol::Http1));
    }
}
