//! The operations that write. Each runs inside a transaction of the writer and makes all its comparisons before its
//! first write.

use std::sync::Arc;

use baton_protocol::domain::{ContextId, Scope, TaskId, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::checksum::Checksum;
use super::known_heads::KnownHead;
use super::session::Session;
use super::statements::{self as sql, signed};
use super::tally::TaskContext;
use super::{event_rows, read, webhooks};
use crate::points::{Point, reached};
use crate::store::{
    Append, Appended, Birth, HeadState, MessageRecord, NewRequest, RECORD_BYTES, RequestId, Requested,
    Settled, StoreResult, StoredEvent, TaskKey, Work, said,
};

/// Ten pages, about what a small new task needs: its row, index entries, event and message record.
const CHECK_BYTES: usize = 10 * 4096;

pub(super) fn append(session: &mut Session, scope: &Scope, append: &Append) -> StoreResult<Appended> {
    let known = session.scope(scope)?;
    if let (Some(scope), Some(message)) = (known, &append.message)
        && let Some(earlier) =
            read::find_message(&session.connection, scope, &message.message_id, &message.hash)?
    {
        return Ok(Appended::Duplicate(earlier));
    }
    let version = append.expected + append.events.len() as u64;
    let owner = &scope.owner;
    let (scope, in_row, head) = match (&append.birth, known) {
        (Some(birth), _) => {
            let scope = session.intern(scope)?;
            let key = session.next_key()?;
            let message = append.message.as_ref().filter(|message| fits_row(message, &append.task, birth));
            let said = said::after(0, &append.events);
            let mut head = known_head(key, version, append, Some(said), None, 0);
            let first = message.map_or(0, |message| message.counted_bytes().cast_signed())
                + append.webhook.as_ref().map_or(0, |webhook| webhook.record.len() as i64);
            (head.bytes, head.uncounted) = (head.bytes + first, head.uncounted + first);
            let counted = count_at_rest(&mut head, append);
            if !insert_task(&session.connection, scope, append, birth, message, &head)? {
                return Ok(Appended::Conflict);
            }
            session.usage_changes.add(owner, counted.0, counted.1);
            session.state_changed(
                scope,
                TaskContext::Known(&birth.context_id),
                None,
                Some(append.head.state),
            )?;
            (scope, message.is_some(), head)
        }
        (None, Some(scope)) => {
            let stored = session.known_head(scope, &append.task)?;
            let Some(stored) =
                stored.filter(|stored| (stored.version, stored.fence) == (append.expected, append.fence))
            else {
                return Ok(Appended::Conflict);
            };
            if stored.requests > 0 && append.ends_task() && leaves_message_out(session, stored.key, append)? {
                return Ok(Appended::Conflict);
            }
            let said = said_after(stored.said, &append.events);
            session.state_changed(
                scope,
                TaskContext::OfTask(stored.key),
                Some(stored.state),
                Some(append.head.state),
            )?;
            let mut settled_bytes = 0;
            for settled in &append.settled {
                settled_bytes += settle(&session.connection, scope, stored.key, settled)?;
                reached(Point::AppendSettled);
            }
            let mut head = known_head(stored.key, version, append, said, Some(&stored), settled_bytes);
            let counted = count_at_rest(&mut head, append);
            session.usage_changes.add(owner, counted.0, counted.1);
            update_head(&session.connection, &stored, &head, append)?;
            (scope, false, head)
        }
        (None, None) => return Ok(Appended::Conflict),
    };
    let key = head.key;
    session.heads.put((scope, append.task.clone()), head);
    let connection = &session.connection;
    if let Some(webhook) = &append.webhook {
        webhooks::insert_with_task(connection, key, webhook)?;
    }
    reached(Point::AppendHead);
    if !append.events.is_empty() {
        debug_assert!(
            append.events.iter().zip(append.expected + 1..).all(|(event, number)| event.number == number),
            "events are numbered from the version they follow"
        );
        let mut insert = connection.prepare_cached(sql::INSERT_EVENT)?;
        event_rows::insert(&mut insert, key, &append.events)?;
    }
    if let Some(snapshot) = &append.snapshot {
        let mut put = connection.prepare_cached(sql::PUT_SNAPSHOT)?;
        let sum = Checksum::of(snapshot.version()).bytes(snapshot.record());
        put.execute(params![key, signed(snapshot.version()), &snapshot.record()[..], sum.stored()])?;
        reached(Point::AppendSnapshot);
    }
    if let Some(message) = &append.message {
        if !in_row {
            insert_message(connection, scope, message)?;
            session.usage_changes.add(owner, 0, message.counted_bytes().cast_signed());
        }
        reached(Point::AppendMessage);
    }
    Ok(Appended::Written(TaskKey(key.cast_unsigned())))
}

pub(super) fn request(
    session: &mut Session,
    scope: &Scope,
    task: &TaskId,
    request: &NewRequest,
) -> StoreResult<Requested> {
    let owner = &scope.owner;
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
    let bytes = request.event.record().len() as i64;
    let mut number = connection.prepare_cached(sql::NUMBER_REQUEST)?;
    let id: i64 = number.query_row([key, bytes], |row| row.get(0))?;
    reached(Point::RequestNumbered);
    let message = request.message.as_ref();
    connection.prepare_cached(sql::INSERT_REQUEST)?.execute(params![
        key,
        id,
        &request.event.record()[..],
        message.map(|message| message.message_id.as_str()),
        message.map(|message| message.hash),
        Checksum::of(id.cast_unsigned()).bytes(request.event.record()).stored(),
    ])?;
    reached(Point::RequestInserted);
    session.usage_changes.add(owner, 0, bytes);
    if let Some(message) = message {
        insert_message(connection, scope, message)?;
        session.usage_changes.add(owner, 0, message.counted_bytes().cast_signed());
    }
    session.heads.add_request(&(scope, task.clone()), id, bytes);
    Ok(Requested::Noted { request: RequestId(id.cast_unsigned()), head })
}

pub(super) fn put_reply(
    session: &mut Session,
    scope: &Scope,
    record: &MessageRecord,
) -> StoreResult<Option<MessageRecord>> {
    let owner = &scope.owner;
    let scope = session.intern(scope)?;
    let connection = &session.connection;
    let earlier = read::find_message(connection, scope, &record.message_id, &record.hash)?;
    if earlier.is_none() {
        insert_message(connection, scope, record)?;
        session.usage_changes.add(owner, 0, record.counted_bytes().cast_signed());
    }
    Ok(earlier)
}

pub(super) fn secret(session: &mut Session, name: &str, fresh: &[u8]) -> StoreResult<Vec<u8>> {
    match read::find_secret(session, name)? {
        Some(kept) => Ok(kept),
        None => {
            session.connection.prepare_cached(sql::INSERT_SECRET)?.execute(params![name, fresh])?;
            reached(Point::SecretMade);
            Ok(fresh.to_vec())
        }
    }
}

/// The old bytes are overwritten in the database; the log, where they may be too, is emptied after the commit.
pub(super) fn replace_secret(session: &mut Session, name: &str, old: &[u8], new: &[u8]) -> StoreResult<bool> {
    let connection = &session.connection;
    let secure_delete = |wanted: bool| {
        connection.pragma_update_and_check(None, "secure_delete", wanted, |row| row.get::<_, i64>(0))
    };
    // Not always on: it would write the pages of every purged task once more.
    secure_delete(true)?;
    let changed = connection.prepare_cached(sql::REPLACE_SECRET)?.execute(params![name, old, new]);
    secure_delete(false)?;
    let is_replaced = changed? > 0;
    session.empties_log |= is_replaced;
    Ok(is_replaced)
}

pub(super) fn note(session: &mut Session, name: &str, put: Option<&str>) -> StoreResult<Option<String>> {
    let connection = &session.connection;
    if let Some(text) = put {
        connection.prepare_cached(sql::PUT_NOTE)?.execute([name, text])?;
    }
    Ok(connection.prepare_cached(sql::FIND_NOTE)?.query_row([name], |row| row.get(0)).optional()?)
}

/// Rewrites a row that takes about as much space as a new task: a smaller one could still succeed on a disk that is too
/// full for a task.
pub(super) fn check(session: &mut Session) -> StoreResult<()> {
    let mut put = session.connection.prepare_cached(sql::PUT_CHECK)?;
    put.execute(["-".repeat(CHECK_BYTES), "+".repeat(CHECK_BYTES)])?;
    Ok(())
}

/// A task with events that its snapshot covers.
struct Foldable {
    key: i64,
    /// Version of the snapshot.
    through: i64,
    said: Option<i64>,
    folded: u64,
    owner: Arc<str>,
}

/// Deletes the events of ended tasks that their snapshots cover.
pub(super) fn fold_ended(
    session: &mut Session,
    before: Timestamp,
    despite_webhooks: Timestamp,
    limit: u32,
) -> StoreResult<u64> {
    let bounds = params![before.as_millis(), despite_webhooks.as_millis(), limit];
    let connection = &session.connection;
    let mut find = connection.prepare_cached(sql::FOLDABLE)?;
    let task = |row: &rusqlite::Row<'_>| {
        let (key, through, said) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(Foldable { key, through, said, folded: sql::unsigned(row, 3)?, owner: row.get(4)? })
    };
    let tasks: Vec<Foldable> = find.query_map(bounds, task)?.collect::<Result<_, _>>()?;
    for Foldable { key, through, said, folded, owner } in &tasks {
        let mut sizes = connection.prepare_cached(sql::EVENT_SIZES)?;
        let bytes = event_rows::bytes_within(&mut sizes, *key, *folded, through.cast_unsigned())?;
        // Lists read the status message from its event, so that one stays.
        let kept = said.filter(|said| *said > 0).unwrap_or(i64::MAX);
        connection.prepare_cached(sql::FOLD_EVENTS)?.execute([*key, *through, kept])?;
        reached(Point::FoldEvents);
        connection.prepare_cached(sql::MARK_FOLDED)?.execute([*key, *through, bytes])?;
        session.usage_changes.add(owner, 0, -bytes);
    }
    Ok(tasks.len() as u64)
}

