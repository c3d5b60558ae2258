//! One event stream, watched: when its events come, how they are numbered, what they add up to, and how it ends.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use baton_client::{RawStream, StreamEvent};
use baton_protocol::domain::{Task, TaskState};
use baton_protocol::lifecycle::{Fold, Refused};
use tokio::time::timeout_at;

use super::trouble::Trouble;

/// How long an agent may take to close a stream whose task has ended or waits for its user.
const CLOSING: Duration = Duration::from_secs(5);

/// A stream so far.
#[derive(Debug)]
pub(super) struct Watched {
    /// When its request was due.
    begun: Instant,
    /// The time until its first event.
    pub(super) first_event: Option<Duration>,
    last: Option<Instant>,
    /// The longest time between two of its events.
    pub(super) longest_silence: Option<Duration>,
    pub(super) events: u64,
    /// Events that came although the task had ended.
    pub(super) after_end: u64,
    pub(super) numbers: Numbers,
    fold: Fold,
    /// An event that does not belong to the task.
    pub(super) misplaced: Option<String>,
    /// When the task ended or paused, or the message came.
    pub(super) settled: Option<Instant>,
    /// The agent did not close the stream after that.
    pub(super) left_open: bool,
}

impl Watched {
    pub(super) fn new(begun: Instant) -> Self {
        Watched {
            begun,
            first_event: None,
            last: None,
            longest_silence: None,
            events: 0,
            after_end: 0,
            numbers: Numbers::default(),
            fold: Fold::default(),
            misplaced: None,
            settled: None,
            left_open: false,
        }
    }

    pub(super) fn take(&mut self, event: StreamEvent, now: Instant) {
        self.events += 1;
        self.first_event.get_or_insert(now - self.begun);
        if let Some(last) = self.last.replace(now) {
            self.longest_silence = self.longest_silence.max(Some(now - last));
        }
        self.numbers.add(event.id);
        if self.has_ended() {
            self.after_end += 1;
            return;
        }
        match self.fold.take(&event.item) {
            Ok(()) => {}
            Err(Refused::Ended(_)) => self.after_end += 1,
            Err(refused) => drop(self.misplaced.get_or_insert(refused.to_string())),
        }
        self.settled = self.is_settled().then_some(now);
    }

    /// The task as its events describe it.
    pub(super) fn task(&self) -> Option<&Task> {
        self.fold.task()
    }

    pub(super) fn state(&self) -> Option<TaskState> {
        self.task().map(|task| task.status.state)
    }

    /// The agent answered with a message, and no task.
    pub(super) fn is_message(&self) -> bool {
        self.fold.message().is_some() && self.task().is_none()
    }

    /// Nothing more may come.
    pub(super) fn has_ended(&self) -> bool {
        self.is_message() || self.state().is_some_and(TaskState::is_terminal)
    }

    /// Nothing more has to come: it has ended, or the task waits for its user.
    pub(super) fn is_settled(&self) -> bool {
        self.has_ended() || self.state().is_some_and(TaskState::is_interrupted)
    }

    /// Reads a connection until the agent closes it. A settled stream is given some time for that, any other until the
    /// deadline.
    pub(super) async fn follow(&mut self, stream: &mut RawStream, deadline: Instant) -> Result<(), Trouble> {
        loop {
            let limit = match self.settled {
                Some(_) => deadline.min(Instant::now() + CLOSING),
                None => deadline,
            };
            match timeout_at(limit.into(), stream.next()).await {
                Ok(Ok(Some(event))) => self.take(event, Instant::now()),
                Ok(Ok(None)) if self.is_settled() => return Ok(()),
                Ok(Ok(None)) => return Err(Trouble::ClosedEarly),
                // Everything had come.
                Ok(Err(_)) if self.has_ended() => return Ok(()),
                Ok(Err(error)) => return Err(error.into()),
                Err(_) if self.is_settled() => {
                    self.left_open = true;
                    return Ok(());
                }
                Err(_) => return Err(Trouble::StreamTimeout),
            }
        }
    }
}

/// The ids of a stream's events, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    ids: Vec<String>,
    /// Events that had none.
    unnumbered: u64,
}

/// What the ids tell.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) numbered: u64,
    pub(super) unnumbered: u64,
    /// Events whose id had come before.
    pub(super) repeated: u64,
    /// Events whose number is lower than one before, and that had not come before.
    pub(super) out_of_order: u64,
    /// Numbers between the lowest and the highest that did not come. An agent may use numbers for what it does not show.
    pub(super) skipped: u64,
}

impl Order {
    pub(super) fn absorb(&mut self, other: &Order) {
        self.numbered += other.numbered;
        self.unnumbered += other.unnumbered;
        self.repeated += other.repeated;
        self.out_of_order += other.out_of_order;
        // The agent chooses the numbers.
        self.skipped = self.skipped.saturating_add(other.skipped);
    }
}

impl Numbers {
    pub(super) fn add(&mut self, id: Option<String>) {
        match id {
            Some(id) => self.ids.push(id),
            None => self.unnumbered += 1,
        }
    }

    pub(super) fn first(&self) -> Option<&str> {
        self.ids.first().map(String::as_str)
    }

    pub(super) fn last(&self) -> Option<&str> {
        self.ids.last().map(String::as_str)
    }

    pub(super) fn distinct(&self) -> HashSet<&str> {
        self.ids.iter().map(String::as_str).collect()
    }

    pub(super) fn order(&self) -> Order {
        let mut order =
            Order { numbered: self.ids.len() as u64, unnumbered: self.unnumbered, ..Order::default() };
        let mut seen = HashSet::new();
        let (mut lowest, mut highest, mut numeric) = (u64::MAX, 0, 0);
        for id in &self.ids {
            if !seen.insert(id.as_str()) {
                order.repeated += 1;
                continue;
            }
            // Ids may be any text; only numbers have an order.
            let Ok(number) = id.parse::<u64>() else { continue };
            order.out_of_order += u64::from(numeric > 0 && number < highest);
            (lowest, highest, numeric) = (lowest.min(number), highest.max(number), numeric + 1);
        }
        if numeric > 0 {
            order.skipped = (highest - lowest).saturating_add(1).saturating_sub(numeric);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_tell_what_came_twice_too_late_or_not_at_all() {
        for (ids, repeated, out_of_order, skipped) in [
            ("", 0, 0, 0),
            ("1 2 3", 0, 0, 0),
            ("3 4 7", 0, 0, 2),
            ("1 2 2 3", 1, 0, 0),
            ("1 3 2", 0, 1, 0),
            ("1 2 3 2 3", 2, 0, 0),
            ("a b a", 1, 0, 0),
            ("18446744073709551615 0", 0, 1, 18_446_744_073_709_551_613),
        ] {
            let mut numbers = Numbers::default();
            ids.split_whitespace().for_each(|id| numbers.add(Some(id.to_owned())));
            numbers.add(None);
            let order = numbers.order();
            assert_eq!(
                (order.repeated, order.out_of_order, order.skipped, order.unnumbered),
                (repeated, out_of_order, skipped, 1),
                "{ids}"
            );
        }
    }
}
