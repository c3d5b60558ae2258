//! When the folded task is kept beside its log.
//!
//! A snapshot spares readers the log, and costs as many bytes as the task has. Written at every rest, all of them
//! together grow by the square of the task: 40 turns of 4 MiB wrote 6.8 GB. So beyond a few KiB a snapshot has to be
//! earned by what was appended since the last one. Readers fold what comes after it, which then is not much more than
//! the task itself. The same holds for an ended task, whose log is dropped as far as its last snapshot goes: what stays
//! is that snapshot and at most twice the task's bytes of events.

use baton_protocol::lifecycle::Snapshot;

use crate::engine::large::LARGE;
use crate::engine::options::Options;
use crate::engine::size;
use crate::store::{Loaded, StoredEvent};

/// Up to this many bytes of log a snapshot is kept at every rest: answers are copied from it.
const SMALL: usize = 16 * 1024;

/// What a log holds beyond the snapshot that is kept of it.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::engine) struct SinceSnapshot {
    /// Bytes of the snapshot; 0 without one.
    kept: usize,
    events: u64,
    bytes: usize,
    /// As long as fewer bytes were added, no snapshot is worth its bytes.
    not_before: usize,
}

/// What a task is about to become.
pub(super) struct Next<'a> {
    pub(super) events: &'a [StoredEvent],
    pub(super) task: &'a Snapshot,
    /// Nothing more happens until somebody says something, if ever.
    pub(super) rests: bool,
}

impl SinceSnapshot {
    /// For a task as it was read.
    pub(in crate::engine) fn of(loaded: &Loaded) -> Self {
        SinceSnapshot {
            kept: loaded.snapshot.as_ref().map_or(0, |snapshot| snapshot.record().len()),
            events: loaded.tail.len() as u64,
            bytes: bytes(&loaded.tail),
            not_before: 0,
        }
    }

    /// Counts what is about to be appended. `Some` when a snapshot is due with it, which is then counted as kept:
    /// about how many bytes it will have.
    pub(super) fn is_due(&mut self, next: &Next<'_>, options: &Options) -> Option<usize> {
        self.events += next.events.len() as u64;
        self.bytes += bytes(next.events);
        let due = self.is_earned(next, options);
        if let Some(kept) = due {
            *self = SinceSnapshot { kept, ..SinceSnapshot::default() };
        }
        due
    }

    /// The bytes of the snapshot that is due.
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
        // All snapshots together have no more bytes than the log; those of a large task half as many, since a store
        // may write everything twice.
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
