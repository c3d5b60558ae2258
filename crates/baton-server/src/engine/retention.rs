//! The sweeper: folds and removes old tasks, and advances open tasks that have no run.

mod clock_doubt;

use std::sync::{Arc, Weak};
use std::time::Duration;

use baton_protocol::domain::Timestamp;
use tokio::time::Instant;

pub(super) use clock_doubt::ClockDoubt;

use super::{Engine, Inner};
use crate::points::{Point, reached};
use crate::push::failed;
use crate::store::StoreError;

/// How many tasks are removed or folded with one call; small, so that other writers do not wait long.
const BATCH: u32 = 500;

/// After the store refused writes: pause before open tasks are tried again.
const ADVANCE_AGAIN: Duration = Duration::from_secs(2);

/// The result of one sweep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Swept {
    /// Ended tasks whose log was replaced by their snapshot.
    pub folded: u64,
    /// Ended tasks that were removed.
    pub removed: u64,
    /// Message records that were removed; their tasks had been removed before.
    pub records: u64,
    /// Failed webhooks that were kept for replay and were removed; their tasks had been removed before.
    pub webhooks: u64,
}

impl Engine {
    /// Sweeps now; the engine also does this by itself from time to time.
    pub(crate) async fn sweep(&self) -> Result<Swept, StoreError> {
        self.inner.sweep(self.inner.clock.now()).await
    }
}

impl Inner {
    /// Sweeps until the engine is dropped or stops. It holds no reference to the engine while it waits.
    pub(super) async fn sweep_for_ever(engine: Weak<Self>, mut doubt: ClockDoubt) {
        let Some(held) = engine.upgrade() else { return };
        let every = held.options().retention.every;
        let (advance_failed, stopping) = (Arc::clone(&held.advance_failed), held.stopping.clone());
        drop(held);
        let mut next = Instant::now() + every;
        loop {
            let soon = async {
                advance_failed.notified().await;
                tokio::time::sleep(ADVANCE_AGAIN).await;
            };
            tokio::select! {
                () = tokio::time::sleep_until(next) => {}
                () = soon => {}
                () = stopping.cancelled() => return,
            }
            let Some(engine) = engine.upgrade() else { return };
            if next <= Instant::now() {
                next = Instant::now() + every;
                if let Some(time) = doubt.safe_time(Instant::now(), engine.clock.now()) {
                    engine.sweep_and_log(time).await;
                }
                engine.keep(&mut doubt).await;
            }
            // Finds tasks whose run gave up because the store failed.
            if let Err(error) = engine.advance_open_tasks().await {
                tracing::warn!(%error, "open tasks could not be advanced");
            }
        }
    }

    /// Decides whether the clock can be trusted, by the note of earlier processes.
    pub(super) async fn clock_doubt(&self) -> Result<ClockDoubt, StoreError> {
        let (now, wall) = (Instant::now(), self.clock.now());
        let kept = self.store.note(clock_doubt::NOTE, None).await?;
        let is_empty = self.store.task_count().await? == 0;
        let mut doubt = ClockDoubt::at_start(now, wall, kept.as_deref(), is_empty);
        doubt.safe_time(now, wall);
        self.keep(&mut doubt).await;
        Ok(doubt)
    }

    async fn keep(&self, doubt: &mut ClockDoubt) {
        let now = Instant::now();
        let Some(note) = doubt.note(now) else { return };
        match self.store.note(clock_doubt::NOTE, Some(note)).await {
            Ok(_) => doubt.noted(now),
            Err(error) => tracing::debug!(%error, "the time could not be noted; the next sweep tries again"),
        }
    }

    async fn sweep_and_log(&self, now: Timestamp) {
        match self.sweep(now).await {
            Ok(swept) if swept != Swept::default() => {
                tracing::info!(swept.folded, swept.removed, swept.records, swept.webhooks, "swept old tasks");
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "a sweep failed; it will be tried again"),
        }
    }

