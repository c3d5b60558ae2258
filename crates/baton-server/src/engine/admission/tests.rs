//! Places and queues by hand, and any sequence of calls against what must hold after each.

use proptest::prelude::*;

use super::*;

fn agent(name: &str) -> Arc<str> {
    Arc::from(name)
}

fn caps(max_running: usize, max_queued: usize) -> Caps {
    Caps { max_running, max_queued }
}

fn owner(name: &str) -> Caller {
    Caller::Owner(Arc::from(name))
}

/// An admission without caps for each caller.
fn without_owner_caps(max_running: usize, max_queued: usize) -> Admission {
    Admission::new(caps(max_running, max_queued), Caps::NONE)
}

#[track_caller]
fn runs_for(admission: &Admission, name: &str, caller: &Caller) -> Permit {
    match admission.reserve(&agent(name), caller) {
        Ok(Admitted::Run(permit)) => permit,
        other => panic!("no place to run: {other:?}"),
    }
}

#[track_caller]
fn waits_for(admission: &Admission, name: &str, caller: &Caller, id: &str) {
    match admission.reserve(&agent(name), caller) {
        Ok(Admitted::Wait(slot)) => {
            let scope = Scope::new(name, "", "o");
            admission.enqueue(scope, TaskId::parse(id).unwrap(), slot.caller());
        }
        other => panic!("no place to wait: {other:?}"),
    }
}

#[track_caller]
fn runs(admission: &Admission, name: &str) -> Permit {
    runs_for(admission, name, &owner("o"))
}

#[track_caller]
fn waits(admission: &Admission, name: &str, id: &str) {
    waits_for(admission, name, &owner("o"), id);
}

#[track_caller]
fn refused(admission: &Admission, name: &str) -> Full {
    admission.reserve(&agent(name), &owner("o")).expect_err("beyond the bound")
}

fn run_now(admission: &Admission, name: &str) -> Result<Permit, Full> {
    admission.run_now(&agent(name), &owner("o"))
}

/// Agent and task that are started next; its turn ends at once.
fn served(admission: &Admission) -> Option<String> {
    admission.next().map(|(_permit, scope, id)| format!("{} {id}", scope.agent))
}

#[test]
fn s12_places_are_bounded_and_first_come_first_served() {
    let admission = without_owner_caps(1, 2);
    let first = runs(&admission, "a");
    waits(&admission, "a", "one");
    waits(&admission, "a", "two");
    assert_eq!(refused(&admission, "a"), Full::Server);
    assert!(admission.next().is_none(), "nothing is free yet");
    assert_eq!(admission.load(), Load { running: 1, queued: 2 });

    drop(first);
    let (permit, _, id) = admission.next().unwrap();
    assert_eq!(id.as_str(), "one");
    assert!(admission.next().is_none());
    drop(permit);
    // A newcomer does not overtake.
    assert!(run_now(&admission, "a").is_err());
    assert_eq!(admission.next().unwrap().2.as_str(), "two");
    assert_eq!(admission.load(), Load::default());
}

#[test]
fn s12_free_places_go_round_the_agents_that_wait() {
    let admission = without_owner_caps(1, 10);
    let running = runs(&admission, "busy");
    for id in ["1", "2", "3", "4"] {
        waits(&admission, "busy", id);
    }
    waits(&admission, "calm", "1");
    waits(&admission, "calm", "2");
    drop(running);
    let order: Vec<String> = std::iter::from_fn(|| served(&admission)).collect();
    assert_eq!(order, ["busy 1", "calm 1", "busy 2", "calm 2", "busy 3", "busy 4"]);
}

#[test]
fn s12_an_agent_at_its_own_cap_does_not_hold_up_others() {
    let admission = without_owner_caps(3, 10);
    admission.set_caps(Some("small"), caps(1, 1));
    let small = runs(&admission, "small");
    waits(&admission, "small", "1");
    assert_eq!(refused(&admission, "small"), Full::Agent);
    assert_eq!(run_now(&admission, "small").unwrap_err(), Full::Agent);
    // Somebody waits, but not for a place of the server's.
    let others = [runs(&admission, "other"), runs(&admission, "other")];
    assert_eq!(run_now(&admission, "third").unwrap_err(), Full::Server);
    waits(&admission, "other", "1");
    drop(others);
    assert_eq!(served(&admission).unwrap(), "other 1");
    assert_eq!(served(&admission), None);
    drop(small);
    assert_eq!(served(&admission).unwrap(), "small 1");
}

