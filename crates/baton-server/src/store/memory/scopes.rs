//! Scopes by a small number, and what each scope holds. A scope that holds nothing is forgotten.

use std::collections::HashMap;

use baton_protocol::domain::{Scope, TaskId};

use super::lists::Lists;
use super::names::Names;
use super::tasks::Tasks;
use crate::own_keys::OwnKeys;
use crate::store::TaskKey;

/// Stands for a [`Scope`] inside keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ScopeId(u32);

#[derive(Default)]
pub(super) struct Scopes {
    ids: HashMap<Scope, ScopeId>,
    holdings: OwnKeys<ScopeId, Holdings>,
    last: u32,
}

/// What one scope holds.
pub(super) struct Holdings {
    pub(super) scope: Scope,
    pub(super) names: Names,
    pub(super) lists: Lists,
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
        let id = self.unused();
        self.ids.insert(scope.clone(), id);
        let lists = Lists::default();
        self.holdings
            .insert(id, Holdings { scope: scope.clone(), names: Names::default(), lists, records: 0 });
        id
    }

    pub(super) fn get(&self, id: ScopeId) -> &Holdings {
        self.holdings.get(&id).expect("a scope is kept while anything names it")
    }

    pub(super) fn get_mut(&mut self, id: ScopeId) -> &mut Holdings {
        self.holdings.get_mut(&id).expect("a scope is kept while anything names it")
    }

    pub(super) fn task(&self, tasks: &Tasks, scope: ScopeId, task: &TaskId) -> Option<TaskKey> {
        self.get(scope).names.find(tasks, task)
    }

    /// Forgets the scope if it holds nothing any more: owners come and go.
    pub(super) fn release(&mut self, id: ScopeId) {
        // A sweep may release one scope several times.
        let Some(holdings) = self.holdings.get(&id) else { return };
        if holdings.names.is_empty() && holdings.records == 0 {
            let scope = holdings.scope.clone();
            self.ids.remove(&scope);
            self.holdings.remove(&id);
        }
    }

    fn unused(&mut self) -> ScopeId {
        loop {
            self.last = self.last.wrapping_add(1);
            if !self.holdings.contains_key(&ScopeId(self.last)) {
                return ScopeId(self.last);
            }
        }
    }
}
