//! Sends what was not delivered. A webhook whose task exists is opened again, and goes on where it was: its receiver can tell
//! repeats by their ids. If the task is gone, what was kept of it is sent once.

use std::collections::HashSet;

use baton_protocol::wire::stored;

use super::list::Found;
use super::{
    Delivery, TRIES, WebhookError, WebhookFilter, WebhookGroup, WebhookName, WebhookStatus, Webhooks,
};
use crate::push::Shared;
use crate::push::failed::{FailedRecord, SwitchedOff};
use crate::push::notification::Notification;
use crate::push::registry::Job;
use crate::push::schedule::Answer;
use crate::store::{Head, OpenWebhook, StoreResult, StoredWebhook, TaskKey, WebhookCursor, WebhookState};
use crate::telemetry::labels::WebhookCall;

/// How many webhooks one page of [`Webhooks::replay_failed`] replays.
const PAGE: usize = 20;

/// More than two tasks can have webhooks at the same moment.
const NEIGHBOURS: u32 = 128;

/// What a replay has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Replayed {
    /// The webhook had failed and is open again; it goes on with the first event that was not delivered.
    Reopened,
    /// It was open, and is tried now.
    Due,
    /// It is being delivered to already.
    UnderWay,
    /// Its task is gone; what was kept of it was sent.
    LastTaskSent,
    /// Nothing is left to deliver.
    NothingLeft,
}

/// What became of some failed webhooks.
#[derive(Debug)]
#[non_exhaustive]
pub struct ReplayPage {
    /// Each as it was before, with what was done.
    pub results: Vec<(WebhookStatus, Result<Replayed, WebhookError>)>,
    /// The position of the next page; `None` at the end.
    pub next: Option<String>,
}

impl Webhooks {
    /// Replays one. An open one is only made due.
    pub async fn replay(&self, name: &WebhookName) -> Result<Replayed, WebhookError> {
        let found = self.find_one(name).await?;
        self.replay_found(&found).await
    }

    /// Replays failed webhooks, page by page like [`Webhooks::list`]. Those that the operator has disabled stay as they are.
    pub async fn replay_failed(
        &self,
        filter: &WebhookFilter,
        after: Option<&str>,
    ) -> Result<ReplayPage, WebhookError> {
        let filter = WebhookFilter { group: WebhookGroup::Failed, ..filter.clone() };
        let fits = |status: &WebhookStatus| filter.fits(status);
        let (found, next) = self.page(filter.begin(after)?, filter.group, PAGE, &fits).await?;
        let (mut results, mut failed_hosts) = (Vec::new(), HashSet::new());
        let is_meant = |found: &Found| {
            found.failed.as_ref().is_some_and(|record| record.off != Some(SwitchedOff::Operator))
        };
        for found in found.into_iter().filter(is_meant) {
            let is_gone = found.status.version.is_none();
            let result = match is_gone && failed_hosts.contains(&found.status.host) {
                true => Err(WebhookError::HostFailed),
                false => self.replay_found(&found).await,
            };
            match &result {
                // None of the others would fare better.
                Err(WebhookError::Off | WebhookError::Store(_)) => {
                    return Err(result.err().unwrap_or(WebhookError::Off));
                }
                Err(WebhookError::NotDelivered(_)) => {
                    failed_hosts.insert(found.status.host.clone());
                }
                _ => {}
            }
            results.push((found.status, result));
        }
        Ok(ReplayPage { results, next: next.map(|next| next.to_text()) })
    }

    async fn replay_found(&self, found: &Found) -> Result<Replayed, WebhookError> {
        if matches!(self.delivery, Delivery::Off) {
            return Err(WebhookError::Off);
        }
        for _ in 0..TRIES {
            let Some((head, webhook)) = self.stored(&found.job).await? else {
                return match &found.failed {
                    Some(record) => self.send_last(found, record).await,
                    None => Err(WebhookError::Removed),
                };
            };
            let Some(webhook) = webhook else {
                self.forget(&found.job).await?;
                return Err(WebhookError::Removed);
            };
            let done = match webhook.cursor.state {
                WebhookState::Open => self.make_due(&found.job, &head, webhook).await?,
                WebhookState::Failed | WebhookState::Disabled => {
                    self.reopen(&found.job, &head, webhook).await?
                }
                WebhookState::Finished => {
                    self.forget(&found.job).await?;
                    Some(Replayed::NothingLeft)
                }
            };
            if let Some(done) = done {
                return Ok(done);
            }
        }
        Err(WebhookError::Changing)
    }

