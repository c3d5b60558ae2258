//! One webhook while it is delivered to.
//!
//! Events are delivered in order, one call at a time. A call is repeated until it succeeds or fails for good; the cursor in the
//! store says how far it got. After a success the cursor may be stored while the next call is already under way: if the
//! process dies in between, an event is delivered twice, with the same id. Before a delivery is put off, the cursor is stored.

use std::sync::Arc;
use std::time::{Duration, Instant};

use baton_protocol::domain::Timestamp;
use tokio::task::JoinHandle;

use super::Shared;
use super::deliver::Outcome;
use super::endpoints::Call;
use super::failed::FailedRecord;
use super::notification::{Next, Notification, Notifications};
use super::registry::Job;
use super::schedule::{self, Policy};
use crate::points::{Point, reached};
use crate::store::{StoreResult, StoredWebhook, WebhookCursor, WebhookState};
use crate::telemetry::labels::WebhookCall;

/// After so many calls, or so long a time, a webhook goes to the end of the line: neither a long log nor a receiver that takes
/// its time over each call keeps others waiting for the place.
const CALLS_IN_A_ROW: usize = 32;
const TIME_IN_A_ROW: Duration = Duration::from_secs(5);

/// After the store failed: pause before the webhook is tried again.
const STORE_PAUSE: Duration = Duration::from_secs(5);

/// One webhook while it is delivered to.
pub(super) struct Session<'a> {
    shared: &'a Arc<Shared>,
    job: Job,
    cursor: WebhookCursor,
    /// The cursor as it is in the store.
    stored: WebhookCursor,
    /// The cursor is being stored.
    storing: Option<JoinHandle<(WebhookCursor, StoreResult<bool>)>>,
}

/// The webhook was removed or replaced, or the store failed; the job ends.
struct Lost;

/// After the first call at the earliest.
fn has_had_its_turn(calls: usize, time: Duration) -> bool {
    calls >= CALLS_IN_A_ROW || (calls > 0 && time >= TIME_IN_A_ROW)
}

impl<'a> Session<'a> {
    pub(super) fn new(shared: &'a Arc<Shared>, job: Job) -> Self {
        let cursor = job.webhook.cursor;
        Session { shared, job, cursor, stored: cursor, storing: None }
    }

    /// Calls the receiver until there is nothing more, a call fails, or others have waited long enough.
    pub(super) async fn deliver(mut self) -> (StoredWebhook, Call) {
        let mut call = Call::None;
        if let Err(Lost) = self.deliver_some(&mut call).await {
            self.cursor = match self.shared.read_again(&self.job).await {
                // With its record: it may have been replaced.
                Ok(Some(webhook)) => return (webhook, call),
                // Gone: nothing is left to deliver.
                Ok(None) => WebhookCursor { state: WebhookState::Finished, ..self.cursor },
                Err(error) => {
                    tracing::warn!(%error, "how far a webhook has got could not be read; tried again soon");
                    WebhookCursor { due: self.after_store_pause(), ..self.stored }
                }
            };
        }
        (StoredWebhook { cursor: self.cursor, ..self.job.webhook }, call)
    }

    async fn deliver_some(&mut self, call: &mut Call) -> Result<(), Lost> {
        let Some(webhook) = self.shared.read(&self.job) else {
            self.cursor.state = WebhookState::Failed;
            return self.set_aside("its record in the store cannot be read").await;
        };
        let policy = webhook.policy();
        if self.cursor.failures >= policy.most_attempts() {
            // The store did not take its end, after the last attempt.
            self.cursor.state = WebhookState::Failed;
            let reason = self.shared.registry.failure(self.job.key, &self.job.webhook.id);
            return self.end(policy, reason.as_deref().unwrap_or("it failed too often")).await;
        }
        let mut log = Notifications::new(
            self.shared.store.clone(),
            self.job.scope.clone(),
            self.job.task.clone(),
            webhook.record.generation,
            webhook.record.events,
            self.cursor.done,
        );
        let begun = Instant::now();
        for calls in 0.. {
            if has_had_its_turn(calls, begun.elapsed()) || self.shared.stopping.is_cancelled() {
                break;
            }
            let next = match self.cursor.task_as_of {
                Some(number) => {
                    log.task_as_of(number).await.map(|found| found.map_or(Next::Gone, Next::Send))
                }
                None => log.next().await,
            };
            let notification = match next {
                Ok(Next::Send(notification)) => notification,
                Ok(Next::CaughtUp { through, ended }) => {
                    let WebhookCursor { revision, .. } = self.cursor;
                    self.cursor = WebhookCursor { revision, ..WebhookCursor::after(through) };
                    if ended {
                        self.cursor.state = WebhookState::Finished;
                    }
                    break;
                }
                Ok(Next::Gone) => match self.skip_what_is_gone().await? {
                    true => continue,
                    false => return Ok(()),
                },
                Err(error) => {
                    tracing::warn!(%error, "the log of a task could not be read for its webhook; tried again soon");
                    self.cursor.due = self.after_store_pause();
                    return Ok(());
                }
            };
            // It may have been removed or replaced while it waited for its host, or during the last call.
            self.check_current()?;
            reached(Point::PushCalling);
            let outcome = self.shared.call(&self.job, &webhook, &notification).await;
            reached(Point::PushAnswered);
            if self.settle(policy, notification, &outcome, call).await?.is_none() {
                return Ok(());
            }
        }
        self.finish().await
    }