    /// Folds and removes what is old enough at that time.
    async fn sweep(&self, now: Timestamp) -> Result<Swept, StoreError> {
        let (retention, store) = (self.options().retention.clone(), &self.store);
        let before = |age: Duration| now.plus_millis(-i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
        let mut swept = Swept::default();
        reached(Point::SweepBegin);
        let (fold, webhooks) = (before(retention.fold), before(retention.webhooks));
        swept.folded = all(u64::MAX, |most| store.fold_ended(fold, webhooks, most)).await?;
        reached(Point::SweepFolded);
        let ended = before(retention.ended);
        self.set_aside_webhooks(now, ended.min(webhooks), u64::MAX).await;
        swept.removed = all(u64::MAX, |most| store.purge_ended(ended, most)).await?;
        let over = store.task_count().await?.saturating_sub(retention.max_tasks);
        let oldest = before(retention.min_age);
        let removed = all(over, |most| store.purge_ended(oldest, most)).await?;
        swept.removed += removed;
        // What waits for webhooks goes last.
        if removed < over && self.set_aside_webhooks(now, oldest.min(webhooks), over - removed).await > 0 {
            swept.removed += all(over - removed, |most| store.purge_ended(oldest, most)).await?;
        }
        // The age of a record counts from its message, not from its task's end; adding `ended` makes sure that the task has
        // been removed before.
        let oldest = before(retention.ended.saturating_add(retention.records));
        swept.records = all(u64::MAX, |most| store.purge_records(oldest, most)).await?;
        swept.webhooks = failed::sweep(store, oldest).await?;
        if swept != Swept::default() {
            self.owner_usages.forget();
        }
        Ok(swept)
    }

    /// Sets up to `most` webhooks aside whose tasks ended before this time and are about to be removed. If the store does not
    /// take it, as when it is full, these tasks stay for now, and others can be removed.
    async fn set_aside_webhooks(&self, now: Timestamp, before: Timestamp, most: u64) -> u64 {
        let set_aside = failed::set_aside_overdue(&self.store, &self.webhooks, now, before, most).await;
        set_aside.unwrap_or_else(|error| {
            tracing::warn!(%error, "webhooks of old tasks could not be set aside; the tasks are kept for now");
            0
        })
    }
}

/// Repeats a call in batches until it finds nothing more, or has done `most`. Removing also needs disk space for a while, so
/// the batches get smaller if the store is full.
async fn all<F>(most: u64, verb: impl Fn(u32) -> F) -> Result<u64, StoreError>
where
    F: Future<Output = Result<u64, StoreError>>,
{
    let (mut batch, mut done) = (BATCH, 0);
    loop {
        let step = batch.min(u32::try_from(most.saturating_sub(done)).unwrap_or(BATCH));
        if step == 0 {
            return Ok(done);
        }
        match verb(step).await {
            Ok(count) => {
                done += count;
                if count < u64::from(step) {
                    return Ok(done);
                }
            }
            Err(StoreError::Full(_)) if batch > 1 => batch = (batch / 8).max(1),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::future::ready;

    use super::*;

    /// Sweeps in steps over `left` items; a step of more than `room` items fails as full.
    async fn sweep(left: u64, most: u64, room: u32) -> (Result<u64, StoreError>, Vec<u32>) {
        let (left, steps) = (RefCell::new(left), RefCell::new(Vec::new()));
        let verb = |step| {
            steps.borrow_mut().push(step);
            if step > room {
                return ready(Err(StoreError::full("no room")));
            }
            let count = u64::from(step).min(*left.borrow());
            *left.borrow_mut() -= count;
            ready(Ok(count))
        };
        let done = all(most, verb).await;
        (done, steps.into_inner())
    }

    #[tokio::test]
    async fn a_sweep_goes_on_until_nothing_is_left_or_enough_is_done() {
        assert_eq!(sweep(1200, u64::MAX, BATCH).await, (Ok(1200), vec![500, 500, 500]));
        assert_eq!(sweep(1200, 700, BATCH).await, (Ok(700), vec![500, 200]));
        assert_eq!(sweep(1200, 0, BATCH).await, (Ok(0), vec![]));
        assert_eq!(sweep(0, u64::MAX, BATCH).await, (Ok(0), vec![500]));
    }

    #[tokio::test]
    async fn s12_where_there_is_little_room_a_sweep_takes_small_steps() {
        assert_eq!(sweep(20, u64::MAX, 7).await, (Ok(20), vec![500, 62, 7, 7, 7]));
        assert_eq!(sweep(2, u64::MAX, 1).await, (Ok(2), vec![500, 62, 7, 1, 1, 1]));
        // And gives up after a few, rather than write what little room there is full again and again.
        let (done, steps) = sweep(20, u64::MAX, 0).await;
        assert!(matches!(done, Err(StoreError::Full(_))), "{done:?}");
        assert_eq!(steps, [500, 62, 7, 1]);
    }
}
