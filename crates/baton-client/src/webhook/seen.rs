//! The events that a receiver has seen.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::WebhookError;

/// Most events that are remembered; the oldest are forgotten first.
const MAX_EVENTS: usize = 100_000;

/// A part of the id's hash: ids may be long, and senders choose them.
type Key = [u8; 16];

#[derive(Debug, Default)]
pub(super) struct Seen(Mutex<Events>);

#[derive(Debug, Default)]
struct Events {
    states: HashMap<Key, State>,
    /// In the order in which they were seen. One that was released is still in here, with another number.
    order: VecDeque<(Key, u64)>,
    count: u64,
}

#[derive(Debug, Clone, Copy)]
struct State {
    /// In seconds since 1970.
    seen: u64,
    is_done: bool,
    number: u64,
}

/// An event that is being handled. It is released when this is dropped.
#[derive(Debug)]
pub(super) struct Held {
    seen: Arc<Seen>,
    key: Key,
    number: u64,
    is_done: bool,
}

impl Seen {
    /// Takes an event, unless it was seen within the last while.
    pub(super) fn hold(
        self: &Arc<Self>,
        id: &str,
        now: u64,
        remembered: Duration,
    ) -> Result<Held, WebhookError> {
        let mut key = Key::default();
        key.copy_from_slice(&Sha256::digest(id.as_bytes())[..size_of::<Key>()]);
        let mut events = self.lock();
        let is_known = |state: &&State| state.seen.saturating_add(remembered.as_secs()) >= now;
        match events.states.get(&key).filter(is_known) {
            Some(State { is_done: true, .. }) => return Err(WebhookError::Duplicate),
            Some(State { is_done: false, .. }) => return Err(WebhookError::InProgress),
            None => {}
        }
        events.forget_old(now, remembered);
        events.count += 1;
        let number = events.count;
        events.states.insert(key, State { seen: now, is_done: false, number });
        events.order.push_back((key, number));
        Ok(Held { seen: Arc::clone(self), key, number, is_done: false })
    }

    fn lock(&self) -> MutexGuard<'_, Events> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Events {
    fn forget_old(&mut self, now: u64, remembered: Duration) {
        while let Some((key, number)) = self.order.front().copied() {
            let state = self.states.get(&key).filter(|state| state.number == number);
            let is_old = state.is_none_or(|state| state.seen.saturating_add(remembered.as_secs()) < now);
            if !is_old && self.order.len() < MAX_EVENTS {
                return;
            }
            if state.is_some() {
                self.states.remove(&key);
            }
            self.order.pop_front();
        }
    }
}

impl Held {
    pub(super) fn done(mut self) {
        self.is_done = true;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut events = self.seen.lock();
        let Some(state) = events.states.get_mut(&self.key).filter(|state| state.number == self.number) else {
            return;
        };
        if self.is_done {
            state.is_done = true;
        } else {
            events.states.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN_MINUTES: Duration = Duration::from_secs(600);

    #[test]
    fn an_event_is_known_for_a_while() {
        let seen = Arc::new(Seen::default());
        let hold = |now| seen.hold("a", now, TEN_MINUTES).map(Held::done);
        hold(1000).unwrap();
        assert_eq!(hold(1600), Err(WebhookError::Duplicate));
        hold(1601).unwrap();
        // A clock that is set back does not make it new.
        assert_eq!(hold(10), Err(WebhookError::Duplicate));
    }

    #[test]
    fn what_was_not_handled_is_new_again() {
        let seen = Arc::new(Seen::default());
        let first = seen.hold("a", 0, TEN_MINUTES).unwrap();
        assert_eq!(seen.hold("a", 0, TEN_MINUTES).unwrap_err(), WebhookError::InProgress);
        seen.hold("b", 0, TEN_MINUTES).unwrap().done();
        drop(first);
        seen.hold("a", 0, TEN_MINUTES).unwrap().done();
        assert_eq!(seen.hold("a", 0, TEN_MINUTES).unwrap_err(), WebhookError::Duplicate);
    }

    /// One that ends after its place was taken by a later attempt changes nothing.
    #[test]
    fn a_late_end_does_not_release_the_next_attempt() {
        let seen = Arc::new(Seen::default());
        let slow = seen.hold("a", 0, TEN_MINUTES).unwrap();
        let next = seen.hold("a", 601, TEN_MINUTES).unwrap();
        drop(slow);
        assert_eq!(seen.hold("a", 601, TEN_MINUTES).unwrap_err(), WebhookError::InProgress);
        next.done();
        assert_eq!(seen.hold("a", 601, TEN_MINUTES).unwrap_err(), WebhookError::Duplicate);
    }

    #[test]
    fn the_list_is_bounded() {
        let seen = Arc::new(Seen::default());
        for number in 0..MAX_EVENTS + 1000 {
            seen.hold(&number.to_string(), 0, TEN_MINUTES).unwrap().done();
        }
        let newest = (MAX_EVENTS + 999).to_string();
        assert_eq!(seen.hold(&newest, 0, TEN_MINUTES).unwrap_err(), WebhookError::Duplicate);
        seen.hold("0", 0, TEN_MINUTES).unwrap().done();
        let sizes = |seen: &Seen| {
            let events = seen.lock();
            (events.states.len(), events.order.len())
        };
        assert_eq!(sizes(&seen), (MAX_EVENTS, MAX_EVENTS));
        // Events that are never handled do not pile up either.
        for number in 0..2 * MAX_EVENTS {
            drop(seen.hold(&format!("x{number}"), 0, TEN_MINUTES).unwrap());
        }
        assert!(sizes(&seen).1 <= MAX_EVENTS, "{:?}", sizes(&seen));
        seen.hold("late", 10_000, TEN_MINUTES).unwrap().done();
        assert_eq!(sizes(&seen), (1, 1));
    }
}
