//! hyper alone, writing the event stream of `EVENTS`: every event is a frame of the body, all of them ready at once.
//! With `HOLD` a stream sends its first event, then waits for `go`, as a held task does.

use std::convert::Infallible;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::task::{Context, Poll};

use bench_host::{Heap, Host};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;

pub fn main(heap: Heap) -> ExitCode {
    bench_host::run(heap, serve)
}

type Waiting = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Events {
    events: Arc<[Bytes]>,
    next: usize,
    /// What the second event waits for.
    held: Option<Waiting>,
}

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.next > 0
            && let Some(held) = &mut self.held
        {
            if held.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            self.held = None;
        }
        let event = self.events.get(self.next).cloned();
        self.next += 1;
        Poll::Ready(event.map(|event| Ok(Frame::data(event))))
    }
}

async fn serve(host: Host) -> Result<(), String> {
    let events: Arc<[Bytes]> = split(crate::recorded("EVENTS")?.into()).into();
    let hold = std::env::var_os("HOLD").is_some();
    let listener = tokio::net::TcpListener::bind(host.address()).await.map_err(|error| error.to_string())?;
    let served = tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.map_err(|error| error.to_string())?;
            let _ = socket.set_nodelay(true);
            let (events, host) = (Arc::clone(&events), host.clone());
            tokio::spawn(async move {
                let answer = hyper::service::service_fn(|request: Request<Incoming>| {
                    let (events, host) = (Arc::clone(&events), host.clone());
                    async move {
                        request.into_body().collect().await?;
                        let held = hold.then(|| Box::pin(async move { host.gone().await }) as Waiting);
                        let mut response = Response::new(Events { events, next: 0, held });
                        let headers = response.headers_mut();
                        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
                        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
                        Ok::<_, hyper::Error>(response)
                    }
                });
                // A client that goes away is no fault of the control.
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(socket), answer)
                    .await;
            });
        }
    });
    served.await.map_err(|error| error.to_string())?
}

/// One piece per event, each with its blank line.
fn split(bytes: Bytes) -> Vec<Bytes> {
    let mut events = Vec::new();
    let mut from = 0;
    for at in 1..bytes.len() {
        if bytes[at - 1] == b'\n' && bytes[at] == b'\n' {
            events.push(bytes.slice(from..=at));
            from = at + 1;
        }
    }
    events
}
