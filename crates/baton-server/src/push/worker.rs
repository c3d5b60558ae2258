//! Delivers: takes webhooks that have something to deliver from the registry, and runs a [`Session`] for each.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use baton_protocol::domain::Timestamp;
use tokio::sync::Semaphore;
use tokio::task::{self, JoinSet};

use super::Shared;
use super::endpoints::{Admitted, Call, Endpoints};
use super::registry::Job;
use super::schedule;
use super::session::Session;
use crate::store::{StoredWebhook, TaskKey, WebhookCursor};

/// After a job has panicked: pause before its webhook is tried again.
const PANIC_PAUSE: Duration = Duration::from_secs(300);

/// The jobs that run.
#[derive(Default)]
struct Jobs {
    running: JoinSet<(StoredWebhook, Call)>,
    /// Whose they are. Kept beside the set, since a job that panics answers nothing.
    of: HashMap<task::Id, Begun>,
}

/// A job that has begun.
struct Begun {
    key: TaskKey,
    host: String,
    owner: Arc<str>,
    /// As it was at the beginning.
    webhook: StoredWebhook,
}

/// What became of a job.
struct Ended {
    key: TaskKey,
    host: String,
    owner: Arc<str>,
    webhook: StoredWebhook,
    call: Call,
}

/// Runs until the server stops; then waits for the calls under way.
pub(super) async fn run(shared: Arc<Shared>) {
    let stopping = shared.stopping.clone();
    let places = Arc::new(Semaphore::new(shared.options.at_once.max(1)));
    let (mut endpoints, mut jobs) = (Endpoints::new(&shared.options), Jobs::default());
    loop {
        begin_jobs(&shared, &places, &mut endpoints, &mut jobs);
        let due = shared.registry.next_due();
        let now = shared.clock.now();
        let wait = due.map(|due| Duration::from_millis((due.as_millis() - now.as_millis()).max(1) as u64));
        tokio::select! {
            () = stopping.cancelled() => break,
            () = shared.registry.changed(), if places.available_permits() > 0 => {}
            () = sleep_or_never(wait), if places.available_permits() > 0 => {}
            Some(ended) = jobs.next(&shared) => {
                end_job(&shared, &mut endpoints, ended);
            }
        }
    }
    // Each call has its own timeout.
    while jobs.next(&shared).await.is_some() {}
}

impl Jobs {
    fn spawn(&mut self, shared: &Arc<Shared>, places: &Arc<Semaphore>, host: String, job: Job) {
        let (shared, places) = (Arc::clone(shared), Arc::clone(places));
        // Taken here and not in the job, so that `begin_jobs` sees it. The semaphore is never closed.
        let place = places.try_acquire_owned().ok();
        let begun =
            Begun { key: job.key, host, owner: Arc::clone(&job.scope.owner), webhook: job.webhook.clone() };
        let running = self.running.spawn(async move {
            let _place = place;
            Session::new(&shared, job).deliver().await
        });
        self.of.insert(running.id(), begun);
    }

    /// The next job that has ended, also if it panicked: its webhook is tried again later, and its host's place is free.
    async fn next(&mut self, shared: &Shared) -> Option<Ended> {
        loop {
            let ended = self.running.join_next_with_id().await?;
            let task = ended.as_ref().map_or_else(task::JoinError::id, |(task, _)| *task);
            let Some(Begun { key, host, owner, webhook }) = self.of.remove(&task) else { continue };
            let (webhook, call) = match ended {
                Ok((_, ended)) => ended,
                Err(_) => {
                    let pause = PANIC_PAUSE.mul_f64(shared.options.pace);
                    tracing::error!(
                        task.key = key.0, webhook.id = %webhook.id, again_in_s = pause.as_secs(),
                        "delivering a webhook panicked; it is tried again"
                    );
                    let due = shared.clock.now().plus_millis(pause.as_millis() as i64);
                    (put_off_until(webhook, due), Call::None)
                }
            };
            return Some(Ended { key, host, owner, webhook, call });
        }
    }
}

async fn sleep_or_never(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

fn begin_jobs(shared: &Arc<Shared>, places: &Arc<Semaphore>, endpoints: &mut Endpoints, jobs: &mut Jobs) {
    let now = shared.clock.now();
    let longest = schedule::LONGEST_WAIT.mul_f64(shared.options.pace.max(1.0));
    shared.registry.bring_forward(now.plus_millis(longest.as_millis() as i64));
    while places.available_permits() > 0
        && let Some(job) = endpoints.next().or_else(|| shared.registry.take(now))
    {
        let host = shared.host_of(&job.webhook.record);
        match endpoints.admit(&host, job, now) {
            Admitted::Now(job) => jobs.spawn(shared, places, host, *job),
            Admitted::Queued => {}
            Admitted::Paused(job, until) => shared.registry.done(job.key, put_off_until(job.webhook, until)),
        }
    }
}

fn end_job(shared: &Shared, endpoints: &mut Endpoints, ended: Ended) {
    let Ended { key, host, owner, webhook, call } = ended;
    shared.registry.done(key, webhook);
    let now = shared.clock.now();
    endpoints.ended(&host, &owner, call, now);
    if let Some((until, waiting)) = endpoints.take_paused(&host, now) {
        for job in waiting {
            shared.registry.done(job.key, put_off_until(job.webhook, until));
        }
    }
}

/// Not stored: a restart may try a little sooner.
fn put_off_until(webhook: StoredWebhook, due: Timestamp) -> StoredWebhook {
    StoredWebhook { cursor: WebhookCursor { due, ..webhook.cursor }, ..webhook }
}
