//! How many tasks are in which state, by scope, in table rows that change in the same transaction as the tasks, so that
//! totals need no counting. Contexts with many tasks get such rows, too, when their total is first requested.

use std::collections::{HashMap, HashSet};

use baton_protocol::domain::{ContextId, TaskState};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::statements as sql;
use crate::store::StoreResult;

/// Changes of the counts by the current transaction; written once, before its commit.
#[derive(Debug, Default)]
pub(super) struct TallyChanges {
    /// By scope and state number.
    scopes: HashMap<(i64, u8), i64>,
    contexts: HashMap<(i64, String), HashMap<u8, i64>>,
    /// The contexts that have rows, by scope; `None` until they are first needed.
    counted: Option<HashMap<i64, HashSet<String>>>,
}

/// The context a task belongs to. Looked up by the task's key only where the caller does not know it.
pub(super) enum TaskContext<'a> {
    Known(&'a ContextId),
    /// That of the task with this key.
    OfTask(i64),
}

impl TallyChanges {
    /// A task of the scope goes from one state to another. `from` is `None` for a new task, `to` for a removed one.
    pub(super) fn state_changed(
        &mut self,
        connection: &Connection,
        scope: i64,
        of: TaskContext<'_>,
        from: Option<u8>,
        to: Option<TaskState>,
    ) -> StoreResult<()> {
        let to = to.map(TaskState::number);
        if from == to {
            return Ok(());
        }
        let changes = from.map(|state| (state, -1)).into_iter().chain(to.map(|state| (state, 1)));
        for (state, change) in changes.clone() {
            *self.scopes.entry((scope, state)).or_default() += change;
        }
        let Some(counted) = self.counted(connection)?.get(&scope) else { return Ok(()) };
        let context = match of {
            TaskContext::Known(context) => Some(context.as_str().to_owned()),
            TaskContext::OfTask(key) => {
                connection.prepare_cached(sql::CONTEXT_OF)?.query_row([key], |row| row.get(0)).optional()?
            }
        };
        if let Some(context) = context.filter(|context| counted.contains(context)) {
            let of_context = self.contexts.entry((scope, context)).or_default();
            for (state, change) in changes {
                *of_context.entry(state).or_default() += change;
            }
        }
        Ok(())
    }

    /// Creates rows for the context and keeps them from now on.
    pub(super) fn count_context(
        &mut self,
        connection: &Connection,
        scope: i64,
        context: &ContextId,
    ) -> StoreResult<()> {
        let counted = self.counted(connection)?.entry(scope).or_default();
        if counted.insert(context.as_str().to_owned()) {
            for put in sql::COUNT_CONTEXT_BY_STATE {
                connection.prepare_cached(put)?.execute(params![scope, context.as_str()])?;
            }
        }
        Ok(())
    }

    /// Writes the changes.
    pub(super) fn write(&mut self, connection: &Connection) -> StoreResult<()> {
        for ((scope, state), change) in self.scopes.drain().filter(|(_, change)| *change != 0) {
            connection.prepare_cached(sql::PUT_TALLY)?.execute([scope, state.into(), change])?;
        }
        for ((scope, context), changes) in std::mem::take(&mut self.contexts) {
            let mut put = connection.prepare_cached(sql::PUT_CONTEXT_TALLY)?;
            for (state, change) in changes {
                put.execute(params![scope, context, state, change])?;
            }
            let mut sum = connection.prepare_cached(sql::SUM_CONTEXT_TALLY)?;
            let tasks: i64 = sum.query_row(params![scope, context], |row| row.get(0))?;
            if tasks == 0 {
                connection.prepare_cached(sql::REMOVE_CONTEXT_TALLY)?.execute(params![scope, context])?;
                // Read again when it is next needed.
                self.counted = None;
            }
        }
        Ok(())
    }

    /// To be called after a rollback.
    pub(super) fn forget(&mut self) {
        *self = TallyChanges::default();
    }

    fn counted(&mut self, connection: &Connection) -> StoreResult<&mut HashMap<i64, HashSet<String>>> {
        if self.counted.is_none() {
            let mut counted: HashMap<i64, HashSet<String>> = HashMap::new();
            let mut find = connection.prepare_cached(sql::COUNTED_CONTEXTS)?;
            let mut rows = find.query([])?;
            while let Some(row) = rows.next()? {
                counted.entry(row.get(0)?).or_default().insert(row.get(1)?);
            }
            self.counted = Some(counted);
        }
        Ok(self.counted.get_or_insert_default())
    }
}
