//! The SQL, and the mapping of rows to the store's types. What compares and writes is in `migrations/`, as functions: one
//! call is one round trip and one transaction.

use baton_protocol::Generation;
use baton_protocol::domain::{ContextId, MessageId, TaskId, TaskState, Timestamp};
use bytes::Bytes;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::store::{
    Head, HeadState, MessageHash, MessageRecord, ReplicaId, StoreError, StoreResult, StoredEvent,
    StoredSnapshot, TaskKey, Work, said,
};

/// The columns [`head`] reads.
macro_rules! head_columns {
    () => {
        "t.id, t.key, t.context, t.generation, t.created_at, t.version, t.folded_through, \
         t.state, t.status_at, t.work, t.attempts, t.holder, t.fence"
    };
}

macro_rules! scope {
    () => {
        "(SELECT id FROM scope WHERE agent = $1 AND tenant = $2 AND owner = $3)"
    };
}

/// Joins each task of `t` with its snapshot and the events after that.
macro_rules! whole_task {
    () => {
        " LEFT JOIN snapshot s ON s.task = t.key \
         CROSS JOIN LATERAL ( \
             SELECT array_agg(e.number ORDER BY e.number) AS numbers, \
                    array_agg(e.record ORDER BY e.number) AS records \
             FROM event e WHERE e.task = t.key AND e.number > coalesce(s.version, 0) \
         ) tail"
    };
}

/// The task's last status or user message, recognised by the letter in its record: the event that decides what the status
/// message is (see [`said::after`]).
macro_rules! deciding_event {
    ($columns:expr, $task:expr) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM event e WHERE e.task = ",
            $task,
            " AND substring(e.record FROM 3 FOR 1) IN ('U', 'S') ORDER BY e.number DESC LIMIT 1"
        )
    };
}

/// One page in one statement, so that it sees one state. The page's tasks are found, then measured, and only those that
/// fit into the limit of bytes are read.
///
/// $4, $5: strictly before this time and id; $6: not before; $7: states; $8: limit + 1, to know whether there are more;
/// $9: bytes; $10: context. A page without tasks is one row with the total.
macro_rules! list {
    ($total:expr, $context:expr, $weight:expr, $read:expr, $columns:expr) => {
        concat!(
            "WITH found AS MATERIALIZED (SELECT * FROM task t WHERE t.scope = ",
            scope!(),
            $context,
            " AND (t.status_at, t.id) < ($4, $5) AND t.status_at >= $6 AND t.state = ANY($7) \
              ORDER BY t.status_at DESC, t.id DESC LIMIT $8::bigint), \
             weighed AS MATERIALIZED ( \
                 SELECT f.*, row_number() OVER page AS place, sum(",
            $weight,
            ") OVER page AS bytes FROM found f WINDOW page AS (ORDER BY f.status_at DESC, f.id DESC) \
             ), \
             t AS MATERIALIZED ( \
                 SELECT * FROM weighed WHERE place < $8::bigint AND (place = 1 OR bytes <= $9::bigint) \
             ), \
             shown AS (SELECT t.place, ",
            head_columns!(),
            $columns,
            " FROM t",
            $read,
            ") SELECT (SELECT count(*) FROM found) AS found, ",
            $total,
            " AS total, shown.* FROM (SELECT 1) AS one LEFT JOIN shown ON true ORDER BY shown.place"
        )
    };
}

macro_rules! list_whole {
    ($total:expr, $context:expr) => {
        list!(
            $total,
            $context,
            "coalesce((SELECT octet_length(s.record) FROM snapshot s WHERE s.task = f.key), 0) + coalesce(( \
                 SELECT sum(octet_length(e.record)) FROM event e WHERE e.task = f.key AND e.number > coalesce( \
                     (SELECT s.version FROM snapshot s WHERE s.task = f.key), 0)), 0)",
            whole_task!(),
            ", s.record AS snapshot, tail.numbers, tail.records"
        )
    };
}

