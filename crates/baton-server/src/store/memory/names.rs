//! Tasks by their ids. The table holds keys alone, and ids are read from the tasks: a table has room to spare, and that
//! should be cheap room.
//!
//! Ids are what clients choose, so they are hashed with the standard library's keyed hash.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

use baton_protocol::domain::TaskId;

use super::table::Table;
use super::tasks::Tasks;
use crate::store::TaskKey;

/// The tasks of one scope.
#[derive(Default)]
pub(super) struct Names {
    keys: Table<TaskKey>,
    hasher: RandomState,
}

impl Names {
    pub(super) fn find(&self, tasks: &Tasks, id: &TaskId) -> Option<TaskKey> {
        self.keys.find(self.hasher.hash_one(id), |key| tasks.named(*key).id == *id).copied()
    }

    /// Takes in a task that is there, under an id that is not.
    pub(super) fn insert(&mut self, tasks: &Tasks, key: TaskKey) {
        self.keys.insert(self.hasher.hash_one(&tasks.named(key).id), key);
    }

    /// Lets go of a task that is still there.
    pub(super) fn remove(&mut self, tasks: &Tasks, key: TaskKey) {
        self.keys.remove(self.hasher.hash_one(&tasks.named(key).id), |other| *other == key);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}
