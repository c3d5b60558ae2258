//! Webhooks that failed for good, kept for the operator: who reads them can see what was not delivered and send it again.
//!
//! The record of one is `1 F` and, on the next line, its JSON.

use baton_protocol::Generation;
use baton_protocol::domain::{PushConfigId, Scope, TaskId, Timestamp};
use baton_protocol::wire::stored;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Shared;
use super::registry::{Job, Registry};
use crate::engine::{WatchedStore, large};
use crate::store::record::WebhookRecord;
use crate::store::{
    FailedWebhook, OpenWebhook, StoreError, StoreResult, TaskKey, WebhookCursor, WebhookState, Weighed,
};

/// Of a task that is larger than this, only the id is kept.
const MAX_TASK_BYTES: usize = 64 * 1024;

/// How many are read at once when old ones are removed. A record may have 64 KiB.
const SWEPT_AT_ONCE: u32 = 50;

/// How many overdue webhooks one sweep sets aside at most: it must not keep others from their turn.
const OVERDUE_AT_ONCE: u32 = 500;

/// Why a webhook of a task is set aside that is about to be removed.
const REMOVED_TOO_EARLY: &str = "its task was removed before everything was delivered";

const HEADER: &[u8] = b"1 F\n";

/// What is kept of a failed webhook. Its address may have a secret in its query, so it cannot be printed.
#[derive(Clone)]
pub(super) struct FailedRecord {
    pub(super) scope: Scope,
    pub(super) task: TaskId,
    /// The first event that was not delivered.
    pub(super) number: u64,
    pub(super) attempts: u32,
    pub(super) reason: String,
    /// If it was switched off: by whom.
    pub(super) off: Option<SwitchedOff>,
    /// The webhook's own record.
    pub(super) webhook: Bytes,
    pub(super) last: Option<LastTask>,
}

/// Who has switched a webhook off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SwitchedOff {
    /// It answered 410: it wants no more.
    Receiver,
    /// By [`Webhooks::disable`](crate::Webhooks::disable).
    Operator,
}

/// A task as it was when its webhook failed.
#[derive(Clone)]
pub(super) struct LastTask {
    /// The number of its last event. Records of earlier versions do not have it.
    pub(super) version: Option<u64>,
    /// In its stored form.
    pub(super) json: Box<RawValue>,
}

/// The second line.
#[derive(Serialize, Deserialize)]
struct Json {
    agent: String,
    tenant: String,
    owner: String,
    task: String,
    number: u64,
    attempts: u32,
    reason: String,
    webhook: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    off: Option<SwitchedOff>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last: Option<Box<RawValue>>,
}

impl FailedRecord {
    pub(super) fn to_stored(&self) -> Bytes {
        let last = self.last.as_ref();
        let json = Json {
            agent: self.scope.agent.to_string(),
            tenant: self.scope.tenant.to_string(),
            owner: self.scope.owner.to_string(),
            task: self.task.to_string(),
            number: self.number,
            attempts: self.attempts,
            reason: self.reason.clone(),
            webhook: String::from_utf8_lossy(&self.webhook).into_owned(),
            off: self.off,
            version: last.and_then(|last| last.version),
            last: last.map(|last| last.json.clone()),
        };
        let mut record = HEADER.to_vec();
        serde_json::to_writer(&mut record, &json).expect("strings into memory cannot fail");
        Bytes::from(record)
    }

    pub(super) fn from_stored(record: &[u8]) -> StoreResult<Self> {
        let damaged = |what: &str| StoreError::damaged(format!("failed webhook: {what}"));
        let json = record.strip_prefix(HEADER);
        let json = json.ok_or_else(|| {
            damaged("a format this version does not know; was it written by a newer Baton?")
        })?;
        // The text of serde's error could quote the record.
        let json: Json = serde_json::from_slice(json).map_err(|_| damaged("not its JSON"))?;
        Ok(FailedRecord {
            scope: Scope::new(&json.agent, &json.tenant, &json.owner),
            task: TaskId::parse(&json.task).map_err(|_| damaged("bad task id"))?,
            number: json.number,
            attempts: json.attempts,
            reason: json.reason,
            off: json.off,
            webhook: Bytes::from(json.webhook),
            last: json.last.map(|last| LastTask { version: json.version, json: last }),
        })
    }

