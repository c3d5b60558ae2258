//! An event stream on HTTP/1: its body is lent to hyper, and taken back while there is nothing to say.
//!
//! hyper keeps some 24 kB per connection: two buffers, and the room of the request's future. A stream may be open for
//! hours with nothing on it. So its body lies in the connection's own [`Tray`], from which hyper reads it. When all of
//! it so far has been sent and more must be awaited, the connection takes it back, lets hyper go, and writes what
//! comes as [`Chunks`]; for the request after it there is a new hyper. Nothing is lost with the old one: its buffers
//! are empty at that moment, and a chunked body has no memory of the chunks before.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE};
use http::{HeaderMap, Response, Version};
use hyper::body::{Body, Frame, SizeHint};
use tokio::io::AsyncWrite;

use super::bodies::{Observed, Parcel};
use super::half_close::Owed;
use super::requests::Requests;

/// Where a connection's event stream lies, while it has one.
#[derive(Debug, Default)]
pub(super) struct Tray {
    stream: Mutex<Option<Stream>>,
    pub(super) requests: Requests,
}

#[derive(Debug)]
struct Stream {
    body: Observed,
    /// hyper has been given something that it has not yet sent.
    unsent: bool,
    /// There was nothing more when hyper asked last.
    waits: bool,
    /// hyper has had the beginning, and is given no more: it would keep more than the one write that is on its way. To be
    /// woken if it has to go on all the same.
    held_back: Option<Waker>,
    /// hyper has had the beginning.
    begun: bool,
    /// hyper is on its way out.
    taken: bool,
    /// It is the last answer on its connection.
    closes: bool,
}

impl Tray {
    /// hyper has sent all it had.
    pub(super) fn flushed(&self) {
        if let Some(stream) = &mut *self.stream() {
            stream.unsent = false;
        }
    }

    /// Is there a stream that has to wait? Then hyper is to be dropped, and loses it.
    pub(super) fn take_back(&self) -> bool {
        let mut lying = self.stream();
        let Some(stream) = &mut *lying else { return false };
        // With a further request in hyper's buffer, that would be lost.
        let is_last = self.requests.none_buffered();
        stream.taken = stream.waits && !stream.unsent && is_last;
        if !is_last && let Some(waker) = stream.held_back.take() {
            waker.wake();
        }
        stream.taken
    }

    /// What was taken back, and whether it is the last answer.
    pub(super) fn taken(&self) -> Option<(Chunks, bool)> {
        let stream = self.stream().take_if(|stream| stream.taken)?;
        Some((Chunks { body: stream.body, chunk: None, over: false }, stream.closes))
    }

