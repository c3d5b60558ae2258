//! ListTasks: newest first, by keyset cursors.

use baton_protocol::Error;
use baton_protocol::domain::TaskPage;
use baton_protocol::operation::{ListTasks, Reply};

use super::cursor::Cursor;
use super::{CallContext, Outcome, Service, reply};
use crate::engine::from_store;
use crate::store::{ListPosition, ListQuery, record};

impl Service {
    pub(super) async fn list(&self, context: &CallContext, list: ListTasks) -> Result<Outcome, Error> {
        let limits = self.limits();
        let page_size = match list.page_size {
            None => limits.default_page,
            Some(size) => u32::try_from(size)
                .ok()
                .filter(|size| (1..=limits.max_page).contains(size))
                .ok_or_else(|| Error::invalid("pageSize", format!("must be 1 to {}", limits.max_page)))?,
        };
        let (scope, store, cursors) = (&context.scope, self.engine().store(), &self.inner.cursors);
        let token = list.page_token.as_deref().filter(|token| !token.is_empty());
        let (after, not_after, total) = match token {
            Some(token) => {
                let cursor = cursors.open(token, scope, &list.filter)?;
                (Some(cursor.after), cursor.not_after, cursor.total)
            }
            None => {
                // One more millisecond: what ends in this very one belongs to the listing.
                let not_after = self.engine().now().plus_millis(1);
                let total = store.count(scope, &list.filter, not_after).await.map_err(from_store)?;
                (None, not_after, total)
            }
        };
        // One more than asked for tells whether there is a next page.
        let query = ListQuery { filter: list.filter.clone(), after, not_after, limit: page_size + 1 };
        let mut found = store.list(scope, &query).await.map_err(from_store)?;
        let more = found.len() > page_size as usize;
        found.truncate(page_size as usize);
        let next_page_token = match found.last() {
            Some(last) if more => {
                let after = ListPosition { status_at: last.head.current.status_at, id: last.id.clone() };
                cursors.seal(&Cursor { after, not_after, total }, scope, &list.filter)
            }
            _ => String::new(),
        };
        let mut tasks = Vec::with_capacity(found.len());
        for loaded in &found {
            let mut task = record::fold(loaded).map_err(from_store)?.task;
            list.history_length.trim(&mut task.history);
            tasks.push(task);
        }
        let with_artifacts = list.include_artifacts;
        Ok(reply(Reply::Tasks(TaskPage {
            tasks,
            next_page_token,
            page_size,
            total_size: total,
            with_artifacts,
        })))
    }
}
