//! How many turns run at once, and who waits for a place.
//!
//! Agents share the server's places. Each has a queue of its own, first come, first served, and may have caps of its
//! own below the server's; free places go round the agents that wait. So a busy agent slows others down at most, it
//! never shuts them out: its tasks do not stand before theirs, and not even a full queue keeps an agent from having
//! one task in it.

#[cfg(test)]
mod tests;

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_protocol::domain::{Scope, TaskId};
use baton_protocol::{Error, ErrorKind};

use crate::own_keys::OwnKeys;

/// How much may go on at once: on a server, or for one agent on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// Turns that may run at once.
    pub max_running: usize,
    /// Tasks that may wait for a free place.
    pub max_queued: usize,
}

impl Caps {
    /// An agent that has only the server's caps to keep.
    pub const NONE: Caps = Caps { max_running: usize::MAX, max_queued: usize::MAX };
}

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
    /// Is a task in one of the lines? Asked after every turn, so without the lock.
    somebody_waits: AtomicBool,
}

#[derive(Debug)]
struct State {
    caps: Caps,
    running: usize,
    /// Tasks in all lines, promised places included.
    waiting: usize,
    lines: OwnKeys<Arc<str>, Line>,
    /// Agents whose line is not empty, in the order they are served next.
    round: VecDeque<Arc<str>>,
}

/// What one agent runs, and who waits for it.
#[derive(Debug)]
struct Line {
    caps: Caps,
    running: usize,
    queue: VecDeque<(Scope, TaskId)>,
    /// The same tasks: one that is looked at again does not wait twice.
    queued: HashSet<(Scope, TaskId)>,
    /// Places in the queue promised to tasks that are being stored right now.
    promised: usize,
}

/// The right to run one turn; given back on drop.
#[derive(Debug)]
pub(crate) struct Permit(Admission, Arc<str>);

/// A promised place in the queue; given back on drop.
#[derive(Debug)]
pub(crate) struct QueuePlace(Admission, Arc<str>);

/// A turn may run now, or its task may wait.
#[derive(Debug)]
pub(crate) enum Admitted {
    Run(Permit),
    Wait(QueuePlace),
}

/// Neither a place to run nor one to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// The agent has as much to do as it may have; other agents may be free.
    Agent,
    Server,
}

impl From<Full> for Error {
    fn from(full: Full) -> Self {
        let error = match full {
            Full::Agent => {
                Error::new(ErrorKind::ResourceExhausted, "The agent is at its capacity; send again shortly")
            }
            Full::Server => Error::of(ErrorKind::ResourceExhausted),
        };
        error.with_retry_after(1)
    }
}

impl Admission {
    pub(crate) fn new(caps: Caps) -> Self {
        let (lines, round) = (OwnKeys::default(), VecDeque::new());
        let state = Mutex::new(State { caps, running: 0, waiting: 0, lines, round });
        Admission { shared: Arc::new(Shared { state, somebody_waits: AtomicBool::new(false) }) }
    }

    /// A place to run, else a place to wait, else nothing.
    pub(crate) fn reserve(&self, agent: &Arc<str>) -> Result<Admitted, Full> {
        let mut state = self.state();
        if state.may_start(agent) {
            state.start(agent);
            return Ok(Admitted::Run(Permit(self.clone(), Arc::clone(agent))));
        }
        state.may_wait(agent)?;
        state.line(agent).promised += 1;
        state.waiting += 1;
        Ok(Admitted::Wait(QueuePlace(self.clone(), Arc::clone(agent))))
    }

    /// A place to run at once or none.
    pub(crate) fn run_now(&self, agent: &Arc<str>) -> Result<Permit, Full> {
        let mut state = self.state();
        if state.may_start(agent) {
            state.start(agent);
            return Ok(Permit(self.clone(), Arc::clone(agent)));
        }
        let line = state.line(agent);
        let busy = line.waiting() > 0 || line.running >= line.caps.max_running;
        Err(if busy { Full::Agent } else { Full::Server })
    }

