//! The operations that write. Each is one statement (`secret`, `note` and purging take two), so it is done completely or not at all.

use baton_protocol::domain::{Scope, TaskId, Timestamp};
use deadpool_postgres::{Client, GenericClient};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::read::query;
use super::statements::{self as sql, signed};
use super::webhooks;
use crate::store::{
    Append, Appended, HASH_DIGEST, MessageRecord, NewRequest, RequestId, Requested, StoreError, StoreResult,
    StoredCredential, TaskKey,
};

/// With a webhook it is two statements in a transaction, since few tasks come with one.
pub(super) async fn append_with_webhook(
    client: &mut Client,
    scope: &Scope,
    append: &Append,
) -> StoreResult<Appended> {
    let transaction = client.transaction().await?;
    let appended = append_in(&transaction, scope, append).await?;
    if let Appended::Written(_) = appended {
        webhooks::put_with_birth(&transaction, scope, append).await?;
    }
    transaction.commit().await?;
    Ok(appended)
}

pub(super) async fn append(client: &Client, scope: &Scope, append: &Append) -> StoreResult<Appended> {
    append_in(client, scope, append).await
}

async fn append_in(client: &impl GenericClient, scope: &Scope, append: &Append) -> StoreResult<Appended> {
    debug_assert!(
        (append.expected + 1..).zip(&append.events).all(|(number, event)| event.number == number),
        "events are numbered from the version they follow"
    );
    let (birth, head, snapshot) = (append.birth.as_ref(), &append.head, append.snapshot.as_ref());
    let message = MessageColumns::of(append.message.as_ref());
    let events: Vec<&[u8]> = append.events.iter().map(|event| &event.record()[..]).collect();
    let settled: Vec<i64> = append.settled.iter().map(|settled| signed(settled.request.0)).collect();
    let settled_events: Vec<Option<i64>> =
        append.settled.iter().map(|settled| settled.event.map(signed)).collect();
    let params: &[&(dyn ToSql + Sync)] = &[
        &&*scope.agent,
        &&*scope.tenant,
        &&*scope.owner,
        &append.task.as_str(),
        &birth.is_some(),
        &birth.map(|birth| birth.context_id.as_str()),
        &birth.map(|birth| i16::from(birth.generation.number())),
        &birth.map(|birth| birth.created_at.as_millis()),
        &signed(append.expected),
        &signed(append.fence),
        &events,
        &i16::from(head.state.number()),
        &head.status_at.as_millis(),
        &i16::from(head.work.number()),
        &i64::from(head.attempts),
        &head.holder.map(|holder| signed(holder.0)),
        &signed(head.fence),
        &head.state.is_terminal(),
        &snapshot.map(|snapshot| signed(snapshot.version())),
        &snapshot.map(|snapshot| &snapshot.record()[..]),
        &message.id,
        &message.hash,
        &message.task,
        &message.event,
        &message.reply,
        &message.at,
        &settled,
        &settled_events,
    ];
    let statement = client.prepare_cached(sql::APPEND).await?;
    let row = only_row(client.query(&statement, params).await?)?;
    match (row.try_get::<_, i16>("outcome")?, &append.message) {
        (0, _) => Ok(Appended::Written(TaskKey(sql::unsigned(&row, "key")?))),
        (1, _) => Ok(Appended::Conflict),
        (2, Some(message)) => {
            Ok(Appended::Duplicate(sql::earlier(&row, &message.message_id, &message.hash)?))
        }
        (other, _) => Err(StoreError::damaged(format!("append answered {other}"))),
    }
}

pub(super) async fn request(
    client: &Client,
    scope: &Scope,
    task: &TaskId,
    request: &NewRequest,
) -> StoreResult<Requested> {
    let message = MessageColumns::of(request.message.as_ref());
    let params: &[&(dyn ToSql + Sync)] = &[
        &&*scope.agent,
        &&*scope.tenant,
        &&*scope.owner,
        &task.as_str(),
        &&request.event.record()[..],
        &i64::from(request.most_pending),
        &message.id,
        &message.hash,
        &message.task,
        &message.event,
        &message.reply,
        &message.at,
    ];
    let row = only_row(query(client, sql::REQUEST, params).await?)?;
    match (row.try_get::<_, i16>("outcome")?, &request.message) {
        (0, _) => {
            let request = RequestId(sql::unsigned(&row, "request")?);
            Ok(Requested::Noted { request, head: sql::head(&row)?.1 })
        }
        (1, _) => Ok(Requested::NotFound),
        (2, Some(message)) => {
            Ok(Requested::Duplicate(sql::earlier(&row, &message.message_id, &message.hash)?))
        }
        (3, _) => Ok(Requested::Ended(sql::head(&row)?.1)),
        (4, _) => Ok(Requested::Full),
        (other, _) => Err(StoreError::damaged(format!("request answered {other}"))),
    }
}

