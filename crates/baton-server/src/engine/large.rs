//! Runs work on large tasks on a blocking thread: reading or writing a hundred MiB of JSON takes a good part of a second, in
//! which a worker thread could serve hundreds of other tasks.

use std::sync::Arc;

use baton_protocol::lifecycle::Snapshot;
use tokio::task::spawn_blocking;

use super::view::View;
use crate::store::{Loaded, StoreError, StoreResult, StoredSnapshot, record};

/// From this many bytes of records on, a task is large.
pub(super) const LARGE: usize = 256 * 1024;

/// Does work that reads or writes this many bytes of records; on a blocking thread if they are many.
pub(crate) async fn work<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> StoreResult<T> {
    if bytes < LARGE { Ok(work()) } else { on_blocking_thread(work).await }
}

/// Folds a loaded task; returns it with what it was folded from.
pub(crate) async fn fold(loaded: Loaded) -> StoreResult<(Loaded, Snapshot)> {
    work(loaded.bytes(), move || record::fold(&loaded).map(|snapshot| (loaded, snapshot))).await?
}

/// A view of a loaded task.
pub(super) async fn view(loaded: Loaded) -> StoreResult<View> {
    let bytes = if loaded.tail.is_empty() { 0 } else { loaded.bytes() };
    work(bytes, move || View::of(&loaded)).await?
}

/// Encodes a folded task of about this many bytes.
pub(super) async fn encode(snapshot: &Arc<Snapshot>, about: usize) -> StoreResult<StoredSnapshot> {
    if about < LARGE {
        return Ok(StoredSnapshot::encode(snapshot));
    }
    let snapshot = Arc::clone(snapshot);
    on_blocking_thread(move || StoredSnapshot::encode(&snapshot)).await
}

async fn on_blocking_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> StoreResult<T> {
    // Fails only if the runtime is shutting down, or if the work panicked.
    spawn_blocking(work).await.map_err(|error| StoreError::unavailable(error.to_string()))
}
