//! The limits on what each owner has stored: tasks and bytes. The store counts; this process remembers what it said for a
//! while, so that a send rarely asks the store.
//!
//! Refusals say when room comes back, in words, and have no `Retry-After`: that depends on when the owner's tasks ended, and
//! may be weeks away. A client that repeats its call after a minute, because we said so, would do that for weeks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baton_protocol::domain::Scope;
use baton_protocol::{Error, ErrorKind};

use super::options::OwnerLimits;
use super::{Inner, from_store};
use crate::auth::is_anonymous;
use crate::store::{OwnerUsage, StoreResult};
use crate::telemetry::labels::Limited;

/// The store is asked again after this time: other processes store and remove tasks, too.
const FRESH: Duration = Duration::from_secs(10);

/// The same for an owner at a limit.
const FRESH_AT_LIMIT: Duration = Duration::from_secs(1);

/// Most owners that are remembered.
const MAX_KNOWN: usize = 65_536;

/// An owner at its limit of bytes starts nothing new, but its turns go on and store more. They fail when it has this many
/// times its limit.
const FAR_BEYOND: u64 = 2;

/// A cheap handle; clones share what is known.
#[derive(Debug, Clone, Default)]
pub(super) struct OwnerUsages(Arc<Mutex<HashMap<Arc<str>, Known>>>);

#[derive(Debug, Clone, Copy)]
struct Known {
    usage: OwnerUsage,
    read_at: Instant,
    /// How many bytes this process had written for all owners when the store was asked.
    written: u64,
}

/// One more task of an owner. It is no longer counted if this is dropped before [`keep`](Self::keep).
#[derive(Debug, Default)]
pub(super) struct NewOfOwner(Option<(OwnerUsages, Arc<str>)>);

impl NewOfOwner {
    /// The task is stored.
    pub(super) fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for NewOfOwner {
    fn drop(&mut self) {
        if let Some((usages, owner)) = self.0.take()
            && let Some(known) = usages.known().get_mut(&owner)
        {
            known.usage.tasks = known.usage.tasks.saturating_sub(1);
        }
    }
}

/// The limits that a usage is compared with. No limit is `u64::MAX`.
#[derive(Debug, Clone, Copy)]
struct Most {
    tasks: u64,
    bytes: u64,
}

impl Most {
    fn of(limits: &OwnerLimits) -> Self {
        let or_none = |limit: u64| if limit == 0 { u64::MAX } else { limit };
        Most { tasks: or_none(limits.max_tasks), bytes: or_none(limits.max_bytes) }
    }

    fn is_reached(self, usage: OwnerUsage) -> bool {
        usage.tasks >= self.tasks || usage.bytes >= self.bytes
    }
}

impl OwnerUsages {
    /// Something was removed: asks the store again.
    pub(super) fn forget(&self) {
        self.known().clear();
    }

    /// What the owner has stored, if that is known well enough to compare it with `most`. `written`: how many bytes this
    /// process has written by now; at worst, all since the store was asked are this owner's.
    fn find(&self, owner: &str, most: Most, now: Instant, written: u64) -> Option<OwnerUsage> {
        let Known { usage, read_at, written: before } = *self.known().get(owner)?;
        let reached = most.is_reached(usage);
        let may_be_reached = usage.bytes.saturating_add(written.saturating_sub(before)) >= most.bytes;
        let age = now.saturating_duration_since(read_at);
        let fresh = if reached { age < FRESH_AT_LIMIT } else { age < FRESH && !may_be_reached };
        fresh.then_some(usage)
    }

    fn put(&self, owner: &Arc<str>, usage: OwnerUsage, now: Instant, written: u64) {
        let mut known = self.known();
        if known.len() >= MAX_KNOWN {
            // Rare, and they are only asked for again.
            known.clear();
        }
        known.insert(Arc::clone(owner), Known { usage, read_at: now, written });
    }

    /// Counts one more task; `None` if there are `most` already.
    fn add_task(&self, owner: &Arc<str>, most: u64) -> Option<NewOfOwner> {
        let mut known = self.known();
        // Another call may have forgotten it meanwhile.
        let Some(entry) = known.get_mut(owner) else { return Some(NewOfOwner(None)) };
        if entry.usage.tasks >= most {
            return None;
        }
        entry.usage.tasks += 1;
        drop(known);
        Some(NewOfOwner(Some((self.clone(), Arc::clone(owner)))))
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
        let Some(most) = self.most_of(scope) else { return Ok(NewOfOwner::default()) };
        let usage = self.usage_of(&scope.owner, most).await.map_err(from_store)?;
        if usage.bytes >= most.bytes {
            return Err(self.too_many_bytes(usage, most.bytes));
        }
        self.owner_usages.add_task(&scope.owner, most.tasks).ok_or_else(|| self.too_many_tasks(most.tasks))
    }

    /// Refuses a message, to a task that exists or to a message skill, of an owner that has as many bytes stored as it may.
    pub(super) async fn check_owner_bytes(&self, scope: &Scope) -> Result<(), Error> {
        let Some(most) = self.most_of(scope) else { return Ok(()) };
        let usage = self.usage_of(&scope.owner, most).await.map_err(from_store)?;
        if usage.bytes >= most.bytes { Err(self.too_many_bytes(usage, most.bytes)) } else { Ok(()) }
    }

    /// Refuses a reply of `more` bytes if the scope's owner would have far more stored than it may.
    pub(super) async fn check_reply_bytes(&self, scope: &Scope, more: u64) -> Result<(), Error> {
        match self.far_beyond_bytes(scope, more).await.map_err(from_store)? {
            Some(reason) => Err(Error::new(ErrorKind::QuotaExceeded, reason)),
            None => Ok(()),
        }
    }

