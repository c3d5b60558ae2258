//! The scripts, and the mapping of their replies to the store's types.

use baton_protocol::Generation;
use baton_protocol::domain::{ContextId, MessageId, TaskId, TaskState, Timestamp};
use bytes::Bytes;
use redis::{Script, Value};

use super::keys::Bucket;
use crate::store::{
    Brief, Head, HeadState, Listed, Loaded, MessageHash, MessageRecord, ReplicaId, StoreError, StoreResult,
    StoredEvent, StoredSnapshot, Work, said,
};

/// The fields that [`head`] reads, in this order; `HEAD` in `scripts/layout.lua` starts with the same.
pub(super) const HEAD_FIELDS: [&str; 13] = [
    "id",
    "number",
    "context",
    "generation",
    "created_at",
    "version",
    "folded",
    "state",
    "status_at",
    "work",
    "attempts",
    "holder",
    "fence",
];

/// Called by hash; if the server does not know a script (after a restart), its text is sent.
pub(super) struct Scripts {
    pub(super) append: Script,
    pub(super) request: Script,
    pub(super) put_reply: Script,
    pub(super) replace_secret: Script,
    pub(super) load: Script,
    pub(super) events: Script,
    pub(super) list: Script,
    pub(super) fold: Script,
    pub(super) purge: Script,
    pub(super) purgeable: Script,
    pub(super) put_webhook: Script,
    pub(super) remove_webhook: Script,
    pub(super) move_webhook: Script,
    pub(super) open_webhooks: Script,
    pub(super) put_failed_webhook: Script,
    pub(super) purge_records: Script,
    pub(super) from_format_1: Script,
    pub(super) from_format_2: Script,
}

macro_rules! script {
    ($file:literal) => {
        Script::new(concat!(include_str!("scripts/layout.lua"), include_str!($file)))
    };
}

impl Scripts {
    pub(super) fn new() -> Self {
        Scripts {
            append: script!("scripts/append.lua"),
            request: script!("scripts/request.lua"),
            put_reply: script!("scripts/put_reply.lua"),
            replace_secret: Script::new(include_str!("scripts/replace_secret.lua")),
            load: script!("scripts/load.lua"),
            events: script!("scripts/events.lua"),
            list: script!("scripts/list.lua"),
            fold: script!("scripts/fold.lua"),
            purge: script!("scripts/purge.lua"),
            purgeable: script!("scripts/purgeable.lua"),
            put_webhook: script!("scripts/put_webhook.lua"),
            remove_webhook: script!("scripts/remove_webhook.lua"),
            move_webhook: script!("scripts/move_webhook.lua"),
            open_webhooks: script!("scripts/open_webhooks.lua"),
            put_failed_webhook: Script::new(include_str!("scripts/put_failed_webhook.lua")),
            purge_records: script!("scripts/purge_records.lua"),
            from_format_1: script!("scripts/from_format_1.lua"),
            from_format_2: script!("scripts/from_format_2.lua"),
        }
    }
}

pub(super) fn damaged(what: &str) -> StoreError {
    StoreError::damaged(format!("unexpected reply from a script: {what}"))
}

pub(super) fn array(value: Value) -> StoreResult<Vec<Value>> {
    match value {
        Value::Array(values) => Ok(values),
        other => Err(damaged(&format!("{other:?} for an array"))),
    }
}

/// An array of exactly `N` values.
pub(super) fn values<const N: usize>(value: Value) -> StoreResult<[Value; N]> {
    array(value)?.try_into().map_err(|other: Vec<Value>| damaged(&format!("{} values for {N}", other.len())))
}

pub(super) fn bytes(value: Value) -> StoreResult<Option<Vec<u8>>> {
    match value {
        Value::BulkString(bytes) => Ok(Some(bytes)),
        Value::Nil => Ok(None),
        other => Err(damaged(&format!("{other:?} for bytes"))),
    }
}

pub(super) fn text(value: Value) -> StoreResult<String> {
    let bytes = bytes(value)?.ok_or_else(|| damaged("nil for text"))?;
    String::from_utf8(bytes).map_err(|_| damaged("bytes for text"))
}

pub(super) fn number<T: std::str::FromStr>(value: Value) -> StoreResult<T> {
    let text = text(value)?;
    text.parse().map_err(|_| damaged(&format!("`{text}` for a number")))
}

/// A number that a script computed. (Stored numbers come as text: see [`number`].)
pub(super) fn integer(value: Value) -> StoreResult<u64> {
    match value {
        Value::Int(number) => Ok(number.cast_unsigned()),
        other => Err(damaged(&format!("{other:?} for a number"))),
    }
}