macro_rules! list_brief {
    ($total:expr, $context:expr) => {
        list!(
            $total,
            $context,
            concat!(
                "coalesce((",
                deciding_event!(
                    "CASE substring(e.record FROM 3 FOR 1) WHEN 'S' THEN octet_length(e.record) END",
                    "f.key"
                ),
                "), 0)"
            ),
            concat!(
                " LEFT JOIN LATERAL (",
                deciding_event!(
                    "e.number, CASE substring(e.record FROM 3 FOR 1) WHEN 'S' THEN e.record END AS record",
                    "t.key"
                ),
                ") said ON true"
            ),
            ", said.number AS said, said.record AS said_record"
        )
    };
}

// How the total is found: not at all, from the counters, or by counting rows.
macro_rules! uncounted {
    () => {
        "NULL::bigint"
    };
}
macro_rules! by_tally {
    () => {
        concat!(
            "(SELECT coalesce(sum(c.tasks), 0)::bigint FROM tally c WHERE c.scope = ",
            scope!(),
            " AND c.state = ANY($7))"
        )
    };
}
macro_rules! by_scan {
    ($context:expr) => {
        concat!(
            "(SELECT count(*) FROM task t WHERE t.scope = ",
            scope!(),
            $context,
            " AND t.status_at >= $6 AND t.state = ANY($7))"
        )
    };
}
macro_rules! in_context {
    () => {
        " AND t.context = $10"
    };
}

// Writing a task.
pub(super) const APPEND: &str = "SELECT outcome, key, earlier_task, earlier_event, earlier_reply, earlier_at \
    FROM append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, \
                $21, $22, $23, $24, $25, $26, $27, $28)";
pub(super) const REQUEST: &str = concat!(
    "SELECT r.outcome, r.request, (r.earlier).task AS earlier_task, (r.earlier).event AS earlier_event, \
     (r.earlier).reply AS earlier_reply, (r.earlier).at AS earlier_at, ",
    head_columns!(),
    " FROM note_request($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) r \
      CROSS JOIN LATERAL (SELECT (r.head).*) t"
);
pub(super) const PUT_REPLY: &str = "SELECT m.message_id IS NULL AS kept, m.task AS earlier_task, \
    m.event AS earlier_event, m.reply AS earlier_reply, m.at AS earlier_at \
    FROM keep_message(intern_scope($1, $2, $3), $4, $5, $6, $7, $8, $9) m";

// Reading.
pub(super) const HEAD: &str =
    concat!("SELECT ", head_columns!(), " FROM task t WHERE t.scope = ", scope!(), " AND t.id = $4");
pub(super) const LOAD: &str = concat!(
    "SELECT ",
    head_columns!(),
    ", s.record AS snapshot, tail.numbers, tail.records FROM task t",
    whole_task!(),
    " WHERE t.scope = ",
    scope!(),
    " AND t.id = $4"
);

/// The list statements of one [`Detail`](crate::store::Detail), by filter and by how the total is found.
pub(super) struct Lists {
    pub(super) uncounted: &'static str,
    pub(super) by_tally: &'static str,
    pub(super) by_scan: &'static str,
    pub(super) in_context: &'static str,
    pub(super) counted_in_context: &'static str,
}
pub(super) const LIST_WHOLE: Lists = Lists {
    uncounted: list_whole!(uncounted!(), ""),
    by_tally: list_whole!(by_tally!(), ""),
    by_scan: list_whole!(by_scan!(""), ""),
    in_context: list_whole!(uncounted!(), in_context!()),
    counted_in_context: list_whole!(by_scan!(in_context!()), in_context!()),
};
pub(super) const LIST_BRIEF: Lists = Lists {
    uncounted: list_brief!(uncounted!(), ""),
    by_tally: list_brief!(by_tally!(), ""),
    by_scan: list_brief!(by_scan!(""), ""),
    in_context: list_brief!(uncounted!(), in_context!()),
    counted_in_context: list_brief!(by_scan!(in_context!()), in_context!()),
};
/// $5: after this number; $6: limit; $7: bytes after which no further event is added.
pub(super) const EVENTS: &str = concat!(
    "SELECT e.number, e.record FROM ( \
         SELECT e.number, e.record, \
                sum(octet_length(e.record)) OVER (ORDER BY e.number) - octet_length(e.record) AS before \
         FROM ( \
             SELECT e.number, e.record FROM task t JOIN event e ON e.task = t.key \
             WHERE t.scope = ",
    scope!(),
    " AND t.id = $4 AND e.number > greatest($5, t.folded_through) ORDER BY e.number LIMIT $6 \
         ) e \
     ) e WHERE e.before < $7 ORDER BY e.number"
);
pub(super) const REQUESTS: &str = concat!(
    "SELECT r.id, r.record FROM request r WHERE r.task = (SELECT t.key FROM task t WHERE t.scope = ",
    scope!(),
    " AND t.id = $4) ORDER BY r.id"
);
pub(super) const MESSAGE: &str = concat!(
    "SELECT m.task AS earlier_task, m.event AS earlier_event, m.reply AS earlier_reply, m.at AS earlier_at \
     FROM message_record m WHERE m.scope = ",
    scope!(),
    " AND m.message_id = $4 AND m.hash = $5"
);