    fn stream(&self) -> MutexGuard<'_, Option<Stream>> {
        // Each field says something by itself.
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The body of an answer, for hyper.
#[derive(Debug)]
pub(super) enum Outgoing {
    Owned {
        body: Observed,
        /// Somebody waits for its end, unless it is an event stream.
        _owed: Option<Owed>,
    },
    Lent(Lent),
}

/// Ends the stream when it is dropped, unless that was taken back.
#[derive(Debug)]
pub(super) struct Lent(Arc<Tray>);

impl Outgoing {
    /// Lends the body if it is an event stream that hyper will send in chunks. `tray` is that of an HTTP/1 connection.
    pub(super) fn of(
        response: Response<Observed>,
        owed: Owed,
        version: Version,
        closes: bool,
        tray: Option<&Arc<Tray>>,
    ) -> Response<Outgoing> {
        let is_stream = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream");
        let owed = (!is_stream).then_some(owed);
        let lends = is_stream && version == Version::HTTP_11 && response.body().size_hint().exact().is_none();
        let closes = closes || closes_after(response.headers());
        match tray {
            Some(tray) if lends => response.map(|body| {
                let (unsent, waits, begun, taken) = (true, false, false, false);
                let stream = Stream { body, unsent, waits, held_back: None, begun, taken, closes };
                *tray.stream() = Some(stream);
                Outgoing::Lent(Lent(Arc::clone(tray)))
            }),
            _ => response.map(|body| Outgoing::Owned { body, _owed: owed }),
        }
    }
}

/// Will this be the last answer, by the headers of either side?
pub(super) fn closes_after(headers: &HeaderMap) -> bool {
    let says_close = |value: &http::HeaderValue| {
        value
            .as_bytes()
            .split(|byte| *byte == b',')
            .any(|word| word.trim_ascii().eq_ignore_ascii_case(b"close"))
    };
    headers.get_all(CONNECTION).iter().any(says_close)
}

impl Drop for Lent {
    fn drop(&mut self) {
        let ended = self.0.stream().take_if(|stream| !stream.taken);
        drop(ended);
    }
}

impl Body for Outgoing {
    type Data = Parcel;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Parcel>, axum::Error>>> {
        match &mut *self {
            Outgoing::Owned { body, .. } => Pin::new(body).poll_frame(cx),
            Outgoing::Lent(Lent(tray)) => {
                let mut lying = tray.stream();
                let Some(stream) = &mut *lying else { return Poll::Ready(None) };
                if stream.begun && tray.requests.none_buffered() {
                    stream.waits = true;
                    stream.held_back = Some(cx.waker().clone());
                    return Poll::Pending;
                }
                let polled = Pin::new(&mut stream.body).poll_frame(cx);
                stream.waits = polled.is_pending();
                stream.unsent |= polled.is_ready();
                stream.begun |= polled.is_ready();
                polled
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Outgoing::Owned { body, .. } => body.is_end_stream(),
            Outgoing::Lent(Lent(tray)) => {
                tray.stream().as_ref().is_none_or(|stream| stream.body.is_end_stream())
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Outgoing::Owned { body, .. } => body.size_hint(),
            Outgoing::Lent(_) => SizeHint::default(),
        }
    }
}

/// The rest of a body in chunks, straight to the socket.
#[derive(Debug)]
pub(super) struct Chunks {
    body: Observed,
    chunk: Option<Chunk>,
    /// There is nothing after `chunk`.
    over: bool,
}

/// What is being sent: a line with its length, the data, and what follows it.
#[derive(Debug)]
struct Chunk {
    size: String,
    data: Bytes,
    end: &'static str,
    sent: usize,
}

impl Chunks {
    /// Ready when all is sent, or cannot be.
    pub(super) fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        socket: &mut (impl AsyncWrite + Unpin),
    ) -> Poll<io::Result<()>> {
        loop {
            if let Some(chunk) = &mut self.chunk {
                ready!(chunk.poll_send(cx, socket))?;
                self.chunk = None;
            }
            if self.over {
                return Pin::new(socket).poll_flush(cx);
            }
            let data = ready!(self.poll_data(cx))?;
            // What is said last leaves together with the end.
            self.over = data.is_none() || self.body.is_end_stream();
            self.chunk = Some(Chunk::new(data, self.over));
        }
    }

    /// The next part, never empty; `None` when the body is over.
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        loop {
            let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(cx)) else {
                return Poll::Ready(Ok(None));
            };
            // An empty chunk would be the end, and event streams have no trailers.
            let data = frame.map_err(io::Error::other)?.into_data().ok().map(Parcel::into_bytes);
            if let Some(data) = data.filter(|data| !data.is_empty()) {
                return Poll::Ready(Ok(Some(data)));
            }
        }
    }
}

impl Chunk {
    fn new(data: Option<Bytes>, last: bool) -> Self {
        let Some(data) = data else {
            return Chunk { size: String::new(), data: Bytes::new(), end: "0\r\n\r\n", sent: 0 };
        };
        let end = if last { "\r\n0\r\n\r\n" } else { "\r\n" };
        Chunk { size: format!("{:x}\r\n", data.len()), data, end, sent: 0 }
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        socket: &mut (impl AsyncWrite + Unpin),
    ) -> Poll<io::Result<()>> {
        loop {
            let mut slices = [
                IoSlice::new(self.size.as_bytes()),
                IoSlice::new(&self.data),
                IoSlice::new(self.end.as_bytes()),
            ];
            let mut left = &mut slices[..];
            IoSlice::advance_slices(&mut left, self.sent);
            if left.is_empty() {
                return Poll::Ready(Ok(()));
            }
            match ready!(Pin::new(&mut *socket).poll_write_vectored(cx, left))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                sent => self.sent += sent,
            }
        }
    }
}
