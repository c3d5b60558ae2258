//! Places and queues by hand, and any sequence of calls against what must hold after each.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

fn agent(name: &str) -> Arc<str> {
    Arc::from(name)
}

fn caps(max_running: usize, max_queued: usize) -> Caps {
    Caps { max_running, max_queued }
}

#[track_caller]
fn runs(admission: &Admission, name: &str) -> Permit {
    match admission.reserve(&agent(name)) {
        Ok(Admitted::Run(permit)) => permit,
        other => panic!("no place to run: {other:?}"),
    }
}

#[track_caller]
fn waits(admission: &Admission, name: &str, id: &str) {
    let place = admission.reserve(&agent(name));
    assert!(matches!(place, Ok(Admitted::Wait(_))), "no place to wait: {place:?}");
    admission.enqueue(Scope::new(name, "", "o"), TaskId::parse(id).unwrap());
}

#[track_caller]
fn refused(admission: &Admission, name: &str) -> Full {
    admission.reserve(&agent(name)).expect_err("beyond the bound")
}

/// Agent and task that are started next; its turn ends at once.
fn served(admission: &Admission) -> Option<String> {
    admission.next().map(|(_permit, scope, id)| format!("{} {id}", scope.agent))
}

#[test]
fn s12_places_are_bounded_and_first_come_first_served() {
    let admission = Admission::new(caps(1, 2));
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
    assert!(admission.run_now(&agent("a")).is_err());
    assert_eq!(admission.next().unwrap().2.as_str(), "two");
    assert_eq!(admission.load(), Load::default());
}

#[test]
fn s12_free_places_go_round_the_agents_that_wait() {
    let admission = Admission::new(caps(1, 10));
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
    let admission = Admission::new(caps(3, 10));
    admission.set_caps(Some("small"), caps(1, 1));
    let small = runs(&admission, "small");
    waits(&admission, "small", "1");
    assert_eq!(refused(&admission, "small"), Full::Agent);
    assert_eq!(admission.run_now(&agent("small")).unwrap_err(), Full::Agent);
    // Somebody waits, but not for a place of the server's.
    let others = [runs(&admission, "other"), runs(&admission, "other")];
    assert_eq!(admission.run_now(&agent("third")).unwrap_err(), Full::Server);
    waits(&admission, "other", "1");
    drop(others);
    assert_eq!(served(&admission).unwrap(), "other 1");
    assert_eq!(served(&admission), None);
    drop(small);
    assert_eq!(served(&admission).unwrap(), "small 1");
}

#[test]
fn s12_a_full_queue_has_room_for_an_agent_that_has_nobody_in_it() {
    let admission = Admission::new(caps(1, 2));
    let _running = runs(&admission, "busy");
    waits(&admission, "busy", "1");
    waits(&admission, "busy", "2");
    assert_eq!(refused(&admission, "busy"), Full::Server);
    waits(&admission, "calm", "1");
    assert_eq!(refused(&admission, "calm"), Full::Server);
    // No queue is no queue.
    let admission = Admission::new(caps(1, 0));
    let _running = runs(&admission, "busy");
    assert_eq!(refused(&admission, "calm"), Full::Server);
}

#[test]
fn s12_caps_change_while_turns_run() {
    let admission = Admission::new(caps(2, 10));
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
    let admission = Admission::new(caps(0, 10));
    waits(&admission, "a", "1");
    waits(&admission, "a", "1");
    assert_eq!(admission.load().queued, 1);
    admission.set_caps(None, caps(5, 10));
    assert!(admission.next().is_some());
    assert!(admission.next().is_none());
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
}

const AGENTS: usize = 3;

fn some_caps() -> impl Strategy<Value = Caps> {
    (0..4usize, 0..4usize).prop_map(|(max_running, max_queued)| caps(max_running, max_queued))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..AGENTS).prop_map(Step::Arrive),
        1 => (0..AGENTS).prop_map(Step::RunNow),
        4 => prop::bool::weighted(0.9).prop_map(Step::Store),
        4 => (0..8usize).prop_map(Step::End),
        4 => Just(Step::Next),
        1 => (prop::option::of(0..AGENTS), some_caps()).prop_map(|(agent, caps)| Step::Caps(agent, caps)),
    ]
}

/// What the test knows of one agent, kept apart from what is tested.
#[derive(Default)]
struct Seen {
    running: usize,
    /// Tasks by the number of their arrival in the queue.
    waiting: VecDeque<u32>,
    /// Times others were started while it waited and could have been.
    passed_over: usize,
}

