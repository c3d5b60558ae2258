//! Bells wake the readers of a task when events have been committed; the readers then read the log.
//!
//! A bell also keeps the newest committed events, so that readers that keep up need not ask the store. It is a cache, not
//! a channel: a reader that falls behind reads from the store instead. So a slow reader loses no events, gets them in
//! order, and blocks nobody.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use tokio::sync::Notify;

use super::view::View;
use crate::encoding::Encoding;
use crate::store::{EVENTS_BYTES, StoreError, StoredEvent, TaskKey};

/// Newest events kept per bell, by number and by size.
#[derive(Debug, Clone, Copy)]
pub(super) struct TailLimits {
    pub(super) events: usize,
    pub(super) bytes: usize,
}

const SHARDS: usize = 16;

/// Finds the bell of a task that has a run or readers.
#[derive(Debug)]
pub(crate) struct Hub {
    tail: TailLimits,
    shards: [Mutex<HashMap<TaskKey, Weak<Bell>>>; SHARDS],
}

/// The bell of one task. The hub holds it weakly: it exists as long as a run or a reader holds it.
#[derive(Debug)]
pub(crate) struct Bell {
    key: TaskKey,
    tail: TailLimits,
    state: Mutex<State>,
    rung: Notify,
    hub: Weak<Hub>,
}

#[derive(Debug, Default)]
struct State {
    /// The task's version after the last commit; 0 if this bell has not seen a commit yet.
    version: u64,
    tail: VecDeque<StoredEvent>,
    tail_bytes: usize,
    /// The task at the end of the last turn.
    at_turn_end: Option<View>,
    /// The run gave up writing; readers get this error, so that they do not wait for ever.
    error: Option<StoreError>,
    /// Events of the tail in other encodings than the stored form. Each is encoded once for all readers.
    encodings: HashMap<(u64, Encoding), Bytes>,
    /// How often the bell has rung, so that a waiter notices a ring that it did not wait for.
    rings: u64,
}

impl State {
    /// The newest events that fit. Others and their forms are forgotten.
    fn keep(&mut self, events: &[StoredEvent], most: TailLimits) {
        // Of a long append only the end can stay.
        let (mut from, mut bytes) = (events.len(), 0);
        while from > 0 && events.len() - from < most.events {
            bytes += events[from - 1].record().len();
            if bytes > most.bytes && from < events.len() {
                break;
            }
            from -= 1;
        }
        if from > 0 {
            self.forget();
        }
        for event in &events[from..] {
            self.tail_bytes += event.record().len();
            self.tail.push_back(event.clone());
        }
        while self.tail.len() > most.events || (self.tail_bytes > most.bytes && self.tail.len() > 1) {
            let Some(dropped) = self.tail.pop_front() else { break };
            self.tail_bytes -= dropped.record().len();
            if !self.encodings.is_empty() {
                for encoding in Encoding::all() {
                    self.encodings.remove(&(dropped.number, encoding));
                }
            }
        }
    }

    fn forget(&mut self) {
        self.tail.clear();
        self.tail_bytes = 0;
        self.encodings.clear();
    }
}

/// What a bell knows about the events after a number.
pub(crate) enum Cached {
    /// The next events, without a gap.
    Events(Vec<StoredEvent>),
    /// There are none.
    Nothing,
    /// There may be events that are not in the tail: ask the store.
    AskStore,
}

impl Hub {
    pub(super) fn new(tail: TailLimits) -> Arc<Self> {
        Arc::new(Hub { tail, shards: Default::default() })
    }

    fn shard(&self, key: TaskKey) -> MutexGuard<'_, HashMap<TaskKey, Weak<Bell>>> {
        let shard = &self.shards[(key.0 % SHARDS as u64) as usize];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The task's bell; made now if there is none.
    pub(crate) fn bell(self: &Arc<Self>, key: TaskKey) -> Arc<Bell> {
        let mut shard = self.shard(key);
        if let Some(bell) = shard.get(&key).and_then(Weak::upgrade) {
            return bell;
        }
        let (tail, hub) = (self.tail, Arc::downgrade(self));
        let bell = Arc::new(Bell { key, tail, state: Mutex::default(), rung: Notify::new(), hub });
        shard.insert(key, Arc::downgrade(&bell));
        bell
    }

    /// Wakes all waiters.
    pub(crate) fn wake_all(&self) {
        for shard in &self.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let bells: Vec<_> = shard.values().filter_map(Weak::upgrade).collect();
            // Unlocked first: dropping the last handle of a bell locks the shard to remove it.
            drop(shard);
            bells.iter().for_each(|bell| bell.wake());
        }
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        let Some(hub) = self.hub.upgrade() else { return };
        let mut shard = hub.shard(self.key);
        // There may be a new bell for the task already.
        if shard.get(&self.key).is_some_and(|bell| bell.strong_count() == 0) {
            shard.remove(&self.key);
        }
    }
}

