//! Protects tasks from a clock that jumps forward, which makes every ended task look old. Removed tasks are lost for good,
//! while such a clock is often corrected soon (a wrong time server, a virtual machine that wakes up). So sweeps do not trust
//! a jump immediately.
//!
//! A jump may also happen while no server runs. That looks the same as a server that was off for so long, so both are
//! treated alike: a note in the store says when the clock was last trusted, and for how long servers have run in doubt
//! since. A clock that has stayed ahead for an hour of running time is trusted. Until then sweeps use the time that has
//! certainly passed: the last trusted time plus the running time of servers since.

use std::time::Duration;

use baton_protocol::domain::Timestamp;
use tokio::time::Instant;

/// If the wall clock is more than this ahead of the monotonic clock, it has jumped.
const JUMP: Duration = Duration::from_secs(10 * 60);
/// A clock that stays where it jumped to is trusted after this time.
const TRUSTED_AFTER: Duration = Duration::from_secs(60 * 60);
/// How often the note is written. This plus the time of a restart must be less than `JUMP`.
const NOTE_EVERY: Duration = Duration::from_secs(5 * 60);

/// The name of the note.
pub(super) const NOTE: &str = "clock";
/// The first word of the note: its format.
const FORMAT: &str = "1";

/// Follows the wall clock from sweep to sweep.
#[derive(Debug)]
pub(in crate::engine) struct ClockDoubt {
    /// When the clock was last trusted, and its time then. `None` if the store has tasks and no note.
    trusted: Option<(Instant, Timestamp)>,
    /// Since when this process doubts the clock.
    since: Option<Instant>,
    /// How long earlier processes have run with the same doubt.
    before: Duration,
    /// This process has trusted its clock before: a jump has happened while it was running.
    trusted_before: bool,
    /// When the last note was written, and whether the clock was in doubt then.
    noted: Option<(Instant, bool)>,
}

impl ClockDoubt {
    /// `note` is the note of an earlier process. Without one, the clock is trusted if the store is empty.
    pub(super) fn at_start(now: Instant, wall: Timestamp, note: Option<&str>, is_empty: bool) -> Self {
        let (trusted, before) = match note.and_then(read) {
            Some((trusted, before)) => (trusted, before),
            None => (is_empty.then_some(wall), Duration::ZERO),
        };
        let trusted = trusted.map(|time| (now, time));
        ClockDoubt { trusted, since: None, before, trusted_before: false, noted: None }
    }

    /// The time that sweeps should use for the age of tasks. `None`: nothing may be removed.
    pub(super) fn safe_time(&mut self, now: Instant, wall: Timestamp) -> Option<Timestamp> {
        let certain = self.certain(now);
        let ahead = certain.map(|certain| wall.as_millis().saturating_sub(certain.as_millis()));
        if ahead.is_none_or(|ahead| ahead > JUMP.as_millis() as i64) {
            if self.since.is_none() {
                self.log_doubt(ahead);
                self.since = Some(now);
            }
            if self.doubted(now) < TRUSTED_AFTER {
                return certain;
            }
            tracing::info!(
                "the clock has stayed where it is and is trusted again: old tasks are removed by its time"
            );
        }
        (self.since, self.before, self.trusted_before) = (None, Duration::ZERO, true);
        self.trusted = Some((now, wall));
        Some(wall)
    }

    /// The note for the next process, if it is time to write one. Call [`noted`](Self::noted) once it is stored.
    pub(super) fn note(&self, now: Instant) -> Option<String> {
        let in_doubt = self.since.is_some();
        let is_fresh =
            |(at, doubted): (Instant, bool)| doubted == in_doubt && now.duration_since(at) < NOTE_EVERY;
        if self.noted.is_some_and(is_fresh) {
            return None;
        }
        let trusted = self.certain(now).map_or_else(|| "?".to_owned(), |time| time.as_millis().to_string());
        Some(format!("{FORMAT} {trusted} {}", self.doubted(now).as_secs()))
    }

    /// The note has been stored.
    pub(super) fn noted(&mut self, now: Instant) {
        self.noted = Some((now, self.since.is_some()));
    }

    /// The time that has certainly been reached.
    fn certain(&self, now: Instant) -> Option<Timestamp> {
        let (then, time) = self.trusted?;
        let passed = i64::try_from(now.duration_since(then).as_millis()).unwrap_or(i64::MAX);
        Some(time.plus_millis(passed))
    }

    fn doubted(&self, now: Instant) -> Duration {
        self.before + self.since.map_or(Duration::ZERO, |since| now.duration_since(since))
    }

    fn log_doubt(&self, ahead: Option<i64>) {
        let (seconds, hold) =
            (ahead.map(|ahead| ahead / 1000), TRUSTED_AFTER.saturating_sub(self.before).as_secs());
        if self.trusted_before {
            tracing::warn!(
                seconds,
                hold,
                "the clock has jumped forward; nothing is removed for its age until it has stayed there"
            );
        } else {
            // Normal after the server was off for longer.
            tracing::info!(
                seconds,
                hold,
                "the clock went on while no server ran; until this server has run for a while, that time does not count \
                 for the age of tasks"
            );
        }
    }
}

