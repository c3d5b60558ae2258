//! Latencies: every sample is kept, so that percentiles are exact.

use std::time::Duration;

#[derive(Debug, Default, Clone)]
pub struct Latencies(Vec<u64>);

impl Latencies {
    pub(crate) fn push(&mut self, taken: Duration) {
        self.0.push(taken.as_nanos() as u64);
    }

    pub(crate) fn extend(&mut self, taken: Option<Duration>) {
        self.0.extend(taken.map(|taken| taken.as_nanos() as u64));
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// In microseconds. `share` is between 0 and 1.
    pub fn percentile(&mut self, share: f64) -> Option<f64> {
        self.0.sort_unstable();
        let last = self.0.len().checked_sub(1)?;
        let at = (share * self.0.len() as f64).ceil() as usize;
        Some(self.0[at.saturating_sub(1).min(last)] as f64 / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_samples() {
        let mut all = Latencies::default();
        assert_eq!(all.percentile(0.5), None);
        for microseconds in (1..=100).rev() {
            all.push(Duration::from_micros(microseconds));
        }
        assert_eq!(all.percentile(0.5), Some(50.0));
        assert_eq!(all.percentile(0.99), Some(99.0));
        assert_eq!(all.percentile(1.0), Some(100.0));
    }
}
