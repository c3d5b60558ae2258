//! Event streams in HTTP/1: the body is lent to hyper, and taken back while it has nothing to send.
//!
//! hyper keeps some 24 kB per connection (two buffers and the memory of the request's future), and a stream may be idle for
//! hours. So the body stays in the connection's own [`Tray`], and hyper reads it from there. When all of it so far has been
//! sent and the rest has to be awaited, the connection takes the body back, drops hyper, and writes the rest as [`Chunks`];
//! the next request gets a new hyper. Nothing is lost with the old one: its buffers are empty at that moment, and a chunk
//! does not depend on the chunks before it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE};
use http::{HeaderMap, Response, Version};
use hyper::body::{Body, Frame, SizeHint};
use tokio::io::AsyncWrite;

use super::bodies::{ObservedBody, Parcel};
use super::half_close::Owed;
use super::requests::Requests;

/// Holds a connection's event stream, while it has one.
#[derive(Debug, Default)]
pub(super) struct Tray {
    stream: Mutex<Option<Stream>>,
    pub(super) requests: Requests,
}

#[derive(Debug)]
struct Stream {
    body: ObservedBody,
    /// hyper has something that it has not sent yet.
    unsent: bool,
    /// The body was pending when hyper polled it last.
    waits: bool,
    /// Wakes hyper. Set while hyper gets no more than the beginning, since it would buffer more than one write; woken if it
    /// has to go on all the same.
    held_back: Option<Waker>,
    /// hyper has got the first part.
    begun: bool,
    /// The body was taken back; hyper is dropped next.
    taken: bool,
    /// It is the last answer on its connection.
    closes: bool,
}

impl Tray {
    /// hyper has sent everything it had.
    pub(super) fn flushed(&self) {
        if let Some(stream) = &mut *self.stream() {
            stream.unsent = false;
        }
    }

    /// Takes an idle body back; if it returns true, the caller drops hyper next.
    pub(super) fn take_back(&self) -> bool {
        let mut guard = self.stream();
        let Some(stream) = &mut *guard else { return false };
        // Another request in hyper's buffer would be lost with it.
        let is_last = self.requests.none_buffered();
        stream.taken = stream.waits && !stream.unsent && is_last;
        if !is_last && let Some(waker) = stream.held_back.take() {
            waker.wake();
        }
        stream.taken
    }

    /// The body that was taken back, and whether the connection closes after it.
    pub(super) fn taken(&self) -> Option<(Chunks, bool)> {
        let stream = self.stream().take_if(|stream| stream.taken)?;
        Some((Chunks { body: stream.body, chunk: None, over: false }, stream.closes))
    }

    fn stream(&self) -> MutexGuard<'_, Option<Stream>> {
        // Every field is valid by itself, so a poisoned lock does no harm.
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The body of an answer, for hyper.
#[derive(Debug)]
pub(super) enum Outgoing {
    Owned {
        body: ObservedBody,
        /// `None` for an event stream.
        _owed: Option<Owed>,
    },
    Lent(Lent),
}

/// Drops the body in the tray with itself, unless that was taken back.
#[derive(Debug)]
pub(super) struct Lent(Arc<Tray>);

impl Outgoing {
    /// Lends the body to hyper if it is an event stream that hyper will send in chunks. `tray` is `None` in HTTP/2.
    pub(super) fn of(
        response: Response<ObservedBody>,
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

/// Do these headers, of a request or an answer, close the connection?
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
    type Error = axum_core::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Parcel>, axum_core::Error>>> {
        match &mut *self {
            Outgoing::Owned { body, .. } => Pin::new(body).poll_frame(cx),
            Outgoing::Lent(Lent(tray)) => {
                let mut guard = tray.stream();
                let Some(stream) = &mut *guard else { return Poll::Ready(None) };
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

/// Writes the rest of a body to the socket in chunks.
#[derive(Debug)]
pub(super) struct Chunks {
    body: ObservedBody,
    chunk: Option<WrittenChunk>,
    /// `chunk` is the last one.
    over: bool,
}

/// A chunk that is being sent: its size line, the data, and what follows it.
#[derive(Debug)]
struct WrittenChunk {
    size: String,
    data: Bytes,
    end: &'static str,
    sent: usize,
}

impl Chunks {
    /// Ready when all is sent, or with an error.
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
            let Poll::Ready(data) = self.poll_data(cx) else {
                // TLS may hold some of what was written.
                ready!(Pin::new(&mut *socket).poll_flush(cx))?;
                return Poll::Pending;
            };
            let data = data?;
            // The last data and the end are sent in one write.
            self.over = data.is_none() || self.body.is_end_stream();
            self.chunk = Some(WrittenChunk::new(data, self.over));
        }
    }

    /// The next part, never empty; `None` at the end of the body.
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        loop {
            let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(cx)) else {
                return Poll::Ready(Ok(None));
            };
            // Empty data is skipped, since an empty chunk would end the body; event streams have no trailers.
            let data = frame.map_err(io::Error::other)?.into_data().ok().map(Parcel::into_bytes);
            if let Some(data) = data.filter(|data| !data.is_empty()) {
                return Poll::Ready(Ok(Some(data)));
            }
        }
    }
}

impl WrittenChunk {
    fn new(data: Option<Bytes>, last: bool) -> Self {
        let Some(data) = data else {
            return WrittenChunk { size: String::new(), data: Bytes::new(), end: "0\r\n\r\n", sent: 0 };
        };
        let end = if last { "\r\n0\r\n\r\n" } else { "\r\n" };
        WrittenChunk { size: format!("{:x}\r\n", data.len()), data, end, sent: 0 }
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
