//! What the writer remembers of open tasks' heads. It is the only one that changes them, so the next append to a task
//! need not ask the database what the last one wrote.

use std::collections::HashMap;

use baton_protocol::domain::TaskId;

/// Tasks remembered. Forgetting them costs each a lookup.
const MOST: usize = 16 * 1024;

/// What an append is compared with, and what its head row says now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) key: i64,
    pub(super) version: u64,
    pub(super) fence: u64,
    pub(super) state: u8,
    pub(super) status_at: i64,
    pub(super) work: u8,
    /// How many requests were ever noted for it.
    pub(super) requests: i64,
    /// `None`: not known.
    pub(super) said: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct KnownHeads {
    /// By scope and id.
    heads: HashMap<(i64, TaskId), Stored>,
}

impl KnownHeads {
    pub(super) fn get(&self, task: &(i64, TaskId)) -> Option<Stored> {
        self.heads.get(task).copied()
    }

    /// A task that rests is not written for a while, if ever.
    pub(super) fn put(&mut self, task: (i64, TaskId), stored: Stored) {
        if stored.work == 0 {
            self.heads.remove(&task);
            return;
        }
        if self.heads.len() >= MOST {
            self.heads.clear();
        }
        self.heads.insert(task, stored);
    }

    /// A request was noted for the task, the `requests`th.
    pub(super) fn noted(&mut self, task: &(i64, TaskId), requests: i64) {
        if let Some(stored) = self.heads.get_mut(task) {
            stored.requests = requests;
        }
    }

    /// What was written has been undone.
    pub(super) fn forget(&mut self) {
        self.heads.clear();
    }
}
