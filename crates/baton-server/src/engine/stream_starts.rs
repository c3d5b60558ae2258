//! When a new stream's first event leaves: at once, or together with what its agent says at once.
//!
//! A write costs more than all that a quick agent says. So where streams begin in crowds each lets the run that it
//! started go first, and one write has it all. Where they come one by one nobody gains by that, and the first event
//! would come some microseconds later. Which of the two it is shows when a stream stands back: in a crowd another one
//! begins before its turn comes again.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::task::Poll;

/// Without a crowd one stream of so many stands back, to see whether there is one.
const PROBE: u64 = 16;

/// So many streams stand back after a crowd was seen last.
const CROWD: u32 = 64;

#[derive(Debug, Default)]
pub(super) struct StreamStarts {
    begun: AtomicU64,
    /// How many more will stand back.
    crowd: AtomicU32,
}

impl StreamStarts {
    /// Called for a stream whose run was started just now, before anything of it is written.
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

/// Lets all others on this thread go first, once; the run is the next of them.
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
