//! Webhooks and their cursors.

use baton_protocol::domain::{PushConfigId, Scope, TaskId, Timestamp};
use bytes::Bytes;
use deadpool_postgres::Client;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::read::query;
use super::statements::{self as sql, signed};
use crate::store::{
    Append, Claim, FailedWebhook, NewWebhook, OpenWebhook, PutWebhook, ReplicaId, StoreError, StoreResult,
    StoredWebhook, TaskKey, WebhookCursor, WebhookState,
};

/// The columns that [`webhook`] reads.
macro_rules! columns {
    () => {
        "w.task, w.id AS webhook_id, w.record, w.revision, w.done, w.task_as_of, w.failures, w.failing_since, w.due, \
         w.claimed_by, w.claimed_until, w.state AS webhook_state"
    };
}

const PUT: &str = concat!(
    "SELECT p.outcome, ",
    "(p.stored).task, (p.stored).id AS webhook_id, (p.stored).record, (p.stored).revision, (p.stored).done, \
     (p.stored).task_as_of, (p.stored).failures, (p.stored).failing_since, (p.stored).due, (p.stored).claimed_by, \
     (p.stored).claimed_until, (p.stored).state AS webhook_state ",
    "FROM put_webhook($1, $2, $3, $4, $5, $6, $7, $8) p"
);
const OF_TASK: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM scope s JOIN task t ON t.scope = s.id JOIN webhook w ON w.task = t.key \
     WHERE s.agent = $1 AND s.tenant = $2 AND s.owner = $3 AND t.id = $4 ORDER BY w.id"
);
/// Locks the task first, as `remove_webhook` and `put_webhook` do, and then compares the webhook as it is by then.
const REMOVE: &str = "WITH locked AS MATERIALIZED ( \
        SELECT t.key FROM task t JOIN scope s ON s.id = t.scope \
        WHERE s.agent = $1 AND s.tenant = $2 AND s.owner = $3 AND t.id = $4 FOR UPDATE OF t \
    ), found AS MATERIALIZED ( \
        SELECT w.id FROM webhook w WHERE w.task = (SELECT key FROM locked) AND w.id = $5 \
        AND ($6::bigint IS NULL OR w.revision = $6) FOR UPDATE \
    ) SELECT remove_webhook($1, $2, $3, $4, $5) AS removed FROM found";
macro_rules! move_webhook {
    () => {
        "UPDATE webhook SET revision = revision + 1, done = $4, task_as_of = $5, failures = $6, failing_since = $7, \
         due = $8, claimed_by = $9, claimed_until = $10, state = $11 WHERE task = $1 AND id = $2 AND revision = $3 RETURNING 1"
    };
}
const MOVE: &str = move_webhook!();
const SET_ASIDE: &str = concat!(
    "WITH moved AS (",
    move_webhook!(),
    ") SELECT put_failed_webhook($1, $2, $12, $13, $14) FROM moved"
);
macro_rules! open {
    ($where:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            ", s.agent, s.tenant, s.owner, t.id, t.version FROM webhook w JOIN task t ON t.key = w.task \
             JOIN scope s ON s.id = t.scope WHERE w.state = 0 AND ",
            $where
        )
    };
}
const OPEN: &str = open!("(w.task, w.id) > ($1, $2) ORDER BY w.task, w.id LIMIT $3");
const OPEN_OF_TASK: &str = open!("w.task = $1 ORDER BY w.id");
const OVERDUE: &str = open!("t.ended AND t.status_at < $1 ORDER BY t.status_at, w.task, w.id LIMIT $2");

const FAILED: &str = "SELECT task, id, at, record FROM failed_webhook \
    WHERE $1::bigint IS NULL OR (at, task, id) < ($1, $2, $3) ORDER BY at DESC, task DESC, id DESC LIMIT $4";
const REMOVE_FAILED: &str = "DELETE FROM failed_webhook WHERE task = $1 AND id = $2 RETURNING 1";