/// The last trusted time, if it was known, and how long servers have run in doubt since. `None` for a note that cannot be
/// read.
fn read(note: &str) -> Option<(Option<Timestamp>, Duration)> {
    let mut words = note.split(' ');
    if words.next() != Some(FORMAT) {
        return None;
    }
    let trusted = match words.next()? {
        "?" => None,
        millis => Some(Timestamp::from_millis(millis.parse().ok()?)),
    };
    Some((trusted, Duration::from_secs(words.next()?.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    /// A clock that stands at so many minutes.
    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_millis(minutes * 60_000)
    }

    /// One process after the other on one store, by minutes of their own count and of the clock.
    struct Servers {
        start: Instant,
        doubt: ClockDoubt,
        note: Option<String>,
    }

    impl Servers {
        fn first(wall: i64) -> Self {
            let start = Instant::now();
            Servers { start, doubt: ClockDoubt::at_start(start, at(wall), None, true), note: None }
        }

        /// Sweeps; by which time, in minutes.
        fn sweep(&mut self, passed: u32, wall: i64) -> Option<i64> {
            let now = self.start + passed * MINUTE;
            let time = self.doubt.safe_time(now, at(wall));
            if let Some(note) = self.doubt.note(now) {
                self.note = Some(note);
                self.doubt.noted(now);
            }
            time.map(|time| time.as_millis() / 60_000)
        }

        fn restart(&mut self, passed: u32, wall: i64) -> Option<i64> {
            let now = self.start + passed * MINUTE;
            self.doubt = ClockDoubt::at_start(now, at(wall), self.note.as_deref(), false);
            self.sweep(passed, wall)
        }
    }

    #[test]
    fn s06_a_jump_forward_is_believed_after_an_hour_and_a_step_back_at_once() {
        let mut servers = Servers::first(999);
        // Minutes since the start by the process's count, and by the clock.
        assert_eq!(servers.sweep(1, 1001), Some(1001));
        assert_eq!(servers.sweep(2, 1009), Some(1009), "a small step is none");
        assert_eq!(servers.sweep(3, 44_000), Some(1010), "what has certainly passed");
        assert_eq!(servers.sweep(4, 1011), Some(1011), "and back again");
        assert_eq!(servers.sweep(5, 44_000), Some(1012));
        assert_eq!(servers.sweep(64, 44_059), Some(1071));
        assert_eq!(servers.sweep(65, 44_060), Some(44_060), "it has stayed there for an hour");
        assert_eq!(servers.sweep(66, 44_061), Some(44_061));
        assert_eq!(servers.sweep(67, 10), Some(10), "far back: nothing looks old then");
        assert_eq!(servers.sweep(68, 11), Some(11));
        assert_eq!(servers.sweep(69, 44_000), Some(12), "forward from there is a jump again");
    }

    #[test]
    fn s06_a_clock_that_is_ahead_at_the_start_is_doubted_alike() {
        let mut servers = Servers::first(1000);
        assert_eq!(servers.sweep(7, 1007), Some(1007));
        assert_eq!(servers.restart(9, 1009), Some(1009), "a restart like any other");
        assert_eq!(servers.restart(10, 58_000), Some(1009), "forty days, by the clock");
        assert_eq!(servers.sweep(20, 58_010), Some(1019));
        assert_eq!(servers.restart(21, 58_011), Some(1019), "another restart proves nothing");
        assert_eq!(servers.restart(22, 1022), Some(1022), "the clock was wrong, and nothing is lost");
        assert_eq!(servers.restart(23, 58_023), Some(1022));
        assert_eq!(servers.sweep(53, 58_053), Some(1052));
        assert_eq!(servers.restart(54, 58_054), Some(1052), "half an hour is done");
        assert_eq!(servers.sweep(83, 58_083), Some(1081));
        assert_eq!(servers.sweep(84, 58_084), Some(58_084), "an hour, in two runs: it was off that long");
        assert_eq!(servers.restart(85, 58_085), Some(58_085));
    }

    #[test]
    fn s06_without_a_note_a_store_with_tasks_loses_nothing_for_an_hour() {
        let mut servers = Servers::first(1000);
        assert_eq!(servers.restart(1, 58_000), None, "as an older version left it");
        assert_eq!(servers.sweep(31, 58_030), None);
        assert_eq!(servers.restart(32, 58_031), None);
        assert_eq!(servers.sweep(62, 58_061), Some(58_061));
        servers.note = Some("9 of a newer version".to_owned());
        assert_eq!(servers.restart(63, 58_062), None);
    }

    #[test]
    fn s06_a_note_that_was_not_taken_is_due_at_the_next_sweep() {
        let (start, mut doubt) = (Instant::now(), ClockDoubt::at_start(Instant::now(), at(10), None, true));
        assert!(doubt.note(start).is_some());
        assert!(doubt.note(start + MINUTE).is_some(), "the store was full");
        doubt.noted(start + MINUTE);
        assert_eq!(doubt.note(start + 2 * MINUTE), None);
        assert!(doubt.note(start + 6 * MINUTE).is_some());
    }

    /// Stored formats are read for ever.
    #[test]
    fn notes_of_every_version_are_read() {
        assert_eq!(
            read("1 1763200000000 0"),
            Some((Some(Timestamp::from_millis(1_763_200_000_000)), Duration::ZERO))
        );
        assert_eq!(read("1 ? 1800"), Some((None, 30 * MINUTE)));
        for broken in ["", "1", "1 x 0", "1 5", "2 5 0", "1 5 -1"] {
            assert_eq!(read(broken), None, "{broken}");
        }
        let doubt = ClockDoubt::at_start(Instant::now(), at(10), None, true);
        assert_eq!(
            doubt.note(Instant::now()).as_deref().and_then(read),
            Some((Some(at(10)), Duration::ZERO))
        );
    }
}
