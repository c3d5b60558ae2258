//! A task as it was read: as its stored bytes, folded, or both. For a dialect that is the stored form the stored bytes are
//! sent without parsing them; the others need the folded task.

use std::sync::Arc;

use baton_protocol::Error;
use baton_protocol::lifecycle::Snapshot;
use bytes::Bytes;

use super::large::LARGE;
use super::{from_store, size};
use crate::store::{Loaded, StoreError, StoredSnapshot, record};

/// A task at one version.
#[derive(Debug, Clone)]
pub(crate) struct View(Repr);

#[derive(Debug, Clone)]
enum Repr {
    Folded(Arc<Snapshot>),
    Stored(StoredSnapshot),
    Both(Arc<Snapshot>, StoredSnapshot),
}

impl View {
    pub(super) fn of(loaded: &Loaded) -> Result<Self, StoreError> {
        match &loaded.snapshot {
            Some(stored) if stored.version() == loaded.head.version => Ok(View(Repr::Stored(stored.clone()))),
            _ => Ok(View::from(Arc::new(record::fold(loaded)?))),
        }
    }

    /// The task at the end of a turn, with the snapshot that was stored of it, if one was.
    pub(super) fn left(snapshot: Arc<Snapshot>, stored: Option<StoredSnapshot>) -> Self {
        View(match stored {
            // Of a large task only one of the two is kept in memory.
            Some(stored) if stored.version() == snapshot.version && stored.record().len() < LARGE => {
                Repr::Both(snapshot, stored)
            }
            _ => Repr::Folded(snapshot),
        })
    }

    /// The number of its last event.
    pub(crate) fn version(&self) -> u64 {
        match &self.0 {
            Repr::Folded(snapshot) | Repr::Both(snapshot, _) => snapshot.version,
            Repr::Stored(stored) => stored.version(),
        }
    }

    /// About how many bytes it has.
    pub(crate) fn bytes(&self) -> usize {
        match &self.0 {
            Repr::Stored(stored) | Repr::Both(_, stored) => stored.record().len(),
            Repr::Folded(snapshot) => size::of_task(&snapshot.task),
        }
    }

    /// The task's JSON in the stored form, if it need not be encoded first.
    pub(crate) fn stored_json(&self) -> Option<Bytes> {
        match &self.0 {
            Repr::Folded(_) => None,
            Repr::Stored(stored) | Repr::Both(_, stored) => stored.task_json(),
        }
    }

    /// The folded task.
    pub(crate) fn snapshot(self) -> Result<Arc<Snapshot>, Error> {
        match self.0 {
            Repr::Folded(snapshot) | Repr::Both(snapshot, _) => Ok(snapshot),
            Repr::Stored(stored) => Ok(Arc::new(stored.decode().map_err(from_store)?)),
        }
    }
}

impl From<Arc<Snapshot>> for View {
    fn from(snapshot: Arc<Snapshot>) -> Self {
        View(Repr::Folded(snapshot))
    }
}
