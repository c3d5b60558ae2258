//! Webhooks that failed for good, kept for the operator: who reads them can see what was not delivered and send it again.

use baton_protocol::wire::stored;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Shared;
use super::deliver::Outcome;
use super::registry::Job;
use crate::store::record::fold;
use crate::store::{FailedWebhook, WebhookCursor};

/// Of a task that is larger than this, only the id is kept.
const MAX_TASK_BYTES: usize = 64 * 1024;

/// What is kept of a failed webhook.
#[derive(Serialize, Deserialize)]
struct Json {
    agent: String,
    tenant: String,
    owner: String,
    task: String,
    /// The first event that was not delivered.
    number: u64,
    attempts: u32,
    reason: String,
    /// The webhook's own record, as text.
    webhook: String,
    /// The task as it was, if it is small.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last: Option<Box<RawValue>>,
}

impl Shared {
    /// Keeps a webhook that failed, with the task as it is now.
    pub(super) async fn set_aside(&self, job: &Job, cursor: WebhookCursor, outcome: &Outcome) {
        let json = Json {
            agent: job.scope.agent.to_string(),
            tenant: job.scope.tenant.to_string(),
            owner: job.scope.owner.to_string(),
            task: job.task.to_string(),
            number: cursor.task_as_of.unwrap_or(cursor.done + 1),
            attempts: cursor.failures,
            reason: outcome.for_owner(),
            webhook: String::from_utf8_lossy(&job.webhook.record).into_owned(),
            last: self.last_task(job).await,
        };
        let mut record = b"1 F\n".to_vec();
        serde_json::to_writer(&mut record, &json).expect("strings into memory cannot fail");
        let failed = FailedWebhook {
            key: job.key,
            id: job.webhook.id.clone(),
            at: self.now(),
            record: Bytes::from(record),
        };
        if let Err(error) = self.store.put_failed_webhook(failed, self.options.max_failed).await {
            tracing::warn!(task.id = %job.task, %error, "a failed webhook could not be kept for replay");
        }
    }

    async fn last_task(&self, job: &Job) -> Option<Box<RawValue>> {
        let loaded = self.store.load(&job.scope, &job.task).await.ok()??;
        if loaded.bytes() > MAX_TASK_BYTES {
            return None;
        }
        let mut json = Vec::new();
        stored::write_task(&mut json, &fold(&loaded).ok()?.task);
        RawValue::from_string(String::from_utf8(json).ok()?).ok()
    }
}
