//! Decides when a new stream's first event is written: immediately, or together with the agent's first output.
//!
//! A write costs more than all the work of a quick agent. So where many streams begin at the same time, each lets its run
//! go first, and one write holds everything: a short stream takes a third less CPU at 32 connections (row `stream`).
//! Where streams begin one by one this gains nothing, and the first event would come some microseconds later. To find
//! out, a stream yields once: if another stream begins before it is polled again, there are many.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::task::Poll;

/// Without load, one stream of this many yields, to find out whether there is load now.
const PROBE: u64 = 16;

/// How many streams yield after load was last seen.
const CROWD: u32 = 64;

#[derive(Debug, Default)]
pub(super) struct StreamStarts {
    begun: AtomicU64,
    /// How many more streams will yield.
    crowd: AtomicU32,
}

impl StreamStarts {
    /// Called for a stream whose run was just started, before its first write.
    pub(super) async fn begin(&self) {
        let begun = self.begun.fetch_add(1, Relaxed) + 1;
        if self.crowd.load(Relaxed) == 0 && !begun.is_multiple_of(PROBE) {
            return;
        }
        stand_back().await;
        let is_crowd = self.begun.load(Relaxed) != begun;
        let crowd = if is_crowd { CROWD } else { self.crowd.load(Relaxed).saturating_sub(1) };
        self.crowd.store(crowd, Relaxed);
    }
}

/// Yields once: tasks that are ready on this thread, the run among them, are polled first.
async fn stand_back() {
    let mut stood = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut stood, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt as _;

    use super::*;

    /// A stream that is the only one: does it go at once?
    fn goes_at_once(starts: &StreamStarts) -> bool {
        let mut begin = pin!(starts.begin());
        let at_once = begin.as_mut().now_or_never().is_some();
        assert!(at_once || begin.now_or_never().is_some(), "nobody stands back twice");
        at_once
    }

    #[test]
    fn streams_stand_back_in_crowds_and_seldom_without() {
        let starts = StreamStarts::default();
        let at_once = |streams| (0..streams).filter(|_| goes_at_once(&starts)).count();
        assert_eq!(at_once(160), 150, "but for the probes");
        for _ in 0..PROBE {
            let mut first = pin!(starts.begin());
            let stands_back = first.as_mut().now_or_never().is_none();
            at_once(2);
            assert!(!stands_back || first.now_or_never().is_some());
        }
        assert_eq!(at_once(50), 0, "a probe has seen the crowd");
        assert!(at_once(160) > 100, "which is gone after a while");
    }
}
