//! The body of an answer around stored JSON. Large JSON is sent as a part of its own, so that it is not copied.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use crate::net::{SMALL, Share};

/// How many bytes of the JSON [`body`] will copy into `out`: all if it is small, else none.
pub(super) fn copied(json: &Bytes) -> usize {
    if json.len() > SMALL { 0 } else { json.len() }
}

/// A body of `out`, the JSON and `behind`, in this order. It keeps its share until it is sent.
pub(super) fn body(mut out: Vec<u8>, json: Bytes, behind: [&[u8]; 2], share: Option<Share>) -> Body {
    let with_share = |bytes: Bytes| match share {
        Some(share) => share.holding(bytes),
        None => bytes,
    };
    if json.len() > SMALL {
        let json = with_share(json);
        return Body::new(Parts { parts: [out.into(), json, behind.concat().into()] });
    }
    out.extend_from_slice(&json);
    behind.iter().for_each(|part| out.extend_from_slice(part));
    Body::from(with_share(out.into()))
}

/// The parts of a body in their order. Parts that have been sent are empty.
struct Parts {
    parts: [Bytes; 3],
}

impl hyper::body::Body for Parts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.parts.iter_mut().find(|part| !part.is_empty());
        Poll::Ready(next.map(|part| Ok(Frame::data(std::mem::take(part)))))
    }

    fn is_end_stream(&self) -> bool {
        self.parts.iter().all(Bytes::is_empty)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.parts.iter().map(|part| part.len() as u64).sum())
    }
}
