//! The operations that read. Each is one statement, so it sees one state of the database.

use baton_protocol::domain::{ListFilter, MessageId, Scope, TaskId, Timestamp};
use bytes::Bytes;
use deadpool_postgres::Client;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::statements::{self as sql, signed};
use crate::store::state_totals::states;
use crate::store::{
    Brief, Detail, EVENTS_BYTES, HASH_DIGEST, Head, ListPage, ListQuery, Listed, Loaded, MessageHash,
    MessageRecord, OpenTask, OwnerUsage, PendingRequest, RequestId, StoreError, StoreResult,
    StoredCredential, StoredEvent, TaskKey,
};

type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

pub(super) async fn head(client: &Client, scope: &Scope, task: &TaskId) -> StoreResult<Option<Head>> {
    let params: Params<'_> = &[&&*scope.agent, &&*scope.tenant, &&*scope.owner, &task.as_str()];
    let rows = query(client, sql::HEAD, params).await?;
    rows.first().map(|row| Ok(sql::head(row)?.1)).transpose()
}

pub(super) async fn load(client: &Client, scope: &Scope, task: &TaskId) -> StoreResult<Option<Loaded>> {
    let params: Params<'_> = &[&&*scope.agent, &&*scope.tenant, &&*scope.owner, &task.as_str()];
    let rows = query(client, sql::LOAD, params).await?;
    rows.first().map(loaded).transpose()
}

pub(super) async fn events(
    client: &Client,
    scope: &Scope,
    task: &TaskId,
    after: u64,
    limit: u32,
) -> StoreResult<Vec<StoredEvent>> {
    // No log is that long, and as a signed number it would be negative.
    if after > i64::MAX as u64 {
        return Ok(Vec::new());
    }
    let params: Params<'_> = &[
        &&*scope.agent,
        &&*scope.tenant,
        &&*scope.owner,
        &task.as_str(),
        &signed(after),
        &i64::from(limit),
        &(EVENTS_BYTES as i64),
    ];
    let rows = query(client, sql::EVENTS, params).await?;
    rows.iter().map(|row| sql::event(row.try_get("number")?, row.try_get("record")?)).collect()
}

pub(super) async fn list(client: &Client, scope: &Scope, wanted: &ListQuery) -> StoreResult<ListPage> {
    // One upper bound is enough: a position newer than `not_after` adds no restriction, and "not after this
    // millisecond" equals "before the empty id in the next millisecond".
    let (before, id) = match &wanted.after {
        Some(after) if after.status_at <= wanted.not_after => {
            (after.status_at.as_millis(), after.id.as_str())
        }
        _ => (wanted.not_after.as_millis() + 1, ""),
    };
    let filter = &wanted.filter;
    let since = not_before(filter);
    let states: Vec<i16> = states(filter).map(|state| state.number().into()).collect();
    let (limit, bytes) = (i64::from(wanted.limit) + 1, i64::try_from(wanted.most_bytes).unwrap_or(i64::MAX));
    let (agent, tenant, owner) = (&*scope.agent, &*scope.tenant, &*scope.owner);
    let lists = match wanted.detail {
        Detail::Whole => &sql::LIST_WHOLE,
        Detail::Status => &sql::LIST_BRIEF,
    };
    let mut params: Vec<&(dyn ToSql + Sync)> =
        vec![&agent, &tenant, &owner, &before, &id, &since, &states, &limit, &bytes];
    let context = filter.context_id.as_ref().map(|context| context.as_str());
    let statement = match (&context, wanted.counted) {
        (Some(context), counted) => {
            params.push(context);
            if counted { lists.counted_in_context } else { lists.in_context }
        }
        (None, false) => lists.uncounted,
        (None, true) if filter.updated_since.is_none() => lists.by_tally,
        (None, true) => lists.by_scan,
    };
    let rows = query(client, statement, &params).await?;
    let (mut tasks, mut found, mut total) = (Vec::with_capacity(rows.len()), 0, None);
    for row in &rows {
        (found, total) = (row.try_get::<_, i64>("found")?, row.try_get::<_, Option<i64>>("total")?);
        if row.try_get::<_, Option<&str>>("id")?.is_some() {
            tasks.extend(listed(client, scope, row, wanted.detail).await?);
        }
    }
    let more = (tasks.len() as i64) < found;
    Ok(ListPage { tasks, more, total: total.map(i64::cast_unsigned) })
}

async fn listed(client: &Client, scope: &Scope, row: &Row, detail: Detail) -> StoreResult<Option<Listed>> {
    if detail == Detail::Whole {
        return Ok(Some(Listed::Whole(loaded(row)?)));
    }
    let (id, head) = sql::head(row)?;
    // Older versions folded logs without keeping the event with the status message: such a task is read whole.
    if head.folded_through > 0 && row.try_get::<_, Option<i64>>("said")?.is_none() {
        return Ok(load(client, scope, &id).await?.map(Listed::Whole));
    }
    Ok(Some(Listed::Status(Brief { id, head, said: sql::said(row)? })))
}

