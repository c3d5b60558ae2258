//! Limits how many turns run at the same time, and queues the others.
//!
//! All agents share the server's slots for turns. Each agent may have its own caps below the server's, and each caller has
//! caps on what it runs and queues at all agents together. The tasks of one caller for one agent wait in a lane of their own,
//! first in, first out. Free slots are given to the agents with queued tasks in turn (round robin), and within an agent to
//! its callers in turn. So a busy agent or caller can slow others down but cannot block them: its tasks are not ahead of
//! theirs in a queue, and even if a queue limit is reached, whoever has nothing in the queue may have one task in it. The
//! last slots, of an agent and of the server, are for callers that run little ([`Slots::kept_free`]), so that turns that take long
//! cannot hold all of them.
//!
//! | file | holds |
//! |---|---|
//! | `lanes` | the queue of one agent: its callers' lanes, and whose turn it is |

mod lanes;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_protocol::domain::{Scope, TaskId};
use baton_protocol::{Error, ErrorKind};

use super::caller::Caller;
use lanes::AgentQueue;

/// Seconds after which a caller at its own caps may try again.
const RETRY_AFTER: u32 = 2;

/// Limits of a server, of one agent on it, or of one caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Caps {
    /// Most turns that run at the same time.
    pub max_running: usize,
    /// Most tasks in the queue.
    pub max_queued: usize,
}

impl Caps {
    /// For an agent without caps of its own.
    pub(crate) const NONE: Caps = Caps { max_running: usize::MAX, max_queued: usize::MAX };
}

/// The slots of a server, or of one agent on it.
#[derive(Debug, Clone, Copy)]
struct Slots {
    max: usize,
    running: usize,
}

impl Slots {
    /// How many of them are left to callers that run fewer turns than this number: an eighth, and at least one if there is
    /// more than one slot.
    fn kept_free(self) -> usize {
        if self.max < 2 { 0 } else { (self.max / 8).max(1) }
    }

    /// Whether a caller that has `own` of them may take one more.
    fn may_take(self, own: usize) -> bool {
        own < self.kept_free() || self.max.saturating_sub(self.running) > self.kept_free()
    }
}

/// Whether a caller may run one more turn, as far as the rules for callers go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    May,
    /// It runs as many as one caller may, until one of them ends.
    AtItsCap,
    /// The slots that are free now are kept for others.
    NotTheLast,
}

/// `own` is how many turns the caller runs at all agents.
fn standing(caller: &Caller, own: usize, each: Caps, server: Slots, queue: &AgentQueue) -> Standing {
    // Without a cap for each caller, one may take everything.
    if !caller.is_limited() || each.max_running == usize::MAX {
        Standing::May
    } else if own >= each.max_running {
        Standing::AtItsCap
    } else if server.may_take(own) && queue.slots().may_take(queue.running_of(caller)) {
        Standing::May
    } else {
        Standing::NotTheLast
    }
}

/// How busy a server is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Load {
    /// Turns that are running.
    pub running: usize,
    /// Tasks in the queue.
    pub queued: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Admission {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Whether a task is in one of the queues that does not wait for its caller's cap. Checked after every turn, so without
    /// the lock.
    has_queued: AtomicBool,
}

#[derive(Debug)]
struct State {
    caps: Caps,
    /// The caps of each caller.
    each: Caps,
    running: usize,
    /// Tasks in all queues, including promised slots.
    waiting: usize,
    queues: HashMap<Arc<str>, AgentQueue>,
    /// Agents that have lanes to serve, in the order in which they get the next slots.
    order: VecDeque<Arc<str>>,
    /// Callers that run or queue something.
    callers: HashMap<Caller, InUse>,
}

/// What one caller has at all agents together.
#[derive(Debug, Default)]
struct InUse {
    running: usize,
    /// Queued tasks, including promised slots.
    waiting: usize,
    /// Agents at which the caller's lane is out of the order until one of its turns has ended.
    parked: Vec<Arc<str>>,
}

