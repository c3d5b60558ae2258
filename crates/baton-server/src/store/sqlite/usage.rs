//! What each owner has stored, in table rows that change in the same transaction as what they count.
//!
//! A task's row holds what the task counts (`bytes`); that is written with the head anyway. The owner's row is written only
//! when the task rests or ends, so that neither a new task nor an artifact chunk writes a further row: until then,
//! `uncounted` of the task's row says how much of `bytes` is not in the owner's row, and `uncounted_task` whether the task
//! itself is not. There are few such tasks: only open ones.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::session::Session;
use super::statements as sql;
use crate::store::{OwnerUsage, StoreResult};

/// Changes of the owners' rows by the current transaction; written once, before its commit.
#[derive(Debug, Default)]
pub(super) struct UsageChanges(HashMap<Arc<str>, Change>);

#[derive(Debug, Default)]
struct Change {
    tasks: i64,
    bytes: i64,
}

impl UsageChanges {
    pub(super) fn add(&mut self, owner: &Arc<str>, tasks: i64, bytes: i64) {
        if (tasks, bytes) == (0, 0) {
            return;
        }
        let change = match self.0.get_mut(owner) {
            Some(change) => change,
            None => self.0.entry(Arc::clone(owner)).or_default(),
        };
        change.tasks += tasks;
        change.bytes += bytes;
    }

    /// Writes the changes.
    pub(super) fn write(&mut self, connection: &Connection) -> StoreResult<()> {
        for (owner, Change { tasks, bytes }) in self.0.drain() {
            connection.prepare_cached(sql::PUT_OWNER_USAGE)?.execute(params![owner, tasks, bytes])?;
            if tasks < 0 || bytes < 0 {
                connection.prepare_cached(sql::REMOVE_OWNER_USAGE)?.execute([owner])?;
            }
        }
        Ok(())
    }

    /// To be called after a rollback.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }
}

pub(super) fn of_owner(session: &mut Session, owner: &str) -> StoreResult<OwnerUsage> {
    // One transaction, since a commit between the two statements would be counted twice or not at all.
    let transaction = session.connection.transaction()?;
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let counted = transaction.prepare_cached(sql::OWNER_USAGE)?.query_row([owner], row).optional()?;
    let (tasks, bytes): (i64, i64) = counted.unwrap_or_default();
    let uncounted: (i64, i64) = transaction.prepare_cached(sql::OWNER_UNCOUNTED)?.query_row([owner], row)?;
    let number = |count: i64| u64::try_from(count).unwrap_or_default();
    Ok(OwnerUsage { tasks: number(tasks + uncounted.0), bytes: number(bytes + uncounted.1) })
}
