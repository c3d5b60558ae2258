//! Tables, as a numbered list of migrations. A migration that has been released is never edited.

use rusqlite::Connection;

use crate::points::{Point, reached};
use crate::store::{StoreError, StoreResult};

/// `user_version` is how many of these have run.
const MIGRATIONS: &[&str] = &[V1, V2, V3, V4, V5, V6, V7, V8, V9, V10];

/// Marks the file as Baton's ("BTON"), so that somebody else's database is never migrated.
const APPLICATION_ID: i32 = i32::from_be_bytes(*b"BTON");

/// Everything is keyed by scope or by the task's internal key.
///
/// The layout keeps appends cheap. The head row is small and the snapshot is in a table of its own, because SQLite
/// rewrites the whole row (all of a 64 KiB snapshot) on every change. Indexes contain only columns that change with a
/// status or with a turn, so that an artifact chunk writes one event row and one head row and no index. `state` is the
/// last column of the list indexes, so that counts and filters need the index only.
///
/// No foreign keys: each inserted event would look up its task again, and a purge deletes by key anyway.
const V1: &str = "
CREATE TABLE scope (
    id INTEGER PRIMARY KEY,
    agent TEXT NOT NULL,
    tenant TEXT NOT NULL,
    owner TEXT NOT NULL,
    UNIQUE (agent, tenant, owner)
) STRICT;

