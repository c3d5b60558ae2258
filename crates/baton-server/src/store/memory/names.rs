//! Tasks by their ids. The table holds keys alone, and ids are read from the tasks: a table has room to spare, and that
//! should be cheap room.
//!
//! Ids are what clients choose, so they are hashed with the standard library's keyed hash.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

use baton_protocol::domain::TaskId;
use hashbrown::HashTable;

use super::entry::{Tasks, task};
use crate::store::TaskKey;

/// The tasks of one scope.
#[derive(Default)]
pub(super) struct Names {
    keys: HashTable<TaskKey>,
    hasher: RandomState,
}

impl Names {
    pub(super) fn find(&self, tasks: &Tasks, id: &TaskId) -> Option<TaskKey> {
        self.keys.find(self.hasher.hash_one(id), |key| task(tasks, *key).id == *id).copied()
    }

    /// Takes in a task that is there, under an id that is not.
    pub(super) fn insert(&mut self, tasks: &Tasks, key: TaskKey) {
        let hash = |key: &TaskKey| self.hasher.hash_one(&task(tasks, *key).id);
        self.keys.insert_unique(hash(&key), key, hash);
    }

    /// Lets go of a task that is still there.
    pub(super) fn remove(&mut self, tasks: &Tasks, key: TaskKey) {
        let hash = self.hasher.hash_one(&task(tasks, key).id);
        if let Ok(found) = self.keys.find_entry(hash, |other| *other == key) {
            found.remove();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}
