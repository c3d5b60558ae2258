use std::time::Duration;

use super::FOUND;

/// The slowest of both samples are left out: they are the machine's interruptions, not the server's work.
const KEPT: f64 = 0.8;

#[derive(Debug, Clone, Copy)]
pub(super) struct Comparison {
    /// Welch's t.
    pub(super) t: f64,
    /// Seconds.
    pub(super) means: [f64; 2],
    /// Of the difference of the means, in seconds.
    pub(super) error: f64,
}

impl Comparison {
    /// Whether a difference of the means of this size would be beyond chance.
    pub(super) fn would_find(&self, difference: Duration) -> bool {
        FOUND * self.error < difference.as_secs_f64()
    }
}

/// Compares the means of two samples. Both are cut at the same time, so that the cut favours neither.
pub(super) fn compare(samples: [Vec<Duration>; 2]) -> Comparison {
    let samples = samples.map(|sample| sample.iter().map(Duration::as_secs_f64).collect::<Vec<_>>());
    let mut all = samples.concat();
    all.sort_unstable_by(f64::total_cmp);
    let most = all[((all.len() - 1) as f64 * KEPT) as usize];
    let [one, other] = samples.map(|sample| {
        let kept: Vec<f64> = sample.into_iter().filter(|time| *time <= most).collect();
        let count = kept.len() as f64;
        let mean = kept.iter().sum::<f64>() / count;
        let variance = kept.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / (count - 1.0);
        (mean, variance / count)
    });
    let error = (one.1 + other.1).sqrt();
    Comparison { t: (one.0 - other.0) / error, means: [one.0, other.0], error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::runs::Random;

    /// Times of about 100 us, with interruptions, and so many ns more.
    fn sample(random: &mut Random, more: u64) -> Vec<Duration> {
        let time = |_| {
            let noise = (0..8).map(|_| random.below(10_000)).sum::<u64>();
            let interruption = if random.one_in(20) { random.below(5_000_000) } else { 0 };
            Duration::from_nanos(60_000 + noise + interruption + more)
        };
        (0..10_000).map(time).collect()
    }

    #[test]
    fn a_small_difference_is_found_and_none_is_not() {
        let mut random = Random::new(7);
        let same = compare([sample(&mut random, 0), sample(&mut random, 0)]);
        assert!(same.t.abs() < FOUND && same.would_find(Duration::from_micros(1)), "{same:?}");
        assert!(!same.would_find(Duration::from_nanos(100)), "{same:?}");
        let slower = compare([sample(&mut random, 1_500), sample(&mut random, 0)]);
        assert!(slower.t > FOUND, "{slower:?}");
        let faster = compare([sample(&mut random, 0), sample(&mut random, 1_500)]);
        assert!(faster.t < -FOUND, "{faster:?}");
    }
}
