//! The operations that read. Those with several statements run them in one transaction, to see one state.

use baton_protocol::domain::{MessageId, Scope, TaskId};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, Statement, params};

use super::event_rows;
use super::session::Session;
use super::statements::{self as sql, signed};
use crate::store::{
    EVENTS_BYTES, HASH_DIGEST, Head, Loaded, MessageHash, MessageRecord, OpenTask, PendingRequest,
    StoreResult, StoredEvent, TaskKey, Weighed,
};

pub(super) fn find_secret(session: &mut Session, name: &str) -> StoreResult<Option<Vec<u8>>> {
    let mut find = session.connection.prepare_cached(sql::FIND_SECRET)?;
    Ok(find.query_row([name], |row| row.get(0)).optional()?)
}

/// The rows of all tables.
pub(super) fn row_count(session: &mut Session) -> StoreResult<u64> {
    let connection = &session.connection;
    let mut tables = connection.prepare(sql::TABLES)?;
    let tables: Vec<String> = tables.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let count = |table: &String| {
        connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| sql::unsigned(row, 0))
    };
    Ok(tables.iter().map(count).sum::<Result<u64, _>>()?)
}

pub(super) fn head(session: &mut Session, scope: &Scope, task: &TaskId) -> StoreResult<Option<Head>> {
    match session.scope(scope)? {
        Some(scope) => find_head(&session.connection, scope, task),
        None => Ok(None),
    }
}

pub(super) fn load(session: &mut Session, scope: &Scope, task: &TaskId) -> StoreResult<Option<Loaded>> {
    let Some(scope) = session.scope(scope)? else { return Ok(None) };
    let transaction = session.connection.transaction()?;
    let mut task = {
        let mut statement = transaction.prepare_cached(sql::LOAD)?;
        let mut rows = statement.query(params![scope, task.as_str()])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let (id, head) = sql::head(row)?;
        let snapshot = sql::snapshot(row, sql::AFTER_HEAD)?;
        Loaded { id, head, snapshot, tail: Vec::new() }
    };
    load_tail(&mut *transaction.prepare_cached(sql::TAIL)?, &mut task)?;
    Ok(Some(task))
}

/// Of a task that is too large only the size is read.
pub(super) fn load_within(
    session: &mut Session,
    scope: &Scope,
    task: &TaskId,
    most: usize,
) -> StoreResult<Option<Weighed>> {
    let Some(scope) = session.scope(scope)? else { return Ok(None) };
    let connection = session.connection.transaction()?;
    let mut statement = connection.prepare_cached(sql::LOAD_WITHIN)?;
    let mut rows = statement.query(params![scope, task.as_str(), most as i64])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let (id, head) = sql::head(row)?;
    let snapshot_bytes = row.get::<_, Option<i64>>(sql::AFTER_HEAD + 2)?.map_or(0, |bytes| bytes as usize);
    let version: Option<i64> = row.get(sql::AFTER_HEAD + 3)?;
    let weigh = || {
        let tail: Option<i64> = connection
            .prepare_cached(sql::TAIL_BYTES)?
            .query_row(params![signed(head.key.0), version.unwrap_or(0)], |row| row.get(0))?;
        Ok(Some(Weighed::Heavy(snapshot_bytes + tail.unwrap_or(0) as usize)))
    };
    if snapshot_bytes > most {
        return weigh();
    }
    let mut loaded =
        Loaded { id, head: head.clone(), snapshot: sql::snapshot(row, sql::AFTER_HEAD)?, tail: Vec::new() };
    let all = load_tail_within(&mut *connection.prepare_cached(sql::TAIL_WITHIN)?, &mut loaded, most)?;
    if all { Ok(Some(Weighed::Light(loaded))) } else { weigh() }
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
        // A row may also hold events up to `folded_through`, which count as gone.
        event_rows::read(row, after.max(sql::unsigned(row, 4)?), &mut events)?;
        bytes += events[before..].iter().map(|event: &StoredEvent| event.record().len()).sum::<usize>();
    }
    events.truncate(limit);
    Ok(events)
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
    hash: &MessageHash,
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
    hash: &MessageHash,
) -> StoreResult<Option<MessageRecord>> {
    let mut statement = connection.prepare_cached(sql::FIND_MESSAGE)?;
    // All hashes with this digest, whatever their version byte.
    let (mut first, mut last) = (*hash, *hash);
    (first[HASH_DIGEST], last[HASH_DIGEST]) = (0, u8::MAX);
    let mut rows = statement.query(params![scope, id.as_str(), first, last])?;
    rows.next()?.map(sql::message_record).transpose()
}

/// Reads the events after the task's snapshot.
fn load_tail(tail: &mut Statement<'_>, task: &mut Loaded) -> StoreResult<()> {
    let folded = task.snapshot.as_ref().map_or(0, |snapshot| snapshot.version());
    if folded < task.head.version {
        let mut rows = tail.query(params![signed(task.head.key.0), signed(folded)])?;
        while let Some(row) = rows.next()? {
            event_rows::read(row, folded, &mut task.tail)?;
        }
    }
    Ok(())
}

/// The same, unless the whole task has more than `most` bytes: then reading stops and the answer is `false`.
pub(super) fn load_tail_within(
    tail: &mut Statement<'_>,
    task: &mut Loaded,
    most: usize,
) -> StoreResult<bool> {
    let folded = task.snapshot.as_ref().map_or(0, |snapshot| snapshot.version());
    if folded < task.head.version {
        let mut bytes = task.bytes();
        let most_of_row = i64::try_from(most).unwrap_or(i64::MAX);
        let mut rows = tail.query(params![signed(task.head.key.0), signed(folded), most_of_row])?;
        while let Some(row) = rows.next()? {
            if row.get_ref(1)? == ValueRef::Null {
                return Ok(false);
            }
            let before = task.tail.len();
            event_rows::read(row, folded, &mut task.tail)?;
            bytes += task.tail[before..].iter().map(|event| event.record().len()).sum::<usize>();
            if bytes > most {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
