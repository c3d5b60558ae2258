//! The tasks of each context. Most contexts have one task and need no index: the task itself has its row.

use std::borrow::Cow;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

use baton_protocol::domain::ContextId;

use super::lists::{Index, Row};
use super::table::Table;
use super::tasks::Tasks;
use crate::store::TaskKey;

/// The contexts of one scope.
#[derive(Default)]
pub(super) struct Contexts {
    table: Table<Context>,
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
            Self::One(key) => &tasks.get(*key).head.context_id,
            Self::Many(many) => &many.id,
        }
    }
}

impl Contexts {
    /// The tasks of a context, in list order.
    pub(super) fn get(&self, tasks: &Tasks, id: &ContextId) -> Option<Cow<'_, Index>> {
        let found = self.table.find(self.hasher.hash_one(id), |context| context.id(tasks) == id)?;
        Some(match found {
            Context::One(key) => Cow::Owned([tasks.get(*key).row()].into_iter().collect()),
            Context::Many(many) => Cow::Borrowed(&many.index),
        })
    }

    /// Replaces a task's row in the index of its context. `before` is `None` for a new task, `after` for a removed one.
    pub(super) fn move_row(
        &mut self,
        tasks: &Tasks,
        key: TaskKey,
        before: Option<&Row>,
        after: Option<&Row>,
    ) {
        let id = &tasks.get(key).head.context_id;
        let (hash, is_it) = (self.hasher.hash_one(id), |context: &Context| context.id(tasks) == id);
        let Some(context) = self.table.find_mut(hash, is_it) else {
            return self.table.insert(hash, Context::One(key));
        };
        let empty = match context {
            Context::One(only) if *only == key => after.is_none(),
            Context::One(first) => {
                let index = [tasks.get(*first).row()].into_iter().chain(after.cloned()).collect();
                *context = Context::Many(Box::new(Many { id: id.clone(), index }));
                false
            }
            Context::Many(many) => {
                many.index.move_row(before, after);
                many.index.is_empty()
            }
        };
        if empty {
            self.table.remove(hash, is_it);
        }
    }
}
