//! The socket that hyper gets: reads go through a filter, writes are recorded.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::frames::{Frames, MALFORMED};
use super::framing::{Framing, Refused, Stand, Verdict};
use super::lent::Tray;
use super::options::Connections;
use super::pulse::{Phase, Pulse};
use super::refusal::Refusal;
use super::transport::Transport;

/// HTTP/2 only: a shorter write may be a ping or its acknowledgement, which does not show that the client is active.
const WORTH_NOTING: usize = 256;

/// How much is read at once while a head is incomplete.
const MORE: usize = 4 * 1024;

#[derive(Debug)]
pub(super) struct Socket<S, F> {
    stream: S,
    pulse: Arc<Pulse>,
    filter: F,
}

pub(super) trait Filter: Unpin {
    /// True if all writes belong to answers.
    const EVERY_WRITE_COUNTS: bool;

    fn poll_read(
        &mut self,
        stream: Pin<&mut impl AsyncRead>,
        pulse: &Pulse,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>>;

    /// All that was written has been flushed.
    fn flushed(&self) {}

    /// So many bytes have been written.
    fn wrote(&mut self, _bytes: usize) {}
}

impl<S, F> Socket<S, F> {
    pub(super) fn new(stream: S, pulse: Arc<Pulse>, filter: F) -> Self {
        Socket { stream, pulse, filter }
    }

    /// The socket and its filter.
    pub(super) fn into_parts(self) -> (S, F) {
        (self.stream, self.filter)
    }
}

impl Socket<Transport, Http1Filter> {
    /// Ready when the client has closed the connection; to be polled only while hyper does not read.
    pub(super) fn poll_hung_up(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.stream.poll_hung_up(cx)
    }
}

/// Passes on complete, unambiguous requests only.
#[derive(Debug)]
pub(super) struct Http1Filter {
    framing: Framing,
    /// Bytes that hyper has not got yet…
    held: BytesMut,
    /// …of which so many may go on.
    ready: usize,
    /// The rest begins with a request that has to wait.
    waits: bool,
    /// Why the body that hyper reads is refused; hyper gets an error, once, when it comes to that part.
    broken: Option<Refusal>,
    tray: Arc<Tray>,
}

impl Http1Filter {
    /// `first` was read to find out the protocol.
    pub(super) fn new(max_head: usize, first: BytesMut, pulse: &Pulse, tray: Arc<Tray>) -> Self {
        let framing = Framing::new(max_head);
        let mut filter = Http1Filter { framing, held: first, ready: 0, waits: false, broken: None, tray };
        filter.examine(pulse);
        filter
    }

    /// True if the connection ended within a request or with a refused one; then the client may still be sending.
    pub(super) fn ended_early(&self) -> bool {
        self.framing.stand() != Stand::Head || self.held.len() > self.ready
    }

    /// Reads what is held.
    fn examine(&mut self, pulse: &Pulse) {
        let verdict = self.framing.feed(&self.held, self.tray.requests.all_announced());
        self.ready = verdict.pass;
        if verdict.refused.is_some() {
            self.held.truncate(verdict.pass);
        }
        self.settle(verdict, pulse);
    }

    /// Acts on a refusal, and records what the client is sending.
    fn settle(&mut self, verdict: Verdict, pulse: &Pulse) {
        self.waits = verdict.waits;
        match verdict.refused {
            Some(Refused::Head(refusal)) => {
                self.framing.stand_in();
                self.held.extend_from_slice(&refusal.stand_in());
                self.ready = self.held.len();
            }
            Some(Refused::Body(refusal)) => self.broken = Some(refusal),
            None => {}
        }
        match self.framing.stand() {
            Stand::Refused => pulse.enter(Phase::Between),
            Stand::Body => {
                pulse.enter(Phase::Body);
                pulse.body_came(self.framing.body_seen());
            }
            Stand::Head if self.held.len() == self.ready => pulse.enter(Phase::Between),
            Stand::Head if verdict.pass > 0 => pulse.enter_anew(Phase::Head),
            Stand::Head => pulse.enter(Phase::Head),
        }
        self.tell_tray();
    }