#[test]
fn s12_a_full_queue_has_room_for_an_agent_that_has_nobody_in_it() {
    let admission = without_owner_caps(1, 2);
    let _running = runs(&admission, "busy");
    waits(&admission, "busy", "1");
    waits(&admission, "busy", "2");
    assert_eq!(refused(&admission, "busy"), Full::Server);
    waits(&admission, "calm", "1");
    assert_eq!(refused(&admission, "calm"), Full::Server);
    // No queue is no queue.
    let admission = without_owner_caps(1, 0);
    let _running = runs(&admission, "busy");
    assert_eq!(refused(&admission, "calm"), Full::Server);
}

#[test]
fn s12_caps_change_while_turns_run() {
    let admission = without_owner_caps(2, 10);
    let both = [runs(&admission, "a"), runs(&admission, "a")];
    waits(&admission, "a", "1");
    waits(&admission, "a", "2");
    admission.set_caps(None, caps(1, 0));
    assert_eq!(refused(&admission, "a"), Full::Server);
    let [first, second] = both;
    drop(first);
    assert!(admission.next().is_none(), "one still runs, and that is as many as may");
    drop(second);
    let (_one, _, id) = admission.next().unwrap();
    assert_eq!(id.as_str(), "1", "who waits is kept");
    assert!(admission.next().is_none());
    admission.set_caps(None, caps(5, 10));
    admission.set_caps(Some("a"), caps(1, 10));
    assert!(admission.next().is_none());
    admission.set_caps(Some("a"), Caps::NONE);
    assert_eq!(admission.next().unwrap().2.as_str(), "2");
}

#[test]
fn a_task_does_not_wait_twice() {
    let admission = without_owner_caps(0, 10);
    waits(&admission, "a", "1");
    waits(&admission, "a", "1");
    assert_eq!(admission.load().queued, 1);
    admission.set_caps(None, caps(5, 10));
    assert!(admission.next().is_some());
    assert!(admission.next().is_none());
}

#[test]
fn s12_an_owner_at_its_caps_is_refused_and_others_are_served() {
    let admission = Admission::new(caps(10, 10), caps(2, 3));
    let (greedy, calm) = (owner("greedy"), owner("calm"));
    let _running = [runs_for(&admission, "a", &greedy), runs_for(&admission, "b", &greedy)];
    for id in ["1", "2", "3"] {
        waits_for(&admission, "a", &greedy, id);
    }
    assert_eq!(admission.reserve(&agent("b"), &greedy).unwrap_err(), Full::Caller(5));
    assert_eq!(admission.run_now(&agent("b"), &greedy).unwrap_err(), Full::Caller(5));
    // What waits for its owner's cap holds up nobody.
    let _calm = [runs_for(&admission, "a", &calm), runs_for(&admission, "b", &calm)];
    // Callers whose address is not known have no caps of their own.
    let unknown: Vec<Permit> = (0..6).map(|_| runs_for(&admission, "a", &Caller::Unknown)).collect();
    assert_eq!(unknown.len(), 6);
    assert!(
        matches!(admission.reserve(&agent("a"), &Caller::Unknown), Ok(Admitted::Wait(_))),
        "the server's own"
    );
}

#[test]
fn s12_owners_that_wait_are_served_in_turn() {
    let admission = without_owner_caps(1, 100);
    let running = runs(&admission, "a");
    for id in ["1", "2", "3", "4"] {
        waits_for(&admission, "a", &owner("greedy"), id);
    }
    waits_for(&admission, "a", &owner("calm"), "5");
    waits_for(&admission, "a", &Caller::Address("192.0.2.1".parse().unwrap()), "6");
    waits_for(&admission, "a", &owner("calm"), "7");
    drop(running);
    let order: Vec<String> = std::iter::from_fn(|| served(&admission)).collect();
    assert_eq!(order, ["a 1", "a 5", "a 6", "a 2", "a 7", "a 3", "a 4"]);
}

#[test]
fn s12_a_queue_full_of_one_owners_tasks_has_room_for_others() {
    let admission = without_owner_caps(1, 3);
    let _running = runs(&admission, "a");
    for id in ["1", "2", "3"] {
        waits_for(&admission, "a", &owner("greedy"), id);
    }
    assert_eq!(admission.reserve(&agent("a"), &owner("greedy")).unwrap_err(), Full::Server);
    for (n, id) in ["4", "5", "6"].into_iter().enumerate() {
        waits_for(&admission, "a", &owner(&n.to_string()), id);
    }
    // Owners come and go, so there is an end to it.
    assert_eq!(admission.reserve(&agent("a"), &owner("fourth")).unwrap_err(), Full::Server);
    // The queue of one agent goes by the same rule.
    let admission = Admission::new(caps(10, 10), Caps::NONE);
    admission.set_caps(Some("a"), caps(1, 1));
    let _running = runs(&admission, "a");
    waits_for(&admission, "a", &owner("greedy"), "1");
    assert_eq!(admission.reserve(&agent("a"), &owner("greedy")).unwrap_err(), Full::Agent);
    waits_for(&admission, "a", &owner("calm"), "2");
    assert_eq!(admission.reserve(&agent("a"), &owner("third")).unwrap_err(), Full::Agent);
}

