//! When a snapshot (the folded task) is stored with an append.
//!
//! With a snapshot, readers need not fold the log; but it has as many bytes as the task. If one were written at every rest,
//! their total would grow with the square of the task's size: 40 turns of 4 MiB wrote 6.8 GB. So for a task of more than a
//! few KiB a snapshot is written only after as many bytes of events as the snapshot itself has. Readers fold the events
//! after the last snapshot, which are then not much larger than the task. The same applies when a task ends: retention
//! removes its log up to the last snapshot, and what remains is that snapshot and events of at most twice the task's size.

use baton_protocol::lifecycle::Snapshot;

use crate::engine::large::LARGE;
use crate::engine::options::Options;
use crate::engine::size;
use crate::store::{Loaded, StoredEvent};

/// Up to this many bytes of log, a snapshot is stored at every rest: answers are copied from it.
const SMALL: usize = 16 * 1024;

/// The size of the stored snapshot, and of the events after it.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::engine) struct SinceSnapshot {
    /// Bytes of the snapshot; 0 without one.
    kept: usize,
    events: u64,
    bytes: usize,
    /// No snapshot is due before `bytes` has reached this. Spares computing the task's size with each append.
    not_before: usize,
}

/// An append, and the task after it.
pub(super) struct Next<'a> {
    pub(super) events: &'a [StoredEvent],
    pub(super) task: &'a Snapshot,
    /// The task rests afterwards.
    pub(super) rests: bool,
}

impl SinceSnapshot {
    /// For a task that was read from the store.
    pub(in crate::engine) fn of(loaded: &Loaded) -> Self {
        SinceSnapshot {
            kept: loaded.snapshot.as_ref().map_or(0, |snapshot| snapshot.record().len()),
            events: loaded.tail.len() as u64,
            bytes: bytes(&loaded.tail),
            not_before: 0,
        }
    }

    /// Adds the events that are about to be appended. If a snapshot is due with them: about how many bytes it will have; it
    /// is counted as stored.
    pub(super) fn is_due(&mut self, next: &Next<'_>, options: &Options) -> Option<usize> {
        self.events += next.events.len() as u64;
        self.bytes += bytes(next.events);
        let due = self.is_earned(next, options);
        if let Some(kept) = due {
            *self = SinceSnapshot { kept, ..SinceSnapshot::default() };
        }
        due
    }

    /// The size of the snapshot, if one is due.
    fn is_earned(&mut self, next: &Next<'_>, options: &Options) -> Option<usize> {
        let (log, ended) = (self.kept + self.bytes, next.task.state().is_terminal());
        if next.rests && (log <= SMALL || (ended && log <= LARGE)) {
            return Some(log);
        }
        let often = self.events >= options.snapshot_events || self.bytes >= options.snapshot_bytes;
        if !next.rests && !often || !ended && self.bytes < self.not_before {
            return None;
        }
        let size = size::of_task(&next.task.task);
        // So all snapshots together have at most as many bytes as the log; those of a large task half as many, since a
        // store may write everything twice.
        let price = if log > LARGE { 2 * size } else { size };
        if self.bytes >= price {
            return Some(size);
        }
        self.not_before = price;
        None
    }
}

fn bytes(events: &[StoredEvent]) -> usize {
    events.iter().map(|event| event.record().len()).sum()
}

#[cfg(test)]
mod tests;
