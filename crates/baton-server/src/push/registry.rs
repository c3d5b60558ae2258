//! The open webhooks in memory: which of them have something to deliver, and when.
//!
//! It is filled from the store at start, which also finds what a crash left undelivered, and follows every change from then
//! on. Appends ring it; while there is no webhook at all, that costs one atomic load.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use baton_protocol::domain::{PushConfigId, Scope, TaskId, Timestamp};
use tokio::sync::Notify;

use super::options::PushOptions;
use crate::store::{OpenWebhook, StoredWebhook, TaskKey, WebhookCursor, WebhookState};

/// A webhook in the whole store.
pub(crate) type Position = (TaskKey, PushConfigId);

#[derive(Debug, Default)]
pub(crate) struct Registry {
    /// How many are open; read with every append.
    open: AtomicUsize,
    state: Mutex<State>,
    /// Something is ready, or the next due time is another.
    changed: Notify,
    /// See [`PushOptions::max_failed`]. Not set while webhooks are off.
    max_failed: OnceLock<u32>,
}

#[derive(Debug, Default)]
struct State {
    tasks: HashMap<TaskKey, OfTask>,
    /// How many each owner has, with those that are being stored.
    owners: HashMap<Arc<str>, usize>,
    /// How many are being stored.
    reserved: usize,
    ready: VecDeque<Position>,
    waiting: BTreeSet<(Timestamp, TaskKey, PushConfigId)>,
}

#[derive(Debug)]
struct OfTask {
    scope: Scope,
    id: TaskId,
    /// Number of the last event, as far as is known.
    version: u64,
    webhooks: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    webhook: StoredWebhook,
    phase: Phase,
    /// Its position is in `ready`, whatever its phase: it is not looked for there when the phase changes.
    is_in_line: bool,
    /// Why its last call failed, in words for its owner. Not stored: unknown after a restart.
    failure: Option<Box<str>>,
    /// Replaced or removed while a delivery was under way; takes effect when that has ended, so that there are never two.
    after: Option<After>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Everything was delivered.
    Parked,
    /// In `ready`.
    Ready,
    /// In `waiting`, until its cursor's `due`.
    Waiting,
    /// A delivery is under way.
    Busy,
}

#[derive(Debug)]
enum After {
    Replaced(StoredWebhook),
    Removed,
}

/// Work for one webhook. The registry gives out one at a time for each.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) key: TaskKey,
    pub(crate) scope: Scope,
    pub(crate) task: TaskId,
    pub(crate) webhook: StoredWebhook,
}

/// A place for a webhook that is being stored.
#[derive(Debug)]
pub(crate) struct Reservation {
    registry: Arc<Registry>,
    owner: Arc<str>,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut state = self.registry.state();
        state.reserved -= 1;
        state.forget_one_of(&self.owner);
    }
}

/// Why a webhook cannot be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TooMany {
    /// The owner has as many as an owner may have.
    OfOwner,
    /// The server has.
    OfServer,
}

