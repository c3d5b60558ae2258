//! Reads one task's log from a number on, and waits for more.

use std::collections::VecDeque;
use std::sync::Arc;

use baton_protocol::domain::{Scope, TaskId};

use super::commit::WatchedStore;
use super::hub::{Bell, Heard};
use crate::store::{StoreError, StoredEvent};

/// Events taken at once: from the bell for nothing, from the store with one call.
const BATCH: usize = 256;

#[derive(Debug)]
pub(crate) struct LogReader {
    pub(crate) store: WatchedStore,
    pub(crate) bell: Arc<Bell>,
    pub(crate) scope: Scope,
    pub(crate) id: TaskId,
    /// Number of the last event given out.
    pub(crate) after: u64,
    ready: VecDeque<StoredEvent>,
}

impl LogReader {
    pub(crate) fn new(store: WatchedStore, bell: Arc<Bell>, scope: Scope, id: TaskId, after: u64) -> Self {
        LogReader { store, bell, scope, id, after, ready: VecDeque::new() }
    }

    /// The next event; waits for it as long as it takes. Safe to drop between two events.
    pub(crate) async fn next(&mut self) -> Result<StoredEvent, StoreError> {
        loop {
            let rings = self.bell.rings();
            if let Some(event) = self.next_or_ring(rings).await? {
                return Ok(event);
            }
        }
    }

    /// The next event; `None` when there is none and the bell has been rung since `rings`.
    pub(crate) async fn next_or_ring(&mut self, rings: u64) -> Result<Option<StoredEvent>, StoreError> {
        if self.ready.is_empty() {
            self.ready = match self.bell.heard(self.after, BATCH)? {
                Heard::Events(events) => events.into(),
                Heard::Nothing => VecDeque::new(),
                Heard::AskStore => {
                    self.store.events(&self.scope, &self.id, self.after, BATCH as u32).await?.into()
                }
            };
        }
        let event = self.take();
        if event.is_none() {
            self.bell.rung_since(rings).await;
        }
        Ok(event)
    }

    /// The next event if it is at hand: lets a stream put many small events into one write.
    pub(crate) fn at_hand(&mut self) -> Option<StoredEvent> {
        self.fetch();
        self.take()
    }

    /// How many events come next without waiting, as far as is known, and how many bytes they have.
    pub(crate) fn ahead(&mut self) -> (usize, usize) {
        self.fetch();
        (self.ready.len(), self.ready.iter().map(|event| event.record().len()).sum())
    }

    fn fetch(&mut self) {
        if self.ready.is_empty()
            && let Ok(Heard::Events(events)) = self.bell.heard(self.after, BATCH)
        {
            self.ready = events.into();
        }
    }

    fn take(&mut self) -> Option<StoredEvent> {
        let event = self.ready.pop_front()?;
        debug_assert_eq!(event.number, self.after + 1, "the log has no gap");
        self.after = event.number;
        Some(event)
    }
}
