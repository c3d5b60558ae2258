//! The doorbell: "task X is at 17". Readers read the log.
//!
//! A bell also keeps the newest committed events, so that readers who keep up need not ask the store. It is
//! a cache of what the store has accepted, never a pipe: a reader that falls behind it reads the log, so a
//! slow one can lose, reorder and block nothing.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use baton_protocol::wire::dialect::Dialect;
use bytes::Bytes;
use tokio::sync::Notify;

use super::view::View;
use crate::own_keys::OwnKeys;
use crate::store::{EVENTS_BYTES, StoreError, StoredEvent, TaskKey};

/// Newest events kept per bell, by number and by size.
const TAIL_EVENTS: usize = 1024;
const TAIL_BYTES: usize = 256 * 1024;

const SHARDS: usize = 16;

/// Finds the bell of a task that somebody runs or watches.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    shards: [Mutex<OwnKeys<TaskKey, Weak<Bell>>>; SHARDS],
}

/// One task's doorbell. Lives as long as somebody holds it.
#[derive(Debug)]
pub(crate) struct Bell {
    key: TaskKey,
    state: Mutex<State>,
    rung: Notify,
    hub: Weak<Hub>,
}

#[derive(Debug, Default)]
struct State {
    /// Version after the last ring; 0 when this bell has heard nothing yet.
    version: u64,
    tail: VecDeque<StoredEvent>,
    tail_bytes: usize,
    /// The task as the last finished turn left it.
    settled: Option<View>,
    /// The run could not write; waiters must not hang on it.
    trouble: Option<StoreError>,
    /// Events of the tail in other spellings than the stored one: each is made once, however many watch.
    forms: HashMap<(u64, Dialect), Bytes>,
    /// Counts rings, so that a waiter can tell "nothing new" from "look again".
    rings: u64,
}