pub(super) async fn requests(
    client: &Client,
    scope: &Scope,
    task: &TaskId,
) -> StoreResult<Vec<PendingRequest>> {
    let params: Params<'_> = &[&&*scope.agent, &&*scope.tenant, &&*scope.owner, &task.as_str()];
    let rows = query(client, sql::REQUESTS, params).await?;
    let request = |row: &Row| {
        let record = Bytes::copy_from_slice(row.try_get("record")?);
        let event = StoredEvent::from_record(0, record)?;
        Ok(PendingRequest { request: RequestId(sql::unsigned(row, "id")?), event })
    };
    rows.iter().map(request).collect()
}

pub(super) async fn message(
    client: &Client,
    scope: &Scope,
    id: &MessageId,
    hash: &MessageHash,
) -> StoreResult<Option<MessageRecord>> {
    let params: Params<'_> =
        &[&&*scope.agent, &&*scope.tenant, &&*scope.owner, &id.as_str(), &&hash[..HASH_DIGEST]];
    let rows = query(client, sql::MESSAGE, params).await?;
    rows.first().map(|row| sql::earlier(row, id, hash)).transpose()
}

pub(super) async fn open_tasks(client: &Client, after: TaskKey, limit: u32) -> StoreResult<Vec<OpenTask>> {
    let rows = query(client, sql::OPEN_TASKS, &[&signed(after.0), &i64::from(limit)]).await?;
    let open = |row: &Row| {
        let scope = Scope::new(row.try_get("agent")?, row.try_get("tenant")?, row.try_get("owner")?);
        Ok(OpenTask { key: TaskKey(sql::unsigned(row, "key")?), scope, id: sql::task_id(row)? })
    };
    rows.iter().map(open).collect()
}

pub(super) async fn find_secret(client: &Client, name: &str) -> StoreResult<Option<Vec<u8>>> {
    let rows = query(client, sql::FIND_SECRET, &[&name]).await?;
    Ok(rows.first().map(|row| row.try_get("value")).transpose()?)
}

pub(super) async fn credentials(client: &Client) -> StoreResult<Vec<StoredCredential>> {
    let rows = query(client, sql::CREDENTIALS, &[]).await?;
    let credential = |row: &Row| {
        let record = Bytes::copy_from_slice(row.try_get("record")?);
        Ok(StoredCredential { id: row.try_get("id")?, record })
    };
    rows.iter().map(credential).collect()
}

pub(super) async fn owner_usage(client: &Client, owner: &str) -> StoreResult<OwnerUsage> {
    let rows = query(client, sql::OWNER_USAGE, &[&owner]).await?;
    let Some(row) = rows.first() else { return Ok(OwnerUsage::default()) };
    let number =
        |column| Ok::<_, StoreError>(u64::try_from(row.try_get::<_, i64>(column)?).unwrap_or_default());
    Ok(OwnerUsage { tasks: number("tasks")?, bytes: number("bytes")? })
}

pub(super) async fn task_count(client: &Client) -> StoreResult<u64> {
    let rows = query(client, sql::COUNT_TASKS, &[]).await?;
    rows.first().map_or(Ok(0), |row| sql::unsigned(row, "sum"))
}

pub(super) async fn row_count(client: &Client) -> StoreResult<Option<u64>> {
    let rows = query(client, sql::COUNT_ROWS, &[]).await?;
    rows.first().map(|row| sql::unsigned(row, "rows")).transpose()
}

/// Does the server answer? Does not notice a full disk; the next write does.
pub(super) async fn ping(client: &Client) -> StoreResult<()> {
    query(client, sql::PING, &[]).await.map(drop)
}

/// Prepares the statement once per connection; after that it takes one round trip.
pub(super) async fn query(client: &Client, sql: &str, params: Params<'_>) -> StoreResult<Vec<Row>> {
    let statement = client.prepare_cached(sql).await?;
    Ok(client.query(&statement, params).await?)
}

fn loaded(row: &Row) -> StoreResult<Loaded> {
    let (id, head) = sql::head(row)?;
    let (numbers, records) = (sql::array::<i64>(row, "numbers")?, sql::array::<&[u8]>(row, "records")?);
    let tail = numbers.into_iter().zip(records).map(|(number, record)| sql::event(number, record));
    Ok(Loaded { id, head, snapshot: sql::snapshot(row)?, tail: tail.collect::<StoreResult<_>>()? })
}

fn not_before(filter: &ListFilter) -> i64 {
    filter.updated_since.unwrap_or(Timestamp::MIN).as_millis()
}