/// Whose slot it is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Holder {
    agent: Arc<str>,
    caller: Caller,
}

/// The right to run one turn; given back on drop.
#[derive(Debug)]
pub(crate) struct Permit(Admission, Holder);

/// A promised slot in the queue; given back on drop.
#[derive(Debug)]
pub(crate) struct QueueSlot(Admission, Holder);

impl QueueSlot {
    /// Whose slot it is.
    pub(crate) fn caller(&self) -> &Caller {
        &self.1.caller
    }
}

/// A turn may run now, or its task may be queued.
#[derive(Debug)]
pub(crate) enum Admitted {
    Run(Permit),
    Wait(QueueSlot),
}

/// There is no slot for a turn, and none in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// The caller has reached its caps; others may be served. The number is that of its turns and queued tasks.
    Caller(usize),
    /// The agent has reached its caps; other agents may be free.
    Agent,
    Server,
}

impl From<Full> for Error {
    fn from(full: Full) -> Self {
        match full {
            Full::Caller(tasks) => {
                let message = format!(
                    "This caller has {tasks} tasks running or queued, and may have no more; wait until some have ended"
                );
                Error::new(ErrorKind::QuotaExceeded, message).with_retry_after(RETRY_AFTER)
            }
            Full::Agent => {
                Error::new(ErrorKind::ResourceExhausted, "The agent is at its capacity; send again shortly")
                    .with_retry_after(1)
            }
            Full::Server => Error::of(ErrorKind::ResourceExhausted).with_retry_after(1),
        }
    }
}

impl Admission {
    /// With the caps of the server, and those of each caller.
    pub(crate) fn new(caps: Caps, each: Caps) -> Self {
        let state = State {
            caps,
            each,
            running: 0,
            waiting: 0,
            queues: HashMap::default(),
            order: VecDeque::new(),
            callers: HashMap::default(),
        };
        Admission {
            shared: Arc::new(Shared { state: Mutex::new(state), has_queued: AtomicBool::new(false) }),
        }
    }

    /// A slot for a turn or, if none is free, one in the queue.
    pub(crate) fn reserve(&self, agent: &Arc<str>, caller: &Caller) -> Result<Admitted, Full> {
        let mut state = self.state();
        let holder = || Holder { agent: Arc::clone(agent), caller: caller.clone() };
        if state.may_start(agent, caller) {
            state.start(agent, caller);
            return Ok(Admitted::Run(Permit(self.clone(), holder())));
        }
        state.may_wait(agent, caller)?;
        state.queue_of(agent).promise(caller);
        state.in_use(caller).waiting += 1;
        state.waiting += 1;
        Ok(Admitted::Wait(QueueSlot(self.clone(), holder())))
    }

    /// A slot for a turn; no queueing.
    pub(crate) fn run_now(&self, agent: &Arc<str>, caller: &Caller) -> Result<Permit, Full> {
        let mut state = self.state();
        if state.may_start(agent, caller) {
            state.start(agent, caller);
            return Ok(Permit(self.clone(), Holder { agent: Arc::clone(agent), caller: caller.clone() }));
        }
        if state.standing(agent, caller) == Standing::AtItsCap {
            return Err(state.caller_is_full(caller));
        }
        let queue = state.queue_of(agent);
        let busy = queue.waiting() > 0 || !queue.has_room();
        Err(if busy { Full::Agent } else { Full::Server })
    }

    /// Adds a stored task to the lane of its caller at its agent. Caps do not apply: a task that was accepted must not be
    /// dropped.
    pub(crate) fn enqueue(&self, scope: Scope, task: TaskId, caller: &Caller) {
        let mut state = self.state();
        let agent = Arc::clone(&scope.agent);
        let Some(first) = state.queue_of(&agent).push(scope, task, caller) else { return };
        state.in_use(caller).waiting += 1;
        state.waiting += 1;
        // A lane that is not empty has its place in an order already, or is parked.
        if first {
            if state.queue_of(&agent).line_up(caller.clone()) {
                state.order.push_back(agent);
            }
            self.shared.has_queued.store(true, Ordering::SeqCst);
        }
    }