impl State {
    /// The newest events that fit. Others and their forms are forgotten.
    fn keep(&mut self, events: &[StoredEvent]) {
        // Of a long append only the end can stay.
        let (mut from, mut bytes) = (events.len(), 0);
        while from > 0 && events.len() - from < TAIL_EVENTS {
            bytes += events[from - 1].record().len();
            if bytes > TAIL_BYTES && from < events.len() {
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
        while self.tail.len() > TAIL_EVENTS || (self.tail_bytes > TAIL_BYTES && self.tail.len() > 1) {
            let Some(dropped) = self.tail.pop_front() else { break };
            self.tail_bytes -= dropped.record().len();
            if !self.forms.is_empty() {
                for dialect in [Dialect::V0_3, Dialect::V0_3Rest, Dialect::V0_1] {
                    self.forms.remove(&(dropped.number, dialect));
                }
            }
        }
    }

    fn forget(&mut self) {
        self.tail.clear();
        self.tail_bytes = 0;
        self.forms.clear();
    }
}

/// What a bell knows about the events after a number.
pub(crate) enum Heard {
    /// These are the next ones, without a gap.
    Events(Vec<StoredEvent>),
    /// Nothing after that number has been committed since the bell was hung.
    Nothing,
    /// There may be events that are not in the tail: ask the store.
    AskStore,
}

impl Hub {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    fn shard(&self, key: TaskKey) -> MutexGuard<'_, OwnKeys<TaskKey, Weak<Bell>>> {
        let shard = &self.shards[(key.0 % SHARDS as u64) as usize];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The task's bell, hung now if there is none.
    pub(crate) fn bell(self: &Arc<Self>, key: TaskKey) -> Arc<Bell> {
        let mut shard = self.shard(key);
        if let Some(bell) = shard.get(&key).and_then(Weak::upgrade) {
            return bell;
        }
        let bell =
            Arc::new(Bell { key, state: Mutex::default(), rung: Notify::new(), hub: Arc::downgrade(self) });
        shard.insert(key, Arc::downgrade(&bell));
        bell
    }

    /// Wakes all waiters.
    pub(crate) fn nudge_all(&self) {
        for shard in &self.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let bells: Vec<_> = shard.values().filter_map(Weak::upgrade).collect();
            // A bell that is let go of takes itself out of the shard.
            drop(shard);
            bells.iter().for_each(|bell| bell.nudge());
        }
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        let Some(hub) = self.hub.upgrade() else { return };
        let mut shard = hub.shard(self.key);
        // A new bell may hang there already.
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

    /// Tells of committed events. `settled` is the task when these events ended or interrupted a turn.
    pub(crate) fn ring(&self, version: u64, events: &[StoredEvent], settled: Option<View>) {
        {
            let mut state = self.state();
            if state.version != 0 && events.first().is_some_and(|event| event.number != state.version + 1) {
                // Another path committed in between: what is kept no longer joins up.
                state.forget();
            }
            state.version = version;
            state.rings += 1;
            state.trouble = None;
            state.keep(events);
            if settled.is_some() {
                state.settled = settled;
            }
        }
        self.rung.notify_waiters();
    }

    /// Tells waiters that the run cannot write.
    pub(crate) fn trouble(&self, error: StoreError) {
        {
            let mut state = self.state();
            state.trouble = Some(error);
            state.rings += 1;
        }
        self.rung.notify_waiters();
    }

    /// Somebody else may have written the task: what is kept here may be old, so readers ask the store.
    pub(crate) fn doubt(&self) {
        {
            let mut state = self.state();
            state.forget();
            state.version = 0;
            state.settled = None;
            state.rings += 1;
        }
        self.rung.notify_waiters();
    }

    /// Wakes waiters though nothing was committed.
    pub(crate) fn nudge(&self) {
        self.state().rings += 1;
        self.rung.notify_waiters();
    }

    pub(crate) fn heard(&self, after: u64, most: usize) -> Result<Heard, StoreError> {
        let state = self.state();
        if let Some(error) = &state.trouble {
            return Err(error.clone());
        }
        if state.version == 0 {
            return Ok(Heard::AskStore);
        }
        if after >= state.version {
            return Ok(Heard::Nothing);
        }
        match state.tail.front() {
            Some(first) if first.number <= after + 1 => {
                let skip = (after + 1 - first.number) as usize;
                // A reader keeps what it was given, long after the tail has moved on.
                let mut bytes = 0;
                let next = state.tail.iter().skip(skip).take(most).take_while(|event| {
                    let first = bytes == 0;
                    bytes += event.record().len();
                    first || bytes <= EVENTS_BYTES
                });
                Ok(Heard::Events(next.cloned().collect()))
            }
            _ => Ok(Heard::AskStore),
        }
    }

    /// The event in another spelling, made by `make` unless somebody else did before.
    pub(crate) fn form<E>(
        &self,
        number: u64,
        dialect: Dialect,
        make: impl FnOnce() -> Result<Bytes, E>,
    ) -> Result<Bytes, E> {
        if let Some(form) = self.state().forms.get(&(number, dialect)) {
            return Ok(form.clone());
        }
        let form = make()?;
        let mut state = self.state();
        if state.tail.front().is_some_and(|first| first.number <= number) {
            state.forms.insert((number, dialect), form.clone());
        }
        Ok(form)
    }

    /// The task as of `version` or later, if a turn ended there and the bell still knows.
    pub(crate) fn settled(&self, version: u64) -> Option<View> {
        self.state().settled.clone().filter(|view| view.version() >= version)
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

    use baton_protocol::domain::{ContextId, Event, EventBody, StatusUpdate, TaskId, TaskState, Timestamp};

    use super::*;

    #[test]
    fn p04_an_event_is_spelled_once_however_many_watch() {
        let (task, context) = (TaskId::parse("t").unwrap(), ContextId::parse("c").unwrap());
        let update = StatusUpdate { state: TaskState::Working, message: None, metadata: None };
        let at = Timestamp::from_millis(0);
        let event = |number| {
            let body = EventBody::Status(update.clone());
            StoredEvent::encode(&task, &context, &Event { number, at, body })
        };
        let hub = Hub::new();
        let bell = hub.bell(TaskKey(1));
        bell.ring(1, &[event(1)], None);
        let made = Cell::new(0);
        let spell = |number, dialect| {
            let make = || {
                made.set(made.get() + 1);
                Ok::<_, Infallible>(Bytes::from(format!("{dialect:?} {number}")))
            };
            bell.form(number, dialect, make).unwrap()
        };
        for _ in 0..100 {
            for dialect in [Dialect::V0_1, Dialect::V0_3, Dialect::V0_3Rest] {
                assert_eq!(spell(1, dialect), format!("{dialect:?} 1"));
            }
        }
        assert_eq!(made.get(), 3, "once per dialect");
        // Gone with the event itself: a bell remembers no more than its tail.
        for number in 2..TAIL_EVENTS as u64 + 2 {
            bell.ring(number, &[event(number)], None);
        }
        assert!(bell.state().forms.is_empty());
    }
}
