//! An event stream as an SSE body. Stored events are sent without parsing them; small ones are joined into one write.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use baton_protocol::wire::dialect::{AnswerFacts, Dialect};
use baton_protocol::wire::{http_json, jsonrpc, sse};
use baton_protocol::{Error, ErrorKind};
use bytes::{Bytes, BytesMut};
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response, Version};
use tracing::Instrument as _;

use super::answer::{AnswerFormat, Envelope};
use super::request_log::StreamLog;
use crate::auth::Principal;
use crate::engine::{EventStream, Frame, from_store};
use crate::net::SMALL;
use crate::points::{Point, reached};
use crate::store::StoredEvent;

/// A write is sent when it has grown to this size.
const WRITE_BYTES: usize = 16 * 1024;

/// Size of a usual event.
const USUAL_EVENT: usize = 2 * 1024;

/// Size of the frame with which most streams begin.
const FIRST_BYTES: usize = 512;

/// About how many bytes a frame has in addition to its JSON and its prefix.
const FRAMING: usize = "id: 12345\ndata: }\n\n".len();

/// Ends the `data` line and the event.
const EVENT_END: &[u8] = b"\n\n";

/// When the server stops and closes a stream: after how many milliseconds the client should resume it.
const RETRY_MILLIS: u64 = 1000;

/// Tells nginx and similar proxies not to buffer, which would delay events.
const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

pub(super) fn response(
    stream: EventStream,
    format: AnswerFormat,
    keep_alive: Duration,
    principal: Principal,
    log: StreamLog,
) -> Response<Body> {
    let AnswerFormat { dialect, facts, envelope, http, .. } = format;
    let mut prefix = Vec::with_capacity(64);
    envelope.begin(&mut prefix);
    let (stop_notice_sent, refused, written) = (false, false, VecDeque::new());
    let writer = Writer {
        stream,
        dialect,
        facts,
        envelope,
        prefix,
        keep_alive,
        principal,
        stop_notice_sent,
        refused,
        written,
        log,
    };
    let mut response = Response::new(Body::new(EventBody::Writing(Box::new(writer))));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-store"));
    headers.insert(NO_BUFFERING, HeaderValue::from_static("no"));
    if http < Version::HTTP_2 {
        headers.insert(CONNECTION, HeaderValue::from_static("keep-alive"));
    }
    response
}

