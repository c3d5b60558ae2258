//! Where a stream stands in the agent's numbering of events, and whether something may be missing.
//!
//! Numbers need not rise by one, nor at all: some agents count milliseconds, and several events have the same number. So a
//! number is compared only with the one at which the connection was opened, and only to tell repeats.

/// Where a stream stands.
#[derive(Debug, Default)]
pub(super) struct Position {
    last_id: Option<String>,
    /// The number of the last event when the connection was opened: what is not behind it was shown before.
    opened_at: Option<u64>,
    /// The number that the first event of the connection must have if none was missed.
    expected: Option<u64>,
    /// Events may have been missed: the task is read once more at the end.
    gap: bool,
}

impl Position {
    /// Behind an event that was shown by another stream.
    pub(super) fn behind(last_id: Option<String>) -> Self {
        Position { last_id, ..Position::default() }
    }

    pub(super) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    pub(super) fn has_gap(&self) -> bool {
        self.gap
    }

    /// The task is known in part only, until it is shown whole.
    pub(super) fn is_partial(&mut self) {
        self.gap = true;
    }

    /// A connection is opened behind the last event.
    pub(super) fn opens(&mut self) {
        self.opened_at = number(self.last_id());
        self.expected = self.opened_at.map(|last| last.saturating_add(1));
        // Without numbers nobody knows what was missed.
        self.gap |= self.opened_at.is_none();
    }

    /// Whether an event was shown before, by an earlier connection. An agent that begins to count again with every connection
    /// leaves a gap, too, so that nothing is lost.
    pub(super) fn is_repeat(&mut self, id: Option<&str>) -> bool {
        let number = number(id);
        // Another number than expected: the agent may only have a hole there, or it did not resume at all.
        let expected = self.expected.take();
        self.gap |= expected.is_some() && number != expected;
        // On the same connection, too, it may be a repeat, or another event of the same millisecond: the task tells.
        self.gap |= number.is_some() && number <= self::number(self.last_id());
        number.is_some() && number <= self.opened_at
    }

    /// An event is shown.
    pub(super) fn showed(&mut self, id: Option<&str>, is_whole_task: bool) {
        if let Some(id) = id {
            self.last_id = Some(id.to_owned());
        }
        if is_whole_task {
            self.gap = false;
        }
    }

    /// The task was read, and has more than the events up to the last one: going on behind that would show some twice.
    pub(super) fn overtaken(&mut self) {
        self.last_id = None;
    }
}

/// The number of an event, if the agent numbers them.
fn number(id: Option<&str>) -> Option<u64> {
    id.and_then(|id| id.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of these are shown after a connection is opened behind `last`, and whether a gap remains.
    fn shown(last: Option<&str>, ids: &[&str]) -> (Vec<String>, bool) {
        let mut position = Position::behind(last.map(str::to_owned));
        position.opens();
        let mut shown = Vec::new();
        for id in ids {
            if !position.is_repeat(Some(id)) {
                position.showed(Some(id), false);
                shown.push((*id).to_owned());
            }
        }
        (shown, position.has_gap())
    }

    #[test]
    fn p09_numbers_that_stand_still_are_no_repeats() {
        for (last, ids, expected, gap) in [
            (Some("5"), &["6", "7"][..], &["6", "7"][..], false),
            // Milliseconds: several events have the same one.
            (
                Some("1700000000005"),
                &["1700000000900", "1700000000900"],
                &["1700000000900", "1700000000900"],
                true,
            ),
            // Everything again.
            (Some("2"), &["1", "2", "3"], &["3"], true),
            // Going back after the beginning is odd, but no repeat.
            (Some("2"), &["9", "3", "4"], &["9", "3", "4"], true),
            (Some("a"), &["b", "a"], &["b", "a"], true),
            (None, &["1", "1"], &["1", "1"], true),
        ] {
            let expected: Vec<String> = expected.iter().map(|id| (*id).to_owned()).collect();
            assert_eq!(shown(last, ids), (expected, gap), "{last:?} {ids:?}");
        }
    }
}
