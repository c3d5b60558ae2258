//! Delivers: takes webhooks that have something to deliver from the registry, and calls their receivers.
//!
//! Events of one webhook are delivered in order, one call at a time. A call is repeated until it succeeds or fails for good;
//! the cursor in the store says how far it got. After a success the cursor may be stored while the next call is already under
//! way: if the process dies in between, an event is delivered twice, with the same id. Before a delivery is put off, the
//! cursor is stored.

use std::sync::Arc;
use std::time::Duration;

use baton_protocol::domain::{PushConfigId, Timestamp};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};

use super::Shared;
use super::deliver::Outcome;
use super::endpoints::{Admitted, Call, Endpoints};
use super::notification::{Next, Notification, Notifications};
use super::registry::Job;
use super::schedule::{self, Policy};
use crate::store::{StoreResult, StoredWebhook, TaskKey, WebhookCursor, WebhookState};
use crate::telemetry::labels::WebhookCall;

/// After so many calls a webhook goes to the end of the line, so that a long log does not keep others waiting.
const CALLS_IN_A_ROW: usize = 32;

/// After the store failed: pause before the webhook is tried again.
const STORE_PAUSE: Duration = Duration::from_secs(5);

/// What became of a job.
struct Ended {
    key: TaskKey,
    id: PushConfigId,
    host: String,
    cursor: WebhookCursor,
    call: Call,
}

/// Runs until the server stops; then waits for the calls under way.
pub(super) async fn run(shared: Arc<Shared>) {
    let stopping = shared.stopping.clone();
    let places = Arc::new(Semaphore::new(shared.options.at_once.max(1)));
    let (mut endpoints, mut jobs) = (Endpoints::default(), JoinSet::<Ended>::new());
    loop {
        begin_jobs(&shared, &places, &mut endpoints, &mut jobs);
        let due = shared.registry.next_due();
        let now = shared.clock.now();
        let wait = due.map(|due| Duration::from_millis((due.as_millis() - now.as_millis()).max(1) as u64));
        tokio::select! {
            () = stopping.cancelled() => break,
            () = shared.registry.changed(), if places.available_permits() > 0 => {}
            () = sleep_or_never(wait), if places.available_permits() > 0 => {}
            Some(ended) = jobs.join_next() => {
                if let Ok(ended) = ended {
                    end_job(&shared, &places, &mut endpoints, &mut jobs, ended);
                }
            }
        }
    }
    // Each call has its own timeout.
    while jobs.join_next().await.is_some() {}
}

