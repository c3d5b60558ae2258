//! Tasks by their ids. The table holds only keys, and ids are compared in the tasks: a hash table has unused slots, so
//! slots should be small.
//!
//! Clients may choose ids, so they are hashed with the standard library's keyed hash.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

use baton_protocol::domain::TaskId;

use super::table::Table;
use super::tasks::Tasks;
use crate::store::TaskKey;

/// The tasks of one scope.
#[derive(Default)]
pub(super) struct TaskIds {
    keys: Table<TaskKey>,
    hasher: RandomState,
}

impl TaskIds {
    pub(super) fn find(&self, tasks: &Tasks, id: &TaskId) -> Option<TaskKey> {
        self.keys.find(self.hasher.hash_one(id), |key| tasks.get(*key).id == *id).copied()
    }

    /// Adds a task that is in `tasks`. Its id must be new.
    pub(super) fn insert(&mut self, tasks: &Tasks, key: TaskKey) {
        self.keys.insert(self.hasher.hash_one(&tasks.get(key).id), key);
    }

    /// Removes a task that is still in `tasks`.
    pub(super) fn remove(&mut self, tasks: &Tasks, key: TaskKey) {
        self.keys.remove(self.hasher.hash_one(&tasks.get(key).id), |other| *other == key);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}
