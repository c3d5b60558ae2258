//! The writer's cache of open tasks' heads. Only the writer changes heads, so an append need not read from the database
//! what the previous append wrote.

use std::collections::HashMap;

use baton_protocol::domain::{TaskId, TaskState};

/// Most heads kept. When it is reached the cache is cleared, which costs each task one lookup.
const CAPACITY: usize = 16 * 1024;

/// The columns of a head row that an append needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KnownHead {
    pub(super) key: i64,
    pub(super) version: u64,
    pub(super) fence: u64,
    pub(super) state: u8,
    pub(super) status_at: i64,
    pub(super) work: u8,
    /// How many requests were ever noted for the task.
    pub(super) requests: i64,
    /// See [`said::after`](crate::store::said::after). `None` in rows of older formats.
    pub(super) said: Option<u64>,
    /// What the task counts for its owner, how much of that is not in the owner's row yet, and whether the task itself is
    /// not: see `usage.rs`.
    pub(super) bytes: i64,
    pub(super) uncounted: i64,
    pub(super) uncounted_task: bool,
    /// Bytes of the stored snapshot; 0 without one.
    pub(super) snapshot_bytes: i64,
}

#[derive(Debug, Default)]
pub(super) struct KnownHeads {
    /// By scope number and task id.
    heads: HashMap<(i64, TaskId), KnownHead>,
}

impl KnownHeads {
    pub(super) fn get(&self, task: &(i64, TaskId)) -> Option<KnownHead> {
        self.heads.get(task).copied()
    }

    /// Keeps no idle task: it may never be written again. Nor an ended one: sweeps change its row.
    pub(super) fn put(&mut self, task: (i64, TaskId), stored: KnownHead) {
        let ended = TaskState::from_number(stored.state).is_some_and(TaskState::is_terminal);
        if stored.work == 0 || ended {
            self.heads.remove(&task);
            return;
        }
        if self.heads.len() >= CAPACITY {
            self.heads.clear();
        }
        self.heads.insert(task, stored);
    }

    /// Adds a request of that many bytes, if the task is cached. `requests`: how many there were with it.
    pub(super) fn add_request(&mut self, task: &(i64, TaskId), requests: i64, bytes: i64) {
        if let Some(stored) = self.heads.get_mut(task) {
            stored.requests = requests;
            stored.bytes += bytes;
        }
    }

    /// The task counts so many bytes more, if it is cached.
    pub(super) fn add_bytes(&mut self, task: &(i64, TaskId), bytes: i64) {
        if let Some(stored) = self.heads.get_mut(task) {
            stored.bytes += bytes;
        }
    }

    /// To be called after a rollback.
    pub(super) fn clear(&mut self) {
        self.heads.clear();
    }
}