impl Registry {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a place for one more of an owner's, until the reservation is dropped: after it was put, or was not stored.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        owner: &Arc<str>,
        per_owner: usize,
        in_all: usize,
    ) -> Result<Reservation, TooMany> {
        let mut state = self.state();
        if self.open.load(Ordering::Relaxed) + state.reserved >= in_all {
            return Err(TooMany::OfServer);
        }
        if state.owners.get(owner).is_some_and(|count| *count >= per_owner) {
            return Err(TooMany::OfOwner);
        }
        state.reserved += 1;
        *state.owners.entry(Arc::clone(owner)).or_default() += 1;
        Ok(Reservation { registry: Arc::clone(self), owner: Arc::clone(owner) })
    }

    /// How many failed webhooks are kept.
    pub(crate) fn max_failed(&self) -> u32 {
        *self.max_failed.get_or_init(|| PushOptions::default().max_failed)
    }

    pub(super) fn set_max_failed(&self, most: u32) {
        let _ = self.max_failed.set(most);
    }

    /// How many are open.
    pub(crate) fn len(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Adds an open webhook, or replaces the one with its id. Those who change a webhook at the same time may come here in another
    /// order than at the store: what is older than what is known changes nothing.
    pub(crate) fn put(&self, open: OpenWebhook) {
        let OpenWebhook { key, scope, task: id, version, webhook } = open;
        let mut state = self.state();
        let of_task = state.tasks.entry(key).or_insert_with(|| OfTask {
            scope: scope.clone(),
            id,
            version,
            webhooks: Vec::new(),
        });
        of_task.version = of_task.version.max(version);
        if let Some(entry) = of_task.webhooks.iter_mut().find(|entry| entry.webhook.id == webhook.id) {
            let is_older = |known: &StoredWebhook| webhook.cursor.revision < known.cursor.revision;
            let is_late = match &entry.after {
                // It may have been removed and created again, which begins with the first revision.
                Some(After::Removed) => false,
                Some(After::Replaced(known)) => is_older(known),
                None => is_older(&entry.webhook),
            };
            if is_late {
                return;
            }
            if entry.phase == Phase::Busy {
                let was_removed =
                    matches!(entry.after.replace(After::Replaced(webhook)), Some(After::Removed));
                if was_removed {
                    *state.owners.entry(Arc::clone(&scope.owner)).or_default() += 1;
                }
                return;
            }
            let position = (key, webhook.id.clone());
            state.unschedule(&position);
            state.schedule(&position, webhook);
        } else {
            let position = (key, webhook.id.clone());
            of_task.webhooks.push(Entry {
                webhook: webhook.clone(),
                phase: Phase::Parked,
                is_in_line: false,
                failure: None,
                after: None,
            });
            *state.owners.entry(Arc::clone(&scope.owner)).or_default() += 1;
            self.open.fetch_add(1, Ordering::Relaxed);
            state.schedule(&position, webhook);
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Takes a webhook out; a delivery that is under way is the last. Its owner has the place back at once.
    pub(crate) fn remove(&self, key: TaskKey, id: &PushConfigId) {
        let mut state = self.state();
        let Some(entry) = state.entry(key, id) else { return };
        if entry.phase == Phase::Busy {
            if !matches!(entry.after.replace(After::Removed), Some(After::Removed)) {
                let owner = state.tasks.get(&key).map(|task| Arc::clone(&task.scope.owner));
                owner.iter().for_each(|owner| state.forget_one_of(owner));
            }
            return;
        }
        self.drop_entry(&mut state, key, id, true);
    }

    /// Whether the webhook of a job is still the one that was taken: neither removed nor replaced since.
    pub(crate) fn is_current(&self, key: TaskKey, id: &PushConfigId) -> bool {
        self.state().entry(key, id).is_some_and(|entry| entry.after.is_none())
    }

    /// Whether it is being delivered to, or waits for its host.
    pub(crate) fn is_busy(&self, key: TaskKey, id: &PushConfigId) -> bool {
        self.state().entry(key, id).is_some_and(|entry| entry.phase == Phase::Busy)
    }

    /// Notes why a call of it has failed, until one succeeds.
    pub(crate) fn call_failed(&self, key: TaskKey, id: &PushConfigId, why: String) {
        if let Some(entry) = self.state().entry(key, id) {
            entry.failure = Some(why.into());
        }
    }

    /// Why its last call has failed.
    pub(crate) fn failure(&self, key: TaskKey, id: &PushConfigId) -> Option<String> {
        self.state().entry(key, id)?.failure.as_deref().map(str::to_owned)
    }

    /// The task has events up to this number.
    pub(crate) fn ring(&self, key: TaskKey, version: u64) {
        if self.open.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut state = self.state();
        let Some(of_task) = state.tasks.get_mut(&key) else { return };
        of_task.version = of_task.version.max(version);
        let parked = of_task.webhooks.iter().filter(|entry| entry.phase == Phase::Parked);
        let woken: Vec<_> = parked.map(|entry| (key, entry.webhook.id.clone())).collect();
        if !woken.is_empty() {
            woken.iter().for_each(|position| state.make_ready(position));
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Waits until something is ready or due times have changed.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// What is due after this time is due at this time. No wait lasts that long: such a time is from a clock that was wrong.
    pub(crate) fn bring_forward(&self, latest: Timestamp) {
        let state = &mut *self.state();
        while state.waiting.last().is_some_and(|(due, ..)| *due > latest) {
            let Some((_, key, id)) = state.waiting.pop_last() else { return };
            if let Some(entry) = state.entry(key, &id) {
                entry.webhook.cursor.due = latest;
            }
            state.waiting.insert((latest, key, id));
        }
    }

    /// The next webhook with something to deliver at this time.
    pub(crate) fn take(&self, now: Timestamp) -> Option<Job> {
        let mut state = self.state();
        while let Some((due, ..)) = state.waiting.first()
            && *due <= now
        {
            let Some((_, key, id)) = state.waiting.pop_first() else { break };
            state.make_ready(&(key, id));
        }
        loop {
            let (key, id) = state.ready.pop_front()?;
            let Some(of_task) = state.tasks.get_mut(&key) else { continue };
            let (scope, task) = (of_task.scope.clone(), of_task.id.clone());
            let Some(entry) = of_task.webhooks.iter_mut().find(|entry| entry.webhook.id == id) else {
                continue;
            };
            entry.is_in_line = false;
            // It was delivered to, put off or replaced since it got into the line.
            if entry.phase != Phase::Ready {
                continue;
            }
            entry.phase = Phase::Busy;
            return Some(Job { key, scope, task, webhook: entry.webhook.clone() });
        }
    }

    /// When the next one is due that now waits.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.state().waiting.first().map(|(due, ..)| *due)
    }

    /// A delivery has ended, and this is the webhook now. One that is not open any more is taken out.
    pub(crate) fn done(&self, key: TaskKey, webhook: StoredWebhook) {
        let id = &webhook.id.clone();
        let mut state = self.state();
        let Some(entry) = state.entry(key, id) else { return };
        let after = entry.after.take();
        entry.phase = Phase::Parked;
        if webhook.cursor.failures == 0 {
            entry.failure = None;
        }
        let webhook = match after {
            Some(After::Removed) => return self.drop_entry(&mut state, key, id, false),
            Some(After::Replaced(webhook)) => {
                entry.failure = None;
                webhook
            }
            None => webhook,
        };
        if webhook.cursor.state != WebhookState::Open {
            return self.drop_entry(&mut state, key, id, true);
        }
        state.schedule(&(key, id.clone()), webhook);
        drop(state);
        self.changed.notify_one();
    }

    /// `is_counted`: among its owner's.
    fn drop_entry(&self, state: &mut State, key: TaskKey, id: &PushConfigId, is_counted: bool) {
        state.unschedule(&(key, id.clone()));
        let Some(of_task) = state.tasks.get_mut(&key) else { return };
        let Some(at) = of_task.webhooks.iter().position(|entry| entry.webhook.id == *id) else { return };
        of_task.webhooks.swap_remove(at);
        let owner = Arc::clone(&of_task.scope.owner);
        if of_task.webhooks.is_empty() {
            state.tasks.remove(&key);
        }
        if is_counted {
            state.forget_one_of(&owner);
        }
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl State {
    fn forget_one_of(&mut self, owner: &Arc<str>) {
        let Some(count) = self.owners.get_mut(owner) else { return };
        *count -= 1;
        if *count == 0 {
            self.owners.remove(owner);
        }
    }

    fn entry(&mut self, key: TaskKey, id: &PushConfigId) -> Option<&mut Entry> {
        self.tasks.get_mut(&key)?.webhooks.iter_mut().find(|entry| entry.webhook.id == *id)
    }

    fn make_ready(&mut self, position: &Position) {
        let Some(entry) = self.entry(position.0, &position.1) else { return };
        entry.phase = Phase::Ready;
        if !std::mem::replace(&mut entry.is_in_line, true) {
            self.ready.push_back(position.clone());
        }
    }

    /// Puts a webhook where it belongs by its cursor.
    fn schedule(&mut self, position: &Position, webhook: StoredWebhook) {
        let Some(of_task) = self.tasks.get_mut(&position.0) else { return };
        let version = of_task.version;
        let Some(entry) = of_task.webhooks.iter_mut().find(|entry| entry.webhook.id == position.1) else {
            return;
        };
        let WebhookCursor { done, task_as_of, due, .. } = webhook.cursor;
        entry.webhook = webhook;
        // One that waits with nothing to deliver has a cursor that is not in the store yet.
        entry.phase = if due.as_millis() > 0 {
            Phase::Waiting
        } else if done >= version && task_as_of.is_none() {
            Phase::Parked
        } else {
            Phase::Ready
        };
        match entry.phase {
            Phase::Ready => self.make_ready(position),
            Phase::Waiting => {
                self.waiting.insert((due, position.0, position.1.clone()));
            }
            Phase::Parked | Phase::Busy => {}
        }
    }

    fn unschedule(&mut self, position: &Position) {
        let Some(entry) = self.entry(position.0, &position.1) else { return };
        let (phase, due) = (entry.phase, entry.webhook.cursor.due);
        entry.phase = Phase::Parked;
        match phase {
            Phase::Waiting => {
                self.waiting.remove(&(due, position.0, position.1.clone()));
            }
            Phase::Ready | Phase::Parked | Phase::Busy => {}
        }
    }
}

#[cfg(test)]
mod tests;
