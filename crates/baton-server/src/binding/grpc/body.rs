//! The body of an answer that is one message. A large one is sent as a part of its own, so that it is not copied.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use baton_protocol::wire::pb::framing::{PREFIX, prefix};
use bytes::Bytes;
use http::HeaderMap;
use hyper::body::Frame;

use super::status;
use crate::net::{SMALL, Share};

/// The message, and the status of a call that succeeded. It keeps its share until it is sent.
pub(in crate::binding) fn body(message: Bytes, share: Option<Share>) -> Body {
    let with_share = |bytes: Bytes| match share {
        Some(share) => share.holding(bytes),
        None => bytes,
    };
    let prefix = prefix(message.len());
    let parts = if message.len() > SMALL {
        [Bytes::copy_from_slice(&prefix), with_share(message)]
    } else {
        let mut whole = Vec::with_capacity(PREFIX + message.len());
        whole.extend_from_slice(&prefix);
        whole.extend_from_slice(&message);
        [with_share(whole.into()), Bytes::new()]
    };
    Body::new(Unary { parts, trailers: Some(status::ok()) })
}

/// The parts of a body in their order. Parts that have been sent are empty.
struct Unary {
    parts: [Bytes; 2],
    trailers: Option<HeaderMap>,
}

impl hyper::body::Body for Unary {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(part) = self.parts.iter_mut().find(|part| !part.is_empty()) {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(part)))));
        }
        Poll::Ready(self.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.trailers.is_none()
    }
}
