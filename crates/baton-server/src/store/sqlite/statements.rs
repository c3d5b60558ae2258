//! The SQL, and the mapping of rows to the store's types.

use baton_protocol::Generation;
use baton_protocol::domain::{ContextId, MessageId, TaskId, TaskState, Timestamp};
use bytes::Bytes;
use rusqlite::Row;

use super::checksum::Checksum;
use crate::store::{
    Head, HeadState, MessageRecord, PendingRequest, ReplicaId, RequestId, StoreError, StoreResult,
    StoredEvent, StoredSnapshot, TaskKey, Work,
};

/// The columns [`head`] reads, from 0 on.
macro_rules! head_columns {
    () => {
        "t.id, t.key, t.context, t.generation, t.created_at, t.version, t.folded_through, \
         t.state, t.status_at, t.work, t.attempts, t.holder, t.fence, t.sum, t.said"
    };
}

pub(super) const FIND_SCOPE: &str = "SELECT id FROM scope WHERE agent = ?1 AND tenant = ?2 AND owner = ?3";
pub(super) const INSERT_SCOPE: &str = "INSERT INTO scope (id, agent, tenant, owner) VALUES (?1, ?2, ?3, ?4)";
pub(super) const LAST_SCOPE: &str = "SELECT coalesce(max(id), 0) FROM scope";
/// Nothing is deleted while the scope has a task or a message record.
pub(super) const REMOVE_SCOPE: &str = "DELETE FROM scope WHERE id = ?1 \
    AND NOT EXISTS (SELECT 1 FROM task t WHERE t.scope = ?1) \
    AND NOT EXISTS (SELECT 1 FROM message_record m WHERE m.scope = ?1)";
pub(super) const REMOVE_TALLY: &str = "DELETE FROM tally WHERE scope = ?1";

// Writing a task.
pub(super) const COMPARE: &str = "SELECT key, version, fence, state, status_at, work, requests, said, bytes, uncounted, uncounted_task, \
    (SELECT octet_length(s.record) FROM snapshot s WHERE s.task = key) FROM task WHERE scope = ?1 AND id = ?2";
/// Nothing is inserted if the id is taken.
pub(super) const INSERT_TASK: &str = "INSERT INTO task \
    (key, scope, id, context, generation, created_at, version, state, status_at, ended_at, work, attempts, holder, fence, \
     sum, message_id, hash, message_event, message_sum, said, foldable, bytes, uncounted, uncounted_task) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, \
            ?10 IS NOT NULL AND coalesce(?21, 0) > 0, ?22, ?23, ?24) \
    ON CONFLICT (scope, id) DO NOTHING";
pub(super) const LAST_KEY: &str = "SELECT max(coalesce((SELECT max(key) FROM task), 0), \
    coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'last_key'), 0))";
pub(super) const PUT_LAST_KEY: &str = "INSERT INTO meta (name, value) VALUES ('last_key', CAST(?1 AS TEXT)) \
    ON CONFLICT (name) DO UPDATE SET value = excluded.value";
/// SQLite rewrites the entry of every index with a column that an UPDATE *names*, changed or not. So there are two
/// statements: this one names no indexed column and serves the many appends that do not change state or work.
pub(super) const UPDATE_HEAD_UNINDEXED: &str = "UPDATE task SET version = ?2, attempts = ?3, holder = ?4, fence = ?5, \
    sum = ?6, said = ?7, bytes = ?8, uncounted = ?9 WHERE key = ?1";
pub(super) const UPDATE_HEAD: &str = "UPDATE task SET version = ?2, attempts = ?3, holder = ?4, fence = ?5, \
    sum = ?6, said = ?7, bytes = ?8, uncounted = ?9, uncounted_task = ?10, state = ?11, status_at = ?12, \
    ended_at = ?13, work = ?14, foldable = ?13 IS NOT NULL \
    AND coalesce(?15, (SELECT s.version FROM snapshot s WHERE s.task = ?1), 0) > folded_through WHERE key = ?1";
