//! The verbs that read. Those of several statements hold one snapshot of the database meanwhile.

use std::cmp::Reverse;

use baton_protocol::domain::{ListFilter, MessageId, Scope, TaskId, TaskState, Timestamp};
use rusqlite::{Connection, Params, params};

use super::event_rows;
use super::session::Session;
use super::statements::{self as sql, signed};
use crate::store::{
    EVENTS_BYTES, Head, ListQuery, Loaded, MessageRecord, OpenTask, PendingRequest, StoreResult, StoredEvent,
    TaskKey,
};

pub(super) fn head(session: &mut Session, scope: &Scope, task: &TaskId) -> StoreResult<Option<Head>> {
    match session.scope(scope)? {
        Some(scope) => find_head(&session.connection, scope, task),
        None => Ok(None),
    }
}

pub(super) fn load(session: &mut Session, scope: &Scope, task: &TaskId) -> StoreResult<Option<Loaded>> {
    let Some(scope) = session.scope(scope)? else { return Ok(None) };
    let snapshot = session.connection.transaction()?;
    let mut tasks = Vec::new();
    load_heads(&snapshot, sql::LOAD, params![scope, task.as_str()], &mut tasks)?;
    load_tails(&snapshot, &mut tasks)?;
    Ok(tasks.pop())
}

pub(super) fn events(
    session: &mut Session,
    scope: &Scope,
    task: &TaskId,
    after: u64,
    limit: u32,
) -> StoreResult<Vec<StoredEvent>> {
    let Some(scope) = session.scope(scope)? else { return Ok(Vec::new()) };
    let mut statement = session.connection.prepare_cached(sql::EVENTS)?;
    let mut rows = statement.query(params![scope, task.as_str(), sql::position(after), limit])?;
    let (mut events, limit, mut bytes) = (Vec::new(), limit as usize, 0);
    while events.len() < limit
        && bytes < EVENTS_BYTES
        && let Some(row) = rows.next()?
    {
        let before = events.len();
        event_rows::read(row, after, &mut events)?;
        bytes += events[before..].iter().map(|event: &StoredEvent| event.record().len()).sum::<usize>();
    }
    events.truncate(limit);
    Ok(events)
}

pub(super) fn list(session: &mut Session, scope: &Scope, query: &ListQuery) -> StoreResult<Vec<Loaded>> {
    let Some(scope) = session.scope(scope)? else { return Ok(Vec::new()) };
    // One upper bound is enough: a position newer than `not_after` says nothing, and "not after this
    // millisecond" is "before the empty id of the next one".
    let (before, id) = match &query.after {
        Some(after) if after.status_at <= query.not_after => (after.status_at.as_millis(), after.id.as_str()),
        _ => (query.not_after.as_millis() + 1, ""),
    };
    let filter = &query.filter;
    let (since, states) = (not_before(filter), states(filter));
    let snapshot = session.connection.transaction()?;
    let mut tasks = Vec::new();
    match &filter.context_id {
        None => {
            let params = params![scope, before, id, since, states, query.limit];
            sql::LIST.into_iter().try_for_each(|part| load_heads(&snapshot, part, params, &mut tasks))?;
        }
        Some(context) => {
            let params = params![scope, before, id, since, states, query.limit, context.as_str()];
            sql::LIST_CONTEXT
                .into_iter()
                .try_for_each(|part| load_heads(&snapshot, part, params, &mut tasks))?;
        }
    }
    let position = |task: &Loaded| (task.head.current.status_at, task.id.clone());
    tasks.sort_by_key(|task| Reverse(position(task)));
    tasks.truncate(query.limit as usize);
    load_tails(&snapshot, &mut tasks)?;
    Ok(tasks)
}

pub(super) fn count(
    session: &mut Session,
    scope: &Scope,
    filter: &ListFilter,
    not_after: Timestamp,
) -> StoreResult<u64> {
    let Some(scope) = session.scope(scope)? else { return Ok(0) };
    let connection = &session.connection;
    let (newest, since, states) = (not_after.as_millis(), not_before(filter), states(filter));
    let count: i64 = match &filter.context_id {
        None => connection
            .prepare_cached(sql::COUNT)?
            .query_row(params![scope, newest, since, states], |row| row.get(0))?,
        Some(context) => connection
            .prepare_cached(sql::COUNT_CONTEXT)?
            .query_row(params![scope, newest, since, states, context.as_str()], |row| row.get(0))?,
    };
    Ok(count.cast_unsigned())
}

