//! Work on large tasks is done on a thread of its own: reading or writing a hundred MiB of JSON takes a good part of a
//! second, in which a worker thread serves hundreds of others.

use std::sync::Arc;

use baton_protocol::lifecycle::Snapshot;
use tokio::task::spawn_blocking;

use super::view::View;
use crate::store::{Loaded, StoreError, StoreResult, StoredSnapshot, record};

/// From this many bytes of records on, a task is large.
pub(super) const LARGE: usize = 256 * 1024;

/// The task that was loaded, folded. What it was folded from is given back.
pub(super) async fn fold(loaded: Loaded) -> StoreResult<(Loaded, Snapshot)> {
    let fold = |loaded: Loaded| record::fold(&loaded).map(|snapshot| (loaded, snapshot));
    if is_large(&loaded) { apart(move || fold(loaded)).await? } else { fold(loaded) }
}

/// The task that was loaded, to be shown.
pub(super) async fn view(loaded: Loaded) -> StoreResult<View> {
    if loaded.tail.is_empty() || !is_large(&loaded) {
        return View::of(&loaded);
    }
    apart(move || View::of(&loaded)).await?
}

/// The record of a folded task that has about so many bytes.
pub(super) async fn encode(snapshot: &Arc<Snapshot>, about: usize) -> StoreResult<StoredSnapshot> {
    if about < LARGE {
        return Ok(StoredSnapshot::encode(snapshot));
    }
    let snapshot = Arc::clone(snapshot);
    apart(move || StoredSnapshot::encode(&snapshot)).await
}

fn is_large(loaded: &Loaded) -> bool {
    let kept = loaded.snapshot.as_ref().map_or(0, |snapshot| snapshot.record().len());
    let mut bytes = kept;
    loaded.tail.iter().any(|event| {
        bytes += event.record().len();
        bytes >= LARGE
    }) || bytes >= LARGE
}

async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> StoreResult<T> {
    // Fails only where threads are no longer started, or where the work panicked.
    spawn_blocking(work).await.map_err(|error| StoreError::Unavailable(error.to_string()))
}
