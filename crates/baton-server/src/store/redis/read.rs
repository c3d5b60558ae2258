//! The operations that read. Those that need several commands are one script, so that they see one state.

use std::collections::HashSet;

use baton_protocol::domain::{ListFilter, MessageId, Scope, TaskId, Timestamp};
use bytes::Bytes;
use redis::Value;

use super::RedisStore;
use super::keys::{Bucket, escaped, path, read_path, reference, scope_name, sort_key};
use super::scripts::{self, HEAD_FIELDS};
use crate::store::state_totals::states;
use crate::store::{
    Detail, EVENTS_BYTES, Head, ListPage, ListQuery, Loaded, MessageHash, MessageRecord, OpenTask,
    OwnerUsage, PendingRequest, RequestId, StoreResult, StoredCredential, StoredEvent, TaskKey,
};

/// Beyond this Lua numbers are not exact. No log is that long.
const MOST_EVENTS: u64 = 1 << 53;

pub(super) async fn head(store: &RedisStore, scope: &Scope, task: &TaskId) -> StoreResult<Option<Head>> {
    let bucket = Bucket::of(scope);
    let mut command = redis::cmd("HMGET");
    command.arg(store.key(bucket, "t:", &path(scope, task))).arg(&HEAD_FIELDS);
    let fields: Value = command.query_async(&mut store.connection()).await?;
    Ok(scripts::head(bucket, fields)?.map(|(_, head)| head))
}

pub(super) async fn load(store: &RedisStore, scope: &Scope, task: &TaskId) -> StoreResult<Option<Loaded>> {
    let bucket = Bucket::of(scope);
    let mut call = store.scripts.load.key(store.bucket(bucket));
    match call.arg(path(scope, task)).invoke_async(&mut store.connection()).await? {
        Value::Nil => Ok(None),
        found => Ok(Some(scripts::loaded(bucket, found)?)),
    }
}

pub(super) async fn events(
    store: &RedisStore,
    scope: &Scope,
    task: &TaskId,
    after: u64,
    limit: u32,
) -> StoreResult<Vec<StoredEvent>> {
    if after >= MOST_EVENTS {
        return Ok(Vec::new());
    }
    let mut call = store.scripts.events.key(store.bucket(Bucket::of(scope)));
    call.arg(path(scope, task)).arg(after).arg(limit).arg(EVENTS_BYTES);
    let [first, records] = scripts::values(call.invoke_async(&mut store.connection()).await?)?;
    scripts::events(scripts::number(first)?, records)
}

pub(super) async fn list(store: &RedisStore, scope: &Scope, query: &ListQuery) -> StoreResult<ListPage> {
    let bucket = Bucket::of(scope);
    let upper = match &query.after {
        Some(after) if after.status_at <= query.not_after => {
            format!("({}{}", sort_key(after.status_at.as_millis()), after.id)
        }
        _ => not_after(query.not_after),
    };
    let context = query.filter.context_id.as_ref();
    let mut call = store.scripts.list.key(store.bucket(bucket));
    call.arg(scope_name(scope))
        .arg(u8::from(context.is_some()))
        .arg(context.map_or("", |context| context.as_str()))
        .arg(upper)
        .arg(not_before(&query.filter))
        .arg(query.limit)
        .arg(u8::from(query.counted))
        .arg(u8::from(query.detail == Detail::Status))
        // Lua numbers are exact up to here.
        .arg((query.most_bytes as u64).min(1 << 53));
    for state in states(&query.filter) {
        call.arg(state.number());
    }
    let [tasks, more, total] = scripts::values(call.invoke_async(&mut store.connection()).await?)?;
    let tasks = scripts::array(tasks)?.into_iter().map(|task| scripts::listed(bucket, task));
    Ok(ListPage {
        tasks: tasks.collect::<StoreResult<_>>()?,
        more: scripts::integer(more)? == 1,
        total: if query.counted { Some(scripts::integer(total)?) } else { None },
    })
}

pub(super) async fn requests(
    store: &RedisStore,
    scope: &Scope,
    task: &TaskId,
) -> StoreResult<Vec<PendingRequest>> {
    let key = store.key(Bucket::of(scope), "r:", &path(scope, task));
    let pending: Vec<(u64, Vec<u8>)> =
        redis::cmd("HGETALL").arg(key).query_async(&mut store.connection()).await?;
    let request = |(id, record)| {
        let event = StoredEvent::from_record(0, Bytes::from(record))?;
        Ok(PendingRequest { request: RequestId(id), event })
    };
    let mut pending: Vec<_> = pending.into_iter().map(request).collect::<StoreResult<_>>()?;
    pending.sort_by_key(|pending| pending.request);
    Ok(pending)
}

