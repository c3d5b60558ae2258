//! Scopes by a small number, and the data of each scope. A scope without data is removed.

use std::collections::HashMap;
use std::sync::Arc;

use baton_protocol::domain::{Scope, TaskId};
use slab::Slab;

use super::lists::Lists;
use super::task_ids::TaskIds;
use super::tasks::Tasks;
use crate::store::TaskKey;

/// Stands for a [`Scope`] in keys, as long as the scope has data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ScopeId(u32);

#[derive(Default)]
pub(super) struct Scopes {
    ids: HashMap<Scope, ScopeId>,
    /// The scopes of each owner.
    by_owner: HashMap<Arc<str>, Vec<ScopeId>>,
    data: Slab<ScopeData>,
}

/// The data of one scope.
pub(super) struct ScopeData {
    pub(super) scope: Scope,
    pub(super) task_ids: TaskIds,
    pub(super) lists: Lists,
    /// Number of message records.
    pub(super) records: usize,
}

impl Scopes {
    pub(super) fn find(&self, scope: &Scope) -> Option<ScopeId> {
        self.ids.get(scope).copied()
    }

    pub(super) fn find_or_add(&mut self, scope: &Scope) -> ScopeId {
        if let Some(id) = self.find(scope) {
            return id;
        }
        let data = ScopeData {
            scope: scope.clone(),
            task_ids: TaskIds::default(),
            lists: Lists::default(),
            records: 0,
        };
        let id = ScopeId(self.data.insert(data) as u32);
        self.ids.insert(scope.clone(), id);
        self.by_owner.entry(Arc::clone(&scope.owner)).or_default().push(id);
        id
    }

    pub(super) fn get(&self, id: ScopeId) -> &ScopeData {
        &self.data[id.0 as usize]
    }

    pub(super) fn get_mut(&mut self, id: ScopeId) -> &mut ScopeData {
        &mut self.data[id.0 as usize]
    }

    /// How many tasks the owner has.
    pub(super) fn owner_tasks(&self, owner: &str) -> u64 {
        let scopes = self.by_owner.get(owner).into_iter().flatten();
        scopes.map(|scope| self.get(*scope).task_ids.len() as u64).sum()
    }

    pub(super) fn task(&self, tasks: &Tasks, scope: ScopeId, task: &TaskId) -> Option<TaskKey> {
        self.get(scope).task_ids.find(tasks, task)
    }

    /// Removes the scope if it has no data any more, since owners come and go.
    pub(super) fn release(&mut self, id: ScopeId) {
        // A sweep may release one scope several times.
        let Some(data) = self.data.get(id.0 as usize) else { return };
        if data.task_ids.is_empty() && data.records == 0 {
            let data = self.data.remove(id.0 as usize);
            self.ids.remove(&data.scope);
            if let Some(scopes) = self.by_owner.get_mut(&data.scope.owner) {
                scopes.retain(|scope| *scope != id);
                if scopes.is_empty() {
                    self.by_owner.remove(&data.scope.owner);
                }
            }
        }
    }
}
