//! The runs of this process: at most one per task, found by scope and id.

use std::collections::hash_map::Entry;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_protocol::domain::{Scope, TaskId};
use tokio::sync::{Notify, Semaphore};

use super::desk::{Desk, Stop};
use crate::own_keys::OwnKeys;

/// Task ids are unique but for those that clients choose, so the id alone is hashed; the rest is compared.
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

type Missed = dyn Fn(&Scope, &TaskId) + Send + Sync;

#[derive(Debug)]
pub(crate) struct Runs {
    shared: Arc<Shared>,
}

struct Shared {
    /// Clients may choose ids, but there are never more here than may run at once: a quick hash will do.
    live: Mutex<OwnKeys<Key, Arc<RunHandle>>>,
    emptied: Notify,
    /// Told of a task whose claim was given up while a ring was unanswered.
    missed: Box<Missed>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runs").field("live", &self.live().len()).finish_non_exhaustive()
    }
}

/// How others reach a run.
#[derive(Debug)]
pub(crate) struct RunHandle {
    pub(crate) desk: Arc<Desk>,
    /// A request was noted: look at the store.
    pub(crate) rung: Notify,
    asked: AtomicBool,
    /// A cancel was noted for the run: whoever wants the same waits for it, too.
    canceling: AtomicBool,
    /// Closed once the claim is known to have led somewhere. Never has permits: whoever asks for one waits for that.
    settled: Semaphore,
}

impl RunHandle {
    fn new(desk: Arc<Desk>) -> Self {
        RunHandle {
            desk,
            rung: Notify::new(),
            asked: AtomicBool::new(false),
            canceling: AtomicBool::new(false),
            settled: Semaphore::const_new(0),
        }
    }

    /// Waits until the task of a new claim is stored, or the claim was given up.
    pub(crate) async fn settled(&self) {
        let _closed = self.settled.acquire().await;
    }

    pub(crate) fn ring(&self) {
        self.asked.store(true, Ordering::SeqCst);
        self.rung.notify_one();
    }

    pub(crate) fn is_rung(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }

    /// The cancel could not be noted: the next one has to try.
    pub(crate) fn not_canceled(&self) {
        self.canceling.store(false, Ordering::SeqCst);
    }

    /// Was the run rung since it last looked?
    pub(crate) fn take_ring(&self) -> bool {
        self.asked.swap(false, Ordering::SeqCst)
    }
}

/// The claim of one run on its task within this process. Made before the task is written, so that nobody
/// takes a task that is about to run for one whose run has died.
#[derive(Debug)]
pub(crate) struct Registration {
    shared: Arc<Shared>,
    key: Key,
    pub(crate) handle: Arc<RunHandle>,
    gone: bool,
}

impl Shared {
    fn live(&self) -> MutexGuard<'_, OwnKeys<Key, Arc<RunHandle>>> {
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
    pub(crate) fn new(missed: impl Fn(&Scope, &TaskId) + Send + Sync + 'static) -> Self {
        let (live, emptied) = (Mutex::default(), Notify::new());
        Runs { shared: Arc::new(Shared { live, emptied, missed: Box::new(missed) }) }
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

    /// The claim on the task, if there is one.
    pub(crate) fn claim(&self, scope: &Scope, id: &TaskId) -> Option<Arc<RunHandle>> {
        self.shared.live().get(&Key::new(scope, id)).cloned()
    }

    /// Rings the task's run; `false` when there is none.
    pub(crate) fn ring(&self, scope: &Scope, id: &TaskId) -> bool {
        // Under the lock: a run that is about to leave sees the ring, or is gone for us.
        match self.shared.live().get(&Key::new(scope, id)) {
            Some(handle) => {
                handle.ring();
                true
            }
            None => false,
        }
    }

    /// The run that a cancel is for, and whether it is the first: only that one has to be noted. `None` when there is
    /// no run.
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

    /// The task is stored: whoever waited for that finds it there.
    pub(crate) fn stored(&self) {
        self.handle.settled.close();
    }

    /// Leaves the registry; `true` when somebody rang and nobody looked yet.
    pub(crate) fn leave(mut self) -> bool {
        self.gone = true;
        self.shared.remove(&self.key);
        self.handle.settled.close();
        self.handle.take_ring()
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if self.gone {
            return;
        }
        self.shared.remove(&self.key);
        self.handle.settled.close();
        // Who rang was told that a run is here: somebody has to look.
        if self.handle.take_ring() {
            (self.shared.missed)(&self.key.scope, &self.key.id);
        }
    }
}
