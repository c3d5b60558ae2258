//! How many turns run at once, and who waits for a place: on the whole server, and of each agent with bounds of its own.
//!
//! First come, first served, with one exception: who waits because its agent is at its own bound does not keep others
//! from a place that it could not take.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_protocol::domain::{Scope, TaskId};

#[derive(Debug, Clone)]
pub(crate) struct Admission {
    shared: Arc<Shared>,
}

/// Most turns at once, and most tasks that wait for one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) running: usize,
    pub(crate) queued: usize,
}

impl Bounds {
    /// Of an agent that has only the server's.
    const NONE: Bounds = Bounds { running: usize::MAX, queued: usize::MAX };
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    bounds: Bounds,
    running: usize,
    queued: usize,
    /// Places in the queue promised to tasks that are being stored right now.
    promised: usize,
    agents: HashMap<Arc<str>, Agent>,
    /// All that wait: one that is looked at again does not wait twice.
    waiting: HashSet<(Scope, TaskId)>,
    /// Given to the next that waits; tells who came first across agents.
    next_number: u64,
}

#[derive(Debug)]
struct Agent {
    bounds: Bounds,
    running: usize,
    promised: usize,
    queue: VecDeque<(u64, Scope, TaskId)>,
}

/// The right to run one turn; given back on drop.
#[derive(Debug)]
pub(crate) struct Permit {
    shared: Arc<Shared>,
    agent: Arc<str>,
}

/// A promised place in the queue; given back on drop.
#[derive(Debug)]
pub(crate) struct QueuePlace {
    shared: Arc<Shared>,
    agent: Arc<str>,
}

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

impl State {
    fn agent(&mut self, name: &Arc<str>) -> &mut Agent {
        // Looked up by what is there, so that a known name is not cloned.
        if !self.agents.contains_key(name) {
            self.agents.insert(Arc::clone(name), Agent::new(Bounds::NONE));
        }
        self.agents.get_mut(name).expect("it was just put there")
    }

    /// Does anybody wait who could run if there were a place?
    fn somebody_is_first(&self) -> bool {
        self.queued + self.promised > 0 && self.agents.values().any(|agent| agent.waits() && agent.may_run())
    }
}

impl Agent {
    fn new(bounds: Bounds) -> Self {
        Agent { bounds, running: 0, promised: 0, queue: VecDeque::new() }
    }

    fn may_run(&self) -> bool {
        self.running < self.bounds.running
    }

    fn waits(&self) -> bool {
        self.promised > 0 || !self.queue.is_empty()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.running -= 1;
        state.agent(&self.agent).running -= 1;
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.promised -= 1;
        state.agent(&self.agent).promised -= 1;
    }
}

impl Admission {
    pub(crate) fn new(bounds: Bounds) -> Self {
        let state = State {
            bounds,
            running: 0,
            queued: 0,
            promised: 0,
            agents: HashMap::new(),
            waiting: HashSet::new(),
            next_number: 0,
        };
        Admission { shared: Arc::new(Shared { state: Mutex::new(state) }) }
    }

    /// For who comes from now on; who runs or waits stays.
    pub(crate) fn set_bounds(&self, bounds: Bounds) {
        self.shared.state().bounds = bounds;
    }

    /// An agent's own, below the server's.
    pub(crate) fn set_bounds_of(&self, agent: &Arc<str>, running: Option<usize>, queued: Option<usize>) {
        let Bounds { running: most, queued: longest } = Bounds::NONE;
        self.shared.state().agent(agent).bounds =
            Bounds { running: running.unwrap_or(most), queued: queued.unwrap_or(longest) };
    }

    /// A place to run, else a place to wait, else nothing: the server or the agent is at its capacity.
    pub(crate) fn reserve(&self, agent: &Arc<str>) -> Option<Place> {
        let (shared, name) = (&self.shared, agent);
        let mut state = shared.state();
        // Who comes later does not overtake who waits.
        let free = state.running < state.bounds.running && !state.somebody_is_first();
        let waiting = state.queued + state.promised;
        let room = waiting < state.bounds.queued;
        let agent = state.agent(name);
        if free && agent.may_run() && !agent.waits() {
            agent.running += 1;
            state.running += 1;
            return Some(Place::Run(Permit { shared: Arc::clone(shared), agent: Arc::clone(name) }));
        }
        if room && agent.queue.len() + agent.promised < agent.bounds.queued {
            agent.promised += 1;
            state.promised += 1;
            return Some(Place::Wait(QueuePlace { shared: Arc::clone(shared), agent: Arc::clone(name) }));
        }
        None
    }

    /// A place to run at once or none.
    pub(crate) fn run_now(&self, agent: &Arc<str>) -> Option<Permit> {
        match self.reserve(agent) {
            Some(Place::Run(permit)) => Some(permit),
            _ => None,
        }
    }

    /// Lets a stored task wait. Takes no place into account: what was accepted before must not be dropped.
    pub(crate) fn enqueue(&self, scope: Scope, task: TaskId) {
        let mut state = self.shared.state();
        if state.waiting.insert((scope.clone(), task.clone())) {
            let number = state.next_number;
            state.next_number += 1;
            state.queued += 1;
            let name = Arc::clone(&scope.agent);
            state.agent(&name).queue.push_back((number, scope, task));
        }
    }

