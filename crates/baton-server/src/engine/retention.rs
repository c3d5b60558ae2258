//! The sweeper: folds and removes what is old, and looks after tasks nobody holds.

use std::sync::Weak;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Engine, Inner};
use crate::store::StoreError;

/// Removed or folded with one call; small, so that writers wait little.
const BATCH: u32 = 500;

/// What one sweep did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    pub folded: u64,
    pub removed: u64,
    pub records: u64,
}

impl Engine {
    /// One sweep now; the engine does this by itself from time to time.
    pub async fn sweep(&self) -> Result<Swept, StoreError> {
        self.inner.sweep().await
    }
}

impl Inner {
    /// Ends with the engine: it holds nothing while it waits.
    pub(super) async fn sweep_for_ever(engine: Weak<Self>, every: Duration, stopping: CancellationToken) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(every) => {}
                () = stopping.cancelled() => return,
            }
            let Some(engine) = engine.upgrade() else { return };
            match engine.sweep().await {
                Ok(swept) if swept != Swept::default() => {
                    tracing::info!(swept.folded, swept.removed, swept.records, "swept old tasks");
                }
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "a sweep failed; it will be tried again"),
            }
            // Tasks whose run gave up on a failing store.
            if let Err(error) = engine.tend_open_tasks().await {
                tracing::warn!(%error, "open tasks could not be looked after");
            }
        }
    }

    async fn sweep(&self) -> Result<Swept, StoreError> {
        let retention = self.options().retention.clone();
        let retention = &retention;
        let now = self.clock.now();
        let before = |age: Duration| now.plus_millis(-i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
        let mut swept = Swept::default();
        loop {
            let folded = self.store.fold_ended(before(retention.fold), BATCH).await?;
            swept.folded += folded;
            if folded < u64::from(BATCH) {
                break;
            }
        }
        loop {
            let removed = self.store.purge_ended(before(retention.ended), BATCH).await?;
            swept.removed += removed;
            if removed < u64::from(BATCH) {
                break;
            }
        }
        loop {
            let over = self.store.task_count().await?.saturating_sub(retention.max_tasks);
            let most = u32::try_from(over).unwrap_or(BATCH).min(BATCH);
            if most == 0 {
                break;
            }
            let removed = self.store.purge_ended(before(retention.min_age), most).await?;
            swept.removed += removed;
            if removed == 0 {
                break;
            }
        }
        // Counted from the message, not from the task's end: no record goes before its task has.
        let oldest = before(retention.ended.saturating_add(retention.records));
        loop {
            let records = self.store.purge_records(oldest, BATCH).await?;
            swept.records += records;
            if records < u64::from(BATCH) {
                break;
            }
        }
        Ok(swept)
    }
}