#[test]
fn s12_a_lane_that_waits_for_its_owners_cap_goes_on_when_a_turn_ends() {
    let admission = Admission::new(caps(10, 10), caps(1, 10));
    let greedy = owner("greedy");
    let first = runs_for(&admission, "a", &greedy);
    waits_for(&admission, "a", &greedy, "1");
    waits_for(&admission, "b", &greedy, "2");
    assert!(admission.has_queued());
    assert!(admission.next().is_none());
    assert!(!admission.has_queued(), "nothing that a free slot would start");
    drop(first);
    assert!(admission.has_queued());
    assert_eq!(served(&admission).unwrap(), "a 1");
    let (second, _, id) = admission.next().unwrap();
    assert_eq!(id.as_str(), "2");
    waits_for(&admission, "a", &greedy, "3");
    waits_for(&admission, "a", &greedy, "4");
    assert!(admission.next().is_none());
    admission.set_each(Caps::NONE);
    assert_eq!((served(&admission).unwrap(), served(&admission).unwrap()), ("a 3".into(), "a 4".into()));
    drop(second);
    assert!(admission.state().callers.is_empty(), "who has nothing is forgotten");
}

#[test]
fn s12_the_last_slots_are_for_those_who_run_little() {
    let admission = Admission::new(caps(1000, 1000), caps(64, 1000));
    admission.set_caps(Some("a"), caps(64, 1000));
    let (greedy, calm) = (owner("greedy"), owner("calm"));
    let mut running: Vec<Permit> = (0..56).map(|_| runs_for(&admission, "a", &greedy)).collect();
    waits_for(&admission, "a", &greedy, "1");
    assert!(admission.next().is_none(), "the last eight are kept");
    // Others may still be served: it is not at a limit of its own.
    assert_eq!(admission.run_now(&agent("a"), &greedy).unwrap_err(), Full::Agent);
    // At an agent where it runs nothing it is as good as anybody.
    running.push(runs_for(&admission, "b", &greedy));
    let others: Vec<Permit> = (0..8).map(|_| runs_for(&admission, "a", &calm)).collect();
    waits_for(&admission, "a", &calm, "2");
    waits_for(&admission, "a", &owner("third"), "3");
    running.swap_remove(0);
    let (third, _, id) = admission.next().expect("a slot for who runs nothing");
    assert_eq!(id.as_str(), "3", "the others came first and run eight or more");
    running.swap_remove(0);
    assert!(admission.next().is_none());
    drop(third);
    drop(others);
    assert_eq!(served(&admission).as_deref(), Some("a 1"), "there is more than the last");
    // Without caps for each caller one may have it all.
    admission.set_each(Caps::NONE);
    assert_eq!(served(&admission).as_deref(), Some("a 2"));
    let mut all = Vec::new();
    all.extend(std::iter::from_fn(|| admission.run_now(&agent("a"), &greedy).ok()));
    assert_eq!(admission.state().queue_of(&agent("a")).running_of(&greedy), 64);
}

#[test]
fn s12_the_last_slots_of_a_small_agent_or_server() {
    for most in [2, 3, 8, 9] {
        let admission = Admission::new(caps(most, 100), caps(64, 100));
        let _running: Vec<Permit> = (1..most).map(|_| runs_for(&admission, "a", &owner("greedy"))).collect();
        waits_for(&admission, "b", &owner("greedy"), "1");
        assert!(admission.next().is_none(), "{most}");
        runs_for(&admission, "a", &owner("calm"));
        runs_for(&admission, "a", &Caller::Unknown);
    }
    // One slot is for everybody.
    runs_for(&Admission::new(caps(1, 1), caps(64, 1)), "a", &owner("anybody"));
}

#[derive(Debug, Clone)]
enum Step {
    Arrive(usize),
    RunNow(usize),
    /// The oldest promise is kept, or broken.
    Store(bool),
    End(usize),
    Next,
    Caps(Option<usize>, Caps),
    Each(Caps),
}

