//! Which process works on a task. Asked before this process changes a task that it has no run for: the head names the
//! process that runs the task's turn, and the store knows which processes are alive.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Inner;
use crate::store::{HeadState, ReplicaId, StoreResult};

/// How many dead processes are remembered, which saves calls of the store.
const MAX_DEAD: usize = 1000;

/// Which process works on a task, by its head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    /// None: between turns any process may take the next message.
    Nobody,
    /// This process. If it has no run for the task, that run has given up.
    Mine,
    /// Another process that is alive. The task is left to it; requests are stored for it.
    Alive,
    /// A process that has ended. The crash rule applies to the task.
    Dead,
}

/// What this process knows about the processes that use the store.
#[derive(Debug)]
pub(super) struct Processes {
    me: ReplicaId,
    /// Processes that the store does not list as alive. Ids are never reused, so these stay dead.
    dead: Mutex<HashSet<ReplicaId>>,
}

impl Processes {
    pub(super) fn new(me: ReplicaId) -> Self {
        Processes { me, dead: Mutex::default() }
    }

    pub(super) fn me(&self) -> ReplicaId {
        self.me
    }

    fn dead(&self) -> MutexGuard<'_, HashSet<ReplicaId>> {
        self.dead.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// The store is asked after the head was read: a process tells the store that it is alive before it holds a task.
    pub(super) async fn holder(&self, head: &HeadState) -> StoreResult<Holder> {
        let holder = match head.holder {
            None => return Ok(Holder::Nobody),
            Some(holder) if holder == self.processes.me => return Ok(Holder::Mine),
            Some(holder) => holder,
        };
        if self.processes.dead().contains(&holder) {
            return Ok(Holder::Dead);
        }
        if self.store.live_processes().await?.contains(&holder) {
            return Ok(Holder::Alive);
        }
        let mut dead = self.processes.dead();
        if dead.len() >= MAX_DEAD {
            dead.clear();
        }
        dead.insert(holder);
        Ok(Holder::Dead)
    }
}
