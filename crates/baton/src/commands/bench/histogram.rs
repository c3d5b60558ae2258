//! Latencies, and the time within which a share of them stayed.

use std::time::Duration;

use hdrhistogram::Histogram;

/// Significant digits that are kept: a reported time is at most 0.1 % too long, and never too short.
const DIGITS: u8 = 3;
/// Longer times count as this long. It bounds the memory.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// The reported shares: name, share, and how many samples it takes until one of them is beyond the share. With fewer, the
/// figure would be the maximum under another name.
pub(super) const SHARES: [(&str, f64, u64); 4] =
    [("p50", 0.5, 2), ("p90", 0.9, 10), ("p99", 0.99, 100), ("p99.9", 0.999, 1000)];

/// Many durations in bounded memory.
#[derive(Debug, Clone)]
pub(super) struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        Latencies(Histogram::new(DIGITS).expect("a histogram can have three digits"))
    }
}

/// What is reported of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) count: u64,
    /// In the order of [`SHARES`]; `None` if there are too few samples.
    pub(super) shares: [Option<Duration>; 4],
    pub(super) max: Option<Duration>,
}

impl Latencies {
    pub(super) fn record(&mut self, time: Duration) {
        let nanoseconds = u64::try_from(time.min(LONGEST).as_nanos()).unwrap_or(u64::MAX);
        // It grows up to the longest time, so that every value fits.
        let _ = self.0.record(nanoseconds);
    }

    pub(super) fn summary(&self) -> Summary {
        let count = self.0.len();
        let share = |(_, share, needed): (&str, f64, u64)| {
            (count >= needed).then(|| Duration::from_nanos(self.0.value_at_quantile(share)))
        };
        Summary {
            count,
            shares: SHARES.map(share),
            max: (count > 0).then(|| Duration::from_nanos(self.0.max())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(milliseconds: impl Iterator<Item = u64>) -> Summary {
        let mut latencies = Latencies::default();
        milliseconds.for_each(|time| latencies.record(Duration::from_millis(time)));
        latencies.summary()
    }

    #[test]
    fn shares_are_right_within_a_tenth_of_a_percent_and_never_too_short() {
        let summary = summary(1..=1000);
        for (found, expected) in summary.shares.iter().zip([500u64, 900, 990, 999]) {
            let (found, expected) = (found.unwrap(), Duration::from_millis(expected));
            assert!(found >= expected && found < expected.mul_f64(1.001), "{found:?} {expected:?}");
        }
        assert!(summary.max.unwrap() >= Duration::from_secs(1));
    }

    #[test]
    fn a_share_that_needs_more_samples_is_not_reported() {
        for (count, reported) in
            [(0, 0), (1, 0), (2, 1), (9, 1), (10, 2), (99, 2), (100, 3), (999, 3), (1000, 4)]
        {
            let shares = summary(1..=count).shares;
            assert_eq!(shares.iter().flatten().count(), reported, "{count}");
        }
        assert_eq!(summary(std::iter::empty()).max, None);
    }

    #[test]
    fn times_beyond_the_longest_are_kept_as_the_longest() {
        let mut latencies = Latencies::default();
        latencies.record(Duration::MAX);
        latencies.record(Duration::ZERO);
        let summary = latencies.summary();
        assert_eq!(summary.count, 2);
        assert!(summary.max.unwrap() >= LONGEST);
    }
}
