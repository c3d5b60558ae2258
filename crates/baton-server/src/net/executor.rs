//! Where the streams of an HTTP/2 connection run: each in a task of its own, which ends it when its reader is stuck.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::time::sleep_until;

use super::bodies::Watch;

/// hyper calls the service for a request, and in the next breath this executor with the stream of that request. So
/// the watch of the one is handed to the other through this place.
#[derive(Debug, Clone)]
pub(super) struct StreamExecutor {
    reader_stall: Duration,
    newest: Arc<Mutex<Option<Arc<Watch>>>>,
}

impl StreamExecutor {
    pub(super) fn new(reader_stall: Duration) -> Self {
        StreamExecutor { reader_stall, newest: Arc::default() }
    }

    /// The next stream to be started is watched by this.
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
                // There is a part of the answer to be had, and the stream waits: for its reader to take some of it.
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
                        tracing::debug!("a stream was cut: its reader takes nothing");
                        return Poll::Ready(());
                    }
                    timer.as_mut().reset(due);
                }
            })
            .await;
        });
    }
}
