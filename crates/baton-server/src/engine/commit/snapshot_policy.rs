//! When the folded task is kept beside its log.

use crate::engine::options::Options;
use crate::store::StoredEvent;

/// What was appended to a log since a snapshot of it was kept.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::engine) struct SinceSnapshot {
    events: u64,
    bytes: usize,
}

impl SinceSnapshot {
    /// For a turn that begins: as if no snapshot had been kept.
    pub(in crate::engine) fn at_turn_start(version: u64) -> Self {
        SinceSnapshot { events: version, bytes: 0 }
    }

    /// Counts what is about to be appended; `true` when a snapshot is due with it, which is then counted as kept.
    /// `version` is the log's length after the append.
    pub(super) fn is_due(
        &mut self,
        events: &[StoredEvent],
        version: u64,
        rests: bool,
        options: &Options,
    ) -> bool {
        self.events += events.len() as u64;
        self.bytes += events.iter().map(|event| event.record().len()).sum::<usize>();
        let due = self.events >= options.snapshot_events || self.bytes >= options.snapshot_bytes;
        // A snapshot grows with its log: at a fixed distance all of them together would grow with its square.
        let due = due && self.events >= version / 8;
        if rests || due {
            *self = SinceSnapshot::default();
        }
        rests || due
    }
}