pub(super) async fn message(
    store: &RedisStore,
    scope: &Scope,
    id: &MessageId,
    hash: &MessageHash,
) -> StoreResult<Option<MessageRecord>> {
    let key = store.key(Bucket::of(scope), "m:", &reference(scope, id, hash));
    let mut command = redis::cmd("HMGET");
    command.arg(key).arg(&["at", "task", "event", "reply"]);
    let fields: Value = command.query_async(&mut store.connection()).await?;
    match &fields {
        Value::Array(values) if values.first() == Some(&Value::Nil) => Ok(None),
        _ => Ok(Some(scripts::record(fields, id, hash)?)),
    }
}

pub(super) async fn open_tasks(store: &RedisStore, after: TaskKey, limit: u32) -> StoreResult<Vec<OpenTask>> {
    let mut found = Vec::new();
    for bucket in Bucket::all() {
        let mut command = redis::cmd("ZRANGEBYSCORE");
        command
            .arg(store.key(bucket, "open", ""))
            .arg(format!("({}", bucket.number_up_to(after)))
            .arg("+inf");
        command.arg("WITHSCORES").arg("LIMIT").arg(0).arg(limit);
        let open: Vec<(Vec<u8>, u64)> = command.query_async(&mut store.connection()).await?;
        for (path, number) in open {
            let (scope, id) = read_path(&path)?;
            found.push(OpenTask { key: bucket.task_key(number), scope, id });
        }
    }
    found.sort_by_key(|open| open.key);
    found.truncate(limit as usize);
    Ok(found)
}

pub(super) async fn find_secret(store: &RedisStore, name: &str) -> StoreResult<Option<Vec<u8>>> {
    let mut find = redis::cmd("HGET");
    find.arg(store.global("secrets")).arg(name);
    Ok(find.query_async(&mut store.connection()).await?)
}

pub(super) async fn credentials(store: &RedisStore) -> StoreResult<Vec<StoredCredential>> {
    let mut all = redis::cmd("HGETALL");
    all.arg(store.global("credentials"));
    let found: Vec<(String, Vec<u8>)> = all.query_async(&mut store.connection()).await?;
    let credential = |(id, record)| StoredCredential { id, record: Bytes::from(record) };
    Ok(found.into_iter().map(credential).collect())
}

pub(super) async fn task_count(store: &RedisStore) -> StoreResult<u64> {
    let mut tasks = 0;
    for bucket in Bucket::all() {
        let key = store.key(bucket, "tasks", "");
        let count: Option<u64> = redis::cmd("GET").arg(key).query_async(&mut store.connection()).await?;
        tasks += count.unwrap_or(0);
    }
    Ok(tasks)
}

/// The keys of all buckets.
pub(super) async fn row_count(store: &RedisStore) -> StoreResult<u64> {
    let pattern = format!("{{{}:??}}:*", store.prefix);
    let (mut keys, mut cursor) = (HashSet::new(), 0);
    loop {
        let (next, found) = store.scan(&pattern, cursor).await?;
        keys.extend(found);
        cursor = next;
        if cursor == 0 {
            return Ok(keys.len() as u64);
        }
    }
}

/// An owner's scopes may be in any bucket.
pub(super) async fn owner_usage(store: &RedisStore, owner: &str) -> StoreResult<OwnerUsage> {
    let name = escaped(owner);
    let mut all = redis::pipe();
    for bucket in Bucket::all() {
        all.cmd("HMGET").arg(store.key(bucket, "u:", &name)).arg(&["tasks", "bytes"]);
    }
    let counts: Vec<(Option<i64>, Option<i64>)> = all.query_async(&mut store.connection()).await?;
    let number = |count: Option<i64>| u64::try_from(count.unwrap_or(0)).unwrap_or_default();
    let add = |sum: OwnerUsage, (tasks, bytes)| OwnerUsage {
        tasks: sum.tasks + number(tasks),
        bytes: sum.bytes + number(bytes),
    };
    Ok(counts.into_iter().fold(OwnerUsage::default(), add))
}

/// The upper bound "not after this millisecond", as "before every id in the next millisecond".
fn not_after(at: Timestamp) -> String {
    format!("({}", sort_key(at.as_millis() + 1))
}

fn not_before(filter: &ListFilter) -> String {
    format!("[{}", sort_key(filter.updated_since.unwrap_or(Timestamp::MIN).as_millis()))
}