-- AUTOINCREMENT: a key is in webhook ids and logs and must not come back after a purge.
CREATE TABLE task (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    scope INTEGER NOT NULL,
    id TEXT NOT NULL,
    context TEXT NOT NULL,
    generation INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    folded_through INTEGER NOT NULL DEFAULT 0,
    state INTEGER NOT NULL,
    status_at INTEGER NOT NULL,
    -- The same time again once the state is an ended one: what retention goes by.
    ended_at INTEGER,
    work INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    holder INTEGER,
    fence INTEGER NOT NULL,
    -- Requests ever noted: the last request's id, so that ids are not used twice.
    requests INTEGER NOT NULL DEFAULT 0,
    UNIQUE (scope, id)
) STRICT;
CREATE INDEX task_by_time ON task (scope, status_at DESC, id DESC, state);
CREATE INDEX task_by_context ON task (scope, context, status_at DESC, id DESC, state);
CREATE INDEX task_open ON task (key) WHERE work <> 0;
CREATE INDEX task_ended ON task (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX task_unfolded ON task (ended_at) WHERE ended_at IS NOT NULL AND folded_through = 0;

CREATE TABLE event (
    task INTEGER NOT NULL,
    number INTEGER NOT NULL,
    record BLOB NOT NULL,
    PRIMARY KEY (task, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE snapshot (
    task INTEGER PRIMARY KEY,
    version INTEGER NOT NULL,
    record BLOB NOT NULL
) STRICT;

-- Outlives its task, so it names the task by id.
CREATE TABLE message_record (
    scope INTEGER NOT NULL,
    message_id TEXT NOT NULL,
    hash BLOB NOT NULL,
    task TEXT,
    event INTEGER,
    reply BLOB,
    at INTEGER NOT NULL,
    PRIMARY KEY (scope, message_id, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX message_record_by_time ON message_record (at);

CREATE TABLE request (
    task INTEGER NOT NULL,
    id INTEGER NOT NULL,
    record BLOB NOT NULL,
    message_id TEXT,
    hash BLOB,
    PRIMARY KEY (task, id)
) STRICT, WITHOUT ROWID;

-- Webhooks. Nothing writes these two yet.
CREATE TABLE push_config (
    task INTEGER NOT NULL,
    id TEXT NOT NULL,
    record BLOB NOT NULL,
    PRIMARY KEY (task, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE outbox (
    task INTEGER NOT NULL,
    config TEXT NOT NULL,
    event INTEGER NOT NULL,
    state INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    PRIMARY KEY (task, config, event)
) STRICT, WITHOUT ROWID;
CREATE INDEX outbox_due ON outbox (due_at) WHERE state = 0;

CREATE TABLE secret (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
";

/// A checksum per row (`checksum.rs`); older rows have none. It leaves out columns that are updated alone: a message
/// record's `event`, and a task's `folded_through` and `requests`.
const V2: &str = "
ALTER TABLE task ADD COLUMN sum INTEGER;
ALTER TABLE event ADD COLUMN sum INTEGER;
ALTER TABLE snapshot ADD COLUMN sum INTEGER;
ALTER TABLE message_record ADD COLUMN sum INTEGER;
ALTER TABLE request ADD COLUMN sum INTEGER;
";

/// A send writes fewer pages and fewer rows, which are its cost.
///
/// - The record of a task's first message is in the task's row and not in `message_record` with its index; it moves there
///   when the task is purged.
/// - An open task is in the two indexes of open tasks and moves once to those of idle ones: its status changes several
///   times, and each change of an indexed column is two writes to every index with that column.
/// - Indexes by time are ascending, so that new entries go to their end and fill their pages.
/// - An ended task is in one index by its end, not two.
/// - The writer, the only one, counts keys itself; AUTOINCREMENT rewrites a row for every new task.
/// - Events are stored in the order of arrival. In the order of task and number, a task's later events would go between
///   those of other tasks and split every page, and only seven of them fitted a page of the index.
/// - Small events of one append share a row: `record` is their records one after the other, `lengths` two bytes for each
///   (little endian), `number` that of the last event.
const V3: &str = "
CREATE TABLE task_3 (
    key INTEGER PRIMARY KEY,
    scope INTEGER NOT NULL,
    id TEXT NOT NULL,
    context TEXT NOT NULL,
    generation INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    folded_through INTEGER NOT NULL DEFAULT 0,
    state INTEGER NOT NULL,
    status_at INTEGER NOT NULL,
    ended_at INTEGER,
    work INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    holder INTEGER,
    fence INTEGER NOT NULL,
    requests INTEGER NOT NULL DEFAULT 0,
    sum INTEGER,
    -- The record of the message that made the task, if it came with the birth, as it does.
    message_id TEXT,
    hash BLOB,
    message_event INTEGER,
    message_sum INTEGER,
    UNIQUE (scope, id)
) STRICT;
INSERT INTO task_3 SELECT key, scope, id, context, generation, created_at, version, folded_through, state, status_at,
    ended_at, work, attempts, holder, fence, requests, sum, NULL, NULL, NULL, NULL FROM task ORDER BY key;
-- A key is in webhook ids and logs and must not come back after a purge.
INSERT INTO meta (name, value)
    SELECT 'last_key', CAST(seq AS TEXT) FROM sqlite_sequence WHERE name = 'task';
DROP TABLE task;
ALTER TABLE task_3 RENAME TO task;
CREATE UNIQUE INDEX task_message ON task (scope, message_id, hash) WHERE message_id IS NOT NULL;
CREATE INDEX task_by_time ON task (scope, status_at, id, state) WHERE work = 0;
CREATE INDEX task_by_context ON task (scope, context, status_at, id, state) WHERE work = 0;
CREATE INDEX task_open ON task (key) WHERE work <> 0;
CREATE INDEX task_open_by_time ON task (scope, status_at, id, state, context, work) WHERE work <> 0;
CREATE INDEX task_unfolded ON task (ended_at) WHERE ended_at IS NOT NULL AND folded_through = 0;
CREATE INDEX task_folded ON task (ended_at) WHERE ended_at IS NOT NULL AND folded_through <> 0;

CREATE TABLE event_3 (
    place INTEGER PRIMARY KEY,
    task INTEGER NOT NULL,
    number INTEGER NOT NULL,
    record BLOB NOT NULL,
    lengths BLOB,
    sum INTEGER
) STRICT;
INSERT INTO event_3 (task, number, record, sum) SELECT task, number, record, sum FROM event ORDER BY task, number;
DROP TABLE event;
ALTER TABLE event_3 RENAME TO event;
CREATE UNIQUE INDEX event_by_task ON event (task, number);
";

/// The cost of a list does not depend on the number of tasks or on their size.
///
/// - Totals are in rows of their own (`tally.rs`), by scope and state. A context with many tasks gets such rows when its
///   total is first requested; a row of state 0 marks a context that has them.
/// - Idle tasks are listed state by state, so that a list of a rare state does not scan tasks of others.
/// - `said` is the number of the event with the current status message or metadata, 0 without one (`said.rs`). Folding
///   keeps that event's row. In older rows it is NULL until the status changes; such a task is read whole.
const V4: &str = "
ALTER TABLE task ADD COLUMN said INTEGER;
CREATE INDEX task_by_state ON task (scope, state, status_at, id) WHERE work = 0;
DROP INDEX task_by_time;

CREATE TABLE tally (
    scope INTEGER NOT NULL,
    state INTEGER NOT NULL,
    tasks INTEGER NOT NULL,
    PRIMARY KEY (scope, state)
) STRICT, WITHOUT ROWID;
INSERT INTO tally SELECT scope, state, count(*) FROM task GROUP BY scope, state;
CREATE TABLE context_tally (
    scope INTEGER NOT NULL,
    context TEXT NOT NULL,
    state INTEGER NOT NULL,
    tasks INTEGER NOT NULL,
    PRIMARY KEY (scope, context, state)
) STRICT, WITHOUT ROWID;
";

/// Sweeps and lists read only tasks they act on or show.
///
/// - `foldable`: the task has ended, and its snapshot covers events that are still in the log. (Large tasks may have no
///   snapshot, and every sweep scanned all of them.) An ended task is in one of the two indexes.
/// - Idle tasks of a context are listed state by state, too.
const V5: &str = "
ALTER TABLE task ADD COLUMN foldable INTEGER NOT NULL DEFAULT 0;
UPDATE task SET foldable = 1 WHERE ended_at IS NOT NULL AND folded_through = 0
    AND EXISTS (SELECT 1 FROM snapshot s WHERE s.task = task.key AND s.version > 0);
DROP INDEX task_unfolded;
DROP INDEX task_folded;
DROP INDEX task_by_context;
CREATE INDEX task_foldable ON task (ended_at) WHERE foldable = 1;
CREATE INDEX task_ended ON task (ended_at) WHERE ended_at IS NOT NULL AND foldable = 0;
CREATE INDEX task_by_context ON task (scope, context, state, status_at, id) WHERE work = 0;
";

/// Credentials that Baton issued (API keys). An older Baton, which would let everybody in, does not open the file.
const V6: &str = "
CREATE TABLE credential (
    id TEXT PRIMARY KEY,
    record BLOB NOT NULL,
    sum INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
";

/// The scopes of one owner are found without a scan, to count its tasks.
const V7: &str = "
CREATE INDEX scope_by_owner ON scope (owner);
";

/// What each owner has stored is counted with each write (`usage.rs`), whatever tenants its tasks and messages name.
///
/// - `bytes`: what a task counts, with the record of its first message if that is in its row. `uncounted`: how much of that
///   is not in `owner_usage` yet; `uncounted_task`: 1 if the task itself is not.
/// - 256 is `RECORD_BYTES`; the texts of a record are counted besides.
const V8: &str = "
ALTER TABLE task ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE task ADD COLUMN uncounted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE task ADD COLUMN uncounted_task INTEGER NOT NULL DEFAULT 0;
UPDATE task SET bytes = coalesce((SELECT sum(octet_length(e.record)) FROM event e
        WHERE e.task = task.key AND e.number > task.folded_through), 0)
    + coalesce((SELECT octet_length(s.record) FROM snapshot s WHERE s.task = task.key), 0)
    + coalesce((SELECT sum(octet_length(r.record)) FROM request r WHERE r.task = task.key), 0)
    + CASE WHEN message_id IS NULL THEN 0 ELSE 256 + octet_length(message_id) + octet_length(id) END;
CREATE TABLE owner_usage (
    owner TEXT PRIMARY KEY,
    tasks INTEGER NOT NULL,
    bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO owner_usage (owner, tasks, bytes)
    SELECT s.owner, sum(u.tasks), sum(u.bytes) FROM (
        SELECT scope, count(*) AS tasks, sum(bytes) AS bytes FROM task GROUP BY scope
        UNION ALL
        SELECT scope, 0, sum(256 + octet_length(message_id) + coalesce(octet_length(task), 0)
            + coalesce(octet_length(reply), 0))
        FROM message_record GROUP BY scope
    ) u JOIN scope s ON s.id = u.scope GROUP BY s.owner;
DROP INDEX scope_by_owner;
";

/// Removes the scopes in which nothing is stored: up to here they stayed for ever (`scopes.rs`).
const V9: &str = "
DELETE FROM scope WHERE NOT EXISTS (SELECT 1 FROM task t WHERE t.scope = scope.id)
    AND NOT EXISTS (SELECT 1 FROM message_record m WHERE m.scope = scope.id);
DELETE FROM tally WHERE scope NOT IN (SELECT id FROM scope);
";

/// Webhooks (`webhooks.rs`), each with its cursor, and those that failed, which outlive their task. The two tables for them of
/// the first version were never written: an append need not write anything for webhooks.
///
/// A webhook's record is a part of its task's `bytes`. Only open webhooks (state 0) are in the index.
const V10: &str = "
DROP TABLE push_config;
DROP TABLE outbox;
CREATE TABLE webhook (
    task INTEGER NOT NULL,
    id TEXT NOT NULL,
    revision INTEGER NOT NULL,
    done INTEGER NOT NULL,
    task_as_of INTEGER,
    failures INTEGER NOT NULL,
    failing_since INTEGER,
    due INTEGER NOT NULL,
    claimed_by INTEGER,
    claimed_until INTEGER,
    state INTEGER NOT NULL,
    sum INTEGER NOT NULL,
    record BLOB NOT NULL,
    PRIMARY KEY (task, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_open ON webhook (task, id) WHERE state = 0;
CREATE TABLE failed_webhook (
    task INTEGER NOT NULL,
    id TEXT NOT NULL,
    at INTEGER NOT NULL,
    record BLOB NOT NULL,
    sum INTEGER NOT NULL,
    PRIMARY KEY (task, id)
) STRICT;
CREATE INDEX failed_webhook_by_time ON failed_webhook (at, task, id);
";

/// Refuses another program's database and one of a newer Baton, before anything is changed. Answers how many migrations
/// have run on it.
pub(super) fn check(connection: &Connection) -> StoreResult<usize> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (version, application) = (number("user_version")?, number("application_id")?);
    let empty: bool = connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))?;
    // A new database has no application id yet.
    let is_ours = application == i64::from(APPLICATION_ID) || empty && application == 0;
    if !is_ours {
        return Err(StoreError::unavailable(
            "this is another program's SQLite database, not one of Baton's; it was not changed, choose another file"
                .to_owned(),
        ));
    }
    let newest = MIGRATIONS.len();
    match usize::try_from(version) {
        Ok(done) if done <= newest => Ok(done),
        _ => Err(StoreError::unavailable(format!(
            "the database has format {version} and this Baton knows formats up to {newest}: \
             it was written by a newer Baton"
        ))),
    }
}

/// Runs the missing migrations in one transaction.
pub(super) fn migrate(connection: &mut Connection) -> StoreResult<()> {
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let (done, newest) = (check(&transaction)?, MIGRATIONS.len());
    if done < newest {
        for sql in &MIGRATIONS[done..] {
            transaction.execute_batch(sql)?;
        }
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", newest as i64)?;
        reached(Point::MigrateWithin);
    }
    Ok(transaction.commit()?)
}