    fn tell_tray(&self) {
        let whole = self.framing.stand() == Stand::Head && self.ready == 0;
        self.tray.requests.passed_on(self.framing.last_head(), whole);
    }

    /// The client has closed its side. This is hidden from hyper while an answer is owed, unless hyper reads a body, which
    /// will never be complete.
    fn ended(&self, pulse: &Pulse) -> Poll<io::Result<()>> {
        let hold_back = pulse.half_close.ended() && self.framing.stand() != Stand::Body;
        if hold_back { Poll::Pending } else { Poll::Ready(Ok(())) }
    }

    /// The client took too long.
    fn time_out(&mut self, refusal: Refusal, pulse: &Pulse) {
        let refused = match self.framing.stand() {
            Stand::Body => Refused::Body(refusal),
            Stand::Head | Stand::Refused => Refused::Head(refusal),
        };
        self.framing.refuse();
        self.held.clear();
        self.settle(Verdict { pass: 0, waits: false, refused: Some(refused) }, pulse);
    }
}

impl Filter for Http1Filter {
    const EVERY_WRITE_COUNTS: bool = true;

    fn poll_read(
        &mut self,
        mut stream: Pin<&mut impl AsyncRead>,
        pulse: &Pulse,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            if self.ready > 0 {
                let count = self.ready.min(buf.remaining());
                buf.put_slice(&self.held[..count]);
                self.held.advance(count);
                self.ready -= count;
                if self.held.is_empty() {
                    // Frees the buffer: the connection may stay idle for long.
                    self.held = BytesMut::new();
                }
                self.tell_tray();
                return Poll::Ready(Ok(()));
            }
            if self.framing.stand() == Stand::Refused {
                if let Some(refusal) = self.broken.take() {
                    // Not earlier: answers to earlier requests may still be sent.
                    pulse.fault(refusal);
                    return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
                }
                // Not the end of the stream: hyper would not send its answer.
                return Poll::Pending;
            }
            if let Some(refusal) = pulse.timed_out() {
                self.time_out(refusal, pulse);
                continue;
            }
            if self.waits {
                if !self.tray.requests.all_announced() {
                    // No waker is needed: hyper has a head that it has not read, and reads again after that.
                    return Poll::Pending;
                }
                self.examine(pulse);
                continue;
            }
            if self.held.is_empty() {
                // The usual case: read into hyper's own buffer, and checked there.
                let before = buf.filled().len();
                if stream.as_mut().poll_read(cx, buf)?.is_pending() {
                    if self.framing.stand() == Stand::Body {
                        pulse.body_awaited();
                    }
                    return Poll::Pending;
                }
                let came = &buf.filled()[before..];
                if came.is_empty() {
                    return self.ended(pulse);
                }
                let verdict = self.framing.feed(came, self.tray.requests.all_announced());
                if verdict.refused.is_none() {
                    self.held.extend_from_slice(&came[verdict.pass..]);
                }
                buf.set_filled(before + verdict.pass);
                self.settle(verdict, pulse);
                if verdict.pass > 0 {
                    return Poll::Ready(Ok(()));
                }
            } else {
                let mut more = [0; MORE];
                let mut more = ReadBuf::new(&mut more);
                ready!(stream.as_mut().poll_read(cx, &mut more))?;
                if more.filled().is_empty() {
                    return self.ended(pulse);
                }
                self.held.extend_from_slice(more.filled());
                self.examine(pulse);
            }
        }
    }

    fn flushed(&self) {
        self.tray.flushed();
    }
}

/// Passes on everything, and detects frames that take too long and floods.
#[derive(Debug)]
pub(super) struct Http2Filter {
    frames: Frames,
    /// Bytes that hyper gets before anything is read.
    first: BytesMut,
    flooded: bool,
    end: End,
}

/// What hyper knows of the client closing its side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    NotYet,
    /// It was read, but hyper may not have announced all requests that came before it.
    Seen,
    /// It is hidden from hyper because an answer is owed. When all is answered, the connection is shut down gracefully: if
    /// the h2 crate read the end, it would drop what it has not sent.
    Hidden,
}

