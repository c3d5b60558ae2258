//! A clock that jumps forward makes every ended task look old. What is removed does not come back, and a clock often does
//! (a wrong time server, a virtual machine that wakes up): so a sweep does not believe a jump at once.

use std::time::Duration;

use baton_protocol::domain::Timestamp;
use tokio::time::Instant;

/// More than this ahead of what passed by the process's own count is a jump.
const JUMP: Duration = Duration::from_secs(10 * 60);
/// A clock that stays where it jumped to is believed after this time.
const BELIEVED_AFTER: Duration = Duration::from_secs(60 * 60);

/// Follows the wall clock from sweep to sweep.
#[derive(Debug)]
pub(in crate::engine) struct ClockDoubt {
    /// When the clock was last believed, and what it said.
    believed: (Instant, Timestamp),
    since: Option<Instant>,
}

impl ClockDoubt {
    /// What the clock says at the start has to be believed.
    pub(in crate::engine) fn since(now: Instant, wall: Timestamp) -> Self {
        ClockDoubt { believed: (now, wall), since: None }
    }

    /// May what is old by this clock be removed?
    pub(super) fn allows(&mut self, now: Instant, wall: Timestamp) -> bool {
        let (then, said) = self.believed;
        let passed = i64::try_from(now.duration_since(then).as_millis()).unwrap_or(i64::MAX);
        let ahead = wall.as_millis().saturating_sub(said.as_millis()).saturating_sub(passed);
        if ahead > JUMP.as_millis() as i64 {
            if self.since.is_none() {
                let (seconds, hold) = (ahead / 1000, BELIEVED_AFTER.as_secs());
                tracing::warn!(
                    seconds,
                    hold,
                    "the clock has jumped forward; nothing is removed for its age until it has stayed there"
                );
            }
            let since = *self.since.get_or_insert(now);
            if now.duration_since(since) < BELIEVED_AFTER {
                return false;
            }
        }
        self.since = None;
        self.believed = (now, wall);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn s06_a_jump_forward_is_believed_after_an_hour_and_a_step_back_at_once() {
        let start = Instant::now();
        let mut doubt = ClockDoubt::since(start, Timestamp::from_millis(999 * 60_000));
        // Minutes since the start by the process's count, and by the clock.
        let mut allows = |passed: u32, wall: i64| {
            doubt.allows(start + passed * MINUTE, Timestamp::from_millis(wall * 60_000))
        };
        assert!(allows(1, 1001));
        assert!(allows(2, 1009), "a small step is none");
        assert!(!allows(3, 44_000));
        assert!(allows(4, 1011), "and back again");
        assert!(!allows(5, 44_000));
        assert!(!allows(64, 44_059));
        assert!(allows(65, 44_060), "it has stayed there for an hour");
        assert!(allows(66, 44_061));
        assert!(allows(67, 10), "far back: nothing looks old then");
        assert!(allows(68, 11));
        assert!(!allows(69, 44_000), "forward from there is a jump again");
    }
}
