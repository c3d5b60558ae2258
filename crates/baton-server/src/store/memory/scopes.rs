//! Scopes by a small number, and the data of each scope; the same for owners. A scope or owner without data is removed.

use std::collections::HashMap;
use std::sync::Arc;

use baton_protocol::domain::{Scope, TaskId};
use slab::Slab;

use super::lists::Lists;
use super::task_ids::TaskIds;
use super::tasks::Tasks;
use crate::store::{OwnerUsage, TaskKey};

/// Stands for a [`Scope`] in keys, as long as the scope has data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ScopeId(u32);

#[derive(Default)]
pub(super) struct Scopes {
    ids: HashMap<Scope, ScopeId>,
    data: Slab<ScopeData>,
    owner_ids: HashMap<Arc<str>, OwnerId>,
    owners: Slab<OwnerData>,
}

#[derive(Debug, Clone, Copy)]
struct OwnerId(u32);

#[derive(Default)]
struct OwnerData {
    /// How many scopes it has.
    scopes: usize,
    usage: OwnerUsage,
}

/// The data of one scope.
pub(super) struct ScopeData {
    pub(super) scope: Scope,
    owner: OwnerId,
    pub(super) task_ids: TaskIds,
    pub(super) lists: Lists,
    /// Number of message records.
    pub(super) records: usize,
}

impl Scopes {
    /// How many scopes and owners there are.
    pub(super) fn entries(&self) -> usize {
        self.ids.len() + self.data.len() + self.owner_ids.len() + self.owners.len()
    }

    pub(super) fn find(&self, scope: &Scope) -> Option<ScopeId> {
        self.ids.get(scope).copied()
    }

    pub(super) fn find_or_add(&mut self, scope: &Scope) -> ScopeId {
        if let Some(id) = self.find(scope) {
            return id;
        }
        let owners = &mut self.owners;
        let owner = *self
            .owner_ids
            .entry(Arc::clone(&scope.owner))
            .or_insert_with(|| OwnerId(owners.insert(OwnerData::default()) as u32));
        self.owners[owner.0 as usize].scopes += 1;
        let data = ScopeData {
            scope: scope.clone(),
            owner,
            task_ids: TaskIds::default(),
            lists: Lists::default(),
            records: 0,
        };
        let id = ScopeId(self.data.insert(data) as u32);
        self.ids.insert(scope.clone(), id);
        id
    }

    pub(super) fn get(&self, id: ScopeId) -> &ScopeData {
        &self.data[id.0 as usize]
    }

    pub(super) fn get_mut(&mut self, id: ScopeId) -> &mut ScopeData {
        &mut self.data[id.0 as usize]
    }

    /// What the owner of this name has stored.
    pub(super) fn usage_of(&self, owner: &str) -> OwnerUsage {
        self.owner_ids.get(owner).map(|owner| self.owners[owner.0 as usize].usage).unwrap_or_default()
    }

    /// What the scope's owner has stored, to be changed with each write.
    pub(super) fn usage(&mut self, scope: ScopeId) -> &mut OwnerUsage {
        let owner = self.get(scope).owner;
        &mut self.owners[owner.0 as usize].usage
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
            let owner = data.owner.0 as usize;
            self.owners[owner].scopes -= 1;
            if self.owners[owner].scopes == 0 {
                self.owners.remove(owner);
                self.owner_ids.remove(&data.scope.owner);
            }
        }
    }
}