pub(super) fn requests(
    session: &mut Session,
    scope: &Scope,
    task: &TaskId,
) -> StoreResult<Vec<PendingRequest>> {
    let Some(scope) = session.scope(scope)? else { return Ok(Vec::new()) };
    let mut statement = session.connection.prepare_cached(sql::REQUESTS)?;
    let requests = statement.query_and_then(params![scope, task.as_str()], sql::request)?;
    requests.collect()
}

pub(super) fn message(
    session: &mut Session,
    scope: &Scope,
    id: &MessageId,
    hash: &[u8; 32],
) -> StoreResult<Option<MessageRecord>> {
    match session.scope(scope)? {
        Some(scope) => find_message(&session.connection, scope, id, hash),
        None => Ok(None),
    }
}

pub(super) fn open_tasks(session: &mut Session, after: TaskKey, limit: u32) -> StoreResult<Vec<OpenTask>> {
    let mut statement = session.connection.prepare_cached(sql::OPEN_TASKS)?;
    let tasks = statement.query_and_then(params![sql::position(after.0), limit], |row| {
        let scope = Scope::of(row.get(1)?, row.get(2)?, row.get(3)?);
        Ok(OpenTask { key: TaskKey(sql::unsigned(row, 0)?), scope, id: sql::task_id(row, 4)? })
    })?;
    tasks.collect()
}

pub(super) fn find_head(connection: &Connection, scope: i64, task: &TaskId) -> StoreResult<Option<Head>> {
    let mut statement = connection.prepare_cached(sql::HEAD)?;
    let mut rows = statement.query(params![scope, task.as_str()])?;
    rows.next()?.map(|row| Ok(sql::head(row)?.1)).transpose()
}

pub(super) fn find_message(
    connection: &Connection,
    scope: i64,
    id: &MessageId,
    hash: &[u8; 32],
) -> StoreResult<Option<MessageRecord>> {
    let mut statement = connection.prepare_cached(sql::FIND_MESSAGE)?;
    let mut rows = statement.query(params![scope, id.as_str(), hash])?;
    rows.next()?.map(sql::message_record).transpose()
}

/// Heads with their snapshots.
fn load_heads(
    connection: &Connection,
    query: &str,
    params: impl Params,
    tasks: &mut Vec<Loaded>,
) -> StoreResult<()> {
    let mut statement = connection.prepare_cached(query)?;
    let mut rows = statement.query(params)?;
    while let Some(row) = rows.next()? {
        let (id, head) = sql::head(row)?;
        let snapshot = sql::snapshot(row, sql::AFTER_HEAD)?;
        tasks.push(Loaded { id, head, snapshot, tail: Vec::new() });
    }
    Ok(())
}

/// The events each snapshot lacks.
fn load_tails(connection: &Connection, tasks: &mut [Loaded]) -> StoreResult<()> {
    for task in tasks {
        let folded = task.snapshot.as_ref().map_or(0, |snapshot| snapshot.version());
        if folded < task.head.version {
            let mut tail = connection.prepare_cached(sql::TAIL)?;
            let mut rows = tail.query(params![signed(task.head.key.0), signed(folded)])?;
            while let Some(row) = rows.next()? {
                event_rows::read(row, folded, &mut task.tail)?;
            }
        }
    }
    Ok(())
}

fn not_before(filter: &ListFilter) -> i64 {
    filter.updated_since.unwrap_or(Timestamp::MIN).as_millis()
}

/// One bit per state number; no states at all means every state.
fn states(filter: &ListFilter) -> i64 {
    let asked: &[TaskState] = if filter.states.is_empty() { &TaskState::ALL } else { &filter.states };
    asked.iter().fold(0, |bits, state| bits | 1 << state.number())
}