    /// Whether a task is queued that could start if the server had a slot. Callers of `enqueue` check for a free slot
    /// afterwards, so that no task is overlooked.
    pub(crate) fn has_queued(&self) -> bool {
        self.shared.has_queued.load(Ordering::SeqCst)
    }

    /// The next queued task, with the right to run it.
    pub(crate) fn next(&self) -> Option<(Permit, Scope, TaskId)> {
        let mut state = self.state();
        if state.running >= state.caps.max_running {
            return None;
        }
        let started = state.take_next();
        self.shared.has_queued.store(!state.order.is_empty(), Ordering::SeqCst);
        let (holder, scope, task) = started?;
        Some((Permit(self.clone(), holder), scope, task))
    }

    /// Sets the caps of an agent, or of the server. Running and queued tasks stay. Call [`next`](Self::next) afterwards: more
    /// tasks may be able to start.
    pub(crate) fn set_caps(&self, agent: Option<&str>, caps: Caps) {
        let mut state = self.state();
        match agent {
            Some(agent) => state.queue_of(&Arc::from(agent)).caps = caps,
            None => state.caps = caps,
        }
    }

    /// Sets the caps of each caller, like [`set_caps`](Self::set_caps).
    pub(crate) fn set_each(&self, caps: Caps) {
        let mut state = self.state();
        state.each = caps;
        let parked: Vec<Caller> = state
            .callers
            .iter()
            .filter(|(_, used)| !used.parked.is_empty())
            .map(|(caller, _)| caller.clone())
            .collect();
        for caller in parked {
            self.unpark(&mut state, &caller);
        }
    }

    pub(crate) fn load(&self) -> Load {
        let state = self.state();
        Load { running: state.running, queued: state.waiting }
    }

