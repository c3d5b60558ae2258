//! Webhooks and their cursors, with a checksum like other rows. What a webhook counts for its owner is part of its task's
//! `bytes`.

use baton_protocol::domain::{PushConfigId, Scope, TaskId, TaskState, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::checksum::Checksum;
use super::session::Session;
use super::statements::{blob, signed, task_id, time, unsigned};
use crate::store::{
    Claim, FailedWebhook, NewWebhook, OpenWebhook, PutWebhook, ReplicaId, StoreError, StoreResult,
    StoredWebhook, TaskKey, WebhookCursor, WebhookState,
};

/// The columns that [`webhook`] reads.
macro_rules! columns {
    () => {
        "w.id, w.record, w.revision, w.done, w.task_as_of, w.failures, w.due, w.claimed_by, w.claimed_until, w.state, w.sum, w.failing_since"
    };
}

const OF_TASK: &str = concat!("SELECT ", columns!(), " FROM webhook w WHERE w.task = ?1 ORDER BY w.id");
const IN_SCOPE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM task t CROSS JOIN webhook w ON w.task = t.key WHERE t.scope = ?1 AND t.id = ?2 ORDER BY w.id"
);
const FIND_TASK: &str = "SELECT t.key, t.version, t.state FROM task t WHERE t.scope = ?1 AND t.id = ?2";
const PUT: &str = "INSERT INTO webhook \
    (task, id, record, revision, done, task_as_of, failures, due, claimed_by, claimed_until, state, sum, failing_since) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) ON CONFLICT (task, id) DO UPDATE SET \
    record = excluded.record, revision = excluded.revision, done = excluded.done, task_as_of = excluded.task_as_of, \
    failures = excluded.failures, due = excluded.due, claimed_by = excluded.claimed_by, \
    claimed_until = excluded.claimed_until, state = excluded.state, sum = excluded.sum, \
    failing_since = excluded.failing_since";
const FIND: &str = concat!("SELECT ", columns!(), " FROM webhook w WHERE w.task = ?1 AND w.id = ?2");
const MOVE: &str = "UPDATE webhook SET revision = ?3, done = ?4, task_as_of = ?5, failures = ?6, due = ?7, claimed_by = ?8, \
    claimed_until = ?9, state = ?10, sum = ?11, failing_since = ?12 WHERE task = ?1 AND id = ?2";
const REMOVE: &str = "DELETE FROM webhook WHERE task = ?1 AND id = ?2 AND (?3 IS NULL OR revision = ?3) \
    RETURNING octet_length(record)";
const ADD_BYTES: &str = "UPDATE task SET bytes = bytes + ?2 WHERE key = ?1";
/// ?1, ?2: after this position; ?3: limit.
const OPEN: &str = concat!(
    "SELECT ",
    columns!(),
    ", t.key, s.agent, s.tenant, s.owner, t.id, t.version FROM webhook w INDEXED BY webhook_open \
     CROSS JOIN task t ON t.key = w.task CROSS JOIN scope s ON s.id = t.scope \
     WHERE w.state = 0 AND (w.task, w.id) > (?1, ?2) ORDER BY w.task, w.id LIMIT ?3"
);
const OPEN_OF_TASK: &str = concat!(
    "SELECT ",
    columns!(),
    ", t.key, s.agent, s.tenant, s.owner, t.id, t.version FROM webhook w INDEXED BY webhook_open \
     CROSS JOIN task t ON t.key = w.task CROSS JOIN scope s ON s.id = t.scope \
     WHERE w.state = 0 AND w.task = ?1 ORDER BY w.id"
);
const OVERDUE: &str = concat!(
    "SELECT ",
    columns!(),
    ", t.key, s.agent, s.tenant, s.owner, t.id, t.version FROM webhook w INDEXED BY webhook_open \
     CROSS JOIN task t ON t.key = w.task CROSS JOIN scope s ON s.id = t.scope \
     WHERE w.state = 0 AND t.ended_at < ?1 ORDER BY t.ended_at, w.task, w.id LIMIT ?2"
);
/// Number of columns in [`columns`].
const AFTER_COLUMNS: usize = 12;

const PUT_FAILED: &str = "INSERT INTO failed_webhook (task, id, at, record, sum) VALUES (?1, ?2, ?3, ?4, ?5) \
    ON CONFLICT (task, id) DO UPDATE SET at = excluded.at, record = excluded.record, sum = excluded.sum";
