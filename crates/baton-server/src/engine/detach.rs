//! Work outlives sockets: what a request has begun is finished though the request goes away.
//!
//! A connection that closes drops its request's future. Between a commit and the start of the run that
//! belongs to it, that would leave a task working with nobody at work.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

/// Runs in the caller's task, and in a task of its own from where the caller was dropped.
pub(super) struct Detached<'a, F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    future: Option<Pin<Box<F>>>,
    tracker: &'a TaskTracker,
}

pub(super) fn finish<F>(tracker: &TaskTracker, future: F) -> Detached<'_, F>
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
        // Taken out meanwhile, so that one that panics is not polled again.
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
        // Without a runtime the process is ending: the crash rule finds what is left.
        if let (Some(future), Ok(_)) = (self.future.take(), Handle::try_current()) {
            // Still part of what was asked for.
            let rest = async move {
                future.await;
            };
            self.tracker.spawn(rest.in_current_span());
        }
    }
}