pub(super) const INSERT_EVENT: &str =
    "INSERT INTO event (task, number, record, lengths, sum) VALUES (?1, ?2, ?3, ?4, ?5)";
pub(super) const PUT_SNAPSHOT: &str = "INSERT INTO snapshot (task, version, record, sum) VALUES (?1, ?2, ?3, ?4) \
    ON CONFLICT (task) DO UPDATE SET version = excluded.version, record = excluded.record, sum = excluded.sum";

// Messages and requests.
pub(super) const FIND_MESSAGE: &str = "SELECT message_id, hash, task, event, reply, at, sum FROM message_record \
    WHERE scope = ?1 AND message_id = ?2 AND hash BETWEEN ?3 AND ?4 \
    UNION ALL SELECT message_id, hash, id, message_event, NULL, created_at, message_sum FROM task INDEXED BY task_message \
    WHERE scope = ?1 AND message_id = ?2 AND hash BETWEEN ?3 AND ?4";
pub(super) const INSERT_MESSAGE: &str = "INSERT INTO message_record \
    (scope, message_id, hash, task, event, reply, at, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
pub(super) const SET_MESSAGE_EVENT: &str =
    "UPDATE message_record SET event = ?4 WHERE scope = ?1 AND message_id = ?2 AND hash = ?3";
pub(super) const COUNT_REQUESTS: &str = "SELECT count(*) FROM request WHERE task = ?1";
/// ?2: the bytes of the request.
pub(super) const NUMBER_REQUEST: &str = "UPDATE task SET requests = requests + 1, bytes = bytes + ?2 \
    WHERE key = ?1 RETURNING requests";
pub(super) const INSERT_REQUEST: &str =
    "INSERT INTO request (task, id, record, message_id, hash, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
pub(super) const SETTLE_REQUEST: &str =
    "DELETE FROM request WHERE task = ?1 AND id = ?2 RETURNING message_id, hash, octet_length(record)";
pub(super) const WAITING_MESSAGES: &str = "SELECT id FROM request WHERE task = ?1 AND message_id IS NOT NULL";
pub(super) const REQUESTS: &str = "SELECT r.id, r.record, r.sum FROM task t CROSS JOIN request r ON r.task = t.key \
    WHERE t.scope = ?1 AND t.id = ?2 ORDER BY r.id";

// Reading.
pub(super) const HEAD: &str =
    concat!("SELECT ", head_columns!(), " FROM task t WHERE t.scope = ?1 AND t.id = ?2");
pub(super) const LOAD: &str = concat!(
    "SELECT ",
    head_columns!(),
    ", s.record, s.sum FROM task t LEFT JOIN snapshot s ON s.task = t.key WHERE t.scope = ?1 AND t.id = ?2"
);
/// Like `LOAD`, with the snapshot only if it has at most ?3 bytes, and with its size. `length` reads the row's header
/// only; reading the record, or a column stored after it, would read all of its pages.
pub(super) const LOAD_WITHIN: &str = concat!(
    "SELECT ",
    head_columns!(),
    ", CASE WHEN length(s.record) <= ?3 THEN s.record END, CASE WHEN length(s.record) <= ?3 THEN s.sum END, \
     length(s.record), s.version \
     FROM task t LEFT JOIN snapshot s ON s.task = t.key WHERE t.scope = ?1 AND t.id = ?2"
);
pub(super) const TAIL_BYTES: &str =
    "SELECT sum(length(record)) FROM event INDEXED BY event_by_task WHERE task = ?1 AND number > ?2";
pub(super) const EVENTS: &str = "SELECT e.number, e.record, e.lengths, e.sum, t.folded_through FROM task t CROSS JOIN event e INDEXED BY event_by_task ON e.task = t.key \
    WHERE t.scope = ?1 AND t.id = ?2 AND e.number > max(?3, t.folded_through) ORDER BY e.number LIMIT ?4";
