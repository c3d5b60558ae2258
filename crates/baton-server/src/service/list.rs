//! ListTasks: newest first, with keyset pagination.

use baton_protocol::Error;
use baton_protocol::domain::Timestamp;
use baton_protocol::operation::{HistoryLength, ListTasks};

use super::cursor::Cursor;
use super::{CallContext, Page, Service};
use crate::engine::from_store;
use crate::store::{Detail, ListPage, ListPosition, ListQuery};

/// Upper bound for the first page, which begins with the newest task: the year 9999.
const END_OF_TIME: i64 = 253_402_300_799_999;

impl Service {
    pub(crate) async fn list(&self, context: &CallContext, list: ListTasks) -> Result<Page, Error> {
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
        let cursor = token.map(|token| cursors.open(token, scope, &list.filter)).transpose()?;
        let not_after =
            cursor.as_ref().map_or(Timestamp::from_millis(END_OF_TIME), |cursor| cursor.not_after);
        let after = cursor.as_ref().map(|cursor| cursor.after.clone());
        // One millisecond later: tasks that change within this millisecond belong to the listing.
        let now = self.engine().now().plus_millis(1);
        let shows_status_only = !list.include_artifacts && list.history_length == HistoryLength::Last(0);
        let query = ListQuery {
            filter: list.filter.clone(),
            after,
            not_after,
            limit: page_size,
            detail: if shows_status_only { Detail::Status } else { Detail::Whole },
            most_bytes: limits.max_page_bytes,
            counted: cursor.is_none(),
        };
        let ListPage { tasks, more, total: counted } = store.list(scope, &query).await.map_err(from_store)?;
        // All pages show the total of the first page: tasks that change later are not part of the listing.
        let (not_after, total) = match cursor {
            Some(cursor) => (cursor.not_after, cursor.total),
            None => {
                // If the clock has been set back, a task may have a later time than now.
                let not_after = tasks.first().map_or(now, |newest| now.max(newest.head().current.status_at));
                (not_after, counted.unwrap_or_default())
            }
        };
        let next_page_token = match tasks.last() {
            Some(last) if more => {
                let after = ListPosition { status_at: last.head().current.status_at, id: last.id().clone() };
                cursors.seal(&Cursor { after, not_after, total }, scope, &list.filter)
            }
            _ => String::new(),
        };
        Ok(Page { call: list, tasks, next_page_token, page_size, total })
    }
}