const COUNT_FAILED: &str = "SELECT count(*) FROM failed_webhook";
const DROP_OLDEST_FAILED: &str = "DELETE FROM failed_webhook WHERE (task, id) IN ( \
    SELECT task, id FROM failed_webhook ORDER BY at, task, id LIMIT ?1)";
const FAILED: &str = "SELECT task, id, at, record, sum FROM failed_webhook WHERE (at, task, id) < (?1, ?2, ?3) \
    ORDER BY at DESC, task DESC, id DESC LIMIT ?4";
const NEWEST_FAILED: &str = "SELECT task, id, at, record, sum FROM failed_webhook \
    ORDER BY at DESC, task DESC, id DESC LIMIT ?1";
const REMOVE_FAILED: &str = "DELETE FROM failed_webhook WHERE task = ?1 AND id = ?2";

/// Stores a webhook that comes with a new task; its owner's bytes are counted with the task's.
pub(super) fn insert_with_task(connection: &Connection, key: i64, new: &NewWebhook) -> StoreResult<()> {
    let webhook =
        StoredWebhook { id: new.id.clone(), record: new.record.clone(), cursor: WebhookCursor::after(0) };
    write(connection, key, &webhook)
}

pub(super) fn put(
    session: &mut Session,
    scope: &Scope,
    task: &TaskId,
    new: &NewWebhook,
) -> StoreResult<PutWebhook> {
    let owner = &scope.owner;
    let Some(scope) = session.scope(scope)? else { return Ok(PutWebhook::NotFound) };
    let connection = &session.connection;
    let Some((key, version, state)) = find_task(connection, scope, task)? else {
        return Ok(PutWebhook::NotFound);
    };
    let known = all(connection, OF_TASK, [key])?;
    let replaced = known.iter().find(|webhook| webhook.id == new.id);
    if replaced.is_none() && known.len() >= new.most as usize {
        return Ok(PutWebhook::Full);
    }
    let mut cursor = match replaced {
        Some(StoredWebhook { cursor: WebhookCursor { revision, done, .. }, .. }) => {
            WebhookCursor { revision: revision + 1, ..WebhookCursor::after(*done) }
        }
        None => WebhookCursor::after(version),
    };
    let ended = TaskState::from_number(state).is_some_and(TaskState::is_terminal);
    if ended && cursor.done >= version {
        cursor.state = WebhookState::Finished;
    }
    let webhook = StoredWebhook { id: new.id.clone(), record: new.record.clone(), cursor };
    write(connection, key, &webhook)?;
    let before = replaced.map_or(0, |webhook| webhook.record.len());
    let bytes = new.record.len() as i64 - before as i64;
    connection.prepare_cached(ADD_BYTES)?.execute([key, bytes])?;
    session.usage_changes.add(owner, 0, bytes);
    session.heads.add_bytes(&(scope, task.clone()), bytes);
    Ok(PutWebhook::Stored { key: TaskKey(key.cast_unsigned()), webhook })
}

pub(super) fn of_task(
    session: &mut Session,
    scope: &Scope,
    task: &TaskId,
) -> StoreResult<Vec<StoredWebhook>> {
    match session.scope(scope)? {
        Some(scope) => all(&session.connection, IN_SCOPE, params![scope, task.as_str()]),
        None => Ok(Vec::new()),
    }
}

pub(super) fn remove(
    session: &mut Session,
    scope: &Scope,
    task: &TaskId,
    id: &PushConfigId,
    revision: Option<u64>,
) -> StoreResult<bool> {
    let owner = &scope.owner;
    let Some(scope) = session.scope(scope)? else { return Ok(false) };
    let connection = &session.connection;
    let Some((key, ..)) = find_task(connection, scope, task)? else { return Ok(false) };
    let mut remove = connection.prepare_cached(REMOVE)?;
    let which = params![key, id.as_str(), revision.map(signed)];
    let removed = remove.query_row(which, |row| row.get::<_, i64>(0)).optional()?;
    let Some(bytes) = removed else { return Ok(false) };
    connection.prepare_cached(ADD_BYTES)?.execute([key, -bytes])?;
    session.usage_changes.add(owner, 0, -bytes);
    session.heads.add_bytes(&(scope, task.clone()), -bytes);
    Ok(true)
}