const AGENTS: usize = 2;
const OWNERS: usize = 3;
/// Each owner at each agent; lane `n` is that of owner `n % OWNERS` at agent `n / OWNERS`.
const LANES: usize = AGENTS * OWNERS;

fn some_caps() -> impl Strategy<Value = Caps> {
    (0..4usize, 0..4usize).prop_map(|(max_running, max_queued)| caps(max_running, max_queued))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..LANES).prop_map(Step::Arrive),
        1 => (0..LANES).prop_map(Step::RunNow),
        4 => prop::bool::weighted(0.9).prop_map(Step::Store),
        4 => (0..8usize).prop_map(Step::End),
        4 => Just(Step::Next),
        1 => (prop::option::of(0..AGENTS), some_caps()).prop_map(|(agent, caps)| Step::Caps(agent, caps)),
        1 => some_caps().prop_map(Step::Each),
    ]
}

/// What the test knows of one lane, kept apart from what is tested.
#[derive(Default, Clone)]
struct Seen {
    running: usize,
    /// Tasks by the number of their arrival in the queue.
    waiting: VecDeque<u32>,
    promised: usize,
    /// Times others were started while it waited and could have been.
    passed_over: usize,
}

/// What the test knows of all lanes and caps.
struct Model {
    lanes: Vec<Seen>,
    all: Caps,
    own: [Caps; AGENTS],
    each: Caps,
}

impl Model {
    fn sum(&self, of: impl Fn(usize) -> bool, what: impl Fn(&Seen) -> usize) -> usize {
        self.lanes.iter().enumerate().filter(|(n, _)| of(*n)).map(|(_, seen)| what(seen)).sum()
    }

    fn running(&self) -> usize {
        self.sum(|_| true, |seen| seen.running)
    }

    fn queued(&self, of: impl Fn(usize) -> bool) -> usize {
        self.sum(of, |seen| seen.waiting.len() + seen.promised)
    }

    /// Whether the agent and the owner of a lane may run one more turn.
    fn has_room(&self, lane: usize) -> bool {
        let at_agent = self.sum(|n| n / OWNERS == lane / OWNERS, |seen| seen.running);
        let of_owner = self.sum(|n| n % OWNERS == lane % OWNERS, |seen| seen.running);
        let own = self.own[lane / OWNERS].max_running;
        let limited = self.each.max_running < usize::MAX;
        let leaves_the_last = |max: usize, running: usize, own: usize| {
            let kept = usize::from(max > 1);
            own < kept || running + kept < max
        };
        at_agent < own
            && of_owner < self.each.max_running
            && (!limited
                || (leaves_the_last(self.all.max_running, self.running(), of_owner)
                    && leaves_the_last(own, at_agent, self.lanes[lane].running)))
    }

    fn may_run(&self, lane: usize) -> bool {
        self.running() < self.all.max_running && self.has_room(lane)
    }

    /// Lanes whose first task could start if the server had a slot.
    fn could(&self) -> Vec<usize> {
        (0..LANES).filter(|n| !self.lanes[*n].waiting.is_empty() && self.has_room(*n)).collect()
    }
}