pub(super) const TAIL: &str = "SELECT number, record, lengths, sum FROM event INDEXED BY event_by_task WHERE task = ?1 AND number > ?2 ORDER BY number";
/// Like `TAIL`, with NULL for the columns of a row that has more than ?3 bytes.
pub(super) const TAIL_WITHIN: &str = "SELECT number, CASE WHEN length(record) <= ?3 THEN record END, \
    CASE WHEN length(record) <= ?3 THEN lengths END, CASE WHEN length(record) <= ?3 THEN sum END \
    FROM event INDEXED BY event_by_task WHERE task = ?1 AND number > ?2 ORDER BY number";

// Listing. Open tasks (work <> 0) are in one index and resting ones (work = 0) in another.

/// ?2: state; ?3, ?4: strictly before this time and id; ?5: not before; ?6: limit.
pub(super) const LIST_RESTING: &str = "SELECT t.status_at, t.id, t.key FROM task t INDEXED BY task_by_state \
    WHERE t.work = 0 AND t.scope = ?1 AND t.state = ?2 AND (t.status_at, t.id) < (?3, ?4) AND t.status_at >= ?5 \
    ORDER BY t.status_at DESC, t.id DESC LIMIT ?6";
/// ?2, ?3: strictly before this time and id; ?4: not before; ?5: states as bits; ?6: limit.
pub(super) const LIST_OPEN: &str = "SELECT t.status_at, t.id, t.key FROM task t INDEXED BY task_open_by_time \
    WHERE t.work <> 0 AND t.scope = ?1 AND (t.status_at, t.id) < (?2, ?3) AND t.status_at >= ?4 \
    AND (?5 >> t.state) & 1 ORDER BY t.status_at DESC, t.id DESC LIMIT ?6";
/// The same two, and ?7: context.
pub(super) const LIST_RESTING_IN_CONTEXT: &str = "SELECT t.status_at, t.id, t.key FROM task t INDEXED BY task_by_context \
    WHERE t.work = 0 AND t.scope = ?1 AND t.context = ?7 AND t.state = ?2 \
    AND (t.status_at, t.id) < (?3, ?4) AND t.status_at >= ?5 ORDER BY t.status_at DESC, t.id DESC LIMIT ?6";
pub(super) const LIST_OPEN_IN_CONTEXT: &str = "SELECT t.status_at, t.id, t.key FROM task t INDEXED BY task_open_by_time \
    WHERE t.work <> 0 AND t.scope = ?1 AND t.context = ?7 AND (t.status_at, t.id) < (?2, ?3) AND t.status_at >= ?4 \
    AND (?5 >> t.state) & 1 ORDER BY t.status_at DESC, t.id DESC LIMIT ?6";
pub(super) const BRIEF: &str = concat!("SELECT ", head_columns!(), " FROM task t WHERE t.key = ?1");
/// Of a snapshot of more than ?2 bytes only the length is read.
pub(super) const WHOLE: &str = concat!(
    "SELECT ",
    head_columns!(),
    ", length(s.record), CASE WHEN length(s.record) <= ?2 THEN s.record END, \
     CASE WHEN length(s.record) <= ?2 THEN s.sum END \
     FROM task t LEFT JOIN snapshot s ON s.task = t.key WHERE t.key = ?1"
);
/// The row that holds event ?2.
pub(super) const SAID: &str = "SELECT number, record, lengths, sum FROM event INDEXED BY event_by_task \
    WHERE task = ?1 AND number >= ?2 ORDER BY number LIMIT 1";

// Totals.
pub(super) const TALLY: &str = "SELECT state, tasks FROM tally WHERE scope = ?1";
pub(super) const CONTEXT_TALLY: &str =
    "SELECT state, tasks FROM context_tally WHERE scope = ?1 AND context = ?2";
pub(super) const OWNER_USAGE: &str = "SELECT tasks, bytes FROM owner_usage WHERE owner = ?1";
/// What open tasks add to their owner's row.
pub(super) const OWNER_UNCOUNTED: &str = "SELECT coalesce(sum(t.uncounted_task), 0), coalesce(sum(t.uncounted), 0) \
    FROM task t INDEXED BY task_open CROSS JOIN scope s ON s.id = t.scope WHERE t.work <> 0 AND s.owner = ?1";