struct EndedTask {
    ended_at: i64,
    key: i64,
    state: u8,
    scope: i64,
    owner: Arc<str>,
    /// What its owner has no longer.
    bytes: i64,
}

pub(super) fn purge_ended(session: &mut Session, before: Timestamp, limit: u32) -> StoreResult<u64> {
    let bounds = params![before.as_millis(), limit];
    let last_key = session.last_key()?;
    let connection = &session.connection;
    let mut ended: Vec<EndedTask> = Vec::new();
    for find in sql::PURGEABLE {
        let mut find = connection.prepare_cached(find)?;
        let task = |row: &rusqlite::Row<'_>| {
            let (ended_at, key, state) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let first_record: Option<i64> = row.get(6)?;
            let kept = first_record.map_or(0, |texts| RECORD_BYTES.cast_signed() + texts);
            let bytes = row.get::<_, i64>(5)? - kept;
            Ok(EndedTask { ended_at, key, state, scope: row.get(3)?, owner: row.get(4)?, bytes })
        };
        for found in find.query_map(bounds, task)? {
            ended.push(found?);
        }
    }
    ended.sort_unstable_by_key(|task| (task.ended_at, task.key));
    ended.truncate(limit as usize);
    for EndedTask { key, state, scope, owner, bytes, .. } in &ended {
        // Before the row is deleted: the context is read from it.
        session.state_changed(*scope, TaskContext::OfTask(*key), Some(*state), None)?;
        session.usage_changes.add(owner, -1, -bytes);
        session.emptied.add(*scope);
        for remove in sql::REMOVE_TASK {
            session.connection.prepare_cached(remove)?.execute([key])?;
            reached(Point::PurgeRows);
        }
    }
    if !ended.is_empty() {
        session.connection.prepare_cached(sql::PUT_LAST_KEY)?.execute([last_key])?;
    }
    Ok(ended.len() as u64)
}