proptest! {
    /// Whatever comes in whatever order: caps hold for everything that starts, each agent's tasks start in the order
    /// they came, nobody is passed over more often than there are others, and at the end all is given back.
    #[test]
    fn s12_whatever_happens_caps_hold_and_nobody_starves(
        server in some_caps(),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let names: Vec<Arc<str>> = (0..AGENTS).map(|n| agent(&n.to_string())).collect();
        let admission = Admission::new(server);
        let (mut all, mut own) = (server, [Caps::NONE; AGENTS]);
        let mut seen: HashMap<usize, Seen> = (0..AGENTS).map(|n| (n, Seen::default())).collect();
        let mut permits: Vec<(usize, Permit)> = Vec::new();
        let mut places: VecDeque<(usize, QueuePlace)> = VecDeque::new();
        let mut arrivals = 0u32;
        for step in steps {
            let running: usize = seen.values().map(|seen| seen.running).sum();
            match step {
                Step::Arrive(n) => {
                    let waiting = seen[&n].waiting.len() + places.iter().filter(|place| place.0 == n).count();
                    let everybody =
                        seen.values().map(|seen| seen.waiting.len()).sum::<usize>() + places.len();
                    let others_could = (0..AGENTS).any(|other| {
                        let waits = !seen[&other].waiting.is_empty() || places.iter().any(|place| place.0 == other);
                        waits && seen[&other].running < own[other].max_running
                    });
                    match admission.reserve(&names[n]) {
                        Ok(Admitted::Run(permit)) => {
                            prop_assert!(running < all.max_running && seen[&n].running < own[n].max_running);
                            prop_assert_eq!(waiting, 0, "overtook its own");
                            prop_assert!(!others_could, "overtook others");
                            seen.get_mut(&n).unwrap().running += 1;
                            permits.push((n, permit));
                        }
                        Ok(Admitted::Wait(place)) => {
                            prop_assert!(waiting < own[n].max_queued);
                            prop_assert!(everybody < all.max_queued || (waiting == 0 && all.max_queued > 0));
                            places.push_back((n, place));
                        }
                        Err(Full::Agent) => prop_assert!(waiting >= own[n].max_queued),
                        Err(Full::Server) => prop_assert!(everybody >= all.max_queued),
                    }
                }
                Step::RunNow(n) => {
                    if let Ok(permit) = admission.run_now(&names[n]) {
                        prop_assert!(running < all.max_running && seen[&n].running < own[n].max_running);
                        seen.get_mut(&n).unwrap().running += 1;
                        permits.push((n, permit));
                    }
                }
                Step::Store(kept) => {
                    if let Some((n, place)) = places.pop_front() {
                        if kept {
                            arrivals += 1;
                            let id = TaskId::parse(&arrivals.to_string()).unwrap();
                            admission.enqueue(Scope::new(&names[n], "", "o"), id);
                            seen.get_mut(&n).unwrap().waiting.push_back(arrivals);
                        }
                        drop(place);
                    }
                }
                Step::End(which) => {
                    if !permits.is_empty() {
                        let (n, permit) = permits.swap_remove(which % permits.len());
                        drop(permit);
                        seen.get_mut(&n).unwrap().running -= 1;
                    }
                }
                Step::Next => {
                    let could: Vec<usize> = (0..AGENTS)
                        .filter(|n| !seen[n].waiting.is_empty() && seen[n].running < own[*n].max_running)
                        .collect();
                    match admission.next() {
                        Some((permit, scope, id)) => {
                            let n: usize = scope.agent.parse().unwrap();
                            prop_assert!(running < all.max_running && could.contains(&n));
                            let seen_n = seen.get_mut(&n).unwrap();
                            let first = seen_n.waiting.pop_front().map(|arrival| arrival.to_string());
                            prop_assert_eq!(first.as_deref(), Some(id.as_str()), "not in order");
                            seen_n.running += 1;
                            seen_n.passed_over = 0;
                            permits.push((n, permit));
                            for other in could.into_iter().filter(|other| *other != n) {
                                let passed = &mut seen.get_mut(&other).unwrap().passed_over;
                                *passed += 1;
                                prop_assert!(*passed < AGENTS, "{} starves", other);
                            }
                        }
                        None => prop_assert!(could.is_empty() || running >= all.max_running),
                    }
                }
                Step::Caps(None, caps) => {
                    admission.set_caps(None, caps);
                    all = caps;
                }
                Step::Caps(Some(n), caps) => {
                    admission.set_caps(Some(&names[n]), caps);
                    own[n] = caps;
                }
            }
            let queued = seen.values().map(|seen| seen.waiting.len()).sum::<usize>() + places.len();
            let running = permits.len();
            prop_assert_eq!(admission.load(), Load { running, queued });
        }
        // Whoever is left is served as soon as there is room, and everything comes back.
        drop((permits, places));
        admission.set_caps(None, Caps::NONE);
        for name in &names {
            admission.set_caps(Some(name), Caps::NONE);
        }
        let left = seen.values().map(|seen| seen.waiting.len()).sum::<usize>();
        prop_assert_eq!(std::iter::from_fn(|| admission.next()).count(), left);
        prop_assert_eq!(admission.load(), Load::default());
        prop_assert!(admission.run_now(&names[0]).is_ok());
    }
}
