//! A histogram of atomics: observing a value compares it with a few bounds and does two additions, without a lock.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Upper bounds of the buckets, in nanoseconds or in the unit that is counted. Values above the last are in `+Inf`.
pub(crate) type Bounds = &'static [u64];

const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// From half a millisecond (a send with the memory store) to two minutes (the longest wait of a blocking send).
pub(crate) const REQUEST_BOUNDS: Bounds = &[
    MILLI / 2,
    MILLI,
    MILLI * 5 / 2,
    5 * MILLI,
    10 * MILLI,
    25 * MILLI,
    50 * MILLI,
    100 * MILLI,
    250 * MILLI,
    500 * MILLI,
    SECOND,
    SECOND * 5 / 2,
    5 * SECOND,
    10 * SECOND,
    30 * SECOND,
    60 * SECOND,
    120 * SECOND,
];

/// A turn may take any time up to its deadline, 1h by default.
pub(crate) const TURN_BOUNDS: Bounds = &[
    MILLI,
    10 * MILLI,
    100 * MILLI,
    500 * MILLI,
    SECOND,
    5 * SECOND,
    10 * SECOND,
    30 * SECOND,
    60 * SECOND,
    300 * SECOND,
    900 * SECOND,
    3600 * SECOND,
];

/// From the memory store (microseconds) to a disk that syncs (milliseconds) or is overloaded (seconds).
pub(crate) const APPEND_BOUNDS: Bounds = &[
    MILLI / 100,
    MILLI / 10,
    MILLI / 2,
    MILLI,
    MILLI * 5 / 2,
    5 * MILLI,
    10 * MILLI,
    25 * MILLI,
    50 * MILLI,
    100 * MILLI,
    250 * MILLI,
    500 * MILLI,
    SECOND,
    5 * SECOND,
];

/// Writes that share one commit.
#[cfg_attr(not(feature = "sqlite"), allow(dead_code, reason = "only that store commits in batches"))]
pub(crate) const BATCH_BOUNDS: Bounds = &[1, 2, 4, 8, 16, 32, 64, 128, 256];

#[derive(Debug)]
pub(crate) struct Histogram {
    bounds: Bounds,
    /// One more than bounds, for `+Inf`.
    buckets: Box<[AtomicU64]>,
    sum: AtomicU64,
}

/// What a histogram holds at one moment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Values {
    pub(crate) sum: f64,
    pub(crate) count: u64,
    /// Each bucket's upper bound and the number of values in it.
    pub(crate) buckets: Vec<(f64, u64)>,
}

impl Histogram {
    pub(crate) fn new(bounds: Bounds) -> Self {
        let buckets = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Histogram { bounds, buckets, sum: AtomicU64::new(0) }
    }

    pub(crate) fn observe(&self, value: u64) {
        let at = self.bounds.iter().position(|bound| value <= *bound).unwrap_or(self.bounds.len());
        self.buckets[at].fetch_add(1, Relaxed);
        self.sum.fetch_add(value, Relaxed);
    }

    pub(crate) fn observe_time(&self, time: Duration) {
        // A `u64` holds 584 years of nanoseconds.
        self.observe(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.buckets.iter().all(|bucket| bucket.load(Relaxed) == 0)
    }

    /// Nanoseconds as seconds.
    pub(crate) fn seconds(&self) -> Values {
        self.values(SECOND as f64)
    }

    #[cfg_attr(not(feature = "sqlite"), allow(dead_code, reason = "only that store commits in batches"))]
    pub(crate) fn numbers(&self) -> Values {
        self.values(1.0)
    }

    fn values(&self, unit: f64) -> Values {
        let bounds = self.bounds.iter().map(|bound| *bound as f64 / unit).chain([f64::INFINITY]);
        let buckets: Vec<_> = bounds.zip(self.buckets.iter().map(|bucket| bucket.load(Relaxed))).collect();
        // Summed from the buckets, so that both agree even if a value is observed meanwhile.
        let count = buckets.iter().map(|(_, count)| count).sum();
        Values { sum: self.sum.load(Relaxed) as f64 / unit, count, buckets }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fall_into_the_bucket_that_still_holds_them() {
        let histogram = Histogram::new(BATCH_BOUNDS);
        assert!(histogram.is_empty());
        for value in [0, 1, 2, 3, 256, 257] {
            histogram.observe(value);
        }
        let values = histogram.numbers();
        let filled: Vec<_> = values.buckets.iter().filter(|(_, count)| *count > 0).copied().collect();
        assert_eq!(filled, [(1.0, 2), (2.0, 1), (4.0, 1), (256.0, 1), (f64::INFINITY, 1)]);
        assert_eq!((values.count, values.sum), (6, 519.0));
    }

    #[test]
    fn times_are_told_in_seconds() {
        let histogram = Histogram::new(REQUEST_BOUNDS);
        histogram.observe_time(Duration::from_millis(3));
        let values = histogram.seconds();
        assert_eq!((values.count, values.sum), (1, 0.003));
        assert!(values.buckets.contains(&(0.005, 1)), "{values:?}");
    }

    #[test]
    fn bounds_rise() {
        for bounds in [REQUEST_BOUNDS, TURN_BOUNDS, APPEND_BOUNDS, BATCH_BOUNDS] {
            assert!(bounds.is_sorted_by(|one, two| one < two), "{bounds:?}");
        }
    }
}