impl Http2Filter {
    pub(super) fn new(options: &Connections, first: BytesMut, pulse: &Pulse) -> Self {
        let mut filter =
            Http2Filter { frames: Frames::new(options), first, flooded: false, end: End::NotYet };
        let came = std::mem::take(&mut filter.first);
        let keep = filter.look(&came, pulse);
        filter.first = came;
        filter.first.truncate(keep);
        filter.close_flood();
        filter
    }

    /// Reads frames; returns how many of the bytes may go on.
    fn look(&mut self, came: &[u8], pulse: &Pulse) -> usize {
        let seen = self.frames.feed(came, pulse.now() / 1000);
        match seen {
            _ if !seen.waiting => pulse.enter(Phase::Between),
            _ if seen.progress => pulse.enter_anew(Phase::Head),
            _ => pulse.enter(Phase::Head),
        }
        self.flooded = seen.flood.is_some();
        seen.flood.unwrap_or(came.len())
    }

    fn ended(&mut self, pulse: &Pulse, cx: &Context<'_>) -> Poll<io::Result<()>> {
        let owes = pulse.half_close.ended();
        self.end = match self.end {
            End::NotYet => {
                cx.waker().wake_by_ref();
                End::Seen
            }
            End::Seen if !owes => return Poll::Ready(Ok(())),
            End::Seen | End::Hidden => End::Hidden,
        };
        Poll::Pending
    }

    fn close_flood(&mut self) {
        if self.flooded {
            tracing::debug!(
                "a client floods its connection with frames that carry no request; the connection is closed"
            );
            self.first.extend_from_slice(MALFORMED);
        }
    }
}

impl Filter for Http2Filter {
    const EVERY_WRITE_COUNTS: bool = false;

    fn poll_read(
        &mut self,
        stream: Pin<&mut impl AsyncRead>,
        pulse: &Pulse,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.first.is_empty() {
            let count = self.first.len().min(buf.remaining());
            buf.put_slice(&self.first[..count]);
            self.first.advance(count);
            if self.first.is_empty() {
                self.first = BytesMut::new();
            }
            return Poll::Ready(Ok(()));
        }
        if self.flooded {
            return Poll::Pending;
        }
        let before = buf.filled().len();
        ready!(stream.poll_read(cx, buf))?;
        if buf.filled().len() == before {
            return self.ended(pulse, cx);
        }
        let keep = self.look(&buf.filled()[before..], pulse);
        buf.set_filled(before + keep);
        self.close_flood();
        Poll::Ready(Ok(()))
    }

    fn wrote(&mut self, bytes: usize) {
        self.frames.wrote(bytes);
    }
}

impl<S: AsyncRead + Unpin, F: Filter> AsyncRead for Socket<S, F> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        this.filter.poll_read(Pin::new(&mut this.stream), &this.pulse, cx, buf)
    }
}

impl<S, F: Filter> Socket<S, F> {
    fn noted(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = &written {
            self.filter.wrote(*bytes);
            self.pulse.count_taken(*bytes);
        }
        match &written {
            Poll::Pending => self.pulse.write_blocked(),
            Poll::Ready(Ok(bytes)) if F::EVERY_WRITE_COUNTS || *bytes >= WORTH_NOTING => self.pulse.wrote(),
            Poll::Ready(Ok(_)) => self.pulse.wrote_little(),
            Poll::Ready(Err(_)) => {}
        }
        written
    }
}

impl<S: AsyncWrite + Unpin, F: Filter> AsyncWrite for Socket<S, F> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.noted(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.noted(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Only TLS has something to flush: what the kernel did not take when it was written.
        if Pin::new(&mut self.stream).poll_flush(cx)?.is_pending() {
            self.pulse.write_blocked();
            return Poll::Pending;
        }
        if self.pulse.blocked_since().is_some() {
            self.pulse.wrote_little();
        }
        self.filter.flushed();
        if self.pulse.half_close.flushed() {
            self.pulse.wake();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