    /// The record of a webhook that is not called again; the cursor says why, and how far it got.
    pub(super) async fn of(store: &WatchedStore, job: &Job, cursor: WebhookCursor, reason: &str) -> Self {
        FailedRecord {
            scope: job.scope.clone(),
            task: job.task.clone(),
            number: cursor.task_as_of.unwrap_or(cursor.done + 1),
            attempts: cursor.failures,
            reason: reason.to_owned(),
            off: (cursor.state == WebhookState::Disabled).then_some(SwitchedOff::Receiver),
            webhook: job.webhook.record.clone(),
            last: last_task(store, job).await,
        }
    }

    pub(super) fn into_failed(self, key: TaskKey, id: &PushConfigId, at: Timestamp) -> FailedWebhook {
        FailedWebhook { key, id: id.clone(), at, record: self.to_stored() }
    }
}

/// Sets open webhooks of tasks aside that ended before this time, since the tasks are about to be removed: up to `most`, those
/// of the oldest tasks first. Answers how many. What is left, and what fails, has its turn at the next sweep.
pub(crate) async fn set_aside_overdue(
    store: &WatchedStore,
    registry: &Registry,
    now: Timestamp,
    before: Timestamp,
    most: u64,
) -> StoreResult<u64> {
    let limit = u32::try_from(most).unwrap_or(u32::MAX).min(OVERDUE_AT_ONCE);
    let (mut done, mut failed) = (0, None);
    for OpenWebhook { key, scope, task, webhook, .. } in store.overdue_webhooks(before, limit).await? {
        let id = webhook.id.clone();
        let job = Job { key, scope, task: task.clone(), webhook };
        match set_one_aside(store, registry, now, &job).await {
            Ok(true) => {
                done += 1;
                registry.remove(key, &id);
                tracing::warn!(task.id = %task, webhook.id = %id, "a webhook is not tried again: {REMOVED_TOO_EARLY}");
            }
            // It has just been delivered to, or its owner has changed it.
            Ok(false) => {}
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        Some(error) if done == 0 => Err(error),
        _ => Ok(done),
    }
}

async fn set_one_aside(
    store: &WatchedStore,
    registry: &Registry,
    now: Timestamp,
    job: &Job,
) -> StoreResult<bool> {
    let WebhookCursor { revision, .. } = job.webhook.cursor;
    let (id, most) = (&job.webhook.id, registry.max_failed());
    let cursor = WebhookCursor { state: WebhookState::Failed, ..job.webhook.cursor };
    // In 0.1 nothing is kept.
    let generation = WebhookRecord::from_stored(&job.webhook.record).map(|record| record.generation);
    if let Ok(Generation::V0_1) = generation {
        return store.move_webhook(job.key, id, revision, cursor).await;
    }
    let mut record = FailedRecord::of(store, job, cursor, REMOVED_TOO_EARLY).await;
    let failed = record.clone().into_failed(job.key, id, now);
    match store.set_aside_webhook(revision, cursor, failed, most).await {
        // There may be room for it without the task.
        Err(StoreError::Full(_)) if record.last.take().is_some() => {
            store.set_aside_webhook(revision, cursor, record.into_failed(job.key, id, now), most).await
        }
        set_aside => set_aside,
    }
}

/// Removes what failed before this time, of tasks that are gone.
pub(crate) async fn sweep(store: &WatchedStore, before: Timestamp) -> StoreResult<u64> {
    let first = PushConfigId::parse("-").expect("a hyphen is an id");
    // Newest first: what follows is older.
    let (mut after, mut removed) = (Some((before, TaskKey(0), first)), 0);
    while let Some(position) = after {
        let page = store.failed_webhooks(Some(position), SWEPT_AT_ONCE).await?;
        after = page.last().map(|last| (last.at, last.key, last.id.clone()));
        for FailedWebhook { key, id, record, .. } in page {
            // One that cannot be read may be a newer version's.
            let Ok(FailedRecord { scope, task, .. }) = FailedRecord::from_stored(&record) else { continue };
            let is_there = store.head(&scope, &task).await?.is_some_and(|head| head.key == key);
            if !is_there && store.remove_failed_webhook(key, &id).await? {
                removed += 1;
            }
        }
    }
    Ok(removed)
}

async fn last_task(store: &WatchedStore, job: &Job) -> Option<LastTask> {
    let Weighed::Light(loaded) = store.load_within(&job.scope, &job.task, MAX_TASK_BYTES).await.ok()?? else {
        return None;
    };
    // Another task may have the id by now.
    if loaded.head.key != job.key {
        return None;
    }
    let version = Some(loaded.head.version);
    let mut json = Vec::new();
    stored::write_task(&mut json, &large::fold(loaded).await.ok()?.1.task);
    let json = RawValue::from_string(String::from_utf8(json).ok()?).ok()?;
    Some(LastTask { version, json })
}

impl Shared {
    /// Keeps a webhook that is not called again. Answers whether it still had this revision.
    pub(super) async fn set_aside(
        &self,
        job: &Job,
        revision: u64,
        cursor: WebhookCursor,
        record: FailedRecord,
    ) -> StoreResult<bool> {
        let failed = record.into_failed(job.key, &job.webhook.id, self.now());
        self.store.set_aside_webhook(revision, cursor, failed, self.options.max_failed).await
    }

    /// Drops what was kept of a webhook that its owner has removed or replaced.
    pub(super) async fn forget_failed(&self, key: TaskKey, id: &PushConfigId) {
        if let Err(error) = self.store.remove_failed_webhook(key, id).await {
            tracing::warn!(webhook.id = %id, %error, "what was kept of a failed webhook could not be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> FailedRecord {
        FailedRecord {
            scope: Scope::new("agent", "", "alice"),
            task: TaskId::parse("t-1").unwrap(),
            number: 3,
            attempts: 10,
            reason: "the webhook answered with status 500".to_owned(),
            off: None,
            webhook: Bytes::from_static(b"1 W\n{\"url\":\"https://example.org\"}"),
            last: Some(LastTask {
                version: None,
                json: RawValue::from_string("{\"id\":\"t-1\"}".to_owned()).unwrap(),
            }),
        }
    }

    /// Never change: stores hold records of these forms.
    #[test]
    fn s14_the_forms_of_a_record() {
        let first = "1 F\n{\"agent\":\"agent\",\"tenant\":\"\",\"owner\":\"alice\",\"task\":\"t-1\",\"number\":3,\
                     \"attempts\":10,\"reason\":\"the webhook answered with status 500\",\
                     \"webhook\":\"1 W\\n{\\\"url\\\":\\\"https://example.org\\\"}\",\"last\":{\"id\":\"t-1\"}}";
        assert_eq!(record().to_stored(), first);
        let without = first.replace(",\"last\":{\"id\":\"t-1\"}", "");
        assert_eq!(FailedRecord { last: None, ..record() }.to_stored(), without);

        let last = record().last.map(|last| LastTask { version: Some(7), ..last });
        let second = first.replace(",\"last\"", ",\"off\":\"operator\",\"version\":7,\"last\"");
        let off = Some(SwitchedOff::Operator);
        assert_eq!(FailedRecord { off, last, ..record() }.to_stored(), second);

        for stored in [first, &without, &second] {
            let read = FailedRecord::from_stored(stored.as_bytes()).unwrap();
            assert_eq!(read.to_stored(), stored);
        }
    }

    #[test]
    fn s14_a_damaged_record_is_an_error_that_shows_nothing_of_it() {
        for damaged in ["", "1 F", "2 F\n{}", "1 F\n{}", "1 F\n{\"owner\":\"s3cret\"", "1 W\n{}"] {
            let Err(error) = FailedRecord::from_stored(damaged.as_bytes()) else { panic!("{damaged}") };
            assert!(!error.to_string().contains("cret"), "{error}");
        }
    }
}
