//! Finishes what a request has begun, even if the request's future is dropped.
//!
//! A connection that closes drops its request's future. If that happened between a commit and the start of the run that
//! belongs to it, the task would be working without a run.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

/// Runs in the caller's tokio task; if it is dropped before its end, it continues in a task of its own.
pub(super) struct Detached<'a, F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    future: Option<Pin<Box<F>>>,
    tracker: &'a TaskTracker,
}

pub(super) fn detachable<F>(tracker: &TaskTracker, future: F) -> Detached<'_, F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    Detached { future: Some(Box::pin(future)), tracker }
}

impl<F> Future for Detached<'_, F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // Taken out during the poll, so that a future that panics is not polled again.
        let mut future = self.future.take().expect("not polled after its end");
        let polled = future.as_mut().poll(context);
        if polled.is_pending() {
            self.future = Some(future);
        }
        polled
    }
}

impl<F> Drop for Detached<'_, F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn drop(&mut self) {
        // Without a runtime the process is ending; the crash rule handles the task at the next start.
        if let (Some(future), Ok(_)) = (self.future.take(), Handle::try_current()) {
            // In the request's span, since it is still part of the request.
            let rest = async move {
                future.await;
            };
            self.tracker.spawn(rest.in_current_span());
        }
    }
}
