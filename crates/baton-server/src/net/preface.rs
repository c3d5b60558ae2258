//! HTTP/1 or HTTP/2? The first bytes tell, and how long they take is bounded like all the others.
//!
//! hyper-util's own detection reads before any of its timers runs, so a client that sends half a preface would stay
//! for ever.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use bytes::BytesMut;
use tokio::net::TcpStream;

use super::options::Connections;
use super::patience::Clock;
use super::pulse::{Order, Phase, Pulse};

/// With which a client of HTTP/2 that knows its server begins.
pub(super) const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Most requests come whole in one read of this.
const FIRST_READ: usize = 4 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

/// What the first bytes are of; `None` while they could be of either.
fn spoken(bytes: &[u8]) -> Option<Protocol> {
    if bytes.starts_with(HTTP2_PREFACE) {
        Some(Protocol::Http2)
    } else if HTTP2_PREFACE.starts_with(bytes) {
        None
    } else {
        Some(Protocol::Http1)
    }
}

/// Reads until the protocol is known. `None`: the client said nothing in time, or left, or there is no room for it.
pub(super) async fn read(
    stream: &TcpStream,
    pulse: &Pulse,
    clock: &mut Clock,
    options: &Connections,
) -> Option<(Protocol, BytesMut)> {
    // Nothing is allocated for a client that is silent.
    let mut bytes = BytesMut::new();
    let protocol = poll_fn(|cx| {
        pulse.listen(cx.waker());
        loop {
            let leave = match pulse.order() {
                Order::None => false,
                Order::LeaveWhenQuiet => pulse.is_quiet(),
                Order::MakeRoom | Order::Finish | Order::Leave => true,
            };
            if leave {
                return Poll::Ready(None);
            }
            match stream.poll_read_ready(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_gone)) => return Poll::Ready(None),
                Poll::Pending => return clock.poll(cx, pulse, options).map(|_ran_out| None),
            }
            bytes.reserve(FIRST_READ);
            match stream.try_read_buf(&mut bytes) {
                Ok(0) => return Poll::Ready(None),
                Ok(_) => {
                    pulse.enter(Phase::Head);
                    if let Some(protocol) = spoken(&bytes) {
                        return Poll::Ready(Some(protocol));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_gone) => return Poll::Ready(None),
            }
        }
    })
    .await?;
    Some((protocol, bytes))
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