    /// With `more` bytes, would the scope's owner have far more stored than it may? Then the sentence that says so.
    pub(super) async fn far_beyond_bytes(&self, scope: &Scope, more: u64) -> StoreResult<Option<String>> {
        let Some(most) = self.most_of(scope) else { return Ok(None) };
        let far = Most { tasks: u64::MAX, bytes: most.bytes.saturating_mul(FAR_BEYOND).saturating_sub(more) };
        let usage = self.usage_of(&scope.owner, far).await?;
        if usage.bytes < far.bytes {
            return Ok(None);
        }
        self.telemetry.limited(Limited::StoredBytes);
        let (bytes, most) = (usage.bytes.saturating_add(more), most.bytes);
        Ok(Some(format!(
            "The caller has {bytes} bytes to store, far more than the {most} that it may have stored"
        )))
    }

    /// `None`: no limit.
    fn most_of(&self, scope: &Scope) -> Option<Most> {
        let most = Most::of(&self.options().owners);
        let limited = most.tasks != u64::MAX || most.bytes != u64::MAX;
        (limited && !is_anonymous(&scope.owner)).then_some(most)
    }

    async fn usage_of(&self, owner: &Arc<str>, most: Most) -> StoreResult<OwnerUsage> {
        // Before the store is asked: a write in between is then counted twice rather than not at all.
        let (now, written) = (Instant::now(), self.store.written_bytes());
        if let Some(usage) = self.owner_usages.find(owner, most, now, written) {
            return Ok(usage);
        }
        let usage = self.store.owner_usage(owner).await?;
        self.owner_usages.put(owner, usage, now, written);
        Ok(usage)
    }

    fn too_many_tasks(&self, most: u64) -> Error {
        self.telemetry.limited(Limited::Stored);
        let ended = in_words(self.options().retention.ended);
        let message = format!(
            "This caller has {most} tasks stored, and may have no more. A task is removed {ended} after its end; before \
             that, only the operator of the server can make room"
        );
        Error::new(ErrorKind::QuotaExceeded, message)
    }

    fn too_many_bytes(&self, usage: OwnerUsage, most: u64) -> Error {
        self.telemetry.limited(Limited::StoredBytes);
        let retention = &self.options().retention;
        // As the sweep counts it.
        let records = in_words(retention.ended.saturating_add(retention.records));
        let OwnerUsage { tasks, bytes } = usage;
        let (what, room) = match tasks {
            0 => (
                "messages and replies without tasks".to_owned(),
                format!("Each of them is removed {records} after it came"),
            ),
            _ => {
                let (fold, ended) = (in_words(retention.fold), in_words(retention.ended));
                let what = format!("{tasks} tasks, and what is kept of messages to recognise repeats");
                let room = format!(
                    "A task takes less {fold} after its end and is removed {ended} after it; what is kept of a message is \
                     removed {records} after it came"
                );
                (what, room)
            }
        };
        let message = format!(
            "This caller has {bytes} bytes stored, and may have {most}: {what}. {room}; before that, only the operator of \
             the server can make room"
        );
        Error::new(ErrorKind::QuotaExceeded, message)
    }
}

fn in_words(time: Duration) -> String {
    const HOUR: u64 = 60 * 60;
    match time.as_secs() {
        seconds if seconds >= 2 * 24 * HOUR => format!("{} days", seconds / (24 * HOUR)),
        seconds if seconds >= 2 * HOUR => format!("{} hours", seconds / HOUR),
        seconds => format!("{seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Most = Most { tasks: 2, bytes: 100 };

    fn usage(tasks: u64, bytes: u64) -> OwnerUsage {
        OwnerUsage { tasks, bytes }
    }

    #[test]
    fn tasks_that_are_not_stored_are_not_counted_and_old_counts_are_asked_again() {
        let (usages, owner, now): (_, Arc<str>, _) = (OwnerUsages::default(), Arc::from("a"), Instant::now());
        let find = |now| usages.find(&owner, MOST, now, 0);
        assert_eq!(find(now), None);
        usages.put(&owner, usage(1, 0), now, 0);
        let taken = usages.add_task(&owner, MOST.tasks).expect("there is room");
        assert!(usages.add_task(&owner, MOST.tasks).is_none());
        drop(taken);
        usages.add_task(&owner, MOST.tasks).expect("there is room again").keep();
        assert_eq!(find(now), Some(usage(2, 0)));
        assert_eq!(find(now + FRESH_AT_LIMIT), None);
        usages.put(&owner, usage(0, 0), now, 0);
        assert_eq!(find(now + FRESH_AT_LIMIT), Some(usage(0, 0)));
        assert_eq!(find(now + FRESH), None);
        usages.forget();
        assert_eq!(find(now), None);
    }

    /// While what this process has written leaves room below the limit, the store is not asked.
    #[test]
    fn the_store_is_asked_again_when_the_bytes_may_have_reached_the_limit() {
        let (usages, owner, now) = (OwnerUsages::default(), Arc::from("a"), Instant::now());
        usages.put(&owner, usage(0, 60), now, 1000);
        assert_eq!(usages.find(&owner, MOST, now, 1039), Some(usage(0, 60)));
        assert_eq!(usages.find(&owner, MOST, now, 1040), None);
        usages.put(&owner, usage(0, 100), now, 1040);
        assert_eq!(usages.find(&owner, MOST, now, 9999), Some(usage(0, 100)), "at its limit");
    }
}
