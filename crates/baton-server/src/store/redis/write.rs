//! The operations that write. Each is one script call; the sweeps make one per bucket.

use baton_protocol::domain::{Scope, TaskId, Timestamp};
use redis::{Script, ScriptInvocation, Value};

use super::RedisStore;
use super::keys::{Bucket, path, reference, scope_name, sort_key};
use super::scripts;
use crate::store::{
    Append, Appended, MessageRecord, NewRequest, RequestId, Requested, StoreError, StoreResult,
    StoredCredential,
};

pub(super) async fn append(store: &RedisStore, scope: &Scope, append: &Append) -> StoreResult<Appended> {
    debug_assert!(
        (append.expected + 1..).zip(&append.events).all(|(number, event)| event.number == number),
        "events are numbered from the version they follow"
    );
    let bucket = Bucket::of(scope);
    let (birth, head, snapshot) = (append.birth.as_ref(), &append.head, append.snapshot.as_ref());
    let mut call = store.scripts.append.key(store.bucket(bucket));
    call.arg(path(scope, &append.task))
        .arg(scope_name(scope))
        .arg(append.task.as_str())
        .arg(u8::from(birth.is_some()))
        .arg(birth.map_or("", |birth| birth.context_id.as_str()))
        .arg(birth.map_or(0, |birth| birth.generation.number()))
        .arg(birth.map_or(0, |birth| birth.created_at.as_millis()))
        .arg(append.expected)
        .arg(append.fence)
        .arg(append.expected + append.events.len() as u64)
        .arg(head.state.number())
        .arg(head.status_at.as_millis())
        .arg(sort_key(head.status_at.as_millis()))
        .arg(head.work.number())
        .arg(head.attempts)
        .arg(head.holder.map_or_else(String::new, |holder| holder.0.to_string()))
        .arg(head.fence)
        .arg(u8::from(head.state.is_terminal()))
        .arg(snapshot.map_or_else(String::new, |snapshot| snapshot.version().to_string()))
        .arg(snapshot.map_or(&[][..], |snapshot| &snapshot.record()[..]));
    record_args(&mut call, scope, append.message.as_ref());
    call.arg(append.events.len()).arg(append.settled.len());
    for event in &append.events {
        call.arg(&event.record()[..]);
    }
    for settled in &append.settled {
        call.arg(settled.request.0).arg(settled.event.map_or_else(String::new, |event| event.to_string()));
    }
    let webhook = append.webhook.as_ref();
    call.arg(webhook.map_or("", |webhook| webhook.id.as_str()));
    call.arg(webhook.map_or(&[][..], |webhook| &webhook.record[..]));
    let mut answer = scripts::array(call.invoke_async(&mut store.connection()).await?)?.into_iter();
    let mut next = || answer.next().ok_or_else(|| scripts::damaged("too little"));
    match (scripts::text(next()?)?.as_str(), &append.message) {
        ("written", _) => Ok(Appended::Written(bucket.task_key(scripts::number(next()?)?))),
        ("conflict", _) => Ok(Appended::Conflict),
        ("duplicate", Some(message)) => {
            Ok(Appended::Duplicate(scripts::record(next()?, &message.message_id, &message.hash)?))
        }
        (other, _) => Err(scripts::damaged(other)),
    }
}

pub(super) async fn request(
    store: &RedisStore,
    scope: &Scope,
    task: &TaskId,
    request: &NewRequest,
) -> StoreResult<Requested> {
    let bucket = Bucket::of(scope);
    let mut call = store.scripts.request.key(store.bucket(bucket));
    call.arg(path(scope, task)).arg(&request.event.record()[..]).arg(request.most_pending);
    record_args(&mut call, scope, request.message.as_ref());
    let mut answer = scripts::array(call.invoke_async(&mut store.connection()).await?)?.into_iter();
    let mut next = || answer.next().ok_or_else(|| scripts::damaged("too little"));
    match (scripts::text(next()?)?.as_str(), &request.message) {
        ("noted", _) => {
            let request = RequestId(scripts::number(next()?)?);
            Ok(Requested::Noted { request, head: scripts::present_head(bucket, next()?)?.1 })
        }
        ("duplicate", Some(message)) => {
            Ok(Requested::Duplicate(scripts::record(next()?, &message.message_id, &message.hash)?))
        }
        ("full", _) => Ok(Requested::Full),
        ("ended", _) => Ok(Requested::Ended(scripts::present_head(bucket, next()?)?.1)),
        ("unknown", _) => Ok(Requested::NotFound),
        (other, _) => Err(scripts::damaged(other)),
    }
}

pub(super) async fn put_reply(
    store: &RedisStore,
    scope: &Scope,
    record: &MessageRecord,
) -> StoreResult<Option<MessageRecord>> {
    let mut call = store.scripts.put_reply.key(store.bucket(Bucket::of(scope)));
    record_args(&mut call, scope, Some(record));
    match call.invoke_async(&mut store.connection()).await? {
        Value::Nil => Ok(None),
        earlier => Ok(Some(scripts::record(earlier, &record.message_id, &record.hash)?)),
    }
}

