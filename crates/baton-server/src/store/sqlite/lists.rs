//! Pages of a listing. First places are found in the indexes alone, then the tasks that stand there are read, one by
//! one, until the page is full or weighs enough; whatever is not shown is not read.

use baton_protocol::domain::{ContextId, ListFilter, Scope, Timestamp};
use rusqlite::{CachedStatement, Connection, params};

use super::session::Session;
use super::statements::{self as sql, signed};
use super::{event_rows, read};
use crate::store::state_totals::{StateTotals, states};
use crate::store::{
    Brief, Detail, ListPage, ListQuery, Listed, Loaded, StoreError, StoreResult, StoredEvent,
};

/// A context with more tasks has its own counters, from the first time that somebody asks for its total.
pub(super) const COUNTED_FROM: u64 = 1_000;

/// What a listing found.
pub(super) struct Found {
    pub(super) page: ListPage,
    /// The total was counted by walking, and next time it should not be.
    pub(super) wants_counters: bool,
}

/// Where a task stands in a list.
type ListedAt = (i64, String, i64);

pub(super) fn list(session: &mut Session, scope: &Scope, query: &ListQuery) -> StoreResult<Found> {
    let Some(scope) = session.scope(scope)? else {
        let page = ListPage { tasks: Vec::new(), more: false, total: query.counted.then_some(0) };
        return Ok(Found { page, wants_counters: false });
    };
    let moment = session.connection.transaction()?;
    let filter = &query.filter;
    let tally = stored_totals(&moment, sql::TALLY, params![scope])?.unwrap_or_default();
    let (total, wants_counters) = match &filter.context_id {
        _ if !query.counted => (None, false),
        None if filter.updated_since.is_none() => (Some(tally.sum(filter)), false),
        None => (Some(walked(&moment, scope, filter, &tally)?), false),
        Some(context) => {
            let (total, wants_counters) = context_total(&moment, scope, context, filter, &tally)?;
            (Some(total), wants_counters)
        }
    };
    let places = places(&moment, scope, query, &tally)?;
    let mut reader = TaskReader::new(&moment, query.detail)?;
    let (mut tasks, mut left) = (Vec::with_capacity(places.len()), query.most_bytes);
    for (_, _, key) in places.iter().take(query.limit as usize) {
        // The first comes whatever it weighs.
        let room = if tasks.is_empty() { usize::MAX } else { left };
        let Some(listed) = reader.read(*key, room)? else { break };
        left = left.saturating_sub(listed.bytes());
        tasks.push(listed);
    }
    let page = ListPage { more: tasks.len() < places.len(), tasks, total };
    Ok(Found { page, wants_counters })
}

