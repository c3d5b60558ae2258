//! A clock that jumps forward makes every ended task look old. What is removed does not come back, and a clock often does
//! (a wrong time server, a virtual machine that wakes up): so a sweep does not believe a jump at once.
//!
//! A jump may also happen while no server runs. It cannot be told from a server that was off for so long, so both are
//! doubted alike: a note in the store says when the clock was last believed, and how long servers have run in doubt since.
//! Believed is a clock that was ahead for an hour of running time. Until then sweeps go by the time that certainly has
//! passed: the believed time, and what servers have run since.

use std::time::Duration;

use baton_protocol::domain::Timestamp;
use tokio::time::Instant;

/// More than this ahead of what passed by the process's own count is a jump.
const JUMP: Duration = Duration::from_secs(10 * 60);
/// A clock that stays where it jumped to is believed after this time.
const BELIEVED_AFTER: Duration = Duration::from_secs(60 * 60);
/// How old a note may get. Together with the time of a restart it must stay below a jump.
const NOTE_EVERY: Duration = Duration::from_secs(5 * 60);

/// The name of the note.
pub(super) const NOTE: &str = "clock";
/// What it begins with: its format.
const FORMAT: &str = "1";

/// Follows the wall clock from sweep to sweep.
#[derive(Debug)]
pub(in crate::engine) struct ClockDoubt {
    /// When the clock was last believed, and what it said. Unknown when a store with tasks holds no note.
    believed: Option<(Instant, Timestamp)>,
    /// In doubt: since when.
    since: Option<Instant>,
    /// What earlier processes have run in the same doubt.
    before: Duration,
    /// This process has believed its clock once: what it sees now happened under its eyes.
    saw_it: bool,
    noted: Option<(Instant, bool)>,
}

impl ClockDoubt {
    /// `note` is what an earlier process left. Without one, an empty store has nothing to lose.
    pub(super) fn at_start(now: Instant, wall: Timestamp, note: Option<&str>, is_empty: bool) -> Self {
        let (believed, before) = match note.and_then(read) {
            Some((believed, before)) => (believed, before),
            None => (is_empty.then_some(wall), Duration::ZERO),
        };
        let believed = believed.map(|said| (now, said));
        ClockDoubt { believed, since: None, before, saw_it: false, noted: None }
    }

    /// What is old at this time may be removed. `None`: nothing may.
    pub(super) fn time_to_go_by(&mut self, now: Instant, wall: Timestamp) -> Option<Timestamp> {
        let certain = self.certain(now);
        let ahead = certain.map(|certain| wall.as_millis().saturating_sub(certain.as_millis()));
        if ahead.is_none_or(|ahead| ahead > JUMP.as_millis() as i64) {
            if self.since.is_none() {
                self.tell(ahead);
                self.since = Some(now);
            }
            if self.doubted(now) < BELIEVED_AFTER {
                return certain;
            }
            tracing::info!("the clock is believed: what is old by it is removed from now on");
        }
        (self.since, self.before, self.saw_it) = (None, Duration::ZERO, true);
        self.believed = Some((now, wall));
        Some(wall)
    }

    /// The text for the next process, when it is time to write it; [`noted`](Self::noted) tells that it was.
    pub(super) fn note(&self, now: Instant) -> Option<String> {
        let in_doubt = self.since.is_some();
        let is_fresh =
            |(at, doubted): (Instant, bool)| doubted == in_doubt && now.duration_since(at) < NOTE_EVERY;
        if self.noted.is_some_and(is_fresh) {
            return None;
        }
        let believed = self.certain(now).map_or_else(|| "?".to_owned(), |time| time.as_millis().to_string());
        Some(format!("{FORMAT} {believed} {}", self.doubted(now).as_secs()))
    }

    /// The note of this time is in the store.
    pub(super) fn noted(&mut self, now: Instant) {
        self.noted = Some((now, self.since.is_some()));
    }

    /// The time that has come at least.
    fn certain(&self, now: Instant) -> Option<Timestamp> {
        let (then, said) = self.believed?;
        let passed = i64::try_from(now.duration_since(then).as_millis()).unwrap_or(i64::MAX);
        Some(said.plus_millis(passed))
    }

    fn doubted(&self, now: Instant) -> Duration {
        self.before + self.since.map_or(Duration::ZERO, |since| now.duration_since(since))
    }

    fn tell(&self, ahead: Option<i64>) {
        let (seconds, hold) =
            (ahead.map(|ahead| ahead / 1000), BELIEVED_AFTER.saturating_sub(self.before).as_secs());
        if self.saw_it {
            tracing::warn!(
                seconds,
                hold,
                "the clock has jumped forward; nothing is removed for its age until it has stayed there"
            );
        } else {
            // After every longer time off: nothing to worry about.
            tracing::info!(
                seconds,
                hold,
                "the clock went on while no server ran; until this one has run for a while, nothing is removed for the \
                 age it gained meanwhile"
            );
        }
    }
}

/// The believed time, if it was known, and how long servers ran in doubt since. A note that cannot be read is none.
fn read(note: &str) -> Option<(Option<Timestamp>, Duration)> {
    let mut words = note.split(' ');
    if words.next() != Some(FORMAT) {
        return None;
    }
    let believed = match words.next()? {
        "?" => None,
        millis => Some(Timestamp::from_millis(millis.parse().ok()?)),
    };
    Some((believed, Duration::from_secs(words.next()?.parse().ok()?)))
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
            let time = self.doubt.time_to_go_by(now, at(wall));
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