pub(super) const PUT_OWNER_USAGE: &str = "INSERT INTO owner_usage (owner, tasks, bytes) VALUES (?1, ?2, ?3) \
    ON CONFLICT (owner) DO UPDATE SET tasks = tasks + excluded.tasks, bytes = bytes + excluded.bytes";
pub(super) const REMOVE_OWNER_USAGE: &str =
    "DELETE FROM owner_usage WHERE owner = ?1 AND tasks = 0 AND bytes = 0";
/// ?2: state; ?3: not before.
pub(super) const COUNT_SINCE: &str = "SELECT count(*) FROM task t INDEXED BY task_by_state \
    WHERE t.work = 0 AND t.scope = ?1 AND t.state = ?2 AND t.status_at >= ?3";
/// ?2: not before; ?3: states as bits.
pub(super) const COUNT_OPEN_SINCE: &str = "SELECT count(*) FROM task t INDEXED BY task_open_by_time \
    WHERE t.work <> 0 AND t.scope = ?1 AND t.status_at >= ?2 AND (?3 >> t.state) & 1";
/// The same two, and ?4: context.
pub(super) const COUNT_SINCE_IN_CONTEXT: &str = "SELECT count(*) FROM task t INDEXED BY task_by_context \
    WHERE t.work = 0 AND t.scope = ?1 AND t.context = ?4 AND t.state = ?2 AND t.status_at >= ?3";
pub(super) const COUNT_OPEN_SINCE_IN_CONTEXT: &str = "SELECT count(*) FROM task t INDEXED BY task_open_by_time \
    WHERE t.work <> 0 AND t.scope = ?1 AND t.context = ?4 AND t.status_at >= ?2 AND (?3 >> t.state) & 1";
pub(super) const PUT_TALLY: &str = "INSERT INTO tally (scope, state, tasks) VALUES (?1, ?2, ?3) \
    ON CONFLICT (scope, state) DO UPDATE SET tasks = tasks + excluded.tasks";
pub(super) const COUNTED_CONTEXTS: &str = "SELECT scope, context FROM context_tally WHERE state = 0";
pub(super) const CONTEXT_OF: &str = "SELECT context FROM task WHERE key = ?1";
/// Inserts the marker row (state 0), then the counts.
pub(super) const COUNT_CONTEXT_BY_STATE: [&str; 2] = [
    "INSERT INTO context_tally (scope, context, state, tasks) VALUES (?1, ?2, 0, 0)",
    "INSERT INTO context_tally (scope, context, state, tasks) SELECT ?1, ?2, state, count(*) FROM ( \
         SELECT t.state FROM task t INDEXED BY task_by_context WHERE t.work = 0 AND t.scope = ?1 AND t.context = ?2 \
         UNION ALL SELECT t.state FROM task t INDEXED BY task_open_by_time \
         WHERE t.work <> 0 AND t.scope = ?1 AND t.context = ?2 \
     ) GROUP BY state",
];
pub(super) const PUT_CONTEXT_TALLY: &str = "INSERT INTO context_tally (scope, context, state, tasks) \
    VALUES (?1, ?2, ?3, ?4) ON CONFLICT (scope, context, state) DO UPDATE SET tasks = tasks + excluded.tasks";
pub(super) const SUM_CONTEXT_TALLY: &str =
    "SELECT sum(tasks) FROM context_tally WHERE scope = ?1 AND context = ?2";
pub(super) const REMOVE_CONTEXT_TALLY: &str = "DELETE FROM context_tally WHERE scope = ?1 AND context = ?2";

// Sweeps.
pub(super) const OPEN_TASKS: &str = "\
    WITH open (key) AS ( \
        SELECT key FROM task INDEXED BY task_open WHERE work <> 0 AND key > ?1 \
        UNION SELECT task FROM request WHERE task > ?1 \
        ORDER BY 1 LIMIT ?2 \
    ) \
    SELECT t.key, s.agent, s.tenant, s.owner, t.id FROM open \
    CROSS JOIN task t ON t.key = open.key CROSS JOIN scope s ON s.id = t.scope ORDER BY open.key";
