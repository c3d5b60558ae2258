//! Webhooks and their cursors.

use baton_protocol::domain::{PushConfigId, Scope, TaskId, Timestamp};
use bytes::Bytes;
use redis::Value;

use super::keys::{Bucket, path, read_path, sort_key};
use super::{RedisStore, scripts};
use crate::store::{
    Claim, FailedWebhook, NewWebhook, OpenWebhook, PutWebhook, ReplicaId, StoreError, StoreResult,
    StoredWebhook, TaskKey, WebhookCursor, WebhookState,
};

/// Hash of failed webhooks, and their order by time.
const FAILED: &str = "failed";
const FAILED_BY_TIME: &str = "failed-by-time";

pub(super) async fn put(
    store: &RedisStore,
    scope: &Scope,
    task: &TaskId,
    new: &NewWebhook,
) -> StoreResult<PutWebhook> {
    let bucket = Bucket::of(scope);
    let mut call = store.scripts.put_webhook.key(store.bucket(bucket));
    call.arg(path(scope, task)).arg(new.id.as_str()).arg(&new.record[..]).arg(new.most);
    let mut answer = scripts::array(call.invoke_async(&mut store.connection()).await?)?.into_iter();
    let mut next = || answer.next().ok_or_else(|| scripts::damaged("too little"));
    match scripts::text(next()?)?.as_str() {
        "stored" => {
            let key = bucket.task_key(scripts::number(next()?)?);
            let stored = scripts::bytes(next()?)?.ok_or_else(|| scripts::damaged("nil for a webhook"))?;
            Ok(PutWebhook::Stored { key, webhook: read(new.id.as_str(), stored)? })
        }
        "unknown" => Ok(PutWebhook::NotFound),
        "full" => Ok(PutWebhook::Full),
        other => Err(scripts::damaged(other)),
    }
}

pub(super) async fn of_task(
    store: &RedisStore,
    scope: &Scope,
    task: &TaskId,
) -> StoreResult<Vec<StoredWebhook>> {
    let mut all = redis::cmd("HGETALL");
    all.arg(store.key(Bucket::of(scope), "w:", &path(scope, task)));
    let found: Vec<(String, Vec<u8>)> = all.query_async(&mut store.connection()).await?;
    let webhooks: StoreResult<Vec<_>> = found.into_iter().map(|(id, stored)| read(&id, stored)).collect();
    let mut webhooks = webhooks?;
    webhooks.sort_by(|one, other| one.id.cmp(&other.id));
    Ok(webhooks)
}

pub(super) async fn remove(
    store: &RedisStore,
    scope: &Scope,
    task: &TaskId,
    id: &PushConfigId,
    revision: Option<u64>,
) -> StoreResult<bool> {
    let mut call = store.scripts.remove_webhook.key(store.bucket(Bucket::of(scope)));
    let revision = revision.map_or_else(String::new, |revision| revision.to_string());
    call.arg(path(scope, task)).arg(id.as_str()).arg(revision);
    Ok(call.invoke_async(&mut store.connection()).await?)
}

pub(super) async fn move_to(
    store: &RedisStore,
    task: TaskKey,
    id: &PushConfigId,
    revision: u64,
    cursor: WebhookCursor,
) -> StoreResult<bool> {
    let (bucket, number) = Bucket::of_task(task);
    let mut call = store.scripts.move_webhook.key(store.bucket(bucket));
    let moved = write(&WebhookCursor { revision: revision + 1, ..cursor });
    call.arg(number).arg(id.as_str()).arg(revision).arg(moved);
    Ok(call.invoke_async(&mut store.connection()).await?)
}

pub(super) async fn open(
    store: &RedisStore,
    after: Option<(TaskKey, PushConfigId)>,
    limit: u32,
) -> StoreResult<Vec<OpenWebhook>> {
    let mut found = Vec::new();
    for bucket in Bucket::all() {
        // From the task of that position on: it may have further webhooks.
        let from = after.as_ref().map_or(0, |(key, _)| bucket.number_up_to(*key));
        // One more task than asked for, since all webhooks of the first may be before the position.
        let from_to = (from.to_string(), "+inf".to_owned());
        found.extend(open_between(store, bucket, from_to, limit.saturating_add(1)).await?);
    }
    found.sort_by(|one, other| position(one).cmp(&position(other)));
    if let Some((key, id)) = &after {
        found.retain(|open| position(open) > (*key, id));
    }
    found.truncate(limit as usize);
    Ok(found)
}

