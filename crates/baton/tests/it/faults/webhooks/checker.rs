//! The rules of webhooks: what a receiver got, held against what the store holds. Nothing here does anything.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use super::told::{TaskLog, Told};
use super::walk::{Call, Place, Walk, failures};
use baton_protocol::Generation;

/// What is promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rule {
    /// Every event reaches every webhook that is due it, unless the server has given that webhook up.
    EveryEvent,
    /// First arrivals are in the order of the log.
    InOrder,
    /// What arrives is what the log says.
    IsOfTheLog,
    /// Events are left out only after three failures of one of them, and only for the task that has them in it.
    SkipsAfterThreeFailures,
    /// An id has one body, and is of one webhook.
    OneBodyPerId,
    /// An event that is repeated has its id again.
    OneIdPerEvent,
    /// A process makes the next call of a webhook after the last one was answered.
    OneCallAtATime,
    /// The signature is by the webhook's token.
    Signed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) rule: Rule,
    pub(crate) what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.rule, self.what)
    }
}

/// A webhook, as its client knows it.
#[derive(Debug, Clone)]
pub(crate) struct Hook {
    pub(crate) task: String,
    pub(crate) generation: Generation,
    /// From where on it is due the events; `None` if nobody was told that it exists.
    pub(crate) since: Option<Since>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Since {
    /// It came with the task.
    Birth,
    /// It came with this message to a task.
    Message(String),
    /// Its creation was acknowledged at this time, in milliseconds.
    Time(i64),
}

/// What happened at the receiver, in this order.
#[derive(Debug, Clone)]
pub(crate) enum Entry {
    Called {
        call: u64,
        hook: u64,
        /// Of the server's processes, the one that calls.
        life: u64,
        id: String,
        body: Arc<[u8]>,
        signed: Result<(), String>,
    },
    /// The answer begins, or the connection is about to be closed. From here on, the next call may come.
    Over { call: u64, fails: bool },
    /// The answer, a success, was written.
    Accepted { call: u64 },
}

/// Figures, for whoever wonders whether anything happened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Events that webhooks were due.
    pub(crate) due: u64,
    /// Calls with an id that had been accepted before.
    pub(crate) repeats: u64,
    /// Such in the process that was told so.
    pub(crate) repeats_of_one_life: u64,
    /// Whole tasks in place of events.
    pub(crate) skips: u64,
    /// Webhooks of 1.0 and 0.3 that failed for good.
    pub(crate) given_up: u64,
    /// Webhooks of 0.1 that failed for good.
    pub(crate) removed: u64,
}

pub(crate) fn violations(
    hooks: &BTreeMap<u64, Hook>,
    entries: &[Entry],
    logs: &BTreeMap<String, TaskLog>,
) -> (Vec<Violation>, Counts) {
    let mut found = Found::default();
    let mut calls: BTreeMap<u64, Vec<Call<'_>>> = hooks.keys().map(|hook| (*hook, Vec::new())).collect();
    collect(entries, &mut calls, &mut found);
    ids(&calls, &mut found);
    for (number, calls) in &calls {
        let hook = hooks.get(number).and_then(|hook| {
            let log = logs.get(&hook.task)?;
            Some((hook, log, log.told.get(&hook.generation)?))
        });
        match hook {
            Some((hook, log, told)) => delivered(*number, hook, log, told, calls, &mut found),
            None => found.add(Rule::IsOfTheLog, format!("webhook {number} is of no task")),
        }
    }
    (found.violations, found.counts)
}

#[derive(Default)]
pub(super) struct Found {
    violations: Vec<Violation>,
    counts: Counts,
}

impl Found {
    pub(super) fn add(&mut self, rule: Rule, what: impl Into<String>) {
        self.violations.push(Violation { rule, what: what.into() });
    }
}

/// The calls of each webhook, in order; none while another one of the same process is under way.
fn collect<'a>(entries: &'a [Entry], calls: &mut BTreeMap<u64, Vec<Call<'a>>>, found: &mut Found) {
    let mut places: HashMap<u64, (u64, usize)> = HashMap::new();
    let mut under_way: HashMap<(u64, u64), u64> = HashMap::new();
    for entry in entries {
        match entry {
            Entry::Called { call, hook, life, id, body, signed } => {
                if let Err(bad) = signed {
                    found.add(Rule::Signed, format!("webhook {hook}, {id}: {bad}"));
                }
                if let Some(other) = under_way.insert((*hook, *life), *call) {
                    let what = format!("webhook {hook}: call {call} came while {other} was under way");
                    found.add(Rule::OneCallAtATime, what);
                }
                let calls = calls.entry(*hook).or_default();
                places.insert(*call, (*hook, calls.len()));
                calls.push(Call { life: *life, id, body, fails: false, succeeds: false, accepted: false });
            }
            Entry::Over { call, .. } | Entry::Accepted { call } => {
                let (hook, place) = places[call];
                let of = &mut calls.get_mut(&hook).expect("it was called")[place];
                match entry {
                    Entry::Over { fails, .. } => {
                        (of.fails, of.succeeds) = (*fails, !*fails);
                        if under_way.get(&(hook, of.life)) == Some(call) {
                            under_way.remove(&(hook, of.life));
                        }
                    }
                    _ => of.accepted = true,
                }
            }
        }
    }
}

