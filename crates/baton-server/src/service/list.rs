//! ListTasks: newest first, by keyset cursors.

use baton_protocol::domain::{TaskPage, Timestamp};
use baton_protocol::operation::{ListTasks, Reply};
use baton_protocol::wire::v1;
use baton_protocol::{Error, Generation};
use bytes::Bytes;

use super::cursor::Cursor;
use super::{CallContext, Outcome, Service, reply};
use crate::engine::from_store;
use crate::store::{ListPosition, ListQuery, Loaded, record};

/// The first page begins with the newest task there is: the year 9999.
const END_OF_TIME: i64 = 253_402_300_799_999;

/// Bytes set aside for a page at once: what is stored may be far more than what a list shows of it.
const MOST_RESERVED: usize = 64 * 1024;

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
        let begun = token.map(|token| cursors.open(token, scope, &list.filter)).transpose()?;
        let not_after = begun.as_ref().map_or(Timestamp::from_millis(END_OF_TIME), |cursor| cursor.not_after);
        let after = begun.as_ref().map(|cursor| cursor.after.clone());
        // One more millisecond: what ends in this very one belongs to the listing.
        let now = self.engine().now().plus_millis(1);
        // One more than asked for tells whether there is a next page.
        let query = ListQuery { filter: list.filter.clone(), after, not_after, limit: page_size + 1 };
        let mut found = store.list(scope, &query).await.map_err(from_store)?;
        let (not_after, total) = match begun {
            Some(cursor) => (cursor.not_after, cursor.total),
            None => {
                // Whatever the clock says now, it was later once, if a task says so.
                let not_after = found.first().map_or(now, |newest| now.max(newest.head.current.status_at));
                (not_after, store.count(scope, &list.filter, not_after).await.map_err(from_store)?)
            }
        };
        let more = found.len() > page_size as usize;
        found.truncate(page_size as usize);
        let next_page_token = match found.last() {
            Some(last) if more => {
                let after = ListPosition { status_at: last.head.current.status_at, id: last.id.clone() };
                cursors.seal(&Cursor { after, not_after, total }, scope, &list.filter)
            }
            _ => String::new(),
        };
        let whole = |loaded: &Loaded| record::fold(loaded).map(|snapshot| snapshot.task).map_err(from_store);
        if context.generation == Generation::V1 {
            let room = found.iter().filter_map(|loaded| loaded.snapshot.as_ref()).map(|it| it.record().len());
            let mut page = v1::PageWriter::new(&list, room.sum::<usize>().min(MOST_RESERVED));
            for loaded in &found {
                if !as_stored(loaded).is_some_and(|json| page.stored(&json)) {
                    page.task(whole(loaded)?);
                }
            }
            let json = page.end(&next_page_token, page_size, total).into();
            return Ok(Outcome::Stored { json, sent: false, replayed: false });
        }
        let mut tasks = Vec::with_capacity(found.len());
        for loaded in &found {
            let mut task = whole(loaded)?;
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

/// The task as 1.0 spells it, where that need not be made.
fn as_stored(loaded: &Loaded) -> Option<Bytes> {
    let snapshot = loaded.snapshot.as_ref().filter(|it| it.version() == loaded.head.version)?;
    snapshot.task_json()
}