pub(super) const COUNT_BY_STATE: &str = "SELECT state, sum(tasks) FROM tally GROUP BY state";
/// ?2: tasks that ended before this are folded, whatever their webhooks still have to deliver; ?3: limit.
pub(super) const FOLDABLE: &str = "SELECT t.key, s.version, t.said, t.folded_through, o.owner \
    FROM task t INDEXED BY task_foldable CROSS JOIN snapshot s ON s.task = t.key CROSS JOIN scope o ON o.id = t.scope \
    WHERE t.ended_at < ?1 AND t.foldable = 1 AND (t.ended_at < ?2 \
    OR NOT EXISTS (SELECT 1 FROM webhook w INDEXED BY webhook_open WHERE w.task = t.key AND w.state = 0)) \
    ORDER BY t.ended_at LIMIT ?3";
/// The sizes of the rows with events above ?2. `lengths` is NULL in rows with a large record, so no record is read.
pub(super) const EVENT_SIZES: &str = "SELECT number, octet_length(record), lengths FROM event INDEXED BY event_by_task \
    WHERE task = ?1 AND number > ?2 ORDER BY number";
/// ?3: the bytes of the events that are no longer in the log.
pub(super) const MARK_FOLDED: &str = "UPDATE task SET folded_through = ?2, foldable = 0, bytes = bytes - ?3 \
    WHERE key = ?1";
/// Tasks that are not foldable, and those that are; ?2: limit. The last column is the record of the first message, which outlives the
/// task: the length of its texts, if it is in the row.
pub(super) const PURGEABLE: [&str; 2] = [
    "SELECT t.ended_at, t.key, t.state, t.scope, s.owner, t.bytes, octet_length(t.message_id) + octet_length(t.id) \
     FROM task t INDEXED BY task_ended CROSS JOIN scope s ON s.id = t.scope \
     WHERE t.ended_at < ?1 AND t.foldable = 0 \
     AND NOT EXISTS (SELECT 1 FROM webhook w INDEXED BY webhook_open WHERE w.task = t.key AND w.state = 0) \
     ORDER BY t.ended_at LIMIT ?2",
    "SELECT t.ended_at, t.key, t.state, t.scope, s.owner, t.bytes, octet_length(t.message_id) + octet_length(t.id) \
     FROM task t INDEXED BY task_foldable CROSS JOIN scope s ON s.id = t.scope \
     WHERE t.ended_at < ?1 AND t.foldable = 1 \
     AND NOT EXISTS (SELECT 1 FROM webhook w INDEXED BY webhook_open WHERE w.task = t.key AND w.state = 0) \
     ORDER BY t.ended_at LIMIT ?2",
];
/// Deletes the rows up to event ?2, except the one that holds event ?3.
pub(super) const FOLD_EVENTS: &str = "DELETE FROM event WHERE task = ?1 AND number <= ?2 AND number <> coalesce(( \
    SELECT min(said.number) FROM event said WHERE said.task = ?1 AND said.number >= ?3), 0)";
/// Deletes a task and its rows; the record of its first message is moved to `message_record` before.
pub(super) const REMOVE_TASK: [&str; 6] = [
    "INSERT INTO message_record (scope, message_id, hash, task, event, reply, at, sum) \
     SELECT scope, message_id, hash, id, message_event, NULL, created_at, message_sum FROM task \
     WHERE key = ?1 AND message_id IS NOT NULL",
    "DELETE FROM event WHERE task = ?1",
    "DELETE FROM request WHERE task = ?1",
    "DELETE FROM snapshot WHERE task = ?1",
    "DELETE FROM webhook WHERE task = ?1",
    "DELETE FROM task WHERE key = ?1",
];
/// With the record's owner, and the bytes of its texts.
pub(super) const PURGEABLE_RECORDS: &str = "SELECT m.scope, m.message_id, m.hash, s.owner, \
    octet_length(m.message_id) + coalesce(octet_length(m.task), 0) + coalesce(octet_length(m.reply), 0) \
    FROM message_record m INDEXED BY message_record_by_time CROSS JOIN scope s ON s.id = m.scope \
    WHERE m.at < ?1 AND NOT EXISTS (SELECT 1 FROM task t WHERE t.scope = m.scope AND t.id = m.task) \
    ORDER BY m.at LIMIT ?2";
