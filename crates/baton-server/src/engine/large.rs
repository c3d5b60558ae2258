//! Work on large tasks is done on a thread of its own: reading or writing a hundred MiB of JSON takes a good part of a
//! second, in which a worker thread serves hundreds of others.

use std::sync::Arc;

use baton_protocol::lifecycle::Snapshot;
use tokio::task::spawn_blocking;

use super::view::View;
use crate::store::{Loaded, StoreError, StoreResult, StoredSnapshot, record};

/// From this many bytes of records on, a task is large.
pub(super) const LARGE: usize = 256 * 1024;

/// Work that reads or writes so many bytes of records.
pub(crate) async fn work<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> StoreResult<T> {
    if bytes < LARGE { Ok(work()) } else { apart(work).await }
}

/// The task that was loaded, folded. What it was folded from is given back.
pub(super) async fn fold(loaded: Loaded) -> StoreResult<(Loaded, Snapshot)> {
    work(loaded.bytes(), move || record::fold(&loaded).map(|snapshot| (loaded, snapshot))).await?
}

/// The task that was loaded, to be shown.
pub(super) async fn view(loaded: Loaded) -> StoreResult<View> {
    let bytes = if loaded.tail.is_empty() { 0 } else { loaded.bytes() };
    work(bytes, move || View::of(&loaded)).await?
}

/// The record of a folded task that has about so many bytes.
pub(super) async fn encode(snapshot: &Arc<Snapshot>, about: usize) -> StoreResult<StoredSnapshot> {
    if about < LARGE {
        return Ok(StoredSnapshot::encode(snapshot));
    }
    let snapshot = Arc::clone(snapshot);
    apart(move || StoredSnapshot::encode(&snapshot)).await
}

async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> StoreResult<T> {
    // Fails only where threads are no longer started, or where the work panicked.
    spawn_blocking(work).await.map_err(|error| StoreError::Unavailable(error.to_string()))
}
