//! How many tasks each owner has stored, for the limit on that. The store counts; this process remembers what it said for a
//! while, and counts what it creates itself, so that a send rarely asks the store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baton_protocol::domain::Scope;
use baton_protocol::{Error, ErrorKind};

use super::{Inner, from_store};
use crate::auth::is_anonymous;
use crate::telemetry::labels::Limited;

/// The store is asked again after this time: other processes create and remove tasks, too.
const FRESH: Duration = Duration::from_secs(60);

/// The same for an owner at its limit.
const FRESH_AT_LIMIT: Duration = Duration::from_secs(1);

/// Most owners that are remembered.
const MAX_KNOWN: usize = 65_536;

/// Seconds after which an owner at its limit may try again.
const RETRY_AFTER: u32 = 60;

/// A cheap handle; clones share the same counts.
#[derive(Debug, Clone, Default)]
pub(super) struct OwnerTasks(Arc<Mutex<HashMap<Arc<str>, Known>>>);

#[derive(Debug, Clone, Copy)]
struct Known {
    tasks: u64,
    read_at: Instant,
}

/// One more task of an owner. It is no longer counted if this is dropped before [`keep`](Self::keep).
#[derive(Debug)]
pub(super) struct NewOfOwner(Option<(OwnerTasks, Arc<str>)>);

impl NewOfOwner {
    /// The task is stored.
    pub(super) fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for NewOfOwner {
    fn drop(&mut self) {
        if let Some((tasks, owner)) = self.0.take()
            && let Some(known) = tasks.known().get_mut(&owner)
        {
            known.tasks = known.tasks.saturating_sub(1);
        }
    }
}

/// What is known of an owner.
enum Count {
    Taken(NewOfOwner),
    AtLimit(u64),
    /// The store has to be asked.
    Unknown,
}

impl OwnerTasks {
    /// Tasks were removed: asks the store again.
    pub(super) fn forget(&self) {
        self.known().clear();
    }

    fn take(&self, owner: &Arc<str>, max: u64, now: Instant) -> Count {
        let mut known = self.known();
        let Some(entry) = known.get_mut(owner) else { return Count::Unknown };
        let age = now.saturating_duration_since(entry.read_at);
        if age >= FRESH || (entry.tasks >= max && age >= FRESH_AT_LIMIT) {
            return Count::Unknown;
        }
        if entry.tasks >= max {
            return Count::AtLimit(entry.tasks);
        }
        entry.tasks += 1;
        drop(known);
        Count::Taken(NewOfOwner(Some((self.clone(), Arc::clone(owner)))))
    }

    fn put(&self, owner: &Arc<str>, tasks: u64, now: Instant) {
        let mut known = self.known();
        if known.len() >= MAX_KNOWN {
            // Rare, and they are only asked for again.
            known.clear();
        }
        known.insert(Arc::clone(owner), Known { tasks, read_at: now });
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Arc<str>, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Counts one more task of the scope's owner, or refuses it. All anonymous callers have one owner in the store, so a limit
    /// on it would let one of them shut out the others: for them, only [`Retention::max_tasks`](super::options::Retention)
    /// counts.
    pub(super) async fn one_more_task(&self, scope: &Scope) -> Result<NewOfOwner, Error> {
        let max = self.options().owners.max_tasks;
        if max == 0 || is_anonymous(&scope.owner) {
            return Ok(NewOfOwner(None));
        }
        loop {
            match self.owner_tasks.take(&scope.owner, max, Instant::now()) {
                Count::Taken(taken) => return Ok(taken),
                Count::AtLimit(tasks) => {
                    self.telemetry.limited(Limited::Stored);
                    let days = self.options().retention.ended.as_secs() / (24 * 60 * 60);
                    let message = format!(
                        "This caller has {tasks} tasks stored, and may have no more; tasks are removed {days} days after \
                         their end"
                    );
                    return Err(Error::new(ErrorKind::QuotaExceeded, message).with_retry_after(RETRY_AFTER));
                }
                Count::Unknown => {
                    let tasks = self.store.owner_tasks(&scope.owner).await.map_err(from_store)?;
                    // A store that does not count by owner: no limit.
                    let Some(tasks) = tasks else { return Ok(NewOfOwner(None)) };
                    self.owner_tasks.put(&scope.owner, tasks, Instant::now());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_stored_is_not_counted_and_old_counts_are_asked_again() {
        let (tasks, owner, now) = (OwnerTasks::default(), Arc::from("a"), Instant::now());
        let take = |now| tasks.take(&owner, 2, now);
        assert!(matches!(take(now), Count::Unknown));
        tasks.put(&owner, 1, now);
        let Count::Taken(taken) = take(now) else { panic!("there is room") };
        assert!(matches!(take(now), Count::AtLimit(2)));
        drop(taken);
        let Count::Taken(taken) = take(now) else { panic!("there is room again") };
        taken.keep();
        assert!(matches!(take(now), Count::AtLimit(2)));
        assert!(matches!(take(now + FRESH_AT_LIMIT), Count::Unknown));
        tasks.put(&owner, 0, now);
        assert!(matches!(take(now + FRESH), Count::Unknown));
        tasks.forget();
        assert!(matches!(take(now), Count::Unknown));
    }
}
