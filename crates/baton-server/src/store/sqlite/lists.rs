//! Pages of a listing. The page's index entries are found first, from the indexes alone; then the tasks are read one by
//! one until the page has enough rows or bytes. Tasks that are not on the page are not read.

use baton_protocol::domain::{ContextId, ListFilter, Scope, Timestamp};
use rusqlite::{CachedStatement, Connection, params};

use super::session::Session;
use super::statements::{self as sql, signed};
use super::{event_rows, read};
use crate::store::state_totals::{StateTotals, states};
use crate::store::{
    Brief, Detail, ListPage, ListQuery, Listed, Loaded, StoreError, StoreResult, StoredEvent,
};

/// A context with more tasks than this gets counters of its own when its total is first requested.
pub(super) const COUNTERS_ABOVE: u64 = 1_000;

/// What a listing found.
pub(super) struct Found {
    pub(super) page: ListPage,
    /// The total was counted by scanning an index and the context is large: create counters for it.
    pub(super) wants_counters: bool,
}

/// `status_at`, id and key of a task: lists are sorted by the first two.
type IndexEntry = (i64, String, i64);

pub(super) fn list(session: &mut Session, scope: &Scope, query: &ListQuery) -> StoreResult<Found> {
    let Some(scope) = session.scope(scope)? else {
        let page = ListPage { tasks: Vec::new(), more: false, total: query.counted.then_some(0) };
        return Ok(Found { page, wants_counters: false });
    };
    let transaction = session.connection.transaction()?;
    let filter = &query.filter;
    let tally = stored_totals(&transaction, sql::TALLY, params![scope])?.unwrap_or_default();
    let (total, wants_counters) = match &filter.context_id {
        _ if !query.counted => (None, false),
        None if filter.updated_since.is_none() => (Some(tally.sum(filter)), false),
        None => (Some(count_by_scan(&transaction, scope, filter, &tally)?), false),
        Some(context) => {
            let (total, wants_counters) = context_total(&transaction, scope, context, filter, &tally)?;
            (Some(total), wants_counters)
        }
    };
    let entries = find_entries(&transaction, scope, query, &tally)?;
    let mut reader = TaskReader::new(&transaction, query.detail)?;
    let (mut tasks, mut left) = (Vec::with_capacity(entries.len()), query.most_bytes);
    for (_, _, key) in entries.iter().take(query.limit as usize) {
        // The first task is shown however large it is.
        let budget = if tasks.is_empty() { usize::MAX } else { left };
        let Some(listed) = reader.read(*key, budget)? else { break };
        left = left.saturating_sub(listed.bytes());
        tasks.push(listed);
    }
    let page = ListPage { more: tasks.len() < entries.len(), tasks, total };
    Ok(Found { page, wants_counters })
}

/// The stored totals; `None` if there are no rows.
fn stored_totals(
    transaction: &Connection,
    sql: &str,
    of: &[&dyn rusqlite::ToSql],
) -> StoreResult<Option<StateTotals>> {
    let mut totals = None;
    let mut statement = transaction.prepare_cached(sql)?;
    let mut rows = statement.query(of)?;
    while let Some(row) = rows.next()? {
        let (state, tasks): (u8, i64) = (row.get(0)?, row.get(1)?);
        if let Some(total) = totals.get_or_insert_with(StateTotals::default).by_number(state) {
            *total = u64::try_from(tasks).map_err(|_| StoreError::damaged("a negative count"))?;
        }
    }
    Ok(totals)
}

fn state_bits(filter: &ListFilter) -> i64 {
    states(filter).fold(0, |bits, state| bits | 1 << state.number())
}

fn not_before(filter: &ListFilter) -> i64 {
    filter.updated_since.unwrap_or(Timestamp::MIN).as_millis()
}

/// A total that no counter holds, counted in the indexes: of tasks since a time, or of a context.
fn count_by_scan(
    transaction: &Connection,
    scope: i64,
    filter: &ListFilter,
    tally: &StateTotals,
) -> StoreResult<u64> {
    let (since, bits) = (not_before(filter), state_bits(filter));
    let count = |sql, params: &[&dyn rusqlite::ToSql], context: Option<&ContextId>| -> StoreResult<u64> {
        let mut params = params.to_vec();
        let context = context.map(ContextId::as_str);
        if let Some(context) = &context {
            params.push(context);
        }
        let count = transaction.prepare_cached(sql)?.query_row(&params[..], |row| row.get::<_, i64>(0))?;
        Ok(count.cast_unsigned())
    };
    let context = filter.context_id.as_ref();
    let (resting, open) = match context {
        None => (sql::COUNT_SINCE, sql::COUNT_OPEN_SINCE),
        Some(_) => (sql::COUNT_SINCE_IN_CONTEXT, sql::COUNT_OPEN_SINCE_IN_CONTEXT),
    };
    let mut total = count(open, params![scope, since, bits], context)?;
    for state in states(filter).filter(|state| tally.of(*state) > 0) {
        total += count(resting, params![scope, state.number(), since], context)?;
    }
    Ok(total)
}

/// The context's total, and whether the context should get counters.
fn context_total(
    transaction: &Connection,
    scope: i64,
    context: &ContextId,
    filter: &ListFilter,
    tally: &StateTotals,
) -> StoreResult<(u64, bool)> {
    let always_scanned = filter.updated_since.is_some();
    // A context without rows has no counters.
    if !always_scanned
        && let Some(tally) = stored_totals(transaction, sql::CONTEXT_TALLY, params![scope, context.as_str()])?
    {
        return Ok((tally.sum(filter), false));
    }
    let total = count_by_scan(transaction, scope, filter, tally)?;
    Ok((total, !always_scanned && total > COUNTERS_ABOVE))
}