// Sweeps. Rows that another transaction has locked are left for the next sweep. `= ANY (ARRAY(…))` is planned for few
// rows whatever the limit is; a join with the chosen rows may be planned as a scan of the other table.
pub(super) const OPEN_TASKS: &str = "\
    SELECT t.key, s.agent, s.tenant, s.owner, t.id FROM ( \
        (SELECT key FROM task WHERE work <> 0 AND key > $1 ORDER BY key LIMIT $2) \
        UNION (SELECT DISTINCT task FROM request WHERE task > $1 ORDER BY task LIMIT $2) \
        ORDER BY 1 LIMIT $2 \
    ) open JOIN task t ON t.key = open.key JOIN scope s ON s.id = t.scope ORDER BY t.key";
pub(super) const PING: &str = "SELECT 1";
/// $1: owner. What is counted, and what open tasks have written since.
pub(super) const OWNER_USAGE: &str = "SELECT coalesce(sum(u.tasks), 0)::bigint AS tasks, \
    (coalesce(sum(u.bytes), 0) + ( \
        SELECT coalesce(sum(t.uncounted), 0) FROM task t JOIN scope s ON s.id = t.scope \
        WHERE t.work <> 0 AND s.owner = $1 \
    ))::bigint AS bytes FROM owner_usage u WHERE u.owner = $1";
pub(super) const COUNT_TASKS: &str = "SELECT sum(tasks)::bigint FROM task_count";
pub(super) const FOLD_ENDED: &str = concat!(
    "WITH chosen AS MATERIALIZED ( \
        SELECT key, scope, folded_through FROM task t WHERE foldable AND status_at < $1 \
        AND (status_at < $3 OR NOT EXISTS (SELECT 1 FROM webhook w WHERE w.task = t.key AND w.state = 0)) \
        ORDER BY status_at LIMIT $2 \
        FOR UPDATE SKIP LOCKED \
    ), sizes AS MATERIALIZED ( \
        SELECT c.key, c.scope, coalesce(( \
            SELECT sum(octet_length(e.record)) FROM event e WHERE e.task = c.key AND e.number > c.folded_through \
            AND e.number <= (SELECT s.version FROM snapshot s WHERE s.task = c.key)), 0)::bigint AS bytes FROM chosen c \
    ), usage AS ( \
        INSERT INTO owner_usage (owner, shard, tasks, bytes) \
        SELECT s.owner, 16, 0, -sum(z.bytes) FROM sizes z JOIN scope s ON s.id = z.scope \
        GROUP BY s.owner ORDER BY s.owner \
        ON CONFLICT (owner, shard) DO UPDATE SET bytes = owner_usage.bytes + excluded.bytes \
    ), dropped AS ( \
        DELETE FROM event d WHERE d.task = ANY (ARRAY(SELECT key FROM chosen)) \
        AND d.number <= (SELECT s.version FROM snapshot s WHERE s.task = d.task) AND d.number IS DISTINCT FROM (",
    deciding_event!("e.number", "d.task"),
    ")) \
    UPDATE task SET folded_through = (SELECT s.version FROM snapshot s WHERE s.task = key), foldable = false, \
        size = task.size - (SELECT z.bytes FROM sizes z WHERE z.key = task.key) \
    WHERE key = ANY (ARRAY(SELECT key FROM chosen))"
);
pub(super) const PURGE_ENDED: &str = "\
    WITH chosen AS MATERIALIZED ( \
        SELECT key FROM task t WHERE ended AND status_at < $1 \
        AND NOT EXISTS (SELECT 1 FROM webhook w WHERE w.task = t.key AND w.state = 0) \
        ORDER BY status_at LIMIT $2 \
        FOR UPDATE SKIP LOCKED \
    ), events AS (DELETE FROM event WHERE task = ANY (ARRAY(SELECT key FROM chosen))), \
    requests AS (DELETE FROM request WHERE task = ANY (ARRAY(SELECT key FROM chosen))), \
    snapshots AS (DELETE FROM snapshot WHERE task = ANY (ARRAY(SELECT key FROM chosen))), \
    webhooks AS (DELETE FROM webhook WHERE task = ANY (ARRAY(SELECT key FROM chosen))), \
    purged AS (DELETE FROM task WHERE key = ANY (ARRAY(SELECT key FROM chosen)) RETURNING key), \
    counted AS ( \
        UPDATE task_count SET tasks = tasks - (SELECT count(*) FROM purged) \
        WHERE shard = pg_backend_pid() % 16 \
    ) SELECT count(*) FROM purged";