async fn sleep_or_never(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

fn begin_jobs(
    shared: &Arc<Shared>,
    places: &Arc<Semaphore>,
    endpoints: &mut Endpoints,
    jobs: &mut JoinSet<Ended>,
) {
    let now = shared.clock.now();
    while places.available_permits() > 0
        && let Some(job) = shared.registry.take(now)
    {
        let host = shared.host_of(&job.webhook.record);
        match endpoints.admit(&host, job, shared.options.per_host, now) {
            Admitted::Now(job) => spawn(shared, places, jobs, host, *job),
            Admitted::Queued => {}
            Admitted::Paused(job, until) => put_off(shared, &job, until),
        }
    }
}

fn spawn(shared: &Arc<Shared>, places: &Arc<Semaphore>, jobs: &mut JoinSet<Ended>, host: String, job: Job) {
    let (shared, places) = (Arc::clone(shared), Arc::clone(places));
    // Taken here and not in the job, so that `begin_jobs` sees it. The semaphore is never closed.
    let place = places.try_acquire_owned().ok();
    jobs.spawn(async move {
        let _place = place;
        let (key, id) = (job.key, job.webhook.id.clone());
        let (cursor, call) = Session::new(&shared, job).deliver().await;
        Ended { key, id, host, cursor, call }
    });
}

fn end_job(
    shared: &Arc<Shared>,
    places: &Arc<Semaphore>,
    endpoints: &mut Endpoints,
    jobs: &mut JoinSet<Ended>,
    ended: Ended,
) {
    let Ended { key, id, host, cursor, call } = ended;
    shared.registry.done(key, &id, cursor);
    let now = shared.clock.now();
    if let Some(next) = endpoints.ended(&host, call, shared.options.per_host, now) {
        spawn(shared, places, jobs, host.clone(), *next);
    }
    if let Some((until, waiting)) = endpoints.take_paused(&host, now) {
        for job in waiting {
            put_off(shared, &job, until);
        }
    }
}

/// Not stored: a restart may try a little sooner.
fn put_off(shared: &Shared, job: &Job, until: Timestamp) {
    let cursor = WebhookCursor { due: until, ..job.webhook.cursor };
    shared.registry.done(job.key, &job.webhook.id, cursor);
}

/// One webhook while it is delivered to.
struct Session<'a> {
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

impl<'a> Session<'a> {
    fn new(shared: &'a Arc<Shared>, job: Job) -> Self {
        let cursor = job.webhook.cursor;
        Session { shared, job, cursor, stored: cursor, storing: None }
    }

    /// Calls the receiver until there is nothing more, a call fails, or others have waited long enough.
    async fn deliver(mut self) -> (WebhookCursor, Call) {
        let mut call = Call::None;
        match self.deliver_some(&mut call).await {
            Ok(()) => {}
            Err(Lost) => {
                let shared = self.shared;
                self.cursor = shared.read_again(&self.job).await.unwrap_or(WebhookCursor {
                    // Gone: nothing is left to deliver.
                    state: WebhookState::Finished,
                    ..self.cursor
                });
            }
        }
        (self.cursor, call)
    }

    async fn deliver_some(&mut self, call: &mut Call) -> Result<(), Lost> {
        let Some(webhook) = self.shared.read(&self.job) else {
            self.cursor.state = WebhookState::Failed;
            return self.store().await;
        };
        let mut log = Notifications::new(
            self.shared.store.clone(),
            self.job.scope.clone(),
            self.job.task.clone(),
            webhook.record.generation,
            webhook.record.events,
            self.cursor.done,
        );
        for _ in 0..CALLS_IN_A_ROW {
            let next = match self.cursor.task_as_of {
                Some(number) => {
                    log.task_as_of(number).await.map(|found| found.map_or(Next::Gone, Next::Send))
                }
                None => log.next().await,
            };
            let notification = match next {
                Ok(Next::Send(notification)) => notification,
                Ok(Next::CaughtUp { through, ended }) => {
                    self.cursor.done = through;
                    if ended {
                        self.cursor.state = WebhookState::Finished;
                    }
                    break;
                }
                Ok(Next::Gone) => {
                    self.shared
                        .log(&self.job, "the events of a webhook are gone; it gets the task as it is now");
                    match self.shared.version(&self.job).await {
                        Some(version) if self.cursor.task_as_of != Some(version) => {
                            self.cursor.task_as_of = Some(version);
                            continue;
                        }
                        _ => return Err(Lost),
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "the log of a task could not be read for its webhook; tried again soon");
                    self.cursor.due = self.after_store_pause();
                    return Ok(());
                }
            };
            let outcome = self.shared.call(&self.job, &webhook, &notification).await;
            if self.settle(&webhook.policy(), notification, &outcome, call).await?.is_none() {
                return Ok(());
            }
        }
        self.finish().await
    }

    /// Notes the outcome of a call. `None`: no further call now.
    async fn settle(
        &mut self,
        policy: &Policy,
        notification: Notification,
        outcome: &Outcome,
        call: &mut Call,
    ) -> Result<Option<()>, Lost> {
        let (shared, now) = (self.shared, self.shared.clock.now());
        let since = self.cursor.failing_since.unwrap_or(now);
        let elapsed = Duration::from_millis((now.as_millis() - since.as_millis()).max(0) as u64);
        let attempt = self.cursor.failures.saturating_add(1);
        match schedule::next(*policy, attempt, elapsed, outcome.answer(), shared.jitter()) {
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
                    self.cursor.task_as_of = shared.version(&self.job).await;
                }
                shared.log_failure(&self.job, attempt, outcome, Some(wait));
                self.finish().await?;
                Ok(None)
            }
            schedule::Next::SetAside | schedule::Next::Disable | schedule::Next::Remove
                if policy == &Policy::Legacy =>
            {
                *call = Call::Failed { pause_until: None };
                shared.telemetry.webhook_called(WebhookCall::Failed);
                shared.log_failure(&self.job, attempt, outcome, None);
                self.cursor.state = WebhookState::Failed;
                shared.remove(&self.job).await;
                Ok(None)
            }
            schedule::Next::Disable => {
                *call = Call::Succeeded;
                shared.telemetry.webhook_called(WebhookCall::Disabled);
                shared.log(&self.job, "a webhook is switched off: its receiver answered 410");
                self.cursor.state = WebhookState::Disabled;
                self.finish().await?;
                shared.set_aside(&self.job, self.cursor, outcome).await;
                Ok(None)
            }
            schedule::Next::SetAside | schedule::Next::Remove => {
                *call = Call::Failed { pause_until: None };
                shared.telemetry.webhook_called(WebhookCall::Failed);
                shared.log_failure(&self.job, attempt, outcome, None);
                self.cursor.failures = attempt;
                self.cursor.state = WebhookState::Failed;
                shared.set_aside(&self.job, self.cursor, outcome).await;
                self.finish().await?;
                Ok(None)
            }
        }
    }

    /// Stores the cursor, unless an earlier one is still being stored: then a later call will cover this one.
    async fn store_meanwhile(&mut self) -> Result<(), Lost> {
        if self.storing.as_ref().is_some_and(|storing| !storing.is_finished()) {
            return Ok(());
        }
        self.stored_last().await?;
        let (shared, key, id) = (Arc::clone(self.shared), self.job.key, self.job.webhook.id.clone());
        let (cursor, revision) = (self.cursor, self.stored.revision);
        self.storing = Some(tokio::spawn(async move {
            (cursor, shared.store.move_webhook(key, &id, revision, cursor).await)
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
        let StoredWebhook { id, .. } = &self.job.webhook;
        let moved = self.shared.store.move_webhook(self.job.key, id, self.stored.revision, self.cursor).await;
        if moved.is_err() {
            // What is in memory goes on; a restart would deliver again from what is stored.
            self.cursor.due = self.cursor.due.max(self.after_store_pause());
        }
        self.moved(self.cursor, moved)
    }

    fn after_store_pause(&self) -> Timestamp {
        self.shared.clock.now().plus_millis(STORE_PAUSE.as_millis() as i64)
    }
}
