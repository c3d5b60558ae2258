//! How many tasks are in which state: read once at opening and updated by the writer, since counting a million rows per
//! call would be slow.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use baton_protocol::domain::TaskState;
use rusqlite::Connection;

use super::statements;
use crate::store::StoreResult;

const STATES: usize = TaskState::ALL.len();

/// The committed counts.
#[derive(Debug, Default)]
pub(super) struct TaskCounts([AtomicI64; STATES]);

/// Changes of the counts by the current transaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CountChanges([i64; STATES]);

impl TaskCounts {
    pub(super) fn read(connection: &Connection) -> StoreResult<Self> {
        let mut count = connection.prepare(statements::COUNT_BY_STATE)?;
        let rows = count.query_map([], |row| Ok((row.get::<_, u8>(0)?, row.get::<_, i64>(1)?)))?;
        let mut changes = CountChanges::default();
        for row in rows {
            let (state, count) = row?;
            changes.add(state, count);
        }
        let counts = TaskCounts::default();
        counts.apply(changes);
        Ok(counts)
    }

    pub(super) fn apply(&self, changes: CountChanges) {
        for (count, change) in self.0.iter().zip(changes.0) {
            if change != 0 {
                count.fetch_add(change, Relaxed);
            }
        }
    }

    pub(super) fn tasks(&self) -> u64 {
        self.by_state().into_iter().sum()
    }

    /// In the order of [`TaskState::ALL`].
    pub(super) fn by_state(&self) -> [u64; STATES] {
        self.0.each_ref().map(|count| u64::try_from(count.load(Relaxed)).unwrap_or_default())
    }
}

impl CountChanges {
    /// A task goes from one state (its stored number) to another. `from` is `None` for a new task, `to` for a removed one.
    pub(super) fn state_changed(&mut self, from: Option<u8>, to: Option<TaskState>) {
        if let Some(from) = from {
            self.add(from, -1);
        }
        if let Some(to) = to {
            self.0[to as usize] += 1;
        }
    }

    /// Ignores an unknown state number: reading that task reports the damage.
    fn add(&mut self, state: u8, count: i64) {
        if let Some(state) = TaskState::from_number(state) {
            self.0[state as usize] += count;
        }
    }
}
