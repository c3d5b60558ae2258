//! The tasks of each context. Most contexts have one task, and that one needs no list: the task itself tells where it
//! stands.

use std::borrow::Cow;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

use baton_protocol::domain::ContextId;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Slot;

use super::entry::{Tasks, task};
use super::lists::{Index, Row};
use crate::store::TaskKey;

/// The contexts of one scope.
#[derive(Default)]
pub(super) struct Contexts {
    table: HashTable<Context>,
    hasher: RandomState,
}

enum Context {
    One(TaskKey),
    Many(Box<Many>),
}

struct Many {
    id: ContextId,
    index: Index,
}

impl Context {
    fn id<'a>(&'a self, tasks: &'a Tasks) -> &'a ContextId {
        match self {
            Self::One(key) => &task(tasks, *key).head.context_id,
            Self::Many(many) => &many.id,
        }
    }
}

impl Contexts {
    /// The tasks of a context, in list order.
    pub(super) fn get(&self, tasks: &Tasks, id: &ContextId) -> Option<Cow<'_, Index>> {
        let found = self.table.find(self.hasher.hash_one(id), |context| context.id(tasks) == id)?;
        Some(match found {
            Context::One(key) => Cow::Owned([task(tasks, *key).row()].into_iter().collect()),
            Context::Many(many) => Cow::Borrowed(&many.index),
        })
    }

    /// Moves a task from the row it had in the list of its context to the one it has now.
    pub(super) fn restand(&mut self, tasks: &Tasks, key: TaskKey, before: Option<&Row>, after: Option<&Row>) {
        let id = &task(tasks, key).head.context_id;
        let hash = |context: &Context| self.hasher.hash_one(context.id(tasks));
        let slot = self.table.entry(self.hasher.hash_one(id), |context| context.id(tasks) == id, hash);
        match slot {
            Slot::Vacant(slot) => {
                slot.insert(Context::One(key));
            }
            Slot::Occupied(mut slot) => match slot.get_mut() {
                Context::One(only) if *only == key => {
                    if after.is_none() {
                        slot.remove();
                    }
                }
                Context::One(first) => {
                    let index = [task(tasks, *first).row()].into_iter().chain(after.cloned()).collect();
                    *slot.get_mut() = Context::Many(Box::new(Many { id: id.clone(), index }));
                }
                Context::Many(many) => {
                    many.index.restand(before, after);
                    if many.index.is_empty() {
                        slot.remove();
                    }
                }
            },
        }
    }
}