pub(super) async fn put_reply(
    client: &Client,
    scope: &Scope,
    record: &MessageRecord,
) -> StoreResult<Option<MessageRecord>> {
    let message = MessageColumns::of(Some(record));
    let params: &[&(dyn ToSql + Sync)] = &[
        &&*scope.agent,
        &&*scope.tenant,
        &&*scope.owner,
        &message.id,
        &message.hash,
        &message.task,
        &message.event,
        &message.reply,
        &message.at,
    ];
    let row = only_row(query(client, sql::PUT_REPLY, params).await?)?;
    if row.try_get("kept")? {
        return Ok(None);
    }
    Ok(Some(sql::earlier(&row, &record.message_id, &record.hash)?))
}

/// Needs no transaction for its two statements: no secret is ever removed.
pub(super) async fn secret(client: &Client, name: &str, fresh: &[u8]) -> StoreResult<Vec<u8>> {
    query(client, sql::INSERT_SECRET, &[&name, &fresh]).await?;
    let row = only_row(query(client, sql::FIND_SECRET, &[&name]).await?)?;
    Ok(row.try_get("value")?)
}

pub(super) async fn replace_secret(client: &Client, name: &str, old: &[u8], new: &[u8]) -> StoreResult<bool> {
    Ok(!query(client, sql::REPLACE_SECRET, &[&name, &old, &new]).await?.is_empty())
}

pub(super) async fn note(client: &Client, name: &str, put: Option<&str>) -> StoreResult<Option<String>> {
    if let Some(text) = put {
        query(client, sql::PUT_NOTE, &[&name, &text]).await?;
    }
    let rows = query(client, sql::FIND_NOTE, &[&name]).await?;
    Ok(rows.first().map(|row| row.try_get("value")).transpose()?)
}

pub(super) async fn put_credential(client: &Client, credential: &StoredCredential) -> StoreResult<()> {
    let StoredCredential { id, record } = credential;
    query(client, sql::PUT_CREDENTIAL, &[id, &&record[..]]).await.map(drop)
}

pub(super) async fn remove_credential(client: &Client, id: &str) -> StoreResult<()> {
    query(client, sql::REMOVE_CREDENTIAL, &[&id]).await.map(drop)
}

pub(super) async fn fold_ended(
    client: &Client,
    before: Timestamp,
    despite_webhooks: Timestamp,
    limit: u32,
) -> StoreResult<u64> {
    let statement = client.prepare_cached(sql::FOLD_ENDED).await?;
    let bounds: &[&(dyn ToSql + Sync)] =
        &[&before.as_millis(), &i64::from(limit), &despite_webhooks.as_millis()];
    Ok(client.execute(&statement, bounds).await?)
}

pub(super) async fn purge_ended(client: &Client, before: Timestamp, limit: u32) -> StoreResult<u64> {
    let rows = query(client, sql::PURGE_ENDED, &[&before.as_millis(), &i64::from(limit)]).await?;
    remove_empty_scopes(client, limit).await?;
    sql::unsigned(&only_row(rows)?, "count")
}

pub(super) async fn purge_records(client: &Client, before: Timestamp, limit: u32) -> StoreResult<u64> {
    let removed = execute(client, sql::PURGE_RECORDS, before, limit).await?;
    remove_empty_scopes(client, limit).await?;
    Ok(removed)
}

async fn remove_empty_scopes(client: &Client, limit: u32) -> StoreResult<()> {
    query(client, sql::REMOVE_EMPTY_SCOPES, &[&i64::from(limit)]).await.map(drop)
}

/// Answers how many rows were changed.
async fn execute(client: &Client, sql: &str, before: Timestamp, limit: u32) -> StoreResult<u64> {
    let statement = client.prepare_cached(sql).await?;
    Ok(client.execute(&statement, &[&before.as_millis(), &i64::from(limit)]).await?)
}

fn only_row(rows: Vec<Row>) -> StoreResult<Row> {
    let none = || StoreError::damaged("a statement that must return a row returned none");
    rows.into_iter().next().ok_or_else(none)
}

/// A message record as parameters; all are `None` without one.
#[derive(Default)]
struct MessageColumns<'a> {
    id: Option<&'a str>,
    hash: Option<&'a [u8]>,
    task: Option<&'a str>,
    event: Option<i64>,
    reply: Option<&'a [u8]>,
    at: Option<i64>,
}

impl<'a> MessageColumns<'a> {
    fn of(record: Option<&'a MessageRecord>) -> Self {
        let Some(record) = record else { return Self::default() };
        MessageColumns {
            id: Some(record.message_id.as_str()),
            hash: Some(&record.hash[..HASH_DIGEST]),
            task: record.task.as_ref().map(TaskId::as_str),
            event: record.event.map(signed),
            reply: record.reply.as_deref(),
            at: Some(record.at.as_millis()),
        }
    }
}