/// `begin`: after which event; `None` for the task's last one.
pub(super) async fn put(
    client: &impl deadpool_postgres::GenericClient,
    scope: &Scope,
    task: &TaskId,
    new: &NewWebhook,
    begin: Option<u64>,
) -> StoreResult<PutWebhook> {
    let statement = client.prepare_cached(PUT).await?;
    let rows = client
        .query(
            &statement,
            &[
                &&*scope.agent,
                &&*scope.tenant,
                &&*scope.owner,
                &task.as_str(),
                &new.id.as_str(),
                &&new.record[..],
                &i64::from(new.most),
                &begin.map(signed),
            ],
        )
        .await?;
    let row = rows.first().ok_or_else(|| StoreError::damaged("put_webhook returned no row"))?;
    match row.try_get::<_, i16>("outcome")? {
        0 => Ok(PutWebhook::Stored { key: TaskKey(sql::unsigned(row, "task")?), webhook: webhook(row)? }),
        1 => Ok(PutWebhook::NotFound),
        2 => Ok(PutWebhook::Full),
        other => Err(StoreError::damaged(format!("put_webhook answered {other}"))),
    }
}

/// The webhook that comes with a birth, in the transaction of its append.
pub(super) async fn put_with_birth(
    client: &impl deadpool_postgres::GenericClient,
    scope: &Scope,
    append: &Append,
) -> StoreResult<()> {
    match &append.webhook {
        Some(new) => put(client, scope, &append.task, new, Some(0)).await.map(drop),
        None => Ok(()),
    }
}

pub(super) async fn of_task(
    client: &Client,
    scope: &Scope,
    task: &TaskId,
) -> StoreResult<Vec<StoredWebhook>> {
    let rows =
        query(client, OF_TASK, &[&&*scope.agent, &&*scope.tenant, &&*scope.owner, &task.as_str()]).await?;
    rows.iter().map(webhook).collect()
}

pub(super) async fn remove(
    client: &Client,
    scope: &Scope,
    task: &TaskId,
    id: &PushConfigId,
    revision: Option<u64>,
) -> StoreResult<bool> {
    let (owner, revision) = (&&*scope.owner, &revision.map(signed));
    let params: &[&(dyn ToSql + Sync)] =
        &[&&*scope.agent, &&*scope.tenant, owner, &task.as_str(), &id.as_str(), revision];
    let rows = query(client, REMOVE, params).await?;
    rows.first().map_or(Ok(false), |row| Ok(row.try_get("removed")?))
}

pub(super) async fn move_to(
    client: &Client,
    task: TaskKey,
    id: &PushConfigId,
    revision: u64,
    cursor: WebhookCursor,
) -> StoreResult<bool> {
    moved(client, MOVE, (task, id, revision, cursor), &[]).await
}

/// Runs a statement that begins with the parameters of [`MOVE`]; answers whether it returned a row.
async fn moved(
    client: &Client,
    sql: &str,
    (task, id, revision, cursor): (TaskKey, &PushConfigId, u64, WebhookCursor),
    further: &[&(dyn ToSql + Sync)],
) -> StoreResult<bool> {
    let WebhookCursor { revision: _, done, task_as_of, failures, failing_since, due, claim, state } = cursor;
    let params: [&(dyn ToSql + Sync); 11] = [
        &signed(task.0),
        &id.as_str(),
        &signed(revision),
        &signed(done),
        &task_as_of.map(signed),
        &i64::from(failures),
        &failing_since.map(Timestamp::as_millis),
        &due.as_millis(),
        &claim.map(|claim| signed(claim.by.0)),
        &claim.map(|claim| claim.until.as_millis()),
        &i16::from(state.number()),
    ];
    Ok(!query(client, sql, &[&params, further].concat()).await?.is_empty())
}

pub(super) async fn open(
    client: &Client,
    after: Option<(TaskKey, PushConfigId)>,
    limit: u32,
) -> StoreResult<Vec<OpenWebhook>> {
    let (key, id) = after.as_ref().map_or((-1, ""), |(key, id)| (signed(key.0), id.as_str()));
    let rows = query(client, OPEN, &[&key, &id, &i64::from(limit)]).await?;
    rows.iter().map(open_webhook).collect()
}

pub(super) async fn open_of(client: &Client, task: TaskKey) -> StoreResult<Vec<OpenWebhook>> {
    let rows = query(client, OPEN_OF_TASK, &[&signed(task.0)]).await?;
    rows.iter().map(open_webhook).collect()
}