/// Scans the old records of tasks that still exist, like SQLite's. The rows are locked, so their `ctid` stays valid. The
/// scalar subquery runs once per row; NOT EXISTS would be planned as a join with all tasks.
pub(super) const PURGE_RECORDS: &str = "\
    DELETE FROM message_record WHERE ctid = ANY (ARRAY( \
        SELECT m.ctid FROM message_record m \
        WHERE m.at < $1 AND (SELECT t.key FROM task t WHERE t.scope = m.scope AND t.id = m.task) IS NULL \
        ORDER BY m.at LIMIT $2 FOR UPDATE SKIP LOCKED \
    ))";

/// $1: how many to look at. A transaction of its own, after what has emptied them.
pub(super) const REMOVE_EMPTY_SCOPES: &str = "SELECT remove_empty_scopes($1)";
pub(super) const COUNT_ROWS: &str = "SELECT (SELECT count(*) FROM scope) + (SELECT count(*) FROM scope_to_check) \
    + (SELECT count(*) FROM tally) + (SELECT count(*) FROM task) + (SELECT count(*) FROM event) \
    + (SELECT count(*) FROM snapshot) + (SELECT count(*) FROM request) + (SELECT count(*) FROM message_record) \
    + (SELECT count(*) FROM push_config) + (SELECT count(*) FROM outbox) AS rows";

pub(super) const INSERT_SECRET: &str =
    "INSERT INTO secret (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING";
pub(super) const REPLACE_SECRET: &str =
    "UPDATE secret SET value = $3 WHERE name = $1 AND value = $2 RETURNING name";
pub(super) const FIND_SECRET: &str = "SELECT value FROM secret WHERE name = $1";

/// `meta` also holds values of the store itself; the prefix keeps notes apart from them.
pub(super) const FIND_NOTE: &str = "SELECT value FROM meta WHERE name = 'note:' || $1::text";
pub(super) const PUT_NOTE: &str = "INSERT INTO meta (name, value) VALUES ('note:' || $1::text, $2) \
    ON CONFLICT (name) DO UPDATE SET value = excluded.value";

pub(super) const CREDENTIALS: &str = "SELECT id, record FROM credential";
pub(super) const PUT_CREDENTIAL: &str = "INSERT INTO credential (id, record) VALUES ($1, $2) \
    ON CONFLICT (id) DO UPDATE SET record = excluded.record";
pub(super) const REMOVE_CREDENTIAL: &str = "DELETE FROM credential WHERE id = $1";

/// PostgreSQL has signed integers only; the bits stay the same.
pub(super) fn signed(number: u64) -> i64 {
    number.cast_signed()
}

