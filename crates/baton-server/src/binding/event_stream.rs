//! An event stream as the body of an answer. Stored events are sent without parsing them; small ones are joined into one
//! write.

mod framing;
mod server_sent;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use baton_protocol::{Error, ErrorKind};
use bytes::{Bytes, BytesMut};
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, Version};
use tokio::time::Instant;
use tracing::Instrument as _;

use self::server_sent::ServerSent;
use super::answer::JsonFormat;
use super::request_log::StreamLog;
use crate::auth::Principal;
use crate::engine::{EventStream, Frame};
use crate::net::SMALL;
use crate::points::{Point, reached};

pub(super) use self::framing::{Framing, Label};

/// A write is sent when it has grown to this size.
const WRITE_BYTES: usize = 16 * 1024;

/// Size of a usual event.
const USUAL_EVENT: usize = 2 * 1024;

/// Size of the frame with which most streams begin.
const FIRST_BYTES: usize = 512;

/// Tells nginx and similar proxies not to buffer, which would delay events.
const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// What ends a stream beside its task.
pub(super) struct Bounds {
    /// Pause after which a quiet stream is written to.
    pub(super) keep_alive: Duration,
    pub(super) principal: Principal,
}

/// The stream as server-sent events.
pub(super) fn response(
    stream: EventStream,
    format: JsonFormat,
    bounds: Bounds,
    log: StreamLog,
) -> Response<Body> {
    let JsonFormat { dialect, facts, envelope, http, .. } = format;
    let mut response = Response::new(body(stream, ServerSent::new(dialect, facts, envelope), bounds, log));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-store"));
    headers.insert(NO_BUFFERING, HeaderValue::from_static("no"));
    if http < Version::HTTP_2 {
        headers.insert(CONNECTION, HeaderValue::from_static("keep-alive"));
    }
    response
}

pub(super) fn body(stream: EventStream, framing: impl Framing, bounds: Bounds, log: StreamLog) -> Body {
    let Bounds { keep_alive, principal } = bounds;
    let (stop_notice_sent, cut, written) = (false, false, VecDeque::new());
    let writer = Writer { stream, framing, keep_alive, principal, cut, stop_notice_sent, written, log };
    Body::new(EventBody::Writing(Box::new(writer)))
}