    /// `None` if the cursor was moved at the same time.
    async fn make_due(
        &self,
        job: &Job,
        head: &Head,
        webhook: StoredWebhook,
    ) -> Result<Option<Replayed>, WebhookError> {
        if self.running().is_some_and(|shared| shared.registry.is_busy(job.key, &webhook.id)) {
            return Ok(Some(Replayed::UnderWay));
        }
        if webhook.cursor.done >= head.version && webhook.cursor.task_as_of.is_none() {
            return Ok(Some(Replayed::NothingLeft));
        }
        let due = WebhookCursor::after(0).due;
        let cursor = WebhookCursor { due, ..webhook.cursor };
        let moved = self.moved(job, head, webhook, cursor).await?;
        if let (Some(open), Some(shared)) = (&moved, self.running()) {
            shared.registry.put(open.clone());
        }
        Ok(moved.map(|_| Replayed::Due))
    }

    /// `None` if the cursor was moved at the same time.
    async fn reopen(
        &self,
        job: &Job,
        head: &Head,
        webhook: StoredWebhook,
    ) -> Result<Option<Replayed>, WebhookError> {
        if self.running().is_some_and(|shared| shared.registry.len() >= shared.options.max_open) {
            return Err(WebhookError::Full);
        }
        // Which event is next does not change, and so neither do the ids and bytes of what is sent.
        let WebhookCursor { revision, done, task_as_of, .. } = webhook.cursor;
        let cursor = WebhookCursor { revision, task_as_of, ..WebhookCursor::after(done) };
        let Some(open) = self.moved(job, head, webhook, cursor).await? else { return Ok(None) };
        // Before it is delivered: it may fail at once, and is then kept again.
        let forgotten = self.forget(job).await;
        if let Some(shared) = self.running() {
            shared.registry.put(open);
            shared.catch_up(job.key).await;
        }
        forgotten?;
        tracing::info!(task.id = %job.task, webhook.id = %job.webhook.id, "a failed webhook was opened again");
        Ok(Some(Replayed::Reopened))
    }

    /// Moves the cursor. Answers the webhook as it is then; `None` if somebody else has moved it.
    async fn moved(
        &self,
        job: &Job,
        head: &Head,
        webhook: StoredWebhook,
        cursor: WebhookCursor,
    ) -> StoreResult<Option<OpenWebhook>> {
        let revision = webhook.cursor.revision;
        if !self.store.move_webhook(job.key, &webhook.id, revision, cursor).await? {
            return Ok(None);
        }
        let cursor = WebhookCursor { revision: revision + 1, ..cursor };
        let Job { key, scope, task, .. } = job.clone();
        let webhook = StoredWebhook { cursor, ..webhook };
        Ok(Some(OpenWebhook { key, scope, task, version: head.version, webhook }))
    }

    /// One call with what was kept of the task.
    async fn send_last(&self, found: &Found, record: &FailedRecord) -> Result<Replayed, WebhookError> {
        let job = &found.job;
        let Some(shared) = self.running() else { return Err(WebhookError::NoServer) };
        let notification = last_notification(shared, job, record)?;
        let webhook = shared.read(job).ok_or(WebhookError::Unreadable)?;
        let _one = self.sending.lock().await;
        // Another replay may have sent it meanwhile.
        if !self.is_kept(found).await? {
            return Ok(Replayed::NothingLeft);
        }
        let outcome = shared.call(job, &webhook, &notification).await;
        if outcome.answer() != Answer::Accepted {
            shared.telemetry.webhook_called(WebhookCall::Retried);
            return Err(WebhookError::NotDelivered(outcome.for_owner()));
        }
        shared.telemetry.webhook_called(WebhookCall::Delivered);
        self.forget(job).await?;
        tracing::info!(task.id = %job.task, webhook.id = %job.webhook.id, "a failed webhook got what was kept of its task");
        Ok(Replayed::LastTaskSent)
    }

    async fn is_kept(&self, found: &Found) -> StoreResult<bool> {
        let Job { key, webhook, .. } = &found.job;
        // Newest first, then by key, descending: the failed webhooks of this task and moment come next.
        let before =
            found.status.failed_at.map(|at| (at, TaskKey(key.0.saturating_add(1)), webhook.id.clone()));
        let read = self.store.failed_webhooks(before, NEIGHBOURS).await?;
        Ok(read.iter().any(|failed| failed.key == *key && failed.id == webhook.id))
    }

    async fn forget(&self, job: &Job) -> StoreResult<()> {
        self.store.remove_failed_webhook(job.key, &job.webhook.id).await.map(drop)
    }
}

/// It has the same id as when the task was there and was sent whole.
fn last_notification(
    shared: &Shared,
    job: &Job,
    record: &FailedRecord,
) -> Result<Notification, WebhookError> {
    let last = record.last.as_ref().ok_or(WebhookError::NothingKept)?;
    let webhook = shared.read(job).ok_or(WebhookError::Unreadable)?;
    let task = stored::read_task(last.json.get()).map_err(|_| WebhookError::Unreadable)?;
    let number = last.version.unwrap_or(record.number);
    Ok(Notification::of_task(webhook.record.generation, number, &task))
}