    /// Lets a stored task wait. Takes no cap into account: what was accepted before must not be dropped.
    pub(crate) fn enqueue(&self, scope: Scope, task: TaskId) {
        let mut state = self.state();
        let agent = Arc::clone(&scope.agent);
        let line = state.line(&agent);
        if !line.queued.insert((scope.clone(), task.clone())) {
            return;
        }
        line.queue.push_back((scope, task));
        let first = line.queue.len() == 1;
        state.waiting += 1;
        if first {
            state.round.push_back(agent);
            self.shared.somebody_waits.store(true, Ordering::SeqCst);
        }
    }

    /// Is there anybody for [`next`](Self::next) to find? Who enters a line asks for a place afterwards, so nobody is
    /// overlooked.
    pub(crate) fn somebody_waits(&self) -> bool {
        self.shared.somebody_waits.load(Ordering::SeqCst)
    }

    /// The next waiting task, with the right to run it.
    pub(crate) fn next(&self) -> Option<(Permit, Scope, TaskId)> {
        let mut state = self.state();
        if state.running >= state.caps.max_running {
            return None;
        }
        let at = state.round.iter().position(|agent| state.lines[agent].has_room())?;
        let agent = state.round.remove(at)?;
        let line = state.line(&agent);
        let next = line.queue.pop_front()?;
        line.queued.remove(&next);
        let more = !line.queue.is_empty();
        if more {
            state.round.push_back(Arc::clone(&agent));
        }
        self.shared.somebody_waits.store(!state.round.is_empty(), Ordering::SeqCst);
        state.waiting -= 1;
        state.start(&agent);
        Some((Permit(self.clone(), agent), next.0, next.1))
    }

    /// New caps of an agent, or of the server. Nothing that runs or waits is taken back; see who may start then with
    /// [`next`](Self::next).
    pub(crate) fn set_caps(&self, agent: Option<&str>, caps: Caps) {
        let mut state = self.state();
        match agent {
            Some(agent) => state.line(&Arc::from(agent)).caps = caps,
            None => state.caps = caps,
        }
    }

    pub(crate) fn load(&self) -> Load {
        let state = self.state();
        Load { running: state.running, queued: state.waiting }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn line(&mut self, agent: &Arc<str>) -> &mut Line {
        self.lines.entry(Arc::clone(agent)).or_default()
    }

    /// May a newcomer start at once? Who comes later does not overtake who waits, unless that one has to wait for its
    /// own agent only.
    fn may_start(&mut self, agent: &Arc<str>) -> bool {
        let line = self.line(agent);
        line.waiting() == 0
            && line.has_room()
            && self.running < self.caps.max_running
            // As long as nobody waits, which is the rule, the lines need not be looked at.
            && (self.waiting == 0 || !self.lines.values().any(|line| line.waiting() > 0 && line.has_room()))
    }

    fn may_wait(&mut self, agent: &Arc<str>) -> Result<(), Full> {
        let (caps, waiting) = (self.caps, self.waiting);
        let line = self.line(agent);
        if line.waiting() >= line.caps.max_queued {
            return Err(Full::Agent);
        }
        // One task of each agent, though others fill the queue.
        let shut_out = line.waiting() == 0 && caps.max_queued > 0;
        if waiting < caps.max_queued || shut_out { Ok(()) } else { Err(Full::Server) }
    }

    fn start(&mut self, agent: &Arc<str>) {
        self.running += 1;
        self.line(agent).running += 1;
    }
}

impl Line {
    fn waiting(&self) -> usize {
        self.queue.len() + self.promised
    }

    fn has_room(&self) -> bool {
        self.running < self.caps.max_running
    }
}

impl Default for Line {
    fn default() -> Self {
        let (queue, queued) = (VecDeque::new(), HashSet::new());
        Line { caps: Caps::NONE, running: 0, queue, queued, promised: 0 }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.running -= 1;
        state.line(&self.1).running -= 1;
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.waiting -= 1;
        state.line(&self.1).promised -= 1;
    }
}