fn position(open: &OpenWebhook) -> (TaskKey, &PushConfigId) {
    (open.key, &open.webhook.id)
}

pub(super) async fn open_of(store: &RedisStore, task: TaskKey) -> StoreResult<Vec<OpenWebhook>> {
    let (bucket, number) = Bucket::of_task(task);
    let mut open = open_between(store, bucket, (number.to_string(), number.to_string()), 1).await?;
    open.sort_by(|one, other| one.webhook.id.cmp(&other.webhook.id));
    Ok(open)
}

async fn open_between(
    store: &RedisStore,
    bucket: Bucket,
    (from, to): (String, String),
    tasks: u32,
) -> StoreResult<Vec<OpenWebhook>> {
    let mut call = store.scripts.open_webhooks.key(store.bucket(bucket));
    call.arg(from).arg(to).arg(tasks);
    let rows = scripts::array(call.invoke_async(&mut store.connection()).await?)?;
    let row = |row: Value| {
        let [path, number, version, id, stored] = scripts::values(row)?;
        let missing = || scripts::damaged("nil in a webhook");
        let (scope, task) = read_path(&scripts::bytes(path)?.ok_or_else(missing)?)?;
        Ok(OpenWebhook {
            key: bucket.task_key(scripts::number(number)?),
            scope,
            task,
            version: scripts::number(version)?,
            webhook: read(&scripts::text(id)?, scripts::bytes(stored)?.ok_or_else(missing)?)?,
        })
    };
    rows.into_iter().map(row).collect()
}

/// Not in one step: a script on a cluster can write the keys of one node only, and the failed are on another than the task. It
/// is stored as failed first, and taken back if the webhook has moved: whoever reads meanwhile finds it open, and leaves out
/// the failed one.
pub(super) async fn set_aside(
    store: &RedisStore,
    revision: u64,
    cursor: WebhookCursor,
    failed: &FailedWebhook,
    most: u32,
) -> StoreResult<bool> {
    let FailedWebhook { key, id, at, record } = failed;
    let member = member(*key, id);
    let before = find_failed(store, &member).await?;
    let to = place(*at, *key, id);
    // Others make room for it only once it is sure to stay.
    put_failed(store, &member, to.as_bytes(), record, u32::MAX).await?;
    if move_to(store, *key, id, revision, cursor).await? {
        put_failed(store, &member, to.as_bytes(), record, most).await?;
        return Ok(true);
    }
    let line = |stored: &Vec<u8>| stored.iter().position(|byte| *byte == b'\n');
    match before.as_ref().and_then(|before| Some(before.split_at(line(before)?))) {
        Some((place, record)) => put_failed(store, &member, place, &record[1..], u32::MAX).await?,
        None => remove_failed(store, *key, id).await.map(drop)?,
    }
    Ok(false)
}

async fn put_failed(
    store: &RedisStore,
    member: &str,
    place: &[u8],
    record: &[u8],
    most: u32,
) -> StoreResult<()> {
    let mut call = store.scripts.put_failed_webhook.key(store.global(FAILED));
    call.key(store.global(FAILED_BY_TIME));
    call.arg(member).arg(place).arg(record).arg(most);
    Ok(call.invoke_async(&mut store.connection()).await?)
}

/// Its place in the order, a line break, and its record.
async fn find_failed(store: &RedisStore, member: &str) -> StoreResult<Option<Vec<u8>>> {
    let mut find = redis::cmd("HGET");
    find.arg(store.global(FAILED)).arg(member);
    Ok(find.query_async(&mut store.connection()).await?)
}