    /// What is written is for the webhook that was called. The store alone cannot tell it from one that was removed and
    /// created again: both begin with the first revision.
    fn check_current(&self) -> Result<(), Lost> {
        match self.shared.registry.is_current(self.job.key, &self.job.webhook.id) {
            true => Ok(()),
            false => Err(Lost),
        }
    }

    /// The log no longer has the events after the cursor: the next delivery is the task as it is now. Answers whether there
    /// is one, now.
    async fn skip_what_is_gone(&mut self) -> Result<bool, Lost> {
        let Job { key, scope, task, .. } = &self.job;
        match self.shared.store.head(scope, task).await {
            Ok(Some(head)) if head.key == *key && self.cursor.task_as_of != Some(head.version) => {
                self.shared.log(&self.job, "the events of a webhook are gone; it gets the task as it is now");
                self.cursor.task_as_of = Some(head.version);
                return Ok(true);
            }
            Ok(Some(head)) if head.key == *key => {}
            // The task was removed, and the webhook was set aside before.
            Ok(_) => return Err(Lost),
            Err(error) => {
                tracing::warn!(%error, "a task could not be read for its webhook; tried again soon");
            }
        }
        self.cursor.due = self.after_store_pause();
        Ok(false)
    }

    /// Notes the outcome of a call. `None`: no further call now.
    async fn settle(
        &mut self,
        policy: Policy,
        notification: Notification,
        outcome: &Outcome,
        call: &mut Call,
    ) -> Result<Option<()>, Lost> {
        let (shared, now) = (self.shared, self.shared.clock.now());
        let since = self.cursor.failing_since.unwrap_or(now);
        let elapsed = Duration::from_millis((now.as_millis() - since.as_millis()).max(0) as u64);
        let attempt = self.cursor.failures.saturating_add(1);
        match schedule::next(policy, attempt, elapsed, outcome.answer(), shared.jitter()) {
            schedule::Next::Advance => {
                *call = Call::Succeeded;
                let WebhookCursor { revision, .. } = self.cursor;
                self.cursor = WebhookCursor {
                    revision,
                    ..WebhookCursor::after(notification.number.max(self.cursor.done))
                };
                shared.telemetry.webhook_called(WebhookCall::Delivered);
                if notification.is_last {
                    self.cursor.state = WebhookState::Finished;
                    self.finish().await?;
                    return Ok(None);
                }
                self.store_meanwhile().await?;
                Ok(Some(()))
            }
            schedule::Next::Retry { wait, may_skip_to_newest, pause_endpoint } => {
                let paced = |wait: Duration| wait.mul_f64(shared.options.pace);
                let (wait, pause_endpoint) = (paced(wait), pause_endpoint.map(paced));
                shared.telemetry.webhook_called(WebhookCall::Retried);
                let later =
                    |wait: Duration| now.plus_millis(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX));
                *call = Call::Failed { pause_until: pause_endpoint.map(later) };
                self.cursor.failures = attempt;
                self.cursor.failing_since = Some(since);
                self.cursor.due = later(wait);
                if may_skip_to_newest && self.cursor.task_as_of.is_none() {
                    // Nothing newer leaves nothing out: then it is the event again.
                    self.cursor.task_as_of =
                        shared.version(&self.job).await.filter(|version| *version > notification.number);
                }
                shared.log_failure(&self.job, attempt, outcome, Some(wait));
                // Before the cursor is stored: whoever sees the failure finds its reason.
                shared.registry.call_failed(self.job.key, &self.job.webhook.id, outcome.for_owner());
                self.finish().await?;
                Ok(None)
            }
            schedule::Next::Disable if policy == Policy::Standard => {
                *call = Call::Succeeded;
                (self.cursor.failures, self.cursor.state) = (attempt, WebhookState::Disabled);
                self.give_up(policy, attempt, outcome).await?;
                Ok(None)
            }
            schedule::Next::SetAside | schedule::Next::Disable | schedule::Next::Remove => {
                *call = Call::Failed { pause_until: None };
                (self.cursor.failures, self.cursor.state) = (attempt, WebhookState::Failed);
                self.give_up(policy, attempt, outcome).await?;
                Ok(None)
            }
        }
    }

    /// The webhook is not called again; the cursor's state says why.
    async fn give_up(&mut self, policy: Policy, attempt: u32, outcome: &Outcome) -> Result<(), Lost> {
        // The end of the old one is not the end of the one that has replaced it.
        self.check_current()?;
        let shared = self.shared;
        if self.cursor.state == WebhookState::Disabled {
            shared.telemetry.webhook_called(WebhookCall::Gone);
            shared.log(&self.job, "a webhook is switched off: its receiver answered 410");
        } else {
            shared.telemetry.webhook_called(WebhookCall::Failed);
            shared.log_failure(&self.job, attempt, outcome, None);
        }
        let reason = outcome.for_owner();
        shared.registry.call_failed(self.job.key, &self.job.webhook.id, reason.clone());
        self.end(policy, &reason).await
    }

    /// Stores that the webhook is over, as the cursor's state says.
    async fn end(&mut self, policy: Policy, reason: &str) -> Result<(), Lost> {
        match policy {
            Policy::Standard => self.set_aside(reason).await,
            Policy::Legacy => self.remove().await,
        }
    }

    async fn set_aside(&mut self, reason: &str) -> Result<(), Lost> {
        self.stored_last().await?;
        // This reads the task: only then is it asked whose end this is.
        let record = FailedRecord::of(&self.shared.store, &self.job, self.cursor, reason).await;
        self.check_current()?;
        let revision = self.stored.revision;
        let moved = self.shared.set_aside(&self.job, revision, self.cursor, record).await;
        self.stored_or_open(moved)
    }

    async fn remove(&mut self) -> Result<(), Lost> {
        self.stored_last().await?;
        self.check_current()?;
        let (Job { scope, task, webhook, .. }, revision) = (&self.job, self.stored.revision);
        let removed = self.shared.store.remove_webhook(scope, task, &webhook.id, Some(revision)).await;
        self.stored_or_open(removed)
    }

    /// Stores the cursor, unless an earlier one is still being stored: then a later call will cover this one.
    async fn store_meanwhile(&mut self) -> Result<(), Lost> {
        if self.storing.as_ref().is_some_and(|storing| !storing.is_finished()) {
            return Ok(());
        }
        self.stored_last().await?;
        self.check_current()?;
        let (shared, key, id) = (Arc::clone(self.shared), self.job.key, self.job.webhook.id.clone());
        let (cursor, revision) = (self.cursor, self.stored.revision);
        self.storing = Some(tokio::spawn(async move {
            let moved = shared.store.move_webhook(key, &id, revision, cursor).await;
            reached(Point::PushStored);
            (cursor, moved)
        }));
        Ok(())
    }

    /// Waits for the cursor that is being stored.
    async fn stored_last(&mut self) -> Result<(), Lost> {
        let Some(storing) = self.storing.take() else { return Ok(()) };
        let Ok((cursor, moved)) = storing.await else { return Err(Lost) };
        self.moved(cursor, moved)
    }

    fn moved(&mut self, cursor: WebhookCursor, moved: StoreResult<bool>) -> Result<(), Lost> {
        match moved {
            Ok(true) => {
                self.stored = WebhookCursor { revision: self.stored.revision + 1, ..cursor };
                self.cursor.revision = self.stored.revision;
                Ok(())
            }
            Ok(false) => Err(Lost),
            // Tried again with the next call, or at the end.
            Err(error) => {
                tracing::warn!(%error, "how far a webhook has got could not be stored");
                Ok(())
            }
        }
    }

    /// Stores the cursor if it is another than the stored one, and waits for it.
    async fn finish(&mut self) -> Result<(), Lost> {
        self.stored_last().await?;
        self.cursor.revision = self.stored.revision;
        if self.cursor == self.stored {
            return Ok(());
        }
        self.store().await
    }

    async fn store(&mut self) -> Result<(), Lost> {
        self.check_current()?;
        let StoredWebhook { id, .. } = &self.job.webhook;
        let moved = self.shared.store.move_webhook(self.job.key, id, self.stored.revision, self.cursor).await;
        self.stored_or_open(moved)
    }

    /// After a write at the end of a session. If it has failed, the webhook stays open until the store knows better: what is in
    /// memory goes on, and a restart delivers again from what is stored.
    fn stored_or_open(&mut self, moved: StoreResult<bool>) -> Result<(), Lost> {
        reached(Point::PushStored);
        let cursor = self.cursor;
        if moved.is_err() {
            if cursor.state == WebhookState::Disabled {
                // The receiver is asked again. That it wants no more was no failed attempt.
                self.cursor.failures -= 1;
            }
            self.cursor.state = WebhookState::Open;
            self.cursor.due = self.cursor.due.max(self.after_store_pause());
        }
        self.moved(cursor, moved)
    }

    fn after_store_pause(&self) -> Timestamp {
        let pause = STORE_PAUSE.mul_f64(self.shared.options.pace);
        self.shared.clock.now().plus_millis(pause.as_millis() as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s14_neither_a_long_log_nor_slow_calls_keep_a_place() {
        let (quick, slow) = (Duration::from_millis(1), Duration::from_secs(14));
        assert!(!has_had_its_turn(0, slow) && !has_had_its_turn(31, quick));
        assert!(has_had_its_turn(1, slow) && has_had_its_turn(32, quick));
    }
}
