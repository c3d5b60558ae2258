//! ListTasks: newest first, by keyset cursors.

use baton_protocol::domain::{Task, TaskPage, Timestamp};
use baton_protocol::operation::{HistoryLength, ListTasks, Reply};
use baton_protocol::wire::v1;
use baton_protocol::{Error, Generation};
use bytes::Bytes;

use super::cursor::Cursor;
use super::{CallContext, Outcome, Service, reply};
use crate::engine::{from_store, large};
use crate::store::{Detail, ListPage, ListPosition, ListQuery, Listed, record, said};

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
        let shows_status_only = !list.include_artifacts && list.history_length == HistoryLength::Last(0);
        let query = ListQuery {
            filter: list.filter.clone(),
            after,
            not_after,
            limit: page_size,
            detail: if shows_status_only { Detail::Status } else { Detail::Whole },
            most_bytes: limits.max_page_bytes,
            counted: begun.is_none(),
        };
        let ListPage { tasks: found, more, total: counted } =
            store.list(scope, &query).await.map_err(from_store)?;
        // The total is that of the first page: what comes later is newer than all of its listing.
        let (not_after, total) = match begun {
            Some(cursor) => (cursor.not_after, cursor.total),
            None => {
                // Whatever the clock says now, it was later once, if a task says so.
                let not_after = found.first().map_or(now, |newest| now.max(newest.head().current.status_at));
                (not_after, counted.unwrap_or_default())
            }
        };
        let next_page_token = match found.last() {
            Some(last) if more => {
                let after = ListPosition { status_at: last.head().current.status_at, id: last.id().clone() };
                cursors.seal(&Cursor { after, not_after, total }, scope, &list.filter)
            }
            _ => String::new(),
        };
        let ends = PageEnd { next_page_token, page_size, total };
        let (bytes, generation) = (found.iter().map(Listed::bytes).sum(), context.generation);
        let make = move || match generation {
            Generation::V1 => written(&list, &found, bytes, &ends),
            _ => spelled_later(&list, &found, ends),
        };
        large::work(bytes, make).await.map_err(from_store)?
    }
}

/// What a page says beside its tasks.
struct PageEnd {
    next_page_token: String,
    page_size: u32,
    total: u64,
}

/// The page as 1.0 spells it.
fn written(list: &ListTasks, found: &[Listed], bytes: usize, ends: &PageEnd) -> Result<Outcome, Error> {
    let mut page = v1::PageWriter::new(list, bytes.min(MOST_RESERVED));
    for listed in found {
        if !as_stored(listed).is_some_and(|json| page.stored(&json)) {
            page.task(task(listed)?);
        }
    }
    let json = page.end(&ends.next_page_token, ends.page_size, ends.total).into();
    Ok(Outcome::Stored { json, share: None, sent: false, replayed: false })
}

/// The page as objects: the binding knows the generation's words.
fn spelled_later(list: &ListTasks, found: &[Listed], ends: PageEnd) -> Result<Outcome, Error> {
    let mut tasks = Vec::with_capacity(found.len());
    for listed in found {
        let mut task = task(listed)?;
        list.history_length.trim(&mut task.history);
        tasks.push(task);
    }
    let PageEnd { next_page_token, page_size, total: total_size } = ends;
    let with_artifacts = list.include_artifacts;
    Ok(reply(Reply::Tasks(TaskPage { tasks, next_page_token, page_size, total_size, with_artifacts })))
}

/// The task, or as much of it as was read.
fn task(listed: &Listed) -> Result<Task, Error> {
    match listed {
        Listed::Status(brief) => said::task(brief),
        Listed::Whole(loaded) => record::fold(loaded).map(|snapshot| snapshot.task),
    }
    .map_err(from_store)
}

/// The task as 1.0 spells it, where that need not be made.
fn as_stored(listed: &Listed) -> Option<Bytes> {
    let Listed::Whole(loaded) = listed else { return None };
    let snapshot = loaded.snapshot.as_ref().filter(|it| it.version() == loaded.head.version)?;
    snapshot.task_json()
}