pub(super) const REMOVE_RECORD: &str =
    "DELETE FROM message_record WHERE scope = ?1 AND message_id = ?2 AND hash = ?3";

/// The tables of the database.
pub(super) const TABLES: &str = "SELECT name FROM sqlite_schema WHERE type = 'table'";

pub(super) const FIND_SECRET: &str = "SELECT value FROM secret WHERE name = ?1";
pub(super) const INSERT_SECRET: &str = "INSERT INTO secret (name, value) VALUES (?1, ?2)";
pub(super) const REPLACE_SECRET: &str = "UPDATE secret SET value = ?3 WHERE name = ?1 AND value = ?2";

/// `meta` also holds values of the store itself; the prefix keeps notes apart from them.
pub(super) const FIND_NOTE: &str = "SELECT value FROM meta WHERE name = 'note:' || ?1";
pub(super) const PUT_NOTE: &str = "INSERT INTO meta (name, value) VALUES ('note:' || ?1, ?2) \
    ON CONFLICT (name) DO UPDATE SET value = excluded.value";

pub(super) const CREDENTIALS: &str = "SELECT id, record, sum FROM credential";
pub(super) const PUT_CREDENTIAL: &str = "INSERT INTO credential (id, record, sum) VALUES (?1, ?2, ?3) \
    ON CONFLICT (id) DO UPDATE SET record = excluded.record, sum = excluded.sum";
pub(super) const REMOVE_CREDENTIAL: &str = "DELETE FROM credential WHERE id = ?1";

/// Alternates between ?1 and ?2, since SQLite does not write a page that stays the same.
pub(super) const PUT_CHECK: &str = "INSERT INTO meta (name, value) VALUES ('check', ?1) \
    ON CONFLICT (name) DO UPDATE SET value = iif(value = ?1, ?2, ?1)";

/// Number of columns in [`head_columns`].
pub(super) const AFTER_HEAD: usize = 15;

/// SQLite has signed integers only; the bits stay the same.
pub(super) fn signed(number: u64) -> i64 {
    number.cast_signed()
}

/// For numbers that are only compared: those above `i64::MAX` become `i64::MAX`, which no stored number exceeds.
pub(super) fn position(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(column)?.cast_unsigned())
}

pub(super) fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Timestamp> {
    Ok(Timestamp::from_millis(row.get(column)?))
}

/// Reads a row that starts with [`head_columns`].
pub(super) fn head(row: &Row<'_>) -> StoreResult<(TaskId, Head)> {
    let (id, head, _) = head_and_said(row)?;
    Ok((id, head))
}

/// The same, with the `said` column.
pub(super) fn head_and_said(row: &Row<'_>) -> StoreResult<(TaskId, Head, Option<u64>)> {
    let id = task_id(row, 0)?;
    let bad = |what: &str| StoreError::damaged(format!("task {id}: {what}"));
    let head = Head {
        key: TaskKey(unsigned(row, 1)?),
        context_id: ContextId::parse(text(row, 2)?).map_err(|error| bad(&format!("context id {error}")))?,
        generation: Generation::from_number(row.get(3)?).ok_or_else(|| bad("unknown generation"))?,
        created_at: time(row, 4)?,
        version: unsigned(row, 5)?,
        folded_through: unsigned(row, 6)?,
        current: HeadState {
            state: TaskState::from_number(row.get(7)?).ok_or_else(|| bad("unknown state"))?,
            status_at: time(row, 8)?,
            work: Work::from_number(row.get(9)?).ok_or_else(|| bad("unknown work"))?,
            attempts: row.get(10)?,
            holder: row.get::<_, Option<i64>>(11)?.map(|holder| ReplicaId(holder.cast_unsigned())),
            fence: unsigned(row, 12)?,
        },
    };
    let said = row.get::<_, Option<i64>>(14)?.map(i64::cast_unsigned);
    let sum = head_sum(&id, head.version, &head.current, said);
    sum.check(row.get(13)?, &|| format!("task {id}"))?;
    Ok((id, head, said))
}