fn ids(calls: &BTreeMap<u64, Vec<Call<'_>>>, found: &mut Found) {
    let mut known: HashMap<&str, (u64, &Arc<[u8]>)> = HashMap::new();
    for (hook, calls) in calls {
        for Call { id, body, .. } in calls {
            let (of, first) = *known.entry(*id).or_insert((*hook, body));
            if of != *hook {
                found.add(Rule::OneBodyPerId, format!("{id} is of webhook {of} and of {hook}"));
            } else if first != *body {
                let text = |body: &[u8]| String::from_utf8_lossy(body).into_owned();
                let what = format!("webhook {hook}, {id}: {}, and {}", text(first), text(body));
                found.add(Rule::OneBodyPerId, what);
            }
        }
    }
}

/// One webhook: what it got, in which order, and whether that is all.
fn delivered(number: u64, hook: &Hook, log: &TaskLog, told: &Told, calls: &[Call<'_>], found: &mut Found) {
    let mut walk = Walk { number, hook, told, ids: Vec::new(), ways: [(0, Vec::new())].into() };
    let mut accepted: HashMap<&str, BTreeSet<u64>> = HashMap::new();
    for (at, call) in calls.iter().enumerate() {
        if !walk.ids.contains(&call.id) {
            walk.step(call, &calls[..at], found);
        } else if let Some(lives) = accepted.get(call.id) {
            found.counts.repeats += 1;
            found.counts.repeats_of_one_life += u64::from(lives.contains(&call.life));
        }
        if call.accepted {
            accepted.entry(call.id).or_default().insert(call.life);
        }
    }
    let (_, way) = walk.ways.pop_last().expect("there is always a way");
    found.counts.skips += way.iter().filter(|place| matches!(place, Place::Whole(_))).count() as u64;
    let places = walk.ids.into_iter().zip(way).collect();
    missing(number, hook, log, told, calls, &places, found);
}

/// What the webhook was due and never took.
fn missing(
    number: u64,
    hook: &Hook,
    log: &TaskLog,
    told: &Told,
    calls: &[Call<'_>],
    places: &HashMap<&str, Place>,
    found: &mut Found,
) {
    let began = match calls.first().map(|call| places[call.id]) {
        Some(Place::Event(event) | Place::Whole(event)) => Some(event),
        _ => None,
    };
    let is_due = |event: u64| {
        began.is_some_and(|began| event >= began)
            || match &hook.since {
                None => false,
                Some(Since::Birth) => true,
                Some(Since::Message(id)) => log.messages.get(id).is_some_and(|message| event > *message),
                Some(Since::Time(time)) => log.at[event as usize - 1] > *time,
            }
    };
    let (mut taken, mut covered) = (BTreeSet::new(), 0);
    for call in calls.iter().filter(|call| call.accepted) {
        match places[call.id] {
            Place::Event(event) => drop(taken.insert(event)),
            Place::Whole(event) => covered = covered.max(event),
            Place::Nothing => {}
        }
    }
    let due: Vec<u64> = told.due.keys().copied().filter(|event| is_due(*event)).collect();
    found.counts.due += due.len() as u64;
    let missing: Vec<u64> =
        due.into_iter().filter(|event| !taken.contains(event) && *event > covered).collect();
    if missing.is_empty() {
        return;
    }
    let (most, given_up) = match hook.generation {
        Generation::V0_1 => (4, &mut found.counts.removed),
        Generation::V0_3 | Generation::V1 => (10, &mut found.counts.given_up),
    };
    match failed_for_good(calls, places, most) {
        Some(at) if missing.iter().all(|event| *event >= at) => *given_up += 1,
        _ => {
            let (task, generation) = (&hook.task, hook.generation.version());
            let what = format!(
                "webhook {number} ({generation}, {:?}) of {task} never took {missing:?} of {:?}",
                hook.since,
                told.due.keys()
            );
            found.add(Rule::EveryEvent, what);
        }
    }
}

/// The event at which the server gave up, if its last calls are that many failures. From the fourth on, they may be calls with
/// the whole task.
fn failed_for_good(calls: &[Call<'_>], places: &HashMap<&str, Place>, most: usize) -> Option<u64> {
    let last = calls.last()?;
    let mut failures = failures(calls, last.id);
    let mut at = places[last.id];
    if matches!(at, Place::Whole(_))
        && let Some(before) = calls.iter().rev().find(|call| call.id != last.id)
    {
        failures += self::failures(calls, before.id);
        at = places[before.id];
    }
    match at {
        Place::Event(event) | Place::Whole(event) if failures >= most && !last.accepted => Some(event),
        _ => None,
    }
}
