//! The body of an answer that is several messages, each made when the client has room for it.

use std::convert::Infallible;

use axum::body::Body;
use baton_protocol::wire::pb::framing::framed;
use futures_util::stream;
use http_body_util::StreamBody;
use hyper::body::Frame;

use super::status::{self, Ending};

/// What makes the messages.
pub(super) trait Messages: Send + 'static {
    /// The next message, or `None` after the last; an error ends the call with its status.
    fn next(&mut self) -> impl Future<Output = Result<Option<Vec<u8>>, Ending>> + Send;
}

pub(super) fn body(messages: impl Messages) -> Body {
    let frames = stream::unfold(Some(messages), async |messages| {
        let mut messages = messages?;
        let (frame, more) = match messages.next().await {
            Ok(Some(message)) => (Frame::data(framed(&message)), Some(messages)),
            Ok(None) => (Frame::trailers(status::ok()), None),
            Err(ending) => (Frame::trailers(ending.trailers()), None),
        };
        Some((Ok::<_, Infallible>(frame), more))
    });
    Body::new(StreamBody::new(frames))
}
