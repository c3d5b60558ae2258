//! An event stream as an SSE body. Stored events are framed as they are; many small ones leave in one write.

use std::time::Duration;

use axum::body::Body;
use baton_protocol::wire::jsonrpc::{self, RpcId};
use baton_protocol::wire::{sse, v1};
use baton_protocol::{Error, Generation};
use bytes::{Bytes, BytesMut};
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response, Version};

use crate::engine::{EventStream, Frame};

/// A write is sent off when it has grown to this.
const WRITE_BYTES: usize = 64 * 1024;

/// Proxies that buffer would hold events back.
const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

pub(super) fn response(
    stream: EventStream,
    id: RpcId,
    keep_alive: Duration,
    version: Version,
) -> Response<Body> {
    let mut prefix = Vec::with_capacity(64);
    jsonrpc::result_prefix(&mut prefix, &id);
    let writer = Writer { stream, id, prefix, keep_alive };
    let writes = futures_util::stream::unfold(writer, |mut writer| async move {
        let bytes = writer.next_write().await?;
        Some((Ok::<Bytes, std::convert::Infallible>(bytes), writer))
    });
    let mut response = Response::new(Body::from_stream(writes));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(NO_BUFFERING, HeaderValue::from_static("no"));
    if version < Version::HTTP_2 {
        headers.insert(CONNECTION, HeaderValue::from_static("keep-alive"));
    }
    response
}

struct Writer {
    stream: EventStream,
    id: RpcId,
    /// The envelope up to the result: the same in every frame.
    prefix: Vec<u8>,
    keep_alive: Duration,
}

impl Writer {
    async fn next_write(&mut self) -> Option<Bytes> {
        let mut out = BytesMut::new();
        match tokio::time::timeout(self.keep_alive, self.stream.next()).await {
            Err(_quiet) => sse::write_comment(&mut out, "keep-alive"),
            Ok(None) => return None,
            Ok(Some(Err(error))) => self.put_error(&mut out, &error),
            Ok(Some(Ok(frame))) => {
                self.put(&mut out, &frame);
                while out.len() < WRITE_BYTES
                    && let Some(frame) = self.stream.at_hand()
                {
                    self.put(&mut out, &frame);
                }
            }
        }
        Some(out.freeze())
    }

    fn put(&self, out: &mut BytesMut, frame: &Frame) {
        let mut json = Vec::new();
        let number = match frame {
            Frame::Event(event) => {
                sse::write_event(out, Some(event.number), None, &[&self.prefix, &event.json(), b"}"]);
                return;
            }
            Frame::Task { number, snapshot } => {
                v1::write_stream_task(&mut json, &snapshot.task);
                Some(*number)
            }
            Frame::Message(message) => {
                v1::write_stream_message(&mut json, message);
                None
            }
        };
        sse::write_event(out, number, None, &[&self.prefix, &json, b"}"]);
    }

    /// The last event of a stream that broke.
    fn put_error(&self, out: &mut BytesMut, error: &Error) {
        tracing::warn!(kind = error.kind().row().reason, cause = error.log(), "a stream broke");
        let mut json = Vec::new();
        jsonrpc::write_error(&mut json, Some(&self.id), Generation::V1, error);
        sse::write_event(out, None, None, &[&json]);
    }
}