    /// The caller may run more turns than before: its lanes are served again. Their turn had come when they were parked, so
    /// they are first now. Otherwise a caller's lane at a busy agent could wait for ever while its lanes at others take all
    /// its slots.
    fn unpark(&self, state: &mut State, caller: &Caller) {
        for agent in std::mem::take(&mut state.in_use(caller).parked).into_iter().rev() {
            if state.queue_of(&agent).line_up_first(caller.clone()) {
                state.order.push_front(agent);
            }
            self.shared.has_queued.store(true, Ordering::SeqCst);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn queue_of(&mut self, agent: &Arc<str>) -> &mut AgentQueue {
        self.queues.entry(Arc::clone(agent)).or_default()
    }

    fn in_use(&mut self, caller: &Caller) -> &mut InUse {
        self.callers.entry(caller.clone()).or_default()
    }

    fn slots(&self) -> Slots {
        Slots { max: self.caps.max_running, running: self.running }
    }

    fn standing(&mut self, agent: &Arc<str>, caller: &Caller) -> Standing {
        let own = self.callers.get(caller).map_or(0, |used| used.running);
        let (each, server) = (self.each, self.slots());
        standing(caller, own, each, server, self.queue_of(agent))
    }

    fn caller_is_full(&self, caller: &Caller) -> Full {
        Full::Caller(self.callers.get(caller).map_or(0, |used| used.running + used.waiting))
    }

    /// Whether a new task may start without queueing. It must not overtake queued tasks, except those that only wait for the
    /// caps of their agent or their caller.
    fn may_start(&mut self, agent: &Arc<str>, caller: &Caller) -> bool {
        if self.running >= self.caps.max_running || self.standing(agent, caller) != Standing::May {
            return false;
        }
        let queue = self.queue_of(agent);
        // Usually nothing is queued, and then the queues need not be searched.
        queue.has_room()
            && (self.waiting == 0 || (!self.waits(agent, caller) && self.first_served().is_none()))
    }

    fn waits(&self, agent: &str, caller: &Caller) -> bool {
        self.queues.get(agent).is_some_and(|queue| queue.waits(caller))
    }

    /// The agent whose queued task would start next, and which of its lanes. Lanes of callers at their caps are parked on the
    /// way, so that they are looked at once, and not each time. Those that must leave the last slots to others are looked
    /// at each time; since each runs a sixteenth of the slots or more, they are few.
    fn first_served(&mut self) -> Option<(usize, usize)> {
        let (mut at, server, each) = (0, self.slots(), self.each);
        while let Some(agent) = self.order.get(at) {
            let Some(queue) = self.queues.get_mut(agent) else {
                self.order.remove(at);
                continue;
            };
            if !queue.has_room() {
                at += 1;
                continue;
            }
            let mut lane = 0;
            while let Some(caller) = queue.lane(lane) {
                let Some(used) = self.callers.get_mut(caller) else { return Some((at, lane)) };
                match standing(caller, used.running, each, server, queue) {
                    Standing::May => return Some((at, lane)),
                    Standing::NotTheLast => lane += 1,
                    Standing::AtItsCap => {
                        used.parked.push(Arc::clone(agent));
                        queue.park(lane);
                    }
                }
            }
            if lane > 0 {
                at += 1;
            } else {
                self.order.remove(at);
            }
        }
        None
    }

    fn take_next(&mut self) -> Option<(Holder, Scope, TaskId)> {
        let (at, lane) = self.first_served()?;
        let agent = self.order.remove(at)?;
        let (caller, (scope, task)) = self.queue_of(&agent).pop(lane)?;
        if self.queue_of(&agent).lane(0).is_some() {
            self.order.push_back(Arc::clone(&agent));
        }
        self.waiting -= 1;
        self.in_use(&caller).waiting -= 1;
        self.start(&agent, &caller);
        Some((Holder { agent, caller }, scope, task))
    }

    fn may_wait(&mut self, agent: &Arc<str>, caller: &Caller) -> Result<(), Full> {
        let (caps, waiting) = (self.caps, self.waiting);
        let own = self.callers.get(caller).map_or(0, |used| used.waiting);
        if caller.is_limited() && own >= self.each.max_queued {
            return Err(self.caller_is_full(caller));
        }
        // Whoever has no task in the queue may have one there, even if the tasks of others have reached the limit. Callers
        // come and go, so for them there is a limit all the same: twice the queue.
        let shut_out = |waiting: usize, most: usize| own == 0 && most > 0 && waiting < most.saturating_mul(2);
        let queue = self.queue_of(agent);
        if queue.waiting() >= queue.caps.max_queued && !shut_out(queue.waiting(), queue.caps.max_queued) {
            return Err(Full::Agent);
        }
        let agent_shut_out = queue.waiting() == 0 && caps.max_queued > 0;
        if waiting < caps.max_queued || agent_shut_out || shut_out(waiting, caps.max_queued) {
            Ok(())
        } else {
            Err(Full::Server)
        }
    }

    fn start(&mut self, agent: &Arc<str>, caller: &Caller) {
        self.running += 1;
        self.queue_of(agent).start(caller);
        self.in_use(caller).running += 1;
    }

    /// Forgets a caller that has nothing any more.
    fn release(&mut self, caller: &Caller) {
        if self.callers.get(caller).is_some_and(|used| used.running == 0 && used.waiting == 0) {
            self.callers.remove(caller);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Permit(admission, Holder { agent, caller }) = self;
        let mut state = admission.state();
        state.running -= 1;
        state.queue_of(agent).end(caller);
        let used = state.in_use(caller);
        used.running -= 1;
        if !used.parked.is_empty() {
            admission.unpark(&mut state, caller);
        }
        state.release(caller);
    }
}

impl Drop for QueueSlot {
    fn drop(&mut self) {
        let QueueSlot(admission, Holder { agent, caller }) = self;
        let mut state = admission.state();
        state.waiting -= 1;
        state.queue_of(agent).unpromise(caller);
        state.in_use(caller).waiting -= 1;
        state.release(caller);
    }
}