/// The checksum of the columns that an append writes.
pub(super) fn head_sum(id: &TaskId, version: u64, head: &HeadState, said: Option<u64>) -> Checksum {
    let sum = Checksum::of(version)
        .bytes(id.as_str().as_bytes())
        .number(u64::from(head.state.number()) << 8 | u64::from(head.work.number()))
        .number(head.status_at.as_millis().cast_unsigned())
        .number(u64::from(head.attempts))
        .number(head.holder.map_or(u64::MAX, |holder| holder.0))
        .number(head.fence);
    // Rows from before format 4 have no `said`.
    said.map_or(sum, |said| sum.number(said))
}

/// Reads `(id, record, sum)` of a request.
pub(super) fn request(row: &Row<'_>) -> StoreResult<PendingRequest> {
    let (id, record) = (unsigned(row, 0)?, blob(row, 1)?);
    Checksum::of(id).bytes(&record).check(row.get(2)?, &|| format!("request {id}"))?;
    Ok(PendingRequest { request: RequestId(id), event: StoredEvent::from_record(0, record)? })
}

pub(super) fn snapshot(row: &Row<'_>, column: usize) -> StoreResult<Option<StoredSnapshot>> {
    let record = row.get_ref(column)?.as_blob_or_null().map_err(rusqlite::Error::from)?;
    let Some(record) = record else { return Ok(None) };
    let snapshot = StoredSnapshot::from_record(Bytes::copy_from_slice(record))?;
    let sum = Checksum::of(snapshot.version()).bytes(record);
    sum.check(row.get(column + 1)?, &|| "snapshot".to_owned())?;
    Ok(Some(snapshot))
}

/// Reads a row of [`FIND_MESSAGE`].
pub(super) fn message_record(row: &Row<'_>) -> StoreResult<MessageRecord> {
    let bad = |error| StoreError::damaged(format!("message record: id {error}"));
    let task: Option<String> = row.get(2)?;
    let reply: Option<Vec<u8>> = row.get(4)?;
    let record = MessageRecord {
        message_id: MessageId::parse(text(row, 0)?).map_err(bad)?,
        hash: row.get(1)?,
        task: task.map(|id| TaskId::parse(&id)).transpose().map_err(bad)?,
        event: row.get::<_, Option<i64>>(3)?.map(i64::cast_unsigned),
        reply: reply.map(Bytes::from),
        at: time(row, 5)?,
    };
    message_sum(&record).check(row.get(6)?, &|| format!("message {}", record.message_id))?;
    Ok(record)
}

/// Leaves out `event`, which is set later.
pub(super) fn message_sum(record: &MessageRecord) -> Checksum {
    Checksum::of(record.at.as_millis().cast_unsigned())
        .bytes(record.message_id.as_str().as_bytes())
        .bytes(&record.hash)
        .bytes(record.task.as_ref().map_or(&[][..], |task| task.as_str().as_bytes()))
        .bytes(record.reply.as_deref().unwrap_or_default())
}

pub(super) fn task_id(row: &Row<'_>, column: usize) -> StoreResult<TaskId> {
    TaskId::parse(text(row, column)?).map_err(|error| StoreError::damaged(format!("task id {error}")))
}

pub(super) fn blob(row: &Row<'_>, column: usize) -> StoreResult<Bytes> {
    Ok(Bytes::copy_from_slice(row.get_ref(column)?.as_blob().map_err(rusqlite::Error::from)?))
}

fn text<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<&'a str> {
    Ok(row.get_ref(column)?.as_str()?)
}