/// The stored totals; `None` if there is no row of them.
fn stored_totals(
    moment: &Connection,
    sql: &str,
    of: &[&dyn rusqlite::ToSql],
) -> StoreResult<Option<StateTotals>> {
    let mut totals = None;
    let mut statement = moment.prepare_cached(sql)?;
    let mut rows = statement.query(of)?;
    while let Some(row) = rows.next()? {
        let (state, tasks): (u8, i64) = (row.get(0)?, row.get(1)?);
        if let Some(total) = totals.get_or_insert_with(StateTotals::default).by_number(state) {
            *total = u64::try_from(tasks).map_err(|_| StoreError::Damaged("a negative count".to_owned()))?;
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

/// A total that no counter knows: of the tasks since a time, or of a context.
fn walked(moment: &Connection, scope: i64, filter: &ListFilter, tally: &StateTotals) -> StoreResult<u64> {
    let (since, bits) = (not_before(filter), state_bits(filter));
    let count = |sql, params: &[&dyn rusqlite::ToSql], context: Option<&ContextId>| -> StoreResult<u64> {
        let mut params = params.to_vec();
        let context = context.map(ContextId::as_str);
        if let Some(context) = &context {
            params.push(context);
        }
        let count = moment.prepare_cached(sql)?.query_row(&params[..], |row| row.get::<_, i64>(0))?;
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

/// The total, and whether it should have counters.
fn context_total(
    moment: &Connection,
    scope: i64,
    context: &ContextId,
    filter: &ListFilter,
    tally: &StateTotals,
) -> StoreResult<(u64, bool)> {
    let always_walked = filter.updated_since.is_some();
    // A context without rows is not one that is counted.
    if !always_walked
        && let Some(tally) = stored_totals(moment, sql::CONTEXT_TALLY, params![scope, context.as_str()])?
    {
        return Ok((tally.sum(filter), false));
    }
    let total = walked(moment, scope, filter, tally)?;
    Ok((total, !always_walked && total > COUNTED_FROM))
}

/// The page's places and one more, if there is one, newest first.
fn places(
    moment: &Connection,
    scope: i64,
    query: &ListQuery,
    tally: &StateTotals,
) -> StoreResult<Vec<ListedAt>> {
    // One upper bound is enough: a position newer than `not_after` says nothing, and "not after this
    // millisecond" is "before the empty id of the next one".
    let (before, id) = match &query.after {
        Some(after) if after.status_at <= query.not_after => (after.status_at.as_millis(), after.id.as_str()),
        _ => (query.not_after.as_millis() + 1, ""),
    };
    let filter = &query.filter;
    let (since, bits, limit) = (not_before(filter), state_bits(filter), i64::from(query.limit) + 1);
    let context = filter.context_id.as_ref().map(ContextId::as_str);
    let (resting, open) = match context {
        None => (sql::PLACES, sql::PLACES_OPEN),
        Some(_) => (sql::PLACES_IN_CONTEXT, sql::PLACES_OPEN_IN_CONTEXT),
    };
    let asked = 6 + usize::from(context.is_some());
    let mut places = Vec::new();
    // One range for each state, so that a rare one skips nothing; what the counters say is empty is passed by.
    for state in states(filter).filter(|state| tally.of(*state) > 0) {
        let params = params![scope, state.number(), before, id, since, limit, context];
        add_places(moment.prepare_cached(resting)?, &params[..asked], &mut places)?;
    }
    let params = params![scope, before, id, since, bits, limit, context];
    add_places(moment.prepare_cached(open)?, &params[..asked], &mut places)?;
    places.sort_unstable_by(|a, b| b.cmp(a));
    places.truncate(query.limit as usize + 1);
    Ok(places)
}

fn add_places(
    mut find: CachedStatement<'_>,
    params: &[&dyn rusqlite::ToSql],
    places: &mut Vec<ListedAt>,
) -> StoreResult<()> {
    let mut rows = find.query(params)?;
    while let Some(row) = rows.next()? {
        places.push((row.get(0)?, row.get(1)?, row.get(2)?));
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
    fn new(moment: &'a Connection, detail: Detail) -> StoreResult<Self> {
        Ok(TaskReader {
            detail,
            brief: moment.prepare_cached(sql::BRIEF)?,
            whole: moment.prepare_cached(sql::WHOLE)?,
            said: moment.prepare_cached(sql::SAID)?,
            tail: moment.prepare_cached(sql::TAIL_WITHIN)?,
        })
    }

    /// `None`: it does not fit the room there is.
    fn read(&mut self, key: i64, room: usize) -> StoreResult<Option<Listed>> {
        match self.detail {
            Detail::Whole => self.whole(key, room),
            Detail::Status => self.brief(key, room),
        }
    }

    fn brief(&mut self, key: i64, room: usize) -> StoreResult<Option<Listed>> {
        let mut rows = self.brief.query([key])?;
        let row = rows.next()?.ok_or_else(|| missing(key))?;
        let (id, head, said) = sql::head_and_said(row)?;
        drop(rows);
        let said = match said {
            // A row that was written before there was such a number.
            None => return self.whole(key, room),
            Some(0) => None,
            Some(number) => Some(self.said(key, number)?),
        };
        let brief = Listed::Status(Brief { id, head, said });
        Ok((brief.bytes() <= room).then_some(brief))
    }

    fn said(&mut self, key: i64, number: u64) -> StoreResult<StoredEvent> {
        let mut rows = self.said.query(params![key, signed(number)])?;
        let mut events = Vec::new();
        if let Some(row) = rows.next()? {
            event_rows::read(row, number - 1, &mut events)?;
        }
        let said = events.into_iter().find(|event| event.number == number);
        said.ok_or_else(|| StoreError::Damaged(format!("event {number}, which says a status, is not there")))
    }

    fn whole(&mut self, key: i64, room: usize) -> StoreResult<Option<Listed>> {
        let most = i64::try_from(room).unwrap_or(i64::MAX);
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
        let fits = read::load_tail_within(&mut self.tail, &mut task, room)?;
        Ok(fits.then_some(Listed::Whole(task)))
    }
}

fn missing(key: i64) -> StoreError {
    StoreError::Damaged(format!("task {key} is in an index and not in its table"))
}