/// A stream of one event.
pub(super) fn only_event(json: &[u8]) -> Response<Body> {
    let mut out = BytesMut::new();
    sse::write_event(&mut out, None, None, &[json]);
    let mut response = Response::new(Body::from(out.freeze()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-store"));
    response
}

/// The body. Frames that are ready are written directly when the body is polled; a future, and the memory for it, is made
/// only to wait for more.
enum EventBody {
    Writing(Box<Writer>),
    Waiting(Waiting),
    Over,
}

type Waiting = Pin<Box<dyn Future<Output = (Box<Writer>, Option<Bytes>)> + Send>>;

impl hyper::body::Body for EventBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, Infallible>>> {
        loop {
            let (mut writer, written) = match std::mem::replace(&mut *self, EventBody::Over) {
                EventBody::Over => return Poll::Ready(None),
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
            } else {
                *self = EventBody::Writing(writer);
            }
            return Poll::Ready(written.map(|bytes| Ok(hyper::body::Frame::data(bytes))));
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, EventBody::Over)
    }
}

/// There is no event to write now.
struct Quiet;

struct Writer {
    stream: EventStream,
    dialect: Dialect,
    facts: AnswerFacts,
    envelope: Envelope,
    /// Precedes the JSON of every frame.
    prefix: Vec<u8>,
    keep_alive: Duration,
    principal: Principal,
    /// The caller's credential is no longer valid: the last event says so.
    refused: bool,
    /// The comment that a stopping server ends streams with has been written.
    stop_notice_sent: bool,
    /// Parts to send before the buffer: a large frame is sent in parts, so that its JSON is not copied.
    written: VecDeque<Bytes>,
    log: StreamLog,
}

impl Writer {
    /// Whether everything is written, including the comment of a stopping server.
    fn is_over(&self) -> bool {
        self.written.is_empty()
            && (self.refused
                || self.stream.is_over() && (self.stop_notice_sent || !self.stream.was_stopped()))
    }

    /// What can be written without waiting.
    fn write_ready(&mut self) -> Option<Bytes> {
        let span = self.log.span();
        let _within = span.enter();
        if let Some(written) = self.written.pop_front() {
            return Some(written);
        }
        let mut out = BytesMut::new();
        while out.is_empty() {
            let frame = self.stream.next_ready()?;
            if !self.refuses(&mut out) {
                self.put_frames(&mut out, &frame);
            }
        }
        Some(self.next_part(out))
    }

    /// Ends the stream if the caller's credential has expired or been revoked. Asked before every write, so that nothing is
    /// told after that.
    fn refuses(&mut self, out: &mut BytesMut) -> bool {
        if self.principal.is_still_valid() {
            return false;
        }
        self.refused = true;
        self.put_error(out, &Error::new(ErrorKind::Unauthenticated, "The credential is no longer valid"));
        true
    }

    /// The next part to send. It keeps its share of the room for answers until it is sent.
    fn next_part(&mut self, out: BytesMut) -> Bytes {
        let out = self.stream.attach_share(out.freeze());
        match self.written.pop_front() {
            Some(first) => {
                self.written.push_back(out);
                first
            }
            None => out,
        }
    }

    async fn wait(mut self: Box<Self>) -> (Box<Self>, Option<Bytes>) {
        let span = self.log.span();
        let written = self.next_write().instrument(span).await;
        (self, written)
    }

    async fn next_write(&mut self) -> Option<Bytes> {
        let mut out = BytesMut::new();
        while out.is_empty() {
            let next = self.next_event().await;
            if !matches!(next, Ok(None)) && self.refuses(&mut out) {
                break;
            }
            match next {
                Err(Quiet) => sse::write_comment(&mut out, "keep-alive"),
                Ok(None) if self.stream.was_stopped() && !self.stop_notice_sent => {
                    self.stop_notice_sent = true;
                    sse::write_comment(&mut out, "the server is stopping; resume with Last-Event-ID");
                    sse::write_retry(&mut out, RETRY_MILLIS);
                }
                Ok(None) => return None,
                Ok(Some(Err(error))) => self.put_error(&mut out, &error),
                Ok(Some(Ok(frame))) => self.put_frames(&mut out, &frame),
            }
        }
        Some(self.next_part(out))
    }

    /// The next event. An error if there is none for so long that it is time for a keep-alive, or if the caller's credential
    /// has expired or been revoked.
    async fn next_event(&mut self) -> Result<Option<Result<Frame, Error>>, Quiet> {
        let patience = match self.principal.expires_in() {
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
        first + (bytes + (frames + 1) * (FRAMING + self.prefix.len())).min(WRITE_BYTES + USUAL_EVENT)
    }

    fn put_frame(&mut self, out: &mut BytesMut, frame: &Frame) {
        reached(Point::FrameShown);
        let dialect = self.dialect;
        let mut json = Vec::new();
        let number = match frame {
            Frame::Event(event) => {
                match self.encoded(event) {
                    Ok(json) => self.frame(out, Some(event.number), dialect.event_name(event.kind), json),
                    Err(error) => self.put_error(out, &error),
                }
                return;
            }
            Frame::Task { number, snapshot } => {
                if !self.stream.is_over() && !dialect.opens_with(snapshot.state()) {
                    return;
                }
                json.reserve(FIRST_BYTES);
                dialect.write_stream_task(&mut json, &snapshot.task);
                Some(*number)
            }
            Frame::Message(message) => {
                dialect.write_stream_message(&mut json, message, &self.facts);
                None
            }
        };
        if json.len() > SMALL {
            // It grew by doubling, and a slow client may keep it in memory for long.
            json.shrink_to_fit();
        }
        self.frame(out, number, dialect.opening_name(), json.into());
    }

    /// An event's JSON: the stored bytes if the caller's dialect is the stored form, else encoded once for all readers of the
    /// task.
    fn encoded(&self, event: &StoredEvent) -> Result<Bytes, Error> {
        let dialect = self.dialect;
        if dialect.is_stored_form() {
            return Ok(event.json());
        }
        self.stream.encoded(event.number, dialect, || {
            let mut json = Vec::with_capacity(256);
            dialect.write_stream_update(&mut json, &event.item().map_err(from_store)?);
            Ok(json.into())
        })
    }

    fn frame(&mut self, out: &mut BytesMut, number: Option<u64>, name: Option<&str>, json: Bytes) {
        self.log.event();
        let (prefix, suffix): (&[u8], &[u8]) = (&self.prefix, self.envelope.end());
        if json.len() <= SMALL || sse::breaks_line(&json) {
            sse::write_event(out, number, name, &[prefix, &json, suffix]);
            return;
        }
        sse::write_event(out, number, name, &[prefix]);
        out.truncate(out.len() - EVENT_END.len());
        self.written.push_back(out.split().freeze());
        self.written.push_back(self.stream.attach_share(json));
        out.extend_from_slice(suffix);
        out.extend_from_slice(EVENT_END);
    }

    /// Writes the last event of a stream that ends with an error.
    fn put_error(&mut self, out: &mut BytesMut, error: &Error) {
        self.log.broke(error);
        let mut json = Vec::new();
        let generation = self.dialect.generation();
        match &self.envelope {
            Envelope::Rpc(id) => {
                jsonrpc::write_error(&mut json, Some(id), generation, error);
                sse::write_event(out, None, None, &[&json]);
            }
            Envelope::Bare => {
                http_json::write_error(&mut json, generation, error);
                sse::write_event(out, None, Some("error"), &[&json]);
            }
        }
    }
}
