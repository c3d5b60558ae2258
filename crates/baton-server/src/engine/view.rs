//! A task as it was read: folded, as it is stored, or both. Whoever speaks 1.0 and wants the whole task gets what is
//! stored, unread; the others get it folded.

use std::sync::Arc;

use baton_protocol::Error;
use baton_protocol::lifecycle::Snapshot;
use bytes::Bytes;

use super::large::LARGE;
use super::{from_store, size};
use crate::store::{Loaded, StoreError, StoredSnapshot, record};

/// A task as of one moment.
#[derive(Debug, Clone)]
pub struct View(Form);

#[derive(Debug, Clone)]
enum Form {
    Folded(Arc<Snapshot>),
    Stored(StoredSnapshot),
    Both(Arc<Snapshot>, StoredSnapshot),
}

impl View {
    pub(super) fn of(loaded: &Loaded) -> Result<Self, StoreError> {
        match &loaded.snapshot {
            Some(stored) if stored.version() == loaded.head.version => Ok(View(Form::Stored(stored.clone()))),
            _ => Ok(View::from(Arc::new(record::fold(loaded)?))),
        }
    }

    /// The task as a turn left it, and as that was stored.
    pub(super) fn left(snapshot: Arc<Snapshot>, stored: Option<StoredSnapshot>) -> Self {
        View(match stored {
            // Two forms of a large task are one too many to hold.
            Some(stored) if stored.version() == snapshot.version && stored.record().len() < LARGE => {
                Form::Both(snapshot, stored)
            }
            _ => Form::Folded(snapshot),
        })
    }

    /// Number of the last event in it.
    pub fn version(&self) -> u64 {
        match &self.0 {
            Form::Folded(snapshot) | Form::Both(snapshot, _) => snapshot.version,
            Form::Stored(stored) => stored.version(),
        }
    }

    /// About how many bytes it has.
    pub(crate) fn bytes(&self) -> usize {
        match &self.0 {
            Form::Stored(stored) | Form::Both(_, stored) => stored.record().len(),
            Form::Folded(snapshot) => size::of_task(&snapshot.task),
        }
    }

    /// The task as 1.0 spells it, where that need not be made.
    pub fn v1_json(&self) -> Option<Bytes> {
        match &self.0 {
            Form::Folded(_) => None,
            Form::Stored(stored) | Form::Both(_, stored) => stored.task_json(),
        }
    }

    /// The task itself.
    pub fn snapshot(self) -> Result<Arc<Snapshot>, Error> {
        match self.0 {
            Form::Folded(snapshot) | Form::Both(snapshot, _) => Ok(snapshot),
            Form::Stored(stored) => Ok(Arc::new(stored.decode().map_err(from_store)?)),
        }
    }
}

impl From<Arc<Snapshot>> for View {
    fn from(snapshot: Arc<Snapshot>) -> Self {
        View(Form::Folded(snapshot))
    }
}
