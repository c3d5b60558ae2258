//! The runs of this process: at most one per task, found by scope and id.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_protocol::domain::{Scope, TaskId};
use tokio::sync::{Notify, Semaphore};

use super::desk::{Desk, Stop};

/// Only the id is hashed: it is unique unless clients chose it. Scope and id are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    scope: Scope,
    id: TaskId,
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl Key {
    fn new(scope: &Scope, id: &TaskId) -> Self {
        Key { scope: scope.clone(), id: id.clone() }
    }
}

type OnUnread = dyn Fn(&Scope, &TaskId) + Send + Sync;

#[derive(Debug)]
pub(crate) struct Runs {
    shared: Arc<Shared>,
}

struct Shared {
    live: Mutex<HashMap<Key, Arc<RunHandle>>>,
    emptied: Notify,
    /// Called with a task whose registration was dropped before it read the requests it was woken for.
    on_unread: Box<OnUnread>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runs").field("live", &self.live().len()).finish_non_exhaustive()
    }
}

/// A handle on a run, for others.
#[derive(Debug)]
pub(crate) struct RunHandle {
    pub(crate) desk: Arc<Desk>,
    /// Has a permit for every request that was stored since the run last read them.
    wakes: Semaphore,
    /// A cancel was stored for the run; further cancels only wait for it.
    canceling: AtomicBool,
    /// Closed when the task is stored or the registration is dropped. It never has permits: acquiring one waits for that.
    stored_or_dropped: Semaphore,
}

impl RunHandle {
    fn new(desk: Arc<Desk>) -> Self {
        RunHandle {
            desk,
            wakes: Semaphore::const_new(0),
            canceling: AtomicBool::new(false),
            stored_or_dropped: Semaphore::const_new(0),
        }
    }

    /// Waits until the task of a new registration is stored, or the registration is dropped.
    pub(crate) async fn stored_or_dropped(&self) {
        let _closed = self.stored_or_dropped.acquire().await;
    }

    pub(crate) fn wake(&self) {
        self.wakes.add_permits(1);
    }

    pub(crate) fn has_requests(&self) -> bool {
        self.wakes.available_permits() > 0
    }

    /// Waits until a request is stored. [`RunHandle::take_wakes`] resets it.
    pub(crate) async fn woken(&self) {
        let _kept = self.wakes.acquire().await;
    }

    /// The cancel could not be stored: the next caller has to try.
    pub(crate) fn not_canceled(&self) {
        self.canceling.store(false, Ordering::SeqCst);
    }

    /// Whether a request was stored since the run last read them; clears the flag.
    pub(crate) fn take_wakes(&self) -> bool {
        self.wakes.forget_permits(usize::MAX) > 0
    }
}

/// Registers a task's run, or another writer of the task, in this process. It is made before the task is written, so that
/// nothing takes a task that is about to run for one whose run has died.
#[derive(Debug)]
pub(crate) struct Registration {
    shared: Arc<Shared>,
    key: Key,
    pub(crate) handle: Arc<RunHandle>,
    gone: bool,
}

impl Shared {
    fn live(&self) -> MutexGuard<'_, HashMap<Key, Arc<RunHandle>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remove(&self, key: &Key) {
        let mut live = self.live();
        live.remove(key);
        if live.is_empty() {
            self.emptied.notify_waiters();
        }
    }
}

impl Runs {
    pub(crate) fn new(on_unread: impl Fn(&Scope, &TaskId) + Send + Sync + 'static) -> Self {
        let (live, emptied) = (Mutex::default(), Notify::new());
        Runs { shared: Arc::new(Shared { live, emptied, on_unread: Box::new(on_unread) }) }
    }

    /// `None` when the task has a run already.
    pub(crate) fn register(&self, scope: &Scope, id: &TaskId, desk: Arc<Desk>) -> Option<Registration> {
        let key = Key::new(scope, id);
        let handle = Arc::new(RunHandle::new(desk));
        match self.shared.live().entry(key.clone()) {
            Entry::Occupied(_) => return None,
            Entry::Vacant(free) => free.insert(Arc::clone(&handle)),
        };
        Some(Registration { shared: Arc::clone(&self.shared), key, handle, gone: false })
    }

    pub(crate) fn is_live(&self, scope: &Scope, id: &TaskId) -> bool {
        self.shared.live().contains_key(&Key::new(scope, id))
    }

    /// The handle of the task's registration, if there is one.
    pub(crate) fn handle_of(&self, scope: &Scope, id: &TaskId) -> Option<Arc<RunHandle>> {
        self.shared.live().get(&Key::new(scope, id)).cloned()
    }

    /// Wakes the task's run to read its requests; `false` when there is none.
    pub(crate) fn wake(&self, scope: &Scope, id: &TaskId) -> bool {
        // Under the lock: a run that is about to leave either sees the flag or is no longer in the map.
        match self.shared.live().get(&Key::new(scope, id)) {
            Some(handle) => {
                handle.wake();
                true
            }
            None => false,
        }
    }

    /// The run that a cancel is for, and whether this cancel is the first: only the first has to be stored. `None` when there
    /// is no run.
    pub(crate) fn cancel(&self, scope: &Scope, id: &TaskId) -> Option<(Arc<RunHandle>, bool)> {
        let handle = Arc::clone(self.shared.live().get(&Key::new(scope, id))?);
        let first = !handle.canceling.swap(true, Ordering::SeqCst);
        Some((handle, first))
    }

    pub(crate) fn stop_all(&self, reason: Stop) {
        let handles: Vec<_> = self.shared.live().values().cloned().collect();
        for handle in handles {
            handle.desk.stop(reason);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.shared.live().len()
    }

    pub(crate) async fn all_gone(&self) {
        loop {
            let emptied = self.shared.emptied.notified();
            tokio::pin!(emptied);
            emptied.as_mut().enable();
            if self.len() == 0 {
                return;
            }
            emptied.await;
        }
    }
}

impl Registration {
    pub(crate) fn scope(&self) -> &Scope {
        &self.key.scope
    }

    pub(crate) fn id(&self) -> &TaskId {
        &self.key.id
    }

    /// The task is stored; wakes those who waited for that.
    pub(crate) fn stored(&self) {
        self.handle.stored_or_dropped.close();
    }

    /// Removes the registration; `true` if requests were stored that it has not read.
    pub(crate) fn leave(mut self) -> bool {
        self.gone = true;
        self.shared.remove(&self.key);
        self.handle.stored_or_dropped.close();
        self.handle.take_wakes()
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if self.gone {
            return;
        }
        self.shared.remove(&self.key);
        self.handle.stored_or_dropped.close();
        // The caller that stored a request was told that a run would read it, so another one has to.
        if self.handle.take_wakes() {
            (self.shared.on_unread)(&self.key.scope, &self.key.id);
        }
    }
}
