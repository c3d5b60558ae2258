//! An event stream as an SSE body. Stored events are framed as they are; many small ones leave in one write.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use baton_protocol::Error;
use baton_protocol::wire::dialect::{AnswerFacts, Dialect};
use baton_protocol::wire::jsonrpc::{self, RpcId};
use baton_protocol::wire::{http_json, sse};
use bytes::{Bytes, BytesMut};
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response, Version};
use tracing::Instrument as _;

use super::observed::Watched;
use crate::engine::{EventStream, Frame};
use crate::net::SMALL;
use crate::points::{Point, reached};

/// A write is sent off when it has grown to this.
const WRITE_BYTES: usize = 16 * 1024;

/// Room for an event of usual size.
const BEYOND: usize = 2 * 1024;

/// Room for the frame with which most streams begin.
const FIRST_BYTES: usize = 512;

/// The end of the line of data, and of the event.
const EVENT_END: &[u8] = b"\n\n";

/// Milliseconds after which a stream that a stopping server closed may be resumed, there or at its successor.
const COME_BACK: u64 = 1000;

/// Proxies that buffer would hold events back.
const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// What stands around each frame's JSON.
pub(super) enum Envelope {
    /// A JSON-RPC response; the part before the result is the same in every frame.
    Rpc {
        id: RpcId,
        prefix: Vec<u8>,
    },
    Bare,
}

impl Envelope {
    pub(super) fn rpc(id: RpcId) -> Self {
        let mut prefix = Vec::with_capacity(64);
        jsonrpc::result_prefix(&mut prefix, &id);
        Envelope::Rpc { id, prefix }
    }

    /// About how many bytes a frame has beside its JSON.
    fn bytes(&self) -> usize {
        const FRAMING: usize = "id: 12345\ndata: }\n\n".len();
        match self {
            Envelope::Rpc { prefix, .. } => FRAMING + prefix.len(),
            Envelope::Bare => FRAMING,
        }
    }
}

#[allow(clippy::too_many_arguments, reason = "what one stream is made of")]
pub(super) fn response(
    stream: EventStream,
    dialect: Dialect,
    facts: AnswerFacts,
    envelope: Envelope,
    keep_alive: Duration,
    version: Version,
    watched: Watched,
) -> Response<Body> {
    let (said_goodbye, written) = (false, VecDeque::new());
    let writer = Writer { stream, dialect, facts, envelope, keep_alive, said_goodbye, written, watched };
    let mut response = Response::new(Body::new(EventBody::Writing(Box::new(writer))));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(NO_BUFFERING, HeaderValue::from_static("no"));
    if version < Version::HTTP_2 {
        headers.insert(CONNECTION, HeaderValue::from_static("keep-alive"));
    }
    response
}

