//! Switches an open webhook off. What was not delivered is kept, as if it had failed.

use super::{TRIES, WebhookError, WebhookName, WebhookStatus, Webhooks};
use crate::push::failed::{FailedRecord, SwitchedOff};
use crate::push::registry::Job;
use crate::store::{WebhookCursor, WebhookState};

const REASON: &str = "disabled by the operator";

impl Webhooks {
    /// Nothing more is sent to an open webhook; a call that is under way is the last. It can be [replayed](Self::replay).
    pub async fn disable(&self, name: &WebhookName) -> Result<WebhookStatus, WebhookError> {
        let found = self.find_one(name).await?;
        if let Some(record) = &found.failed {
            return Err(WebhookError::NotOpen(record.reason.clone()));
        }
        let mut job = found.job;
        for _ in 0..TRIES {
            let webhook = self.stored(&job).await?.and_then(|(_, webhook)| webhook);
            let Some(webhook) = webhook.filter(|webhook| webhook.cursor.state == WebhookState::Open) else {
                return Err(self.ended_meanwhile(&job).await?);
            };
            job.webhook = webhook;
            let (cursor, now) = (job.webhook.cursor, self.clock.now());
            let disabled =
                WebhookCursor { state: WebhookState::Disabled, due: WebhookCursor::after(0).due, ..cursor };
            let record = FailedRecord::of(&self.store, &job, disabled, REASON).await;
            let record = FailedRecord { off: Some(SwitchedOff::Operator), ..record };
            let failed = record.into_failed(job.key, &job.webhook.id, now);
            if self.store.set_aside_webhook(cursor.revision, disabled, failed, self.max_failed).await? {
                if let Some(shared) = self.running() {
                    shared.registry.remove(job.key, &job.webhook.id);
                }
                tracing::info!(task.id = %job.task, webhook.id = %job.webhook.id, "a webhook was disabled by the operator");
                return self.find(&found.status.name()).await;
            }
        }
        Err(WebhookError::Changing)
    }

    /// Why it is not open any more.
    async fn ended_meanwhile(&self, job: &Job) -> Result<WebhookError, WebhookError> {
        let webhook = self.stored(job).await?.and_then(|(_, webhook)| webhook);
        Ok(match webhook.map(|webhook| webhook.cursor.state) {
            Some(WebhookState::Failed | WebhookState::Disabled) => {
                WebhookError::NotOpen("it has just failed".to_owned())
            }
            Some(WebhookState::Finished | WebhookState::Open) => {
                WebhookError::NotOpen("everything was delivered".to_owned())
            }
            None => WebhookError::Removed,
        })
    }
}