/// Creates counters for a context; its totals are read from them from now on.
pub(super) fn count_context(session: &mut Session, scope: &Scope, context: &ContextId) -> StoreResult<()> {
    match session.scope(scope)? {
        Some(scope) => session.tally_changes.count_context(&session.connection, scope, context),
        None => Ok(()),
    }
}

struct OldRecord {
    scope: i64,
    message_id: String,
    hash: Vec<u8>,
    owner: Arc<str>,
    bytes: i64,
}

/// Scans the old records of tasks that still exist, so `before` should be a time before which few such tasks were created.
pub(super) fn purge_records(session: &mut Session, before: Timestamp, limit: u32) -> StoreResult<u64> {
    let connection = &session.connection;
    let mut find = connection.prepare_cached(sql::PURGEABLE_RECORDS)?;
    let record = |row: &rusqlite::Row<'_>| {
        let (scope, message_id, hash, owner) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        let bytes = RECORD_BYTES.cast_signed() + row.get::<_, i64>(4)?;
        Ok(OldRecord { scope, message_id, hash, owner, bytes })
    };
    let found: Vec<OldRecord> =
        find.query_map(params![before.as_millis(), limit], record)?.collect::<Result<_, _>>()?;
    for OldRecord { scope, message_id, hash, owner, bytes } in &found {
        connection.prepare_cached(sql::REMOVE_RECORD)?.execute(params![scope, message_id, hash])?;
        session.usage_changes.add(owner, 0, -bytes);
        session.emptied.add(*scope);
        reached(Point::PurgeRecord);
    }
    Ok(found.len() as u64)
}

