//! The numbers that stand for scopes in the tables.
//!
//! Callers choose tenants, so a scope goes with its last task and message record: its row, and its rows in `tally`. A number
//! is not given twice while the store is open. So a reader that still knows the number of a removed scope finds nothing under
//! it, and never what belongs to somebody else.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use baton_protocol::domain::Scope;
use rusqlite::Connection;

use super::statements as sql;
use crate::store::StoreResult;

/// Most scopes cached per connection. A scope that is not cached costs an index lookup.
const REMEMBERED: usize = 4096;

/// How many commits have removed scopes. All connections of a store share it.
pub(super) type Removals = Arc<AtomicU64>;

/// One connection's cache of numbers. It is emptied after scopes were removed: a scope that is stored again has another
/// number.
#[derive(Debug)]
pub(super) struct ScopeNumbers {
    cached: HashMap<Scope, i64>,
    removals: Removals,
    /// `removals` when the cache was last known to be right.
    as_of: u64,
}

impl ScopeNumbers {
    pub(super) fn new(removals: Removals) -> Self {
        ScopeNumbers { cached: HashMap::new(), removals, as_of: 0 }
    }

    pub(super) fn get(&mut self, scope: &Scope) -> Option<i64> {
        // Before the database is asked: a number that it has lost meanwhile is then not remembered.
        let removals = self.removals.load(Ordering::Acquire);
        if removals != self.as_of {
            self.cached.clear();
            self.as_of = removals;
        }
        self.cached.get(scope).copied()
    }

    /// To be called after [`get`](Self::get) has not found it.
    pub(super) fn remember(&mut self, scope: &Scope, number: i64) {
        if self.cached.len() >= REMEMBERED {
            self.cached.clear();
        }
        self.cached.insert(scope.clone(), number);
    }

    /// To be called after a rollback.
    pub(super) fn clear(&mut self) {
        self.cached.clear();
    }
}

/// The scopes that the current transaction has taken something from.
#[derive(Debug, Default)]
pub(super) struct Emptied {
    scopes: BTreeSet<i64>,
    any_removed: bool,
}

impl Emptied {
    pub(super) fn add(&mut self, scope: i64) {
        self.scopes.insert(scope);
    }

    /// Removes those of the scopes in which nothing is left. Called at the end of the transaction, so that a scope stays which
    /// a later write of the same transaction has stored something in.
    pub(super) fn remove(&mut self, connection: &Connection, numbers: &mut ScopeNumbers) -> StoreResult<()> {
        let mut removed = BTreeSet::new();
        for scope in std::mem::take(&mut self.scopes) {
            if connection.prepare_cached(sql::REMOVE_SCOPE)?.execute([scope])? > 0 {
                connection.prepare_cached(sql::REMOVE_TALLY)?.execute([scope])?;
                removed.insert(scope);
            }
        }
        if !removed.is_empty() {
            self.any_removed = true;
            numbers.cached.retain(|_, number| !removed.contains(number));
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.scopes.is_empty()
    }

    /// To be called after the commit: makes the other connections look up the numbers of scopes again.
    pub(super) fn tell(&mut self, numbers: &mut ScopeNumbers) {
        if std::mem::take(&mut self.any_removed) {
            // This connection's cache is right already.
            numbers.as_of = numbers.removals.fetch_add(1, Ordering::Release) + 1;
        }
    }

    /// To be called after a rollback.
    pub(super) fn forget(&mut self) {
        *self = Emptied::default();
    }
}