pub(super) fn move_to(
    session: &mut Session,
    task: TaskKey,
    id: &PushConfigId,
    revision: u64,
    cursor: WebhookCursor,
) -> StoreResult<bool> {
    let (connection, key) = (&session.connection, signed(task.0));
    let found = all(connection, FIND, params![key, id.as_str()])?.pop();
    let Some(mut webhook) = found.filter(|webhook| webhook.cursor.revision == revision) else {
        return Ok(false);
    };
    webhook.cursor = WebhookCursor { revision: revision + 1, ..cursor };
    let WebhookCursor { revision, done, task_as_of, failures, failing_since, due, claim, state } =
        webhook.cursor;
    connection.prepare_cached(MOVE)?.execute(params![
        key,
        id.as_str(),
        signed(revision),
        signed(done),
        task_as_of.map(signed),
        failures,
        due.as_millis(),
        claim.map(|claim| signed(claim.by.0)),
        claim.map(|claim| claim.until.as_millis()),
        state.number(),
        sum(&webhook).stored(),
        failing_since.map(Timestamp::as_millis),
    ])?;
    Ok(true)
}

pub(super) fn open(
    session: &mut Session,
    after: Option<(TaskKey, PushConfigId)>,
    limit: u32,
) -> StoreResult<Vec<OpenWebhook>> {
    let (key, id) = after.as_ref().map_or((-1, ""), |(key, id)| (signed(key.0), id.as_str()));
    all_open(&session.connection, OPEN, params![key, id, limit])
}

pub(super) fn open_of(session: &mut Session, task: TaskKey) -> StoreResult<Vec<OpenWebhook>> {
    all_open(&session.connection, OPEN_OF_TASK, [signed(task.0)])
}

pub(super) fn overdue(session: &mut Session, before: Timestamp, limit: u32) -> StoreResult<Vec<OpenWebhook>> {
    all_open(&session.connection, OVERDUE, params![before.as_millis(), limit])
}

pub(super) fn set_aside(
    session: &mut Session,
    revision: u64,
    cursor: WebhookCursor,
    failed: &FailedWebhook,
    most: u32,
) -> StoreResult<bool> {
    let FailedWebhook { key, id, at, record } = failed;
    if !move_to(session, *key, id, revision, cursor)? {
        return Ok(false);
    }
    let connection = &session.connection;
    let sum = failed_sum(failed).stored();
    connection.prepare_cached(PUT_FAILED)?.execute(params![
        signed(key.0),
        id.as_str(),
        at.as_millis(),
        &record[..],
        sum
    ])?;
    let count: i64 = connection.prepare_cached(COUNT_FAILED)?.query_row([], |row| row.get(0))?;
    if count > i64::from(most) {
        connection.prepare_cached(DROP_OLDEST_FAILED)?.execute([count - i64::from(most)])?;
    }
    Ok(true)
}

pub(super) fn failed(
    session: &mut Session,
    after: Option<(Timestamp, TaskKey, PushConfigId)>,
    limit: u32,
) -> StoreResult<Vec<FailedWebhook>> {
    let connection = &session.connection;
    let mut statement = connection.prepare_cached(if after.is_some() { FAILED } else { NEWEST_FAILED })?;
    let failed = |row: &Row<'_>| {
        let failed = FailedWebhook {
            key: TaskKey(unsigned(row, 0)?),
            id: webhook_id(row, 1)?,
            at: time(row, 2)?,
            record: blob(row, 3)?,
        };
        failed_sum(&failed).check(row.get(4)?, &|| format!("failed webhook {}", failed.id))?;
        Ok(failed)
    };
    match after {
        Some((at, key, id)) => {
            let position = params![at.as_millis(), signed(key.0), id.as_str(), limit];
            statement.query_and_then(position, failed)?.collect()
        }
        None => statement.query_and_then([limit], failed)?.collect(),
    }
}

pub(super) fn remove_failed(session: &mut Session, task: TaskKey, id: &PushConfigId) -> StoreResult<bool> {
    let mut remove = session.connection.prepare_cached(REMOVE_FAILED)?;
    Ok(remove.execute(params![signed(task.0), id.as_str()])? > 0)
}

/// Key, version and state of a task.
fn find_task(connection: &Connection, scope: i64, task: &TaskId) -> StoreResult<Option<(i64, u64, u8)>> {
    let mut find = connection.prepare_cached(FIND_TASK)?;
    let row = |row: &Row<'_>| Ok((row.get(0)?, unsigned(row, 1)?, row.get(2)?));
    Ok(find.query_row(params![scope, task.as_str()], row).optional()?)
}