/// A stream of one event.
pub(super) fn only_event(json: &[u8]) -> Response<Body> {
    let mut out = BytesMut::new();
    baton_protocol::wire::sse::write_event(&mut out, None, None, &[json]);
    let mut response = Response::new(Body::from(out.freeze()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-store"));
    response
}

/// The body. Frames that are ready are written directly when the body is polled; a future, and the memory for it, is made
/// only to wait for more.
enum EventBody<F> {
    Writing(Box<Writer<F>>),
    Waiting(Waiting<F>),
    /// All is written but the trailers.
    Ending(HeaderMap),
    Over,
}

type Waiting<F> = Pin<Box<dyn Future<Output = (Box<Writer<F>>, Option<Bytes>)> + Send>>;

impl<F: Framing> hyper::body::Body for EventBody<F> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, Infallible>>> {
        loop {
            let (mut writer, written) = match std::mem::replace(&mut *self, EventBody::Over) {
                EventBody::Over => return Poll::Ready(None),
                EventBody::Ending(trailers) => {
                    return Poll::Ready(Some(Ok(hyper::body::Frame::trailers(trailers))));
                }
                EventBody::Writing(mut writer) => match writer.write_ready() {
                    None if !writer.is_over() => {
                        *self = EventBody::Waiting(Box::pin(writer.wait()));
                        continue;
                    }
                    written => (writer, written),
                },
                EventBody::Waiting(mut waiting) => match waiting.as_mut().poll(cx) {
                    Poll::Ready(written) => written,
                    Poll::Pending => {
                        *self = EventBody::Waiting(waiting);
                        return Poll::Pending;
                    }
                },
            };
            if written.is_none() || writer.is_over() {
                writer.log.complete();
                if let Some(trailers) = writer.framing.trailers() {
                    *self = EventBody::Ending(trailers);
                }
            } else {
                *self = EventBody::Writing(writer);
            }
            if let Some(written) = written {
                return Poll::Ready(Some(Ok(hyper::body::Frame::data(written))));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, EventBody::Over)
    }
}

/// There is no event to write now.
struct Quiet;

struct Writer<F> {
    stream: EventStream,
    framing: F,
    keep_alive: Duration,
    principal: Principal,
    /// The stream has been ended before its task: the last that was written says why.
    cut: bool,
    /// The notice that a stopping server ends streams with has been written.
    stop_notice_sent: bool,
    /// Parts to send before the buffer: a large frame is sent in parts, so that its payload is not copied.
    written: VecDeque<Bytes>,
    log: StreamLog,
}

impl<F: Framing> Writer<F> {
    /// Whether everything is written, including the notice of a stopping server.
    fn is_over(&self) -> bool {
        self.written.is_empty()
            && (self.cut || self.stream.is_over() && (self.stop_notice_sent || !self.stream.was_stopped()))
    }

    /// What can be written without waiting.
    fn write_ready(&mut self) -> Option<Bytes> {
        let span = self.log.span();
        let _within = span.enter();
        if let Some(written) = self.written.pop_front() {
            return Some(written);
        }
        let mut out = BytesMut::new();
        while out.is_empty() && self.written.is_empty() && !self.cut {
            let frame = self.stream.next_ready()?;
            if !self.refuses(&mut out) {
                self.put_frames(&mut out, &frame);
            }
        }
        self.next_part(out)
    }

    /// Ends the stream if the caller's credential has expired or been revoked, or its deadline has passed. Asked before every
    /// write, so that nothing is told after that.
    fn refuses(&mut self, out: &mut BytesMut) -> bool {
        let error = if !self.principal.is_still_valid() {
            Error::new(ErrorKind::Unauthenticated, "The credential is no longer valid")
        } else if self.framing.deadline().is_some_and(|deadline| deadline <= Instant::now()) {
            Error::of(ErrorKind::DeadlineExceeded)
        } else {
            return false;
        };
        self.put_error(out, &error);
        self.cut = true;
        true
    }

    /// The next part to send. It keeps its share of the room for answers until it is sent.
    fn next_part(&mut self, out: BytesMut) -> Option<Bytes> {
        if !out.is_empty() {
            let out = self.stream.attach_share(out.freeze());
            if self.written.is_empty() {
                return Some(out);
            }
            self.written.push_back(out);
        }
        self.written.pop_front()
    }

    async fn wait(mut self: Box<Self>) -> (Box<Self>, Option<Bytes>) {
        let span = self.log.span();
        let written = self.next_write().instrument(span).await;
        (self, written)
    }

    async fn next_write(&mut self) -> Option<Bytes> {
        let mut out = BytesMut::new();
        while out.is_empty() && self.written.is_empty() && !self.cut {
            let next = self.next_event().await;
            if !matches!(next, Ok(None)) && self.refuses(&mut out) {
                break;
            }
            match next {
                Err(Quiet) => self.framing.quiet(&mut out),
                Ok(None) if self.stream.was_stopped() && !self.stop_notice_sent => {
                    self.stop_notice_sent = true;
                    self.framing.stopping(&mut out);
                }
                Ok(None) => return None,
                Ok(Some(Err(error))) => self.put_error(&mut out, &error),
                Ok(Some(Ok(frame))) => self.put_frames(&mut out, &frame),
            }
        }
        self.next_part(out)
    }

    /// The next event. An error if there is none for so long that it is time for a keep-alive, if the caller's credential has
    /// expired or been revoked, or if its deadline has passed.
    async fn next_event(&mut self) -> Result<Option<Result<Frame, Error>>, Quiet> {
        let until_deadline = self.framing.deadline().map(|at| at.saturating_duration_since(Instant::now()));
        let ends = [self.principal.expires_in(), until_deadline].into_iter().flatten().min();
        let patience = match ends {
            // A timer may be a little early.
            Some(left) => self.keep_alive.min(left + Duration::from_millis(1)),
            None => self.keep_alive,
        };
        let next = tokio::time::timeout(patience, self.stream.next());
        let Some(revoked) = self.principal.until_revoked() else { return next.await.map_err(|_| Quiet) };
        tokio::select! {
            biased;
            next = next => next.map_err(|_| Quiet),
            () = revoked => Err(Quiet),
        }
    }

    /// Writes a frame and the ones after it that are ready.
    fn put_frames(&mut self, out: &mut BytesMut, first: &Frame) {
        out.reserve(self.room_for(first));
        self.put_frame(out, first);
        while out.len() < WRITE_BYTES
            && self.written.is_empty()
            && !self.cut
            && let Some(frame) = self.stream.next_ready()
        {
            self.put_frame(out, &frame);
        }
    }

    /// About how many bytes the next write will have, so that the buffer is allocated once.
    fn room_for(&mut self, first: &Frame) -> usize {
        let first = match first {
            Frame::Event(event) if event.record().len() <= SMALL => event.record().len(),
            Frame::Event(_) | Frame::Task { .. } | Frame::Message(_) => FIRST_BYTES,
        };
        let (frames, bytes) = self.stream.ahead();
        // The last event of a write may exceed the limit, usually by little.
        first + (bytes + (frames + 1) * self.framing.overhead()).min(WRITE_BYTES + USUAL_EVENT)
    }

    fn put_frame(&mut self, out: &mut BytesMut, frame: &Frame) {
        reached(Point::FrameShown);
        let (number, mut payload) = match frame {
            Frame::Event(event) => {
                let label = Label { number: Some(event.number), kind: Some(event.kind) };
                match self.framing.event(&self.stream, event) {
                    Ok(payload) => self.frame(out, label, payload),
                    Err(error) => self.put_error(out, &error),
                }
                return;
            }
            Frame::Task { number, snapshot } => {
                if !self.stream.is_over() && !self.framing.opens_with(snapshot.state()) {
                    return;
                }
                (Some(*number), self.framing.task(*number, &snapshot.task))
            }
            Frame::Message(message) => (None, self.framing.message(message)),
        };
        if payload.len() > SMALL {
            // It grew by doubling, and a slow client may keep it in memory for long.
            payload.shrink_to_fit();
        }
        self.frame(out, Label { number, kind: None }, payload.into());
    }

    fn frame(&mut self, out: &mut BytesMut, label: Label, payload: Bytes) {
        self.log.event();
        if payload.len() <= SMALL || !self.framing.sends_as_it_is(&payload) {
            self.framing.put(out, label, &payload);
            return;
        }
        self.framing.begin(out, label, payload.len());
        self.written.push_back(out.split().freeze());
        self.written.push_back(self.stream.attach_share(payload));
        self.framing.end(out);
    }

    /// Writes the last event of a stream that ends with an error.
    fn put_error(&mut self, out: &mut BytesMut, error: &Error) {
        self.log.broke(error);
        self.framing.error(out, error);
        self.cut |= F::ERROR_ENDS;
    }
}