fn time(value: Value) -> StoreResult<Timestamp> {
    Ok(Timestamp::from_millis(number(value)?))
}

/// Reads the values of [`HEAD_FIELDS`]; `None` if there is no such task.
pub(super) fn head(bucket: Bucket, value: Value) -> StoreResult<Option<(TaskId, Head)>> {
    let [
        id,
        task_number,
        context,
        generation,
        created_at,
        version,
        folded,
        state,
        status_at,
        work,
        attempts,
        holder,
        fence,
    ] = values(value)?;
    if id == Value::Nil {
        return Ok(None);
    }
    let id = TaskId::parse(&text(id)?).map_err(|error| damaged(&format!("task id {error}")))?;
    let bad = |what: &str| StoreError::damaged(format!("task {id}: {what}"));
    let holder = match text(holder)?.as_str() {
        "" => None,
        holder => Some(ReplicaId(holder.parse().map_err(|_| bad("bad holder"))?)),
    };
    let head = Head {
        key: bucket.task_key(number(task_number)?),
        context_id: ContextId::parse(&text(context)?).map_err(|error| bad(&format!("context id {error}")))?,
        generation: Generation::from_number(number(generation)?).ok_or_else(|| bad("unknown generation"))?,
        created_at: time(created_at)?,
        version: number(version)?,
        folded_through: number(folded)?,
        current: HeadState {
            state: TaskState::from_number(number(state)?).ok_or_else(|| bad("unknown state"))?,
            status_at: time(status_at)?,
            work: Work::from_number(number(work)?).ok_or_else(|| bad("unknown work"))?,
            attempts: number(attempts)?,
            holder,
            fence: number(fence)?,
        },
    };
    Ok(Some((id, head)))
}

pub(super) fn present_head(bucket: Bucket, value: Value) -> StoreResult<(TaskId, Head)> {
    head(bucket, value)?.ok_or_else(|| damaged("no head"))
}

/// Reads the reply of `whole_task` in `scripts/layout.lua`.
pub(super) fn loaded(bucket: Bucket, value: Value) -> StoreResult<Loaded> {
    let [head, snapshot, tail] = values(value)?;
    let (id, head) = present_head(bucket, head)?;
    let snapshot = bytes(snapshot)?.map(|record| StoredSnapshot::from_record(Bytes::from(record)));
    let snapshot = snapshot.transpose()?;
    let snapshot_version = snapshot.as_ref().map_or(0, StoredSnapshot::version);
    let tail = events(snapshot_version.max(head.folded_through) + 1, tail)?;
    Ok(Loaded { id, head, snapshot, tail })
}

/// Reads one task of the reply of `list.lua`.
pub(super) fn listed(bucket: Bucket, value: Value) -> StoreResult<Listed> {
    let mut parts = array(value)?.into_iter();
    let mut next = || parts.next().ok_or_else(|| damaged("too little"));
    if text(next()?)? == "whole" {
        return Ok(Listed::Whole(loaded(bucket, next()?)?));
    }
    let (id, head) = present_head(bucket, next()?)?;
    let (said, record) = (number(next()?)?, bytes(next()?)?);
    let event = record.map(|record| StoredEvent::from_record(said, Bytes::from(record))).transpose()?;
    // The script answers the last status event, even if it has no message or metadata.
    let said = event.filter(|event| said::after(0, std::slice::from_ref(event)) != 0);
    Ok(Listed::Status(Brief { id, head, said }))
}

/// Consecutive events, the first with this number.
pub(super) fn events(first: u64, records: Value) -> StoreResult<Vec<StoredEvent>> {
    let event = |(number, record)| {
        let record = bytes(record)?.ok_or_else(|| damaged("nil for an event"))?;
        StoredEvent::from_record(number, Bytes::from(record))
    };
    (first..).zip(array(records)?).map(event).collect()
}

/// Reads `at`, `task`, `event`, `reply`; id and hash are those that were looked for.
pub(super) fn record(value: Value, message_id: &MessageId, hash: &MessageHash) -> StoreResult<MessageRecord> {
    let [at, task, event, reply] = values(value)?;
    let task = match task {
        Value::Nil => None,
        task => Some(TaskId::parse(&text(task)?).map_err(|error| damaged(&format!("task id {error}")))?),
    };
    Ok(MessageRecord {
        message_id: message_id.clone(),
        hash: *hash,
        task,
        event: if event == Value::Nil { None } else { Some(number(event)?) },
        reply: bytes(reply)?.map(Bytes::from),
        at: time(at)?,
    })
}
