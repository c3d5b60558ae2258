//! A large answer as its parts: what stands before and behind a stored task is not worth a copy of the task.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use crate::net::{SMALL, Share};

/// How many bytes of the JSON will be copied into `out`: all of it, if it is small.
pub(super) fn copied(json: &Bytes) -> usize {
    if json.len() > SMALL { 0 } else { json.len() }
}

/// The answer that is `out`, the JSON and `end`, with its room.
pub(super) fn body(mut out: Vec<u8>, json: Bytes, end: &[u8], share: Option<Share>) -> Body {
    let held = |bytes: Bytes| match share {
        Some(share) => share.holding(bytes),
        None => bytes,
    };
    if json.len() > SMALL {
        let json = held(json);
        return Body::new(Parts { parts: [out.into(), json, Bytes::copy_from_slice(end)] });
    }
    out.extend_from_slice(&json);
    out.extend_from_slice(end);
    Body::from(held(out.into()))
}

/// Parts that were given out are empty.
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
