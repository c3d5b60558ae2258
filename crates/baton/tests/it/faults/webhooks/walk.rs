//! What a webhook got, call by call: which event each id stands for, and whether they came in their order.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::checker::{Found, Hook, Rule, Since};
use super::told::{Told, hash};

/// A call of one webhook.
pub(super) struct Call<'a> {
    pub(super) life: u64,
    pub(super) id: &'a str,
    pub(super) body: &'a Arc<[u8]>,
    pub(super) fails: bool,
    /// The receiver began to answer with a success.
    pub(super) succeeds: bool,
    /// The success was written.
    pub(super) accepted: bool,
}

/// What an id stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Event(u64),
    /// The whole task as of this event.
    Whole(u64),
    Nothing,
}

/// First arrivals, one after the other. An agent that works again after a kill does the same things again, so that a body
/// may be that of several events: all ways to read what came are followed.
pub(super) struct Walk<'a> {
    pub(super) number: u64,
    pub(super) hook: &'a Hook,
    pub(super) told: &'a Told,
    pub(super) ids: Vec<&'a str>,
    /// How far they may have got, and what each id is then. 0 is the beginning.
    pub(super) ways: BTreeMap<u64, Vec<Place>>,
}

impl<'a> Walk<'a> {
    /// Takes the first call with its id.
    pub(super) fn step(&mut self, call: &Call<'a>, before: &[Call<'a>], found: &mut Found) {
        let (body, previous) = (hash(call.body), before.last());
        // Is the last one done, as far as the receiver knows?
        let is_done = |id: &&str| before.iter().any(|call| call.id == *id && call.succeeds);
        let may_go_on = self.ids.last().is_none_or(is_done);
        let may_skip = previous.is_some_and(|previous| failures(before, previous.id) >= 3);
        let mut ways = BTreeMap::new();
        for (last, way) in &self.ways {
            // A webhook that was made later begins anywhere.
            let begins = way.is_empty() && self.hook.since != Some(Since::Birth);
            let due = self.told.due.range(last + 1..).take(if begins { usize::MAX } else { 1 });
            let events =
                due.filter(|(_, due)| may_go_on && **due == body).map(|(event, _)| Place::Event(*event));
            let wholes = (1..)
                .zip(&self.told.as_of)
                .filter(|(event, task)| may_skip && event >= last && **task == body);
            for place in events.chain(wholes.map(|(event, _)| Place::Whole(event))) {
                let (Place::Event(event) | Place::Whole(event)) = place else { continue };
                ways.entry(event).or_insert_with(|| [&way[..], &[place]].concat());
            }
        }
        if ways.is_empty() {
            let place = self.misplaced(call.id, body, found);
            let (last, mut way) = self.ways.pop_last().expect("there is always a way");
            way.push(place);
            let reached = match place {
                Place::Event(event) | Place::Whole(event) => last.max(event),
                Place::Nothing => last,
            };
            ways.insert(reached, way);
        }
        self.ids.push(call.id);
        self.ways = ways;
    }

    /// Says what is wrong with a call, and what it is nevertheless.
    fn misplaced(&self, id: &str, body: u64, found: &mut Found) -> Place {
        let (number, (last, way)) = (self.number, self.ways.last_key_value().expect("there is always a way"));
        let whole =
            (1..).zip(&self.told.as_of).filter(|(_, task)| **task == body).map(|(event, _)| event).last();
        if let Some(whole) = whole.filter(|whole| whole >= last && !way.is_empty()) {
            let what = format!("webhook {number}: {id} is the task as of {whole}, before three failures");
            found.add(Rule::SkipsAfterThreeFailures, what);
            return Place::Whole(whole);
        }
        let mut events = self.told.due.iter().filter(|(_, due)| **due == body).map(|(event, _)| *event);
        let Some(event) = events.clone().find(|event| event > last).or_else(|| events.next_back()) else {
            found.add(Rule::IsOfTheLog, format!("webhook {number} of {}: {id}", self.hook.task));
            return Place::Nothing;
        };
        if way.contains(&Place::Event(event)) {
            found.add(Rule::OneIdPerEvent, format!("webhook {number}: {event} has {id} and another id"));
        } else {
            let what =
                format!("webhook {number}: {event} came when {last} was the last, perhaps not yet done");
            found.add(Rule::InOrder, what);
        }
        Place::Event(event)
    }
}

pub(super) fn failures(calls: &[Call<'_>], id: &str) -> usize {
    calls.iter().filter(|call| call.id == id && call.fails).count()
}