/// A stream that is over with its first event.
pub(super) fn only_event(json: &[u8]) -> Response<Body> {
    let mut out = BytesMut::new();
    sse::write_event(&mut out, None, None, &[json]);
    let mut response = Response::new(Body::from(out.freeze()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// Writes what is at hand where it is asked for it. Only to wait it takes a future, and the memory of one.
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
                EventBody::Writing(mut writer) => match writer.write_at_hand() {
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
                writer.watched.complete();
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

struct Writer {
    stream: EventStream,
    dialect: Dialect,
    facts: AnswerFacts,
    envelope: Envelope,
    keep_alive: Duration,
    said_goodbye: bool,
    /// What is written before the buffer: a large frame leaves in parts, without a copy of its JSON.
    written: VecDeque<Bytes>,
    watched: Watched,
}

impl Writer {
    /// Is all written, the goodbye of a stopping server too?
    fn is_over(&self) -> bool {
        self.written.is_empty() && self.stream.is_over() && (self.said_goodbye || !self.stream.was_stopped())
    }

    /// What can be written without waiting.
    fn write_at_hand(&mut self) -> Option<Bytes> {
        let span = self.watched.span();
        let _within = (!span.is_disabled()).then(|| span.enter());
        if let Some(written) = self.written.pop_front() {
            return Some(written);
        }
        let mut out = BytesMut::new();
        while out.is_empty() {
            let frame = self.stream.at_hand()?;
            self.put_all(&mut out, &frame);
        }
        Some(self.next_part(out))
    }

    /// What is to be sent next of all that was written. It keeps its room until it is sent.
    fn next_part(&mut self, out: BytesMut) -> Bytes {
        let out = self.stream.held(out.freeze());
        match self.written.pop_front() {
            Some(first) => {
                self.written.push_back(out);
                first
            }
            None => out,
        }
    }

    async fn wait(mut self: Box<Self>) -> (Box<Self>, Option<Bytes>) {
        let span = self.watched.span();
        let writing = self.next_write();
        let written =
            if span.is_disabled() { writing.await } else { Box::pin(writing.instrument(span)).await };
        (self, written)
    }

    async fn next_write(&mut self) -> Option<Bytes> {
        let mut out = BytesMut::new();
        while out.is_empty() {
            match tokio::time::timeout(self.keep_alive, self.stream.next()).await {
                Err(_quiet) => sse::write_comment(&mut out, "keep-alive"),
                Ok(None) if self.stream.was_stopped() && !self.said_goodbye => {
                    self.said_goodbye = true;
                    sse::write_comment(&mut out, "the server is stopping; resume with Last-Event-ID");
                    sse::write_retry(&mut out, COME_BACK);
                }
                Ok(None) => return None,
                Ok(Some(Err(error))) => self.put_error(&mut out, &error),
                Ok(Some(Ok(frame))) => self.put_all(&mut out, &frame),
            }
        }
        Some(self.next_part(out))
    }

    /// A frame, and what else is at hand behind it.
    fn put_all(&mut self, out: &mut BytesMut, first: &Frame) {
        out.reserve(self.room_for(first));
        self.put(out, first);
        while out.len() < WRITE_BYTES
            && self.written.is_empty()
            && let Some(frame) = self.stream.at_hand()
        {
            self.put(out, &frame);
        }
    }

    /// About how many bytes the next write will have, so that its buffer need not grow.
    fn room_for(&mut self, first: &Frame) -> usize {
        let first = match first {
            Frame::Event(event) if event.record().len() <= SMALL => event.record().len(),
            Frame::Event(_) | Frame::Task { .. } | Frame::Message(_) => FIRST_BYTES,
        };
        let (frames, bytes) = self.stream.ahead();
        // The last event goes beyond the mark, as a rule by little.
        first + (bytes + (frames + 1) * self.envelope.bytes()).min(WRITE_BYTES + BEYOND)
    }

    fn put(&mut self, out: &mut BytesMut, frame: &Frame) {
        reached(Point::FrameShown);
        let dialect = self.dialect;
        let mut json = Vec::new();
        let number = match frame {
            Frame::Event(event) => {
                match self.stream.spelled(event, dialect) {
                    Ok(json) => self.frame(out, Some(event.number), dialect.event_name(event.kind), json),
                    Err(error) => self.put_error(out, &error),
                }
                return;
            }
            Frame::Task { number, snapshot } => {
                // An answer's stream begins with the question it answers. The oldest generation tells tasks by
                // their status, and would read it as the last word.
                if dialect == Dialect::V0_1 && snapshot.state().is_interrupted() && !self.stream.is_over() {
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
            // It grew by doubling, and may lie here for long.
            json.shrink_to_fit();
        }
        self.frame(out, number, dialect.opening_name(), json.into());
    }

    fn frame(&mut self, out: &mut BytesMut, number: Option<u64>, name: Option<&str>, json: Bytes) {
        self.watched.event();
        let (prefix, suffix): (&[u8], &[u8]) = match &self.envelope {
            Envelope::Rpc { prefix, .. } => (prefix, b"}"),
            Envelope::Bare => (b"", b""),
        };
        if json.len() <= SMALL || sse::breaks_line(&json) {
            sse::write_event(out, number, name, &[prefix, &json, suffix]);
            return;
        }
        sse::write_event(out, number, name, &[prefix]);
        out.truncate(out.len() - EVENT_END.len());
        self.written.push_back(out.split().freeze());
        self.written.push_back(self.stream.held(json));
        out.extend_from_slice(suffix);
        out.extend_from_slice(EVENT_END);
    }

    /// The last event of a stream that broke.
    fn put_error(&mut self, out: &mut BytesMut, error: &Error) {
        self.watched.broke(error);
        let mut json = Vec::new();
        let generation = self.dialect.generation();
        match &self.envelope {
            Envelope::Rpc { id, .. } => {
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
