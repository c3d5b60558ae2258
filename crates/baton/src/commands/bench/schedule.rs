//! When requests are due, whatever the agent does with those before (an open loop), and the thread that keeps time.

use std::time::{Duration, Instant};

use baton_lab::fault::draw::Draw;
use tokio::sync::mpsc;

/// How requests follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Arrivals {
    /// At equal distances.
    Fixed,
    /// At random, as from many users who know nothing of each other: often close together, sometimes far apart.
    Poisson,
}

/// The times at which requests are due, from the start.
#[derive(Debug)]
pub(super) struct Schedule {
    per_second: f64,
    count: u64,
    /// For random arrivals: the numbers, and the last time.
    random: Option<(Draw, f64)>,
}

impl Schedule {
    pub(super) fn new(per_second: f64, arrivals: Arrivals, seed: u64) -> Self {
        let random = match arrivals {
            Arrivals::Fixed => None,
            Arrivals::Poisson => Some((Draw::new(seed), 0.0)),
        };
        Schedule { per_second, count: 0, random }
    }
}

impl Iterator for Schedule {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let seconds = match &mut self.random {
            // Multiplied, not added up: the rate stays exact however long it runs.
            None => self.count as f64 / self.per_second,
            Some((draw, last)) => {
                // The time between two events of a Poisson process is exponentially distributed. Above 0, for the logarithm.
                let share = ((draw.number() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
                *last -= share.ln() / self.per_second;
                *last
            }
        };
        self.count += 1;
        Duration::try_from_secs_f64(seconds).ok()
    }
}

/// Announces each due time when it has come, on a thread of its own: the runtime's clock has a resolution of a millisecond,
/// which is longer than many agents take. Ends with the schedule, or when nobody listens any more.
pub(super) fn keep_time(
    due: impl Iterator<Item = Duration> + Send + 'static,
    start: Instant,
    announce: mpsc::Sender<Instant>,
) -> std::io::Result<()> {
    let keep = move || {
        wake_up_precisely();
        for due in due {
            let when = start + due;
            let wait = when.saturating_duration_since(Instant::now());
            if !wait.is_zero() {
                std::thread::sleep(wait);
            }
            if announce.blocking_send(when).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("schedule".to_owned()).spawn(keep).map(drop)
}

/// Linux may wake a sleeping thread 50 microseconds late, to save power, unless the thread asks for less.
fn wake_up_precisely() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_arrivals_keep_their_distance_and_do_not_drift() {
        let times: Vec<Duration> = Schedule::new(10.0, Arrivals::Fixed, 0).take(4).collect();
        assert_eq!(times, [0, 100, 200, 300].map(Duration::from_millis));
        let last = Schedule::new(3.0, Arrivals::Fixed, 0).nth(3_000_000).unwrap();
        assert_eq!(last, Duration::from_secs(1_000_000));
    }

    #[test]
    fn random_arrivals_have_the_rate_rise_and_repeat_with_the_seed() {
        let times = |seed| Schedule::new(1000.0, Arrivals::Poisson, seed).take(100_000).collect::<Vec<_>>();
        let one = times(7);
        assert_eq!(one, times(7));
        assert_ne!(one, times(8));
        assert!(one.is_sorted());
        let seconds = one.last().unwrap().as_secs_f64();
        assert!((98.0..102.0).contains(&seconds), "{seconds}");
        // The variance of an exponential distribution is the square of its mean, so that about 37 % of the gaps are longer.
        let long = one.windows(2).filter(|pair| pair[1] - pair[0] > Duration::from_millis(1)).count();
        assert!((36_000..38_000).contains(&long), "{long}");
    }

    #[tokio::test]
    async fn due_times_are_announced_in_order_and_never_early() {
        let (announce, mut due) = mpsc::channel(100);
        let start = Instant::now();
        keep_time(Schedule::new(1000.0, Arrivals::Fixed, 0).take(20), start, announce).unwrap();
        let mut count = 0;
        while let Some(when) = due.recv().await {
            assert!(when <= Instant::now());
            assert_eq!(when, start + Duration::from_millis(count));
            count += 1;
        }
        assert_eq!(count, 20);
    }
}
