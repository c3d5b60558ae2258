//! The verbs that write. Each runs inside a transaction of the writer: it compares first, and once it has
//! written anything it can only succeed or fail as a whole.

use baton_protocol::domain::{Scope, TaskId, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::checksum::Sum;
use super::read;
use super::session::Session;
use super::statements::{self as sql, signed};
use crate::points::{Point, reached};
use crate::store::{
    Append, Appended, Birth, HeadState, MessageRecord, NewRequest, RequestId, Requested, Settled,
    StoreResult, TaskKey,
};

/// Ten pages: the row, its entries in the indexes, event and message record of a small task.
const CHECK_BYTES: usize = 10 * 4096;

pub(super) fn append(session: &mut Session, scope: &Scope, append: &Append) -> StoreResult<Appended> {
    let known = session.scope(scope)?;
    if let (Some(scope), Some(message)) = (known, &append.message)
        && let Some(earlier) =
            read::find_message(&session.connection, scope, &message.message_id, &message.hash)?
    {
        return Ok(Appended::Duplicate(earlier));
    }
    let stored = match known {
        Some(scope) => compare(&session.connection, scope, &append.task)?,
        None => None,
    };
    let version = append.expected + append.events.len() as u64;
    let (scope, key) = match (&append.birth, stored, known) {
        (Some(birth), None, _) => {
            let scope = session.intern(scope)?;
            session.moves.born(append.head.state);
            (scope, insert_task(&session.connection, scope, &append.task, birth, version, &append.head)?)
        }
        (None, Some(stored), Some(scope))
            if (stored.version, stored.fence) == (append.expected, append.fence) =>
        {
            session.moves.moved(stored.state, append.head.state);
            update_head(&session.connection, &stored, &append.task, version, &append.head)?;
            (scope, stored.key)
        }
        _ => return Ok(Appended::Conflict),
    };
    let connection = &session.connection;
    reached(Point::AppendHead);
    if !append.events.is_empty() {
        let mut insert = connection.prepare_cached(sql::INSERT_EVENT)?;
        for (event, number) in append.events.iter().zip(append.expected + 1..) {
            debug_assert_eq!(event.number, number, "events are numbered from the version they follow");
            let sum = Sum::of(number).bytes(event.record());
            insert.execute(params![key, signed(number), &event.record()[..], sum.stored()])?;
            reached(Point::AppendEvent);
        }
    }
    if let Some(snapshot) = &append.snapshot {
        let mut put = connection.prepare_cached(sql::PUT_SNAPSHOT)?;
        let sum = Sum::of(snapshot.version()).bytes(snapshot.record());
        put.execute(params![key, signed(snapshot.version()), &snapshot.record()[..], sum.stored()])?;
        reached(Point::AppendSnapshot);
    }
    if let Some(message) = &append.message {
        insert_message(connection, scope, message)?;
        reached(Point::AppendMessage);
    }
    for settled in &append.settled {
        settle(connection, scope, key, settled)?;
        reached(Point::AppendSettled);
    }
    Ok(Appended::Written(TaskKey(key.cast_unsigned())))
}

pub(super) fn request(
    session: &mut Session,
    scope: &Scope,
    task: &TaskId,
    request: &NewRequest,
) -> StoreResult<Requested> {
    let Some(scope) = session.scope(scope)? else { return Ok(Requested::NotFound) };
    let connection = &session.connection;
    if let Some(message) = &request.message
        && let Some(earlier) = read::find_message(connection, scope, &message.message_id, &message.hash)?
    {
        return Ok(Requested::Duplicate(earlier));
    }
    let Some(head) = read::find_head(connection, scope, task)? else { return Ok(Requested::NotFound) };
    if head.current.state.is_terminal() {
        return Ok(Requested::Ended(head));
    }
    let key = signed(head.key.0);
    let pending: u32 = connection.prepare_cached(sql::COUNT_REQUESTS)?.query_row([key], |row| row.get(0))?;
    if pending >= request.most_pending {
        return Ok(Requested::Full);
    }
    let id: i64 = connection.prepare_cached(sql::NUMBER_REQUEST)?.query_row([key], |row| row.get(0))?;
    reached(Point::RequestNumbered);
    let message = request.message.as_ref();
    connection.prepare_cached(sql::INSERT_REQUEST)?.execute(params![
        key,
        id,
        &request.event.record()[..],
        message.map(|message| message.message_id.as_str()),
        message.map(|message| message.hash),
        Sum::of(id.cast_unsigned()).bytes(request.event.record()).stored(),
    ])?;
    reached(Point::RequestInserted);
    if let Some(message) = message {
        insert_message(connection, scope, message)?;
    }
    Ok(Requested::Noted { request: RequestId(id.cast_unsigned()), head })
}

pub(super) fn put_reply(
    session: &mut Session,
    scope: &Scope,
    record: &MessageRecord,
) -> StoreResult<Option<MessageRecord>> {
    let scope = session.intern(scope)?;
    let connection = &session.connection;
    let earlier = read::find_message(connection, scope, &record.message_id, &record.hash)?;
    if earlier.is_none() {
        insert_message(connection, scope, record)?;
    }
    Ok(earlier)
}

pub(super) fn secret(session: &mut Session, name: &str, fresh: &[u8]) -> StoreResult<Vec<u8>> {
    let connection = &session.connection;
    let kept = connection.prepare_cached(sql::FIND_SECRET)?.query_row([name], |row| row.get(0)).optional()?;
    match kept {
        Some(kept) => Ok(kept),
        None => {
            connection.prepare_cached(sql::INSERT_SECRET)?.execute(params![name, fresh])?;
            reached(Point::SecretMade);
            Ok(fresh.to_vec())
        }
    }
}

/// Rewrites a row that takes about as much room as a new task does: a smaller one would still fit where no
/// task does any more, and the answer would be wrong.
pub(super) fn check(session: &mut Session) -> StoreResult<()> {
    let mut put = session.connection.prepare_cached(sql::PUT_CHECK)?;
    put.execute(["-".repeat(CHECK_BYTES), "+".repeat(CHECK_BYTES)])?;
    Ok(())
}

/// Drops the events of ended tasks whose snapshot says it all.
pub(super) fn fold_ended(session: &mut Session, before: Timestamp, limit: u32) -> StoreResult<u64> {
    let connection = &session.connection;
    let keys = keys(connection, sql::FOLDABLE, before, limit)?;
    for key in &keys {
        connection.prepare_cached(sql::REMOVE_EVENTS)?.execute([key])?;
        reached(Point::FoldEvents);
        connection.prepare_cached(sql::MARK_FOLDED)?.execute([key])?;
    }
    Ok(keys.len() as u64)
}

pub(super) fn purge_ended(session: &mut Session, before: Timestamp, limit: u32) -> StoreResult<u64> {
    let connection = &session.connection;
    let mut find = connection.prepare_cached(sql::PURGEABLE)?;
    let rows = find.query_map(params![before.as_millis(), limit], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let ended: Vec<(i64, u8)> = rows.collect::<Result<_, _>>()?;
    for (key, state) in &ended {
        for remove in sql::REMOVE_TASK {
            connection.prepare_cached(remove)?.execute([key])?;
            reached(Point::PurgeRows);
        }
        session.moves.removed(*state);
    }
    Ok(ended.len() as u64)
}

/// Walks past the old records of living tasks: retention should ask for times before which few tasks live.
pub(super) fn purge_records(session: &mut Session, before: Timestamp, limit: u32) -> StoreResult<u64> {
    let connection = &session.connection;
    let mut find = connection.prepare_cached(sql::PURGEABLE_RECORDS)?;
    let record = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let found: Vec<(i64, String, Vec<u8>)> =
        find.query_map(params![before.as_millis(), limit], record)?.collect::<Result<_, _>>()?;
    for record in &found {
        connection.prepare_cached(sql::REMOVE_RECORD)?.execute(params![record.0, record.1, record.2])?;
        reached(Point::PurgeRecord);
    }
    Ok(found.len() as u64)
}

/// What an append is compared with, and what its head row says now.
struct Stored {
    key: i64,
    version: u64,
    fence: u64,
    state: u8,
    status_at: i64,
    work: u8,
}

fn compare(connection: &Connection, scope: i64, task: &TaskId) -> StoreResult<Option<Stored>> {
    let mut compare = connection.prepare_cached(sql::COMPARE)?;
    let stored = compare.query_row(params![scope, task.as_str()], |row| {
        Ok(Stored {
            key: row.get(0)?,
            version: sql::unsigned(row, 1)?,
            fence: sql::unsigned(row, 2)?,
            state: row.get(3)?,
            status_at: row.get(4)?,
            work: row.get(5)?,
        })
    });
    Ok(stored.optional()?)
}

fn insert_task(
    connection: &Connection,
    scope: i64,
    task: &TaskId,
    birth: &Birth,
    version: u64,
    head: &HeadState,
) -> StoreResult<i64> {
    let mut insert = connection.prepare_cached(sql::INSERT_TASK)?;
    Ok(insert.insert(params![
        scope,
        task.as_str(),
        birth.context_id.as_str(),
        birth.generation.number(),
        birth.created_at.as_millis(),
        signed(version),
        head.state.number(),
        head.status_at.as_millis(),
        ended_at(head),
        head.work.number(),
        head.attempts,
        head.holder.map(|holder| signed(holder.0)),
        signed(head.fence),
        sql::head_sum(task, version, head).stored(),
    ])?)
}

fn update_head(
    connection: &Connection,
    stored: &Stored,
    task: &TaskId,
    version: u64,
    head: &HeadState,
) -> StoreResult<()> {
    let sum = sql::head_sum(task, version, head).stored();
    let (key, version) = (stored.key, signed(version));
    let (attempts, holder, fence) =
        (head.attempts, head.holder.map(|holder| signed(holder.0)), signed(head.fence));
    let indexed = (head.state.number(), head.status_at.as_millis(), head.work.number());
    if indexed == (stored.state, stored.status_at, stored.work) {
        let mut update = connection.prepare_cached(sql::UPDATE_HEAD_STEADY)?;
        update.execute(params![key, version, attempts, holder, fence, sum])?;
    } else {
        let mut update = connection.prepare_cached(sql::UPDATE_HEAD)?;
        update.execute(params![
            key,
            version,
            attempts,
            holder,
            fence,
            sum,
            indexed.0,
            indexed.1,
            ended_at(head),
            indexed.2
        ])?;
    }
    Ok(())
}

fn ended_at(head: &HeadState) -> Option<i64> {
    head.state.is_terminal().then_some(head.status_at.as_millis())
}

fn insert_message(connection: &Connection, scope: i64, record: &MessageRecord) -> StoreResult<()> {
    connection.prepare_cached(sql::INSERT_MESSAGE)?.execute(params![
        scope,
        record.message_id.as_str(),
        record.hash,
        record.task.as_ref().map(TaskId::as_str),
        record.event.map(signed),
        record.reply.as_deref(),
        record.at.as_millis(),
        sql::message_sum(record).stored(),
    ])?;
    Ok(())
}

/// Removes a request; its message's record learns the event it became. An unknown request is no error:
/// it was settled before.
fn settle(connection: &Connection, scope: i64, task: i64, settled: &Settled) -> StoreResult<()> {
    let mut remove = connection.prepare_cached(sql::SETTLE_REQUEST)?;
    let message = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let message: Option<(Option<String>, Option<Vec<u8>>)> =
        remove.query_row(params![task, signed(settled.request.0)], message).optional()?;
    if let (Some((Some(id), Some(hash))), Some(event)) = (message, settled.event) {
        connection.prepare_cached(sql::PLACE_MESSAGE)?.execute(params![scope, id, hash, signed(event)])?;
    }
    Ok(())
}

fn keys(connection: &Connection, find: &str, before: Timestamp, limit: u32) -> StoreResult<Vec<i64>> {
    let mut find = connection.prepare_cached(find)?;
    let keys = find.query_map(params![before.as_millis(), limit], |row| row.get(0))?;
    Ok(keys.collect::<Result<_, _>>()?)
}
