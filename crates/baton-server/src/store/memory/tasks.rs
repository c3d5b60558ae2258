//! All tasks, by their keys.

use super::entry::Entry;
use super::table::Table;
use crate::store::TaskKey;

/// Boxed, so that the table's spare room is spare pointers.
#[derive(Default)]
pub(super) struct Tasks(Table<Box<Entry>>);

/// Keys are counted up, so they need no more than to be spread.
fn hash(key: TaskKey) -> u64 {
    key.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Tasks {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The task that an index names.
    pub(super) fn named(&self, key: TaskKey) -> &Entry {
        let entry = self.0.find(hash(key), |entry| entry.head.key == key);
        entry.expect("indexes name only tasks that are there")
    }

    /// The same, to be changed.
    pub(super) fn named_mut(&mut self, key: TaskKey) -> &mut Entry {
        let entry = self.0.find_mut(hash(key), |entry| entry.head.key == key);
        entry.expect("indexes name only tasks that are there")
    }

    pub(super) fn insert(&mut self, entry: Box<Entry>) {
        self.0.insert(hash(entry.head.key), entry);
    }

    pub(super) fn remove(&mut self, key: TaskKey) -> Option<Box<Entry>> {
        self.0.remove(hash(key), |entry| entry.head.key == key)
    }
}