pub(super) async fn overdue(client: &Client, before: Timestamp, limit: u32) -> StoreResult<Vec<OpenWebhook>> {
    let rows = query(client, OVERDUE, &[&before.as_millis(), &i64::from(limit)]).await?;
    rows.iter().map(open_webhook).collect()
}

pub(super) async fn set_aside(
    client: &Client,
    revision: u64,
    cursor: WebhookCursor,
    failed: &FailedWebhook,
    most: u32,
) -> StoreResult<bool> {
    let FailedWebhook { key, id, at, record } = failed;
    let kept: [&(dyn ToSql + Sync); 3] = [&at.as_millis(), &&record[..], &i64::from(most)];
    moved(client, SET_ASIDE, (*key, id, revision, cursor), &kept).await
}

pub(super) async fn failed(
    client: &Client,
    after: Option<(Timestamp, TaskKey, PushConfigId)>,
    limit: u32,
) -> StoreResult<Vec<FailedWebhook>> {
    let at = after.as_ref().map(|(at, ..)| at.as_millis());
    let (key, id) = after.as_ref().map_or((0, ""), |(_, key, id)| (signed(key.0), id.as_str()));
    let rows = query(client, FAILED, &[&at, &key, &id, &i64::from(limit)]).await?;
    let failed = |row: &Row| {
        Ok(FailedWebhook {
            key: TaskKey(sql::unsigned(row, "task")?),
            id: webhook_id(row, "id")?,
            at: Timestamp::from_millis(row.try_get("at")?),
            record: Bytes::from(row.try_get::<_, Vec<u8>>("record")?),
        })
    };
    rows.iter().map(failed).collect()
}

pub(super) async fn remove_failed(client: &Client, task: TaskKey, id: &PushConfigId) -> StoreResult<bool> {
    Ok(!query(client, REMOVE_FAILED, &[&signed(task.0), &id.as_str()]).await?.is_empty())
}

fn open_webhook(row: &Row) -> StoreResult<OpenWebhook> {
    Ok(OpenWebhook {
        key: TaskKey(sql::unsigned(row, "task")?),
        scope: Scope::new(row.try_get("agent")?, row.try_get("tenant")?, row.try_get("owner")?),
        task: sql::task_id(row)?,
        version: sql::unsigned(row, "version")?,
        webhook: webhook(row)?,
    })
}

fn webhook(row: &Row) -> StoreResult<StoredWebhook> {
    let id = webhook_id(row, "webhook_id")?;
    let bad = |what: &str| StoreError::damaged(format!("webhook {id}: {what}"));
    let number = |column: &str| -> StoreResult<Option<u64>> {
        Ok(row.try_get::<_, Option<i64>>(column)?.map(i64::cast_unsigned))
    };
    let time = |column: &str| -> StoreResult<Option<Timestamp>> {
        Ok(row.try_get::<_, Option<i64>>(column)?.map(Timestamp::from_millis))
    };
    let claim = match (number("claimed_by")?, time("claimed_until")?) {
        (Some(by), Some(until)) => Some(Claim { by: ReplicaId(by), until }),
        _ => None,
    };
    let state = u8::try_from(row.try_get::<_, i16>("webhook_state")?).ok();
    let cursor = WebhookCursor {
        revision: sql::unsigned(row, "revision")?,
        done: sql::unsigned(row, "done")?,
        task_as_of: number("task_as_of")?,
        failures: u32::try_from(row.try_get::<_, i64>("failures")?).map_err(|_| bad("failures"))?,
        failing_since: time("failing_since")?,
        due: time("due")?.ok_or_else(|| bad("no due time"))?,
        claim,
        state: state.and_then(WebhookState::from_number).ok_or_else(|| bad("unknown state"))?,
    };
    let record = Bytes::from(row.try_get::<_, Vec<u8>>("record")?);
    Ok(StoredWebhook { id, record, cursor })
}

fn webhook_id(row: &Row, column: &str) -> StoreResult<PushConfigId> {
    let bad = |error| StoreError::damaged(format!("webhook id {error}"));
    PushConfigId::parse(row.try_get(column)?).map_err(bad)
}