pub(super) async fn failed(
    store: &RedisStore,
    after: Option<(Timestamp, TaskKey, PushConfigId)>,
    limit: u32,
) -> StoreResult<Vec<FailedWebhook>> {
    let below = after.map_or_else(|| "+".to_owned(), |(at, key, id)| format!("({}", place(at, key, &id)));
    let mut list = redis::cmd("ZREVRANGEBYLEX");
    list.arg(store.global(FAILED_BY_TIME)).arg(below).arg("-").arg("LIMIT").arg(0).arg(limit);
    let places: Vec<String> = list.query_async(&mut store.connection()).await?;
    let mut all = Vec::new();
    for place in places {
        let bad = || StoreError::damaged(format!("failed webhook `{place}`"));
        let (at, member) = place.split_at_checked(13).ok_or_else(bad)?;
        let (key, id) = member.split_at_checked(16).ok_or_else(bad)?;
        // `None`: removed since the list was read.
        let Some(stored) = find_failed(store, member).await? else { continue };
        let record = stored.iter().position(|byte| *byte == b'\n').ok_or_else(bad)?;
        all.push(FailedWebhook {
            key: TaskKey(u64::from_str_radix(key, 16).map_err(|_| bad())?),
            id: PushConfigId::parse(id).map_err(|_| bad())?,
            at: Timestamp::from_millis(
                i64::from_str_radix(at, 16).map_err(|_| bad())? + Timestamp::MIN.as_millis(),
            ),
            record: Bytes::copy_from_slice(&stored[record + 1..]),
        });
    }
    Ok(all)
}

pub(super) async fn remove_failed(store: &RedisStore, task: TaskKey, id: &PushConfigId) -> StoreResult<bool> {
    let member = member(task, id);
    let Some(stored) = find_failed(store, &member).await? else { return Ok(false) };
    let place = stored.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut both = redis::pipe();
    both.atomic();
    both.cmd("HDEL").arg(store.global(FAILED)).arg(&member);
    both.cmd("ZREM").arg(store.global(FAILED_BY_TIME)).arg(place).ignore();
    let (removed,): (bool,) = both.query_async(&mut store.connection()).await?;
    Ok(removed)
}

fn member(key: TaskKey, id: &PushConfigId) -> String {
    format!("{:016x}{id}", key.0)
}

/// Sorts by time, then by key and id.
fn place(at: Timestamp, key: TaskKey, id: &PushConfigId) -> String {
    format!("{}{}", sort_key(at.as_millis()), member(key, id))
}

/// A cursor as text: see `scripts/layout.lua`.
fn write(cursor: &WebhookCursor) -> String {
    let WebhookCursor { revision, done, task_as_of, failures, failing_since, due, claim, state } = cursor;
    let or_none = |number: Option<i128>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
    [
        revision.to_string(),
        done.to_string(),
        or_none(task_as_of.map(i128::from)),
        failures.to_string(),
        or_none(failing_since.map(|at| at.as_millis().into())),
        due.as_millis().to_string(),
        or_none(claim.map(|claim| claim.by.0.into())),
        or_none(claim.map(|claim| claim.until.as_millis().into())),
        state.number().to_string(),
    ]
    .join(" ")
}

fn read(id: &str, stored: Vec<u8>) -> StoreResult<StoredWebhook> {
    let bad = |what: &str| StoreError::damaged(format!("webhook {id}: {what}"));
    let stored = Bytes::from(stored);
    let end = stored.iter().position(|byte| *byte == b'\n').ok_or_else(|| bad("no cursor"))?;
    let line = std::str::from_utf8(&stored[..end]).map_err(|_| bad("bad cursor"))?;
    let fields: Vec<&str> = line.split(' ').collect();
    let [revision, done, task_as_of, failures, failing_since, due, by, until, state] = fields[..] else {
        return Err(bad("bad cursor"));
    };
    fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
        text.parse().ok()
    }
    let time = |text: &str| number(text).map(Timestamp::from_millis);
    let claim = match (number(by), time(until)) {
        (Some(by), Some(until)) => Some(Claim { by: ReplicaId(by), until }),
        _ => None,
    };
    let cursor = WebhookCursor {
        revision: number(revision).ok_or_else(|| bad("bad revision"))?,
        done: number(done).ok_or_else(|| bad("bad position"))?,
        task_as_of: number(task_as_of),
        failures: number(failures).ok_or_else(|| bad("bad number of failures"))?,
        failing_since: time(failing_since),
        due: time(due).ok_or_else(|| bad("bad due time"))?,
        claim,
        state: number(state).and_then(WebhookState::from_number).ok_or_else(|| bad("unknown state"))?,
    };
    let id = PushConfigId::parse(id).map_err(|error| bad(&error.to_string()))?;
    Ok(StoredWebhook { id, record: stored.slice(end + 1..), cursor })
}