    /// The next waiting task that may run, with the right to run it.
    pub(crate) fn next(&self) -> Option<(Permit, Scope, TaskId)> {
        let mut state = self.shared.state();
        if state.queued == 0 || state.running >= state.bounds.running {
            return None;
        }
        let fronts = state.agents.values_mut().filter(|agent| agent.may_run());
        let first = fronts.filter(|agent| !agent.queue.is_empty()).min_by_key(|agent| agent.queue[0].0)?;
        let (_, scope, task) = first.queue.pop_front()?;
        first.running += 1;
        state.running += 1;
        state.queued -= 1;
        let next = (scope, task);
        state.waiting.remove(&next);
        let (scope, task) = next;
        let permit = Permit { shared: Arc::clone(&self.shared), agent: Arc::clone(&scope.agent) };
        Some((permit, scope, task))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(running: usize, queued: usize) -> Admission {
        Admission::new(Bounds { running, queued })
    }

    fn run(admission: &Admission, agent: &str) -> Permit {
        let Some(Place::Run(permit)) = admission.reserve(&Arc::from(agent)) else {
            panic!("no place to run")
        };
        permit
    }

    fn wait_for(admission: &Admission, agent: &str, id: &str) {
        let Some(Place::Wait(_place)) = admission.reserve(&Arc::from(agent)) else {
            panic!("no place to wait")
        };
        admission.enqueue(Scope::new(agent, "", "o"), TaskId::parse(id).unwrap());
    }

    fn next(admission: &Admission) -> Option<(Permit, String)> {
        admission.next().map(|(permit, _, id)| (permit, id.as_str().to_owned()))
    }

    #[test]
    fn s12_places_are_bounded_and_first_come_first_served() {
        let admission = admission(1, 2);
        let first = run(&admission, "a");
        wait_for(&admission, "a", "one");
        wait_for(&admission, "b", "two");
        assert!(admission.reserve(&Arc::from("a")).is_none(), "beyond the bound");
        assert!(next(&admission).is_none(), "nothing is free yet");

        drop(first);
        let (permit, id) = next(&admission).unwrap();
        assert_eq!(id, "one");
        assert!(next(&admission).is_none());
        drop(permit);
        // A newcomer does not overtake, whoever it is for.
        assert!(admission.run_now(&Arc::from("a")).is_none());
        assert!(admission.run_now(&Arc::from("c")).is_none());
        assert_eq!(next(&admission).unwrap().1, "two");
    }

    #[test]
    fn s12_an_agent_at_its_own_bound_keeps_nobody_else_waiting() {
        let (admission, small) = (admission(3, 10), Arc::from("small"));
        admission.set_bounds_of(&small, Some(1), Some(2));
        let first = run(&admission, "small");
        wait_for(&admission, "small", "one");
        wait_for(&admission, "small", "two");
        assert!(admission.reserve(&small).is_none(), "beyond its own bound");
        let others = [run(&admission, "other"), run(&admission, "other")];
        wait_for(&admission, "other", "three");

        assert!(next(&admission).is_none(), "all places are taken");
        drop(others);
        assert_eq!(next(&admission).unwrap().1, "three", "the others before it could not run");
        drop(first);
        let (second, id) = next(&admission).unwrap();
        assert_eq!(id, "one");
        assert!(next(&admission).is_none(), "one at a time");
        drop(second);
        assert_eq!(next(&admission).unwrap().1, "two");
    }

    #[test]
    fn bounds_can_change_under_way() {
        let admission = admission(2, 10);
        let running = [run(&admission, "a"), run(&admission, "a")];
        admission.set_bounds(Bounds { running: 1, queued: 1 });
        wait_for(&admission, "a", "one");
        assert!(admission.reserve(&Arc::from("a")).is_none());
        let [first, second] = running;
        drop(first);
        assert!(next(&admission).is_none(), "one still runs, and there is one place now");
        admission.set_bounds(Bounds { running: 2, queued: 1 });
        let (third, _) = next(&admission).unwrap();
        admission.set_bounds_of(&Arc::from("a"), Some(2), Some(0));
        assert!(admission.reserve(&Arc::from("a")).is_none(), "its own bound counts from now on");
        drop((second, third));
        run(&admission, "a");
    }

    /// Whatever happens, nothing runs beyond a bound, nobody is lost, and in the end all places are free.
    #[test]
    fn the_counts_come_out_even() {
        let admission = admission(4, 20);
        admission.set_bounds_of(&Arc::from("b"), Some(2), Some(5));
        let (mut permits, mut accepted, mut ran) = (Vec::new(), 0, 0);
        let mut seed: u32 = 7;
        for step in 0..10_000 {
            // A small generator of our own: the same steps every time.
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let agent: Arc<str> = Arc::from(["a", "b", "c"][(seed >> 8) as usize % 3]);
            match (seed >> 16) % 4 {
                0 | 1 => match admission.reserve(&agent) {
                    Some(Place::Run(permit)) => permits.push(permit),
                    Some(Place::Wait(_place)) => {
                        accepted += 1;
                        admission
                            .enqueue(Scope::new(&agent, "", "o"), TaskId::parse(&step.to_string()).unwrap());
                    }
                    None => {}
                },
                2 => drop(permits.pop()),
                _ => {
                    if let Some((permit, ..)) = admission.next() {
                        ran += 1;
                        permits.push(permit);
                    }
                }
            }
            assert!(permits.len() <= 4);
            assert!(permits.iter().filter(|permit| &*permit.agent == "b").count() <= 2);
        }
        permits.clear();
        while let Some((permit, ..)) = admission.next() {
            ran += 1;
            drop(permit);
        }
        assert_eq!(ran, accepted);
        let state = admission.shared.state();
        assert_eq!((state.running, state.queued, state.promised, state.waiting.len()), (0, 0, 0, 0));
    }
}
