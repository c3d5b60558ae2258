//! The running turns and the queue of one agent. Each caller has its own lane, and the lanes are served in turn.

use std::collections::{HashMap, HashSet, VecDeque};

use baton_protocol::domain::{Scope, TaskId};

use super::Caps;
use crate::engine::caller::Caller;

#[derive(Debug)]
pub(super) struct AgentQueue {
    pub(super) caps: Caps,
    pub(super) running: usize,
    /// Tasks in all lanes, including promised slots.
    waiting: usize,
    /// Lanes that are not empty.
    lanes: HashMap<Caller, Lane>,
    /// Callers whose lane has tasks and is not parked, in the order in which they are served.
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

    pub(super) fn has_room(&self) -> bool {
        self.running < self.caps.max_running
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

    /// The caller that is served next.
    pub(super) fn first(&self) -> Option<&Caller> {
        self.order.front()
    }

    /// Takes the lane that is served next out of the order.
    pub(super) fn park_first(&mut self) {
        self.order.pop_front();
    }

    /// Takes the next task.
    pub(super) fn pop(&mut self) -> Option<(Caller, (Scope, TaskId))> {
        let caller = self.order.pop_front()?;
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
            waiting: 0,
            lanes: HashMap::new(),
            order: VecDeque::new(),
            queued: HashSet::new(),
        }
    }
}