proptest! {
    /// Whatever comes in whatever order: caps hold for everything that starts, the tasks of each owner at each agent
    /// start in the order they came, nobody is passed over more often than there are others, and at the end all is given
    /// back.
    #[test]
    fn s12_whatever_happens_caps_hold_and_nobody_starves(
        server in some_caps(),
        each in prop_oneof![some_caps(), Just(Caps::NONE)],
        steps in prop::collection::vec(step(), 1..160),
    ) {
        let names: Vec<(Arc<str>, Caller)> = (0..LANES)
            .map(|n| (agent(&(n / OWNERS).to_string()), owner(&(n % OWNERS).to_string())))
            .collect();
        let admission = Admission::new(server, each);
        let lanes = vec![Seen::default(); LANES];
        let mut model = Model { lanes, all: server, own: [Caps::NONE; AGENTS], each };
        let mut permits: Vec<(usize, Permit)> = Vec::new();
        let mut places: VecDeque<(usize, QueueSlot)> = VecDeque::new();
        let mut arrivals = 0u32;
        for step in steps {
            match step {
                Step::Arrive(n) => {
                    let (at_agent, of_owner, everybody) = (
                        model.queued(|lane| lane / OWNERS == n / OWNERS),
                        model.queued(|lane| lane % OWNERS == n % OWNERS),
                        model.queued(|_| true),
                    );
                    let own = model.own[n / OWNERS];
                    match admission.reserve(&names[n].0, &names[n].1) {
                        Ok(Admitted::Run(permit)) => {
                            prop_assert!(model.may_run(n));
                            prop_assert_eq!(model.queued(|lane| lane == n), 0, "overtook its own");
                            prop_assert_eq!(model.could(), Vec::<usize>::new(), "overtook others");
                            model.lanes[n].running += 1;
                            permits.push((n, permit));
                        }
                        Ok(Admitted::Wait(place)) => {
                            prop_assert!(of_owner < model.each.max_queued);
                            let spare = |queued: usize, most: usize| of_owner == 0 && queued < 2 * most;
                            prop_assert!(at_agent < own.max_queued || spare(at_agent, own.max_queued));
                            prop_assert!(
                                everybody < model.all.max_queued
                                    || spare(everybody, model.all.max_queued)
                                    || (at_agent == 0 && model.all.max_queued > 0)
                            );
                            model.lanes[n].promised += 1;
                            places.push_back((n, place));
                        }
                        Err(Full::Caller(_)) => prop_assert!(of_owner >= model.each.max_queued),
                        Err(Full::Agent) => prop_assert!(at_agent >= own.max_queued),
                        Err(Full::Server) => prop_assert!(everybody >= model.all.max_queued),
                    }
                }
                Step::RunNow(n) => {
                    if let Ok(permit) = admission.run_now(&names[n].0, &names[n].1) {
                        prop_assert!(model.may_run(n));
                        model.lanes[n].running += 1;
                        permits.push((n, permit));
                    }
                }
                Step::Store(kept) => {
                    if let Some((n, place)) = places.pop_front() {
                        if kept {
                            arrivals += 1;
                            let id = TaskId::parse(&format!("{n}-{arrivals}")).unwrap();
                            admission.enqueue(Scope::new(&names[n].0, "", "o"), id, place.caller());
                            model.lanes[n].waiting.push_back(arrivals);
                        }
                        drop(place);
                        model.lanes[n].promised -= 1;
                    }
                }
                Step::End(which) => {
                    if !permits.is_empty() {
                        let (n, permit) = permits.swap_remove(which % permits.len());
                        drop(permit);
                        model.lanes[n].running -= 1;
                    }
                }
                Step::Next => {
                    let could = model.could();
                    let full = model.running() >= model.all.max_running;
                    match admission.next() {
                        Some((permit, _, id)) => {
                            let (lane, arrival) = id.as_str().split_once('-').unwrap();
                            let n: usize = lane.parse().unwrap();
                            prop_assert!(!full && could.contains(&n));
                            let seen = &mut model.lanes[n];
                            let first = seen.waiting.pop_front().map(|arrival| arrival.to_string());
                            prop_assert_eq!(first.as_deref(), Some(arrival), "not in order");
                            seen.running += 1;
                            seen.passed_over = 0;
                            permits.push((n, permit));
                            for other in could.into_iter().filter(|other| *other != n) {
                                let passed = &mut model.lanes[other].passed_over;
                                *passed += 1;
                                prop_assert!(*passed <= 2 * LANES, "{} starves", other);
                            }
                        }
                        None => prop_assert!(full || could.is_empty(), "{:?} could start", could),
                    }
                }
                Step::Caps(None, caps) => {
                    admission.set_caps(None, caps);
                    model.all = caps;
                }
                Step::Caps(Some(n), caps) => {
                    admission.set_caps(Some(&n.to_string()), caps);
                    model.own[n] = caps;
                }
                Step::Each(caps) => {
                    admission.set_each(caps);
                    model.each = caps;
                }
            }
            let (running, queued) = (permits.len(), model.queued(|_| true));
            prop_assert_eq!(admission.load(), Load { running, queued });
            prop_assert!(admission.has_queued() || model.could().is_empty(), "nobody would ask for the next");
        }
        // Whoever is left is served as soon as there is room, and everything comes back.
        drop((permits, places));
        admission.set_caps(None, Caps::NONE);
        admission.set_each(Caps::NONE);
        for n in 0..AGENTS {
            admission.set_caps(Some(&n.to_string()), Caps::NONE);
        }
        let left = model.sum(|_| true, |seen| seen.waiting.len());
        prop_assert_eq!(std::iter::from_fn(|| admission.next()).count(), left);
        prop_assert_eq!(admission.load(), Load::default());
        prop_assert!(admission.state().callers.is_empty());
        prop_assert!(admission.run_now(&names[0].0, &names[0].1).is_ok());
    }
}
