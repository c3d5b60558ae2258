//! How many tasks stand in which state: counted once at opening and kept by the writer, since counting a million rows
//! at each question would not be small.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use baton_protocol::domain::TaskState;
use rusqlite::Connection;

use super::statements;
use crate::store::StoreResult;

const STATES: usize = TaskState::ALL.len();

/// As committed.
#[derive(Debug, Default)]
pub(super) struct Census([AtomicI64; STATES]);

/// What the transaction under way changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Moves([i64; STATES]);

impl Census {
    pub(super) fn take(connection: &Connection) -> StoreResult<Self> {
        let mut count = connection.prepare(statements::COUNT_BY_STATE)?;
        let rows = count.query_map([], |row| Ok((row.get::<_, u8>(0)?, row.get::<_, i64>(1)?)))?;
        let mut moves = Moves::default();
        for row in rows {
            let (state, count) = row?;
            moves.add(state, count);
        }
        let census = Census::default();
        census.apply(moves);
        Ok(census)
    }

    pub(super) fn apply(&self, moves: Moves) {
        for (count, change) in self.0.iter().zip(moves.0) {
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

impl Moves {
    /// From a state, by its stored number, to another; a birth comes from none, a removal goes to none.
    pub(super) fn moved(&mut self, from: Option<u8>, to: Option<TaskState>) {
        if let Some(from) = from {
            self.add(from, -1);
        }
        if let Some(to) = to {
            self.0[to as usize] += 1;
        }
    }

    /// A number that is no state is not counted: reading its task is what fails.
    fn add(&mut self, state: u8, count: i64) {
        if let Some(state) = TaskState::from_number(state) {
            self.0[state as usize] += count;
        }
    }
}