/// Can the task's row hold the whole message record?
fn fits_row(message: &MessageRecord, task: &TaskId, birth: &Birth) -> bool {
    message.task.as_ref() == Some(task) && message.reply.is_none() && message.at == birth.created_at
}

/// Is a message pending that the append does not write into the log?
fn leaves_message_out(session: &Session, key: i64, append: &Append) -> StoreResult<bool> {
    let mut waiting = session.connection.prepare_cached(sql::WAITING_MESSAGES)?;
    let mut rows = waiting.query([key])?;
    while let Some(row) = rows.next()? {
        if !append.writes(RequestId(sql::unsigned(row, 0)?)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Like [`said::after`]; an unknown number stays unknown until an event decides it.
fn said_after(before: Option<u64>, events: &[StoredEvent]) -> Option<u64> {
    const UNKNOWN: u64 = u64::MAX;
    let said = said::after(before.unwrap_or(UNKNOWN), events);
    (said != UNKNOWN).then_some(said)
}

/// The head after the append. `stored` is the head before it, `None` for a new task; `settled_bytes` have the requests that
/// the append removes.
fn known_head(
    key: i64,
    version: u64,
    append: &Append,
    said: Option<u64>,
    stored: Option<&KnownHead>,
    settled_bytes: i64,
) -> KnownHead {
    let head = &append.head;
    let (requests, bytes, uncounted, kept) = match stored {
        Some(stored) => (stored.requests, stored.bytes, stored.uncounted, stored.snapshot_bytes),
        None => (0, 0, 0, 0),
    };
    let uncounted_task = stored.is_none_or(|stored| stored.uncounted_task);
    let snapshot = append.snapshot.as_ref().map(|snapshot| snapshot.record().len() as i64);
    let replaced = if snapshot.is_some() { kept } else { 0 };
    let change = append.record_bytes().cast_signed() - replaced - settled_bytes;
    KnownHead {
        key,
        version,
        fence: head.fence,
        state: head.state.number(),
        status_at: head.status_at.as_millis(),
        work: head.work.number(),
        requests,
        said,
        bytes: bytes + change,
        uncounted: uncounted + change,
        uncounted_task,
        snapshot_bytes: snapshot.unwrap_or(kept),
    }
}

/// If the task rests or has ended after the append: what its owner's row gets, as tasks and bytes. Nothing before that.
fn count_at_rest(head: &mut KnownHead, append: &Append) -> (i64, i64) {
    if append.head.work != Work::Idle && !append.head.state.is_terminal() {
        return (0, 0);
    }
    (std::mem::take(&mut head.uncounted_task).into(), std::mem::take(&mut head.uncounted))
}

/// Answers whether the id was free; if not, nothing is inserted.
fn insert_task(
    connection: &Connection,
    scope: i64,
    append: &Append,
    birth: &Birth,
    message: Option<&MessageRecord>,
    new: &KnownHead,
) -> StoreResult<bool> {
    let (task, head) = (&append.task, &append.head);
    let mut insert = connection.prepare_cached(sql::INSERT_TASK)?;
    let inserted = insert.execute(params![
        new.key,
        scope,
        task.as_str(),
        birth.context_id.as_str(),
        birth.generation.number(),
        birth.created_at.as_millis(),
        signed(new.version),
        new.state,
        new.status_at,
        ended_at(head),
        new.work,
        head.attempts,
        head.holder.map(|holder| signed(holder.0)),
        signed(head.fence),
        sql::head_sum(task, new.version, head, new.said).stored(),
        message.map(|message| message.message_id.as_str()),
        message.map(|message| message.hash),
        message.and_then(|message| message.event).map(signed),
        message.map(|message| sql::message_sum(message).stored()),
        new.said.map(signed),
        snapshot_version(append),
        new.bytes,
        new.uncounted,
        new.uncounted_task,
    ])?;
    Ok(inserted == 1)
}

fn update_head(
    connection: &Connection,
    stored: &KnownHead,
    new: &KnownHead,
    append: &Append,
) -> StoreResult<()> {
    let head = &append.head;
    let sum = sql::head_sum(&append.task, new.version, head, new.said).stored();
    let said = new.said.map(signed);
    let (key, version) = (new.key, signed(new.version));
    let (attempts, holder, fence) =
        (head.attempts, head.holder.map(|holder| signed(holder.0)), signed(head.fence));
    let indexed = |head: &KnownHead| (head.state, head.status_at, head.work);
    if indexed(new) == indexed(stored) && !head.state.is_terminal() && head.work != Work::Idle {
        let mut update = connection.prepare_cached(sql::UPDATE_HEAD_UNINDEXED)?;
        let counts = (new.bytes, new.uncounted);
        update.execute(params![key, version, attempts, holder, fence, sum, said, counts.0, counts.1])?;
    } else {
        let mut update = connection.prepare_cached(sql::UPDATE_HEAD)?;
        update.execute(params![
            key,
            version,
            attempts,
            holder,
            fence,
            sum,
            said,
            new.bytes,
            new.uncounted,
            new.uncounted_task,
            new.state,
            new.status_at,
            ended_at(head),
            new.work,
            snapshot_version(append),
        ])?;
    }
    Ok(())
}

fn ended_at(head: &HeadState) -> Option<i64> {
    head.state.is_terminal().then_some(head.status_at.as_millis())
}

fn snapshot_version(append: &Append) -> Option<i64> {
    append.snapshot.as_ref().map(|snapshot| signed(snapshot.version()))
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

/// Removes a request and writes the number of its event into the message record. Answers the request's bytes; 0 if it is
/// unknown, which is no error: it was settled before.
fn settle(connection: &Connection, scope: i64, task: i64, settled: &Settled) -> StoreResult<i64> {
    let mut remove = connection.prepare_cached(sql::SETTLE_REQUEST)?;
    let request = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let request: Option<(Option<String>, Option<Vec<u8>>, i64)> =
        remove.query_row(params![task, signed(settled.request.0)], request).optional()?;
    let Some((id, hash, bytes)) = request else { return Ok(0) };
    if let (Some(id), Some(hash), Some(event)) = (id, hash, settled.event) {
        connection.prepare_cached(sql::SET_MESSAGE_EVENT)?.execute(params![
            scope,
            id,
            hash,
            signed(event)
        ])?;
    }
    Ok(bytes)
}
