//! How many turns run at once, and who waits for a place.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_protocol::domain::{Scope, TaskId};

/// How much is going on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Load {
    /// Turns that run.
    pub running: usize,
    /// Tasks that wait for a place.
    pub queued: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Admission {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    max_running: usize,
    max_queued: usize,
}

#[derive(Debug, Default)]
struct State {
    running: usize,
    queue: VecDeque<(Scope, TaskId)>,
    /// The same tasks: one that is looked at again does not wait twice.
    waiting: HashSet<(Scope, TaskId)>,
    /// Places in the queue promised to tasks that are being stored right now.
    promised: usize,
}

/// The right to run one turn; given back on drop.
#[derive(Debug)]
pub(crate) struct Permit(Arc<Shared>);

/// A promised place in the queue; given back on drop.
#[derive(Debug)]
pub(crate) struct QueuePlace(Arc<Shared>);

#[derive(Debug)]
pub(crate) enum Place {
    Run(Permit),
    Wait(QueuePlace),
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.state().running -= 1;
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        self.0.state().promised -= 1;
    }
}

impl Admission {
    pub(crate) fn new(max_running: usize, max_queued: usize) -> Self {
        Admission { shared: Arc::new(Shared { state: Mutex::default(), max_running, max_queued }) }
    }

    /// A place to run, else a place to wait, else nothing: the server is at its capacity.
    pub(crate) fn reserve(&self) -> Option<Place> {
        let mut state = self.shared.state();
        // Who comes later does not overtake who waits.
        if state.queue.is_empty() && state.promised == 0 && state.running < self.shared.max_running {
            state.running += 1;
            return Some(Place::Run(Permit(Arc::clone(&self.shared))));
        }
        if state.queue.len() + state.promised < self.shared.max_queued {
            state.promised += 1;
            return Some(Place::Wait(QueuePlace(Arc::clone(&self.shared))));
        }
        None
    }

    /// A place to run at once or none.
    pub(crate) fn run_now(&self) -> Option<Permit> {
        match self.reserve() {
            Some(Place::Run(permit)) => Some(permit),
            _ => None,
        }
    }

    /// Lets a stored task wait. Takes no place into account: what was accepted before must not be dropped.
    pub(crate) fn enqueue(&self, scope: Scope, task: TaskId) {
        let mut state = self.shared.state();
        if state.waiting.insert((scope.clone(), task.clone())) {
            state.queue.push_back((scope, task));
        }
    }

    pub(crate) fn load(&self) -> Load {
        let state = self.shared.state();
        Load { running: state.running, queued: state.queue.len() + state.promised }
    }

    /// The next waiting task, with the right to run it.
    pub(crate) fn next(&self) -> Option<(Permit, Scope, TaskId)> {
        let mut state = self.shared.state();
        if state.running >= self.shared.max_running {
            return None;
        }
        let next = state.queue.pop_front()?;
        state.waiting.remove(&next);
        state.running += 1;
        Some((Permit(Arc::clone(&self.shared)), next.0, next.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait_for(admission: &Admission, id: &str) {
        let Some(Place::Wait(_place)) = admission.reserve() else { panic!("no place to wait") };
        admission.enqueue(Scope::new("a", "", "o"), TaskId::parse(id).unwrap());
    }

    #[test]
    fn s12_places_are_bounded_and_first_come_first_served() {
        let admission = Admission::new(1, 2);
        let Some(Place::Run(first)) = admission.reserve() else { panic!("no place to run") };
        wait_for(&admission, "one");
        wait_for(&admission, "two");
        assert!(admission.reserve().is_none(), "beyond the bound");
        assert!(admission.next().is_none(), "nothing is free yet");

        drop(first);
        let (permit, _, id) = admission.next().unwrap();
        assert_eq!(id.as_str(), "one");
        assert!(admission.next().is_none());
        drop(permit);
        // A newcomer does not overtake.
        assert!(admission.run_now().is_none());
        assert_eq!(admission.next().unwrap().2.as_str(), "two");
    }
}
