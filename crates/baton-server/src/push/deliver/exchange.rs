//! Request and answer on one connection.
//!
//! hyper wants its connections polled by a task of their own. Here whoever waits for the answer polls the connection too:
//! that saves two wake-ups for each request, and an idle connection costs no task. So nobody notices that the peer has closed
//! an idle connection, until it is used again; hyper then reads before it writes, and gives the request back.

use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::{Connection, SendRequest};
use hyper_util::rt::TokioIo;

use super::connect::Stream;

type HttpConnection = Connection<TokioIo<Box<dyn Stream>>, Full<Bytes>>;

/// An open connection.
pub(super) struct Open {
    sender: SendRequest<Full<Bytes>>,
    /// `None` when it has ended.
    connection: Option<HttpConnection>,
}

impl Open {
    pub(super) fn new(sender: SendRequest<Full<Bytes>>, connection: HttpConnection) -> Self {
        Open { sender, connection: Some(connection) }
    }

    /// Sends a request and waits for the head of its answer.
    pub(super) async fn send(&mut self, request: Request<Full<Bytes>>) -> hyper::Result<Response<Incoming>> {
        let answer = self.sender.send_request(request);
        drive(&mut self.connection, answer).await
    }

    /// Reads the rest of the answer, up to `max` bytes. True if the connection can be used again.
    pub(super) async fn finish(&mut self, mut body: Incoming, max: usize) -> bool {
        let mut read = 0;
        loop {
            // A body that says that it is too long need not be begun.
            let rest = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
            if read + rest > max {
                return false;
            }
            match drive(&mut self.connection, body.frame()).await {
                Some(Ok(frame)) => read += frame.data_ref().map_or(0, Bytes::len),
                Some(Err(_)) => return false,
                None => break,
            }
            if read > max {
                return false;
            }
        }
        let sender = &mut self.sender;
        let ready = poll_fn(|cx| sender.poll_ready(cx));
        drive(&mut self.connection, ready).await.is_ok() && self.connection.is_some()
    }
}

/// Polls the connection along with a future that waits for it.
async fn drive<F: Future>(connection: &mut Option<HttpConnection>, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|cx| {
        if let Some(open) = connection
            && Pin::new(open).poll(cx).is_ready()
        {
            // Its error, if there is one, reaches the future.
            *connection = None;
        }
        future.as_mut().poll(cx)
    })
    .await
}

impl fmt::Debug for Open {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Open").field("ended", &self.connection.is_none()).finish_non_exhaustive()
    }
}