/// Needs no transaction for its two commands: no secret is ever removed.
pub(super) async fn secret(store: &RedisStore, name: &str, fresh: &[u8]) -> StoreResult<Vec<u8>> {
    let key = store.global("secrets");
    let mut both = redis::pipe();
    both.cmd("HSETNX").arg(&key).arg(name).arg(fresh).ignore();
    both.cmd("HGET").arg(&key).arg(name);
    let (kept,): (Vec<u8>,) = both.query_async(&mut store.connection()).await?;
    Ok(kept)
}

pub(super) async fn replace_secret(
    store: &RedisStore,
    name: &str,
    old: &[u8],
    new: &[u8],
) -> StoreResult<bool> {
    let mut call = store.scripts.replace_secret.key(store.global("secrets"));
    call.arg(name).arg(old).arg(new);
    Ok(call.invoke_async(&mut store.connection()).await?)
}

pub(super) async fn note(store: &RedisStore, name: &str, put: Option<&str>) -> StoreResult<Option<String>> {
    let key = store.global("notes");
    let mut both = redis::pipe();
    if let Some(text) = put {
        both.cmd("HSET").arg(&key).arg(name).arg(text).ignore();
    }
    both.cmd("HGET").arg(&key).arg(name);
    let (kept,): (Option<String>,) = both.query_async(&mut store.connection()).await?;
    Ok(kept)
}

pub(super) async fn put_credential(store: &RedisStore, credential: &StoredCredential) -> StoreResult<()> {
    let StoredCredential { id, record } = credential;
    let mut put = redis::cmd("HSET");
    put.arg(store.global("credentials")).arg(id).arg(&record[..]);
    Ok(put.query_async(&mut store.connection()).await?)
}

pub(super) async fn remove_credential(store: &RedisStore, id: &str) -> StoreResult<()> {
    let mut remove = redis::cmd("HDEL");
    remove.arg(store.global("credentials")).arg(id);
    Ok(remove.query_async(&mut store.connection()).await?)
}

pub(super) async fn fold_ended(
    store: &RedisStore,
    before: Timestamp,
    despite_webhooks: Timestamp,
    limit: u32,
) -> StoreResult<u64> {
    sweep(store, &store.scripts.fold, before, Some(despite_webhooks), limit).await
}

pub(super) async fn purge_records(store: &RedisStore, before: Timestamp, limit: u32) -> StoreResult<u64> {
    sweep(store, &store.scripts.purge_records, before, None, limit).await
}

/// Removes the oldest tasks of all buckets: reads the oldest of each bucket, and removes the oldest among those.
pub(super) async fn purge_ended(store: &RedisStore, before: Timestamp, limit: u32) -> StoreResult<u64> {
    // No task ended before it, so none may go despite its webhooks.
    let despite_webhooks = Timestamp::MIN;
    let mut found: Vec<(i64, Bucket, Vec<u8>)> = Vec::new();
    for bucket in Bucket::all() {
        let mut call = store.scripts.purgeable.key(store.bucket(bucket));
        call.arg(before.as_millis()).arg(limit).arg(despite_webhooks.as_millis());
        let oldest: Vec<(Vec<u8>, i64)> = call.invoke_async(&mut store.connection()).await?;
        found.extend(oldest.into_iter().map(|(path, at)| (at, bucket, path)));
    }
    found.sort_by_key(|(at, ..)| *at);
    found.truncate(limit as usize);
    let mut purged = 0;
    for bucket in Bucket::all() {
        let paths: Vec<&[u8]> =
            found.iter().filter(|(_, of, _)| *of == bucket).map(|(_, _, path)| &path[..]).collect();
        if paths.is_empty() {
            continue;
        }
        let mut call = store.scripts.purge.key(store.bucket(bucket));
        call.arg(before.as_millis()).arg(despite_webhooks.as_millis()).arg(paths);
        purged += call.invoke_async::<u64>(&mut store.connection()).await?;
    }
    Ok(purged)
}

/// Runs a script that takes a time and a limit on one bucket after the other, until the limit is reached.
async fn sweep(
    store: &RedisStore,
    script: &Script,
    before: Timestamp,
    despite_webhooks: Option<Timestamp>,
    limit: u32,
) -> StoreResult<u64> {
    let mut done = 0;
    for bucket in Bucket::all() {
        let left = u64::from(limit).saturating_sub(done);
        if left == 0 {
            break;
        }
        let mut call = script.key(store.bucket(bucket));
        call.arg(before.as_millis()).arg(left);
        if let Some(despite) = despite_webhooks {
            call.arg(despite.as_millis());
        }
        done += call.invoke_async::<u64>(&mut store.connection()).await.map_err(StoreError::from)?;
    }
    Ok(done)
}

/// Adds eight arguments: reference, task, the task's path, event, whether there is a reply, the reply, time, and what the
/// record counts for its owner. All are empty without a record.
fn record_args(call: &mut ScriptInvocation<'_>, scope: &Scope, record: Option<&MessageRecord>) {
    let Some(record) = record else {
        for _ in 0..8 {
            call.arg("");
        }
        return;
    };
    let task = record.task.as_ref();
    call.arg(reference(scope, &record.message_id, &record.hash))
        .arg(task.map_or("", |task| task.as_str()))
        .arg(task.map_or_else(String::new, |task| path(scope, task)))
        .arg(record.event.map_or_else(String::new, |event| event.to_string()))
        .arg(u8::from(record.reply.is_some()))
        .arg(record.reply.as_deref().unwrap_or_default())
        .arg(record.at.as_millis())
        .arg(record.counted_bytes());
}
