//! Runs each HTTP/2 stream in a task of its own, which ends the stream when its reader is stuck.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::time::sleep_until;

use super::bodies::Watch;

/// hyper calls the service for a request, and directly after that this executor with the stream of the same request. So
/// the service leaves the request's watch in `newest`, and the executor takes it from there.
#[derive(Debug, Clone)]
pub(super) struct StreamExecutor {
    reader_stall: Duration,
    newest: Arc<Mutex<Option<Arc<Watch>>>>,
}

impl StreamExecutor {
    pub(super) fn new(reader_stall: Duration) -> Self {
        StreamExecutor { reader_stall, newest: Arc::default() }
    }

    /// Sets the watch of the stream that is started next.
    pub(super) fn announce(&self, watch: &Arc<Watch>) {
        *self.newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(watch));
    }

    fn announced(&self) -> Option<Arc<Watch>> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<F> hyper::rt::Executor<F> for StreamExecutor
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let (watch, reader_stall) = (self.announced(), self.reader_stall);
        tokio::spawn(async move {
            let mut stream = pin!(stream);
            let mut timer = None;
            poll_fn(|cx| {
                if stream.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(());
                }
                // The stream waits although a part of the answer is ready: its reader does not read.
                loop {
                    let stuck = watch.as_ref().and_then(|watch| Some((watch, watch.stuck_since()?)));
                    let Some((watch, since)) = stuck else { return Poll::Pending };
                    if watch.is_cut(cx.waker()) {
                        return Poll::Ready(());
                    }
                    let due = since + reader_stall;
                    let timer = timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
                    if timer.as_mut().poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                    if timer.deadline() >= due {
                        tracing::debug!("a stream was closed: the client does not read its answer");
                        return Poll::Ready(());
                    }
                    timer.as_mut().reset(due);
                }
            })
            .await;
        });
    }
}
