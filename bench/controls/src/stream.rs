//! hyper alone, writing the event stream of `EVENTS`: a separate tokio task produces the events one by one, as a
//! server's agent does, and the body writes them. With `HOLD` a stream sends its first event and waits for `go`, as a
//! held task does; then all events are ready at once, so that only the writing is measured.

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
use tokio::sync::mpsc;

pub fn main(heap: Heap) -> ExitCode {
    bench_host::run(heap, serve)
}

type Waiting = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The source of the next event.
enum Events {
    Produced(mpsc::Receiver<Bytes>),
    Held { events: Arc<[Bytes]>, next: usize, held: Option<Waiting> },
}

impl Events {
    fn produced(events: Arc<[Bytes]>) -> Self {
        let (sender, receiver) = mpsc::channel(64);
        tokio::spawn(async move {
            for event in events.iter() {
                if sender.send(event.clone()).await.is_err() {
                    break;
                }
            }
        });
        Events::Produced(receiver)
    }

    fn held(events: Arc<[Bytes]>, host: Host) -> Self {
        Events::Held { events, next: 0, held: Some(Box::pin(async move { host.gone().await })) }
    }
}

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let event = match &mut *self {
            Events::Produced(receiver) => match receiver.poll_recv(context) {
                Poll::Ready(event) => event,
                Poll::Pending => return Poll::Pending,
            },
            Events::Held { events, next, held } => {
                if *next > 0
                    && let Some(waiting) = held
                {
                    if waiting.as_mut().poll(context).is_pending() {
                        return Poll::Pending;
                    }
                    *held = None;
                }
                *next += 1;
                events.get(*next - 1).cloned()
            }
        };
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
                        let events = if hold { Events::held(events, host) } else { Events::produced(events) };
                        let mut response = Response::new(events);
                        let headers = response.headers_mut();
                        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
                        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
                        Ok::<_, hyper::Error>(response)
                    }
                });
                // A client that disconnects is not an error.
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