/// The page's entries, newest first, and one more if there is one (it decides `more`).
fn find_entries(
    transaction: &Connection,
    scope: i64,
    query: &ListQuery,
    tally: &StateTotals,
) -> StoreResult<Vec<IndexEntry>> {
    // One upper bound is enough: a position newer than `not_after` adds no restriction, and "not after this
    // millisecond" equals "before the empty id in the next millisecond".
    let (before, id) = match &query.after {
        Some(after) if after.status_at <= query.not_after => (after.status_at.as_millis(), after.id.as_str()),
        _ => (query.not_after.as_millis() + 1, ""),
    };
    let filter = &query.filter;
    let (since, bits, limit) = (not_before(filter), state_bits(filter), i64::from(query.limit) + 1);
    let context = filter.context_id.as_ref().map(ContextId::as_str);
    let (resting, open) = match context {
        None => (sql::LIST_RESTING, sql::LIST_OPEN),
        Some(_) => (sql::LIST_RESTING_IN_CONTEXT, sql::LIST_OPEN_IN_CONTEXT),
    };
    let asked = 6 + usize::from(context.is_some());
    let mut entries = Vec::new();
    // One index range per state, so that a rare state does not scan tasks of others. States without tasks are left out.
    for state in states(filter).filter(|state| tally.of(*state) > 0) {
        let params = params![scope, state.number(), before, id, since, limit, context];
        add_entries(transaction.prepare_cached(resting)?, &params[..asked], &mut entries)?;
    }
    let params = params![scope, before, id, since, bits, limit, context];
    add_entries(transaction.prepare_cached(open)?, &params[..asked], &mut entries)?;
    entries.sort_unstable_by(|a, b| b.cmp(a));
    entries.truncate(query.limit as usize + 1);
    Ok(entries)
}

fn add_entries(
    mut find: CachedStatement<'_>,
    params: &[&dyn rusqlite::ToSql],
    entries: &mut Vec<IndexEntry>,
) -> StoreResult<()> {
    let mut rows = find.query(params)?;
    while let Some(row) = rows.next()? {
        entries.push((row.get(0)?, row.get(1)?, row.get(2)?));
    }
    Ok(())
}

/// Reads the tasks of a page.
struct TaskReader<'a> {
    detail: Detail,
    brief: CachedStatement<'a>,
    whole: CachedStatement<'a>,
    said: CachedStatement<'a>,
    tail: CachedStatement<'a>,
}

impl<'a> TaskReader<'a> {
    fn new(transaction: &'a Connection, detail: Detail) -> StoreResult<Self> {
        Ok(TaskReader {
            detail,
            brief: transaction.prepare_cached(sql::BRIEF)?,
            whole: transaction.prepare_cached(sql::WHOLE)?,
            said: transaction.prepare_cached(sql::SAID)?,
            tail: transaction.prepare_cached(sql::TAIL_WITHIN)?,
        })
    }

    /// `None` if the task has more than `budget` bytes.
    fn read(&mut self, key: i64, budget: usize) -> StoreResult<Option<Listed>> {
        match self.detail {
            Detail::Whole => self.whole(key, budget),
            Detail::Status => self.brief(key, budget),
        }
    }

    fn brief(&mut self, key: i64, budget: usize) -> StoreResult<Option<Listed>> {
        let mut rows = self.brief.query([key])?;
        let row = rows.next()?.ok_or_else(|| missing(key))?;
        let (id, head, said) = sql::head_and_said(row)?;
        drop(rows);
        let said = match said {
            // A row of a format without this column.
            None => return self.whole(key, budget),
            Some(0) => None,
            Some(number) => Some(self.said(key, number)?),
        };
        let brief = Listed::Status(Brief { id, head, said });
        Ok((brief.bytes() <= budget).then_some(brief))
    }

    fn said(&mut self, key: i64, number: u64) -> StoreResult<StoredEvent> {
        let mut rows = self.said.query(params![key, signed(number)])?;
        let mut events = Vec::new();
        if let Some(row) = rows.next()? {
            event_rows::read(row, number - 1, &mut events)?;
        }
        let said = events.into_iter().find(|event| event.number == number);
        said.ok_or_else(|| {
            StoreError::damaged(format!("event {number}, with the status message, is missing"))
        })
    }

    fn whole(&mut self, key: i64, budget: usize) -> StoreResult<Option<Listed>> {
        let most = i64::try_from(budget).unwrap_or(i64::MAX);
        let mut rows = self.whole.query(params![key, most])?;
        let row = rows.next()?.ok_or_else(|| missing(key))?;
        let (id, head, _) = sql::head_and_said(row)?;
        let length: Option<i64> = row.get(sql::AFTER_HEAD)?;
        if length.is_some_and(|length| length > most) {
            return Ok(None);
        }
        let snapshot = sql::snapshot(row, sql::AFTER_HEAD + 1)?;
        drop(rows);
        let mut task = Loaded { id, head, snapshot, tail: Vec::new() };
        let fits = read::load_tail_within(&mut self.tail, &mut task, budget)?;
        Ok(fits.then_some(Listed::Whole(task)))
    }
}

fn missing(key: i64) -> StoreError {
    StoreError::damaged(format!("task {key} is in an index but not in its table"))
}