fn write(connection: &Connection, key: i64, webhook: &StoredWebhook) -> StoreResult<()> {
    let StoredWebhook { id, record, cursor } = webhook;
    let WebhookCursor { revision, done, task_as_of, failures, failing_since, due, claim, state } = *cursor;
    connection.prepare_cached(PUT)?.execute(params![
        key,
        id.as_str(),
        &record[..],
        signed(revision),
        signed(done),
        task_as_of.map(signed),
        failures,
        due.as_millis(),
        claim.map(|claim| signed(claim.by.0)),
        claim.map(|claim| claim.until.as_millis()),
        state.number(),
        sum(webhook).stored(),
        failing_since.map(Timestamp::as_millis),
    ])?;
    Ok(())
}

fn all(connection: &Connection, sql: &str, of: impl rusqlite::Params) -> StoreResult<Vec<StoredWebhook>> {
    connection.prepare_cached(sql)?.query_and_then(of, webhook)?.collect()
}

fn all_open(connection: &Connection, sql: &str, of: impl rusqlite::Params) -> StoreResult<Vec<OpenWebhook>> {
    let open = |row: &Row<'_>| {
        let text = |column: usize| row.get::<_, String>(AFTER_COLUMNS + column);
        Ok(OpenWebhook {
            key: TaskKey(unsigned(row, AFTER_COLUMNS)?),
            scope: Scope::new(&text(1)?, &text(2)?, &text(3)?),
            task: task_id(row, AFTER_COLUMNS + 4)?,
            version: unsigned(row, AFTER_COLUMNS + 5)?,
            webhook: webhook(row)?,
        })
    };
    connection.prepare_cached(sql)?.query_and_then(of, open)?.collect()
}

/// Reads a row that starts with [`columns`].
fn webhook(row: &Row<'_>) -> StoreResult<StoredWebhook> {
    let id = webhook_id(row, 0)?;
    let bad = |what: &str| StoreError::damaged(format!("webhook {id}: {what}"));
    let claim = match (row.get::<_, Option<i64>>(7)?, row.get::<_, Option<i64>>(8)?) {
        (Some(by), Some(until)) => {
            Some(Claim { by: ReplicaId(by.cast_unsigned()), until: Timestamp::from_millis(until) })
        }
        _ => None,
    };
    let cursor = WebhookCursor {
        revision: unsigned(row, 2)?,
        done: unsigned(row, 3)?,
        task_as_of: row.get::<_, Option<i64>>(4)?.map(i64::cast_unsigned),
        failures: row.get(5)?,
        failing_since: row.get::<_, Option<i64>>(11)?.map(Timestamp::from_millis),
        due: time(row, 6)?,
        claim,
        state: WebhookState::from_number(row.get(9)?).ok_or_else(|| bad("unknown state"))?,
    };
    let webhook = StoredWebhook { id: id.clone(), record: blob(row, 1)?, cursor };
    sum(&webhook).check(row.get(10)?, &|| format!("webhook {id}"))?;
    Ok(webhook)
}

fn webhook_id(row: &Row<'_>, column: usize) -> StoreResult<PushConfigId> {
    let text = row.get_ref(column)?.as_str().map_err(rusqlite::Error::from)?;
    PushConfigId::parse(text).map_err(|error| StoreError::damaged(format!("webhook id {error}")))
}

fn sum(webhook: &StoredWebhook) -> Checksum {
    let StoredWebhook { id, record, cursor } = webhook;
    let WebhookCursor { revision, done, task_as_of, failures, failing_since, due, claim, state } = *cursor;
    Checksum::of(revision)
        .bytes(id.as_str().as_bytes())
        .bytes(record)
        .number(done)
        .number(task_as_of.unwrap_or(u64::MAX))
        .number(u64::from(failures) << 8 | u64::from(state.number()))
        .number(due.as_millis().cast_unsigned())
        .number(failing_since.map_or(u64::MAX, |since| since.as_millis().cast_unsigned()))
        .number(claim.map_or(u64::MAX, |claim| claim.by.0))
        .number(claim.map_or(0, |claim| claim.until.as_millis().cast_unsigned()))
}

fn failed_sum(failed: &FailedWebhook) -> Checksum {
    Checksum::of(failed.key.0)
        .bytes(failed.id.as_str().as_bytes())
        .number(failed.at.as_millis().cast_unsigned())
        .bytes(&failed.record)
}
