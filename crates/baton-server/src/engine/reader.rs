//! Reads one task's log from a number on, and waits for more.

use std::collections::VecDeque;
use std::sync::Arc;

use baton_protocol::Error;
use baton_protocol::domain::{Scope, TaskId};

use super::commit::WatchedStore;
use super::hub::{Bell, Heard};
use super::view::View;
use super::{from_store, not_found};
use crate::store::{StoreError, StoredEvent};

/// Events taken at once: from the bell for nothing, from the store with one call.
const BATCH: usize = 256;

/// What a reader finds.
#[derive(Debug)]
pub(crate) enum Read {
    Event(StoredEvent),
    /// No event yet.
    Nothing,
    /// The next event is no longer in the log: it was folded into the task, or the task was removed.
    Gone,
}

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
    pub(crate) async fn next(&mut self) -> Result<Read, StoreError> {
        loop {
            let rings = self.bell.rings();
            match self.next_or_ring(rings).await? {
                Read::Nothing => {}
                read => return Ok(read),
            }
        }
    }

    /// The next event; [`Read::Nothing`] when there is none and the bell has been rung since `rings`.
    pub(crate) async fn next_or_ring(&mut self, rings: u64) -> Result<Read, StoreError> {
        if self.ready.is_empty() {
            match self.bell.heard(self.after, BATCH)? {
                Heard::Events(events) => self.ready = events.into(),
                Heard::Nothing => {}
                Heard::AskStore => match self.ask_store().await? {
                    Some(events) => self.ready = events.into(),
                    None => return Ok(Read::Gone),
                },
            }
        }
        if let Some(event) = self.take() {
            return Ok(Read::Event(event));
        }
        self.bell.rung_since(rings).await;
        Ok(Read::Nothing)
    }

    /// The next events of the log, none if all have been read. `None`: they are not in the log any more. A log that
    /// has nothing for this reader will not get it by waiting, so the head decides which of the two it is.
    async fn ask_store(&self) -> Result<Option<Vec<StoredEvent>>, StoreError> {
        loop {
            let events = self.store.events(&self.scope, &self.id, self.after, BATCH as u32).await?;
            if let Some(first) = events.first() {
                return Ok((first.number == self.after + 1).then_some(events));
            }
            match self.store.head(&self.scope, &self.id).await? {
                // Removed; another task may have been given its id since.
                None => return Ok(None),
                Some(head) if head.key != self.bell.key() || head.folded_through > self.after => {
                    return Ok(None);
                }
                Some(head) if head.version <= self.after => return Ok(Some(events)),
                // Appended between the two looks.
                Some(_) => {}
            }
        }
    }

    /// The task as it is now; what is read next comes after it. For a reader whose next event is gone.
    pub(crate) async fn skip_to_now(&mut self) -> Result<View, Error> {
        let loaded = self.store.load(&self.scope, &self.id).await.map_err(from_store)?;
        let loaded = loaded.filter(|loaded| loaded.head.key == self.bell.key());
        let view = View::of(&loaded.ok_or_else(|| not_found(&self.id))?).map_err(from_store)?;
        self.after = view.version();
        Ok(view)
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
