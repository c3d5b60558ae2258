//! The running turns and the queue of one agent. Each caller has its own lane, and the lanes are served in turn.

use std::collections::{HashMap, HashSet, VecDeque};

use baton_protocol::domain::{Scope, TaskId};

use super::{Caps, Slots};
use crate::engine::caller::Caller;

#[derive(Debug)]
pub(super) struct AgentQueue {
    pub(super) caps: Caps,
    running: usize,
    /// How many of them each caller has, as far as callers have limits.
    running_by: HashMap<Caller, usize>,
    /// Tasks in all lanes, including promised slots.
    waiting: usize,
    /// Lanes that are not empty.
    lanes: HashMap<Caller, Lane>,
    /// Callers whose lane has tasks and is not parked, in the order in which they are served. Who must leave the last slots to
    /// others is skipped for the moment.
    order: VecDeque<Caller>,
    /// All tasks in the lanes, so that no task is queued twice.
    queued: HashSet<(Scope, TaskId)>,
}

#[derive(Debug, Default)]
struct Lane {
    tasks: VecDeque<(Scope, TaskId)>,
    /// Slots that are promised to tasks being stored right now.
    promised: usize,
}

impl AgentQueue {
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(super) fn slots(&self) -> Slots {
        Slots { max: self.caps.max_running, running: self.running }
    }

    pub(super) fn has_room(&self) -> bool {
        self.running < self.caps.max_running
    }

    pub(super) fn running_of(&self, caller: &Caller) -> usize {
        self.running_by.get(caller).copied().unwrap_or_default()
    }

    /// A turn of the caller begins.
    pub(super) fn start(&mut self, caller: &Caller) {
        self.running += 1;
        if caller.is_limited() {
            *self.running_by.entry(caller.clone()).or_default() += 1;
        }
    }

    /// A turn of the caller has ended.
    pub(super) fn end(&mut self, caller: &Caller) {
        self.running -= 1;
        if let Some(running) = self.running_by.get_mut(caller) {
            *running -= 1;
            if *running == 0 {
                self.running_by.remove(caller);
            }
        }
    }

    /// Whether the caller has a task here, or the promise of a slot.
    pub(super) fn waits(&self, caller: &Caller) -> bool {
        self.lanes.contains_key(caller)
    }

    pub(super) fn promise(&mut self, caller: &Caller) {
        self.lanes.entry(caller.clone()).or_default().promised += 1;
        self.waiting += 1;
    }

    pub(super) fn unpromise(&mut self, caller: &Caller) {
        if let Some(lane) = self.lanes.get_mut(caller) {
            lane.promised -= 1;
            self.waiting -= 1;
            self.forget_empty(caller);
        }
    }

    /// Adds a task: `Some` of whether it is the first in its lane. `None` if it is queued already.
    pub(super) fn push(&mut self, scope: Scope, task: TaskId, caller: &Caller) -> Option<bool> {
        if !self.queued.insert((scope.clone(), task.clone())) {
            return None;
        }
        self.waiting += 1;
        let lane = self.lanes.entry(caller.clone()).or_default();
        lane.tasks.push_back((scope, task));
        Some(lane.tasks.len() == 1)
    }

    /// The caller's lane is to be served; `true` if it is the only one.
    pub(super) fn line_up(&mut self, caller: Caller) -> bool {
        self.order.push_back(caller);
        self.order.len() == 1
    }

    /// The same, before all others.
    pub(super) fn line_up_first(&mut self, caller: Caller) -> bool {
        self.order.push_front(caller);
        self.order.len() == 1
    }

    /// The caller whose lane has that place in the order; the first is served next.
    pub(super) fn lane(&self, at: usize) -> Option<&Caller> {
        self.order.get(at)
    }

    /// Takes that lane out of the order.
    pub(super) fn park(&mut self, at: usize) {
        self.order.remove(at);
    }

    /// Takes the next task of that lane.
    pub(super) fn pop(&mut self, at: usize) -> Option<(Caller, (Scope, TaskId))> {
        let caller = self.order.remove(at)?;
        let lane = self.lanes.get_mut(&caller)?;
        let next = lane.tasks.pop_front()?;
        if !lane.tasks.is_empty() {
            self.order.push_back(caller.clone());
        }
        self.waiting -= 1;
        self.queued.remove(&next);
        self.forget_empty(&caller);
        Some((caller, next))
    }

    fn forget_empty(&mut self, caller: &Caller) {
        if self.lanes.get(caller).is_some_and(|lane| lane.tasks.is_empty() && lane.promised == 0) {
            self.lanes.remove(caller);
        }
    }
}

impl Default for AgentQueue {
    fn default() -> Self {
        AgentQueue {
            caps: Caps::NONE,
            running: 0,
            running_by: HashMap::new(),
            waiting: 0,
            lanes: HashMap::new(),
            order: VecDeque::new(),
            queued: HashSet::new(),
        }
    }
}