pub(super) fn unsigned(row: &Row, column: &str) -> StoreResult<u64> {
    Ok(row.try_get::<_, i64>(column)?.cast_unsigned())
}

/// Reads a row with [`head_columns`].
pub(super) fn head(row: &Row) -> StoreResult<(TaskId, Head)> {
    let id = task_id(row)?;
    let bad = |what: &str| StoreError::damaged(format!("task {id}: {what}"));
    let small = |column: &str| -> StoreResult<u8> {
        u8::try_from(row.try_get::<_, i16>(column)?).map_err(|_| bad(&format!("{column} out of range")))
    };
    let attempts = u32::try_from(row.try_get::<_, i64>("attempts")?);
    let head = Head {
        key: TaskKey(unsigned(row, "key")?),
        context_id: ContextId::parse(row.try_get("context")?)
            .map_err(|error| bad(&format!("context id {error}")))?,
        generation: Generation::from_number(small("generation")?).ok_or_else(|| bad("unknown generation"))?,
        created_at: time(row, "created_at")?,
        version: unsigned(row, "version")?,
        folded_through: unsigned(row, "folded_through")?,
        current: HeadState {
            state: TaskState::from_number(small("state")?).ok_or_else(|| bad("unknown state"))?,
            status_at: time(row, "status_at")?,
            work: Work::from_number(small("work")?).ok_or_else(|| bad("unknown work"))?,
            attempts: attempts.map_err(|_| bad("attempts out of range"))?,
            holder: row.try_get::<_, Option<i64>>("holder")?.map(|holder| ReplicaId(holder.cast_unsigned())),
            fence: unsigned(row, "fence")?,
        },
    };
    Ok((id, head))
}

pub(super) fn task_id(row: &Row) -> StoreResult<TaskId> {
    TaskId::parse(row.try_get("id")?).map_err(|error| StoreError::damaged(format!("task id {error}")))
}

/// The event with the status message of a brief task, if there is one.
pub(super) fn said(row: &Row) -> StoreResult<Option<StoredEvent>> {
    let record: Option<&[u8]> = row.try_get("said_record")?;
    let Some(record) = record else { return Ok(None) };
    let event = event(row.try_get("said")?, record)?;
    Ok((said::after(0, std::slice::from_ref(&event)) != 0).then_some(event))
}

pub(super) fn event(number: i64, record: &[u8]) -> StoreResult<StoredEvent> {
    StoredEvent::from_record(number.cast_unsigned(), Bytes::copy_from_slice(record))
}

pub(super) fn snapshot(row: &Row) -> StoreResult<Option<StoredSnapshot>> {
    let record: Option<&[u8]> = row.try_get("snapshot")?;
    record.map(|record| StoredSnapshot::from_record(Bytes::copy_from_slice(record))).transpose()
}

/// Reads the `earlier_…` columns; id and hash are those that were looked for.
pub(super) fn earlier(row: &Row, message_id: &MessageId, hash: &MessageHash) -> StoreResult<MessageRecord> {
    let task: Option<&str> = row.try_get("earlier_task")?;
    let bad = |error| StoreError::damaged(format!("message record: task id {error}"));
    let reply: Option<&[u8]> = row.try_get("earlier_reply")?;
    Ok(MessageRecord {
        message_id: message_id.clone(),
        hash: *hash,
        task: task.map(TaskId::parse).transpose().map_err(bad)?,
        event: row.try_get::<_, Option<i64>>("earlier_event")?.map(i64::cast_unsigned),
        reply: reply.map(Bytes::copy_from_slice),
        at: time(row, "earlier_at")?,
    })
}

/// Reads an array; `array_agg` gives NULL instead of an empty one.
pub(super) fn array<'a, T: FromSql<'a>>(row: &'a Row, column: &str) -> StoreResult<Vec<T>> {
    Ok(row.try_get::<_, Option<Vec<T>>>(column)?.unwrap_or_default())
}

fn time(row: &Row, column: &str) -> StoreResult<Timestamp> {
    Ok(Timestamp::from_millis(row.try_get(column)?))
}