impl Bell {
    pub(crate) fn key(&self) -> TaskKey {
        self.key
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes readers after a commit. `at_turn_end` is the task, if these events ended or interrupted a turn.
    pub(crate) fn ring(&self, version: u64, events: &[StoredEvent], at_turn_end: Option<View>) {
        {
            let mut state = self.state();
            if state.version != 0 && events.first().is_some_and(|event| event.number != state.version + 1) {
                // Another writer committed in between: the tail would have a gap.
                state.forget();
            }
            state.version = version;
            state.rings += 1;
            state.error = None;
            state.keep(events, self.tail);
            if at_turn_end.is_some() {
                state.at_turn_end = at_turn_end;
            }
        }
        self.rung.notify_waiters();
    }

    /// Tells readers that the run gave up writing.
    pub(crate) fn fail(&self, error: StoreError) {
        {
            let mut state = self.state();
            state.error = Some(error);
            state.rings += 1;
        }
        self.rung.notify_waiters();
    }

    /// Another process may have written the task: the tail may be out of date, so readers have to ask the store.
    pub(crate) fn written_elsewhere(&self) {
        {
            let mut state = self.state();
            state.forget();
            state.version = 0;
            state.at_turn_end = None;
            state.rings += 1;
        }
        self.rung.notify_waiters();
    }

    /// Wakes readers although nothing was committed.
    pub(crate) fn wake(&self) {
        self.state().rings += 1;
        self.rung.notify_waiters();
    }

    pub(crate) fn cached(&self, after: u64, most: usize) -> Result<Cached, StoreError> {
        let state = self.state();
        if let Some(error) = &state.error {
            return Err(error.clone());
        }
        if state.version == 0 {
            return Ok(Cached::AskStore);
        }
        if after >= state.version {
            return Ok(Cached::Nothing);
        }
        match state.tail.front() {
            Some(first) if first.number <= after + 1 => {
                let skip = (after + 1 - first.number) as usize;
                // Limited, since a slow reader may hold these events long after they have left the tail.
                let mut bytes = 0;
                let next = state.tail.iter().skip(skip).take(most).take_while(|event| {
                    let first = bytes == 0;
                    bytes += event.record().len();
                    first || bytes <= EVENTS_BYTES
                });
                Ok(Cached::Events(next.cloned().collect()))
            }
            _ => Ok(Cached::AskStore),
        }
    }

    /// The event in another encoding; `make` encodes it unless another reader has done so before.
    pub(crate) fn encoded<E>(
        &self,
        number: u64,
        encoding: Encoding,
        make: impl FnOnce() -> Result<Bytes, E>,
    ) -> Result<Bytes, E> {
        if let Some(encoded) = self.state().encodings.get(&(number, encoding)) {
            return Ok(encoded.clone());
        }
        let encoded = make()?;
        let mut state = self.state();
        if state.tail.front().is_some_and(|first| first.number <= number) {
            state.encodings.insert((number, encoding), encoded.clone());
        }
        Ok(encoded)
    }

    /// The task at the end of the last turn, if that was at `version` or later.
    pub(crate) fn at_turn_end(&self, version: u64) -> Option<View> {
        self.state().at_turn_end.clone().filter(|view| view.version() >= version)
    }

    pub(crate) fn rings(&self) -> u64 {
        self.state().rings
    }

    /// Waits until the bell rings after `seen` rings.
    pub(crate) async fn rung_since(&self, seen: u64) {
        loop {
            let rung = self.rung.notified();
            tokio::pin!(rung);
            // Registered before the check: a ring between the check and the wait is not missed.
            rung.as_mut().enable();
            if self.rings() != seen {
                return;
            }
            rung.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;

    use super::*;
    use baton_protocol::domain::{ContextId, Event, EventBody, StatusUpdate, TaskId, TaskState, Timestamp};

    #[test]
    fn p04_an_event_is_spelled_once_however_many_watch() {
        let (task, context) = (TaskId::parse("t").unwrap(), ContextId::parse("c").unwrap());
        let update = StatusUpdate { state: TaskState::Working, message: None, metadata: None };
        let at = Timestamp::from_millis(0);
        let event = |number| {
            let body = EventBody::Status(update.clone());
            StoredEvent::encode(&task, &context, &Event { number, at, body })
        };
        let events = 1024;
        let hub = Hub::new(TailLimits { events, bytes: 256 * 1024 });
        let bell = hub.bell(TaskKey(1));
        bell.ring(1, &[event(1)], None);
        let made = Cell::new(0);
        let spell = |number, encoding| {
            let make = || {
                made.set(made.get() + 1);
                Ok::<_, Infallible>(Bytes::from(format!("{encoding:?} {number}")))
            };
            bell.encoded(number, encoding, make).unwrap()
        };
        for _ in 0..100 {
            for encoding in Encoding::all() {
                assert_eq!(spell(1, encoding), format!("{encoding:?} 1"));
            }
        }
        assert_eq!(made.get(), Encoding::all().count(), "once per encoding");
        // The encodings are removed together with the event.
        for number in 2..events as u64 + 2 {
            bell.ring(number, &[event(number)], None);
        }
        assert!(bell.state().encodings.is_empty());
    }
}
