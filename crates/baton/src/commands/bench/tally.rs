//! What was counted and measured so far.

use std::collections::BTreeMap;
use std::time::Instant;

use baton_protocol::domain::TaskState;
use baton_protocol::wire::v1;

use super::histogram::Latencies;
use super::trouble::Trouble;
use super::watched::{Order, Watched};
use super::workload::{Operation, Outcome, Performed};

/// Names that an agent may make up for its errors; further ones are counted together.
const MOST_ERROR_NAMES: usize = 32;
/// Characters of an error's name or example.
const LONGEST_TEXT: usize = 200;
const OTHER_ERRORS: &str = "other errors";

/// The requests of a load.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) sent: u64,
    pub(super) answered: u64,
    pub(super) failed: u64,
    /// Were sent late because as many as allowed were under way.
    pub(super) waited: u64,
    /// Were due, but could not be sent before the end for the same reason.
    pub(super) unsent: u64,
    pub(super) operations: BTreeMap<Operation, Timed>,
    /// From when requests were due until they were sent.
    pub(super) send_delay: Latencies,
    pub(super) outcomes: BTreeMap<&'static str, u64>,
    pub(super) errors: Errors,
    pub(super) streams: StreamTally,
    /// Streams that are compared with the agent's own account at the end.
    pub(super) samples: Vec<Watched>,
    /// How many of them are kept.
    pub(super) most_samples: usize,
}

/// The times of one operation's answers.
#[derive(Debug, Default)]
pub(super) struct Timed {
    pub(super) from_due: Latencies,
    pub(super) from_sent: Latencies,
}

/// Failures by name.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Errors(pub(super) BTreeMap<String, Failures>);

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Failures {
    pub(super) count: u64,
    /// The details of the first.
    pub(super) example: String,
}

impl Errors {
    pub(super) fn add(&mut self, trouble: &Trouble) {
        let mut name = shortened(&trouble.name());
        if !self.0.contains_key(&name) && self.0.len() >= MOST_ERROR_NAMES {
            name = OTHER_ERRORS.to_owned();
        }
        let failures = self.0.entry(name).or_default();
        failures.count += 1;
        if failures.count == 1 {
            failures.example = shortened(&trouble.details());
        }
    }

    pub(super) fn absorb(&mut self, other: &Errors) {
        for (name, failures) in &other.0 {
            let own = self.0.entry(name.clone()).or_default();
            own.count += failures.count;
            if own.example.is_empty() {
                own.example.clone_from(&failures.example);
            }
        }
    }
}

/// What an agent says, on one line and of bounded length.
fn shortened(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(LONGEST_TEXT) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    }
}

/// Streams, added up.
#[derive(Debug, Default)]
pub(super) struct StreamTally {
    pub(super) count: u64,
    pub(super) events: u64,
    pub(super) first_event: Latencies,
    /// The longest silence of each.
    pub(super) silence: Latencies,
    pub(super) order: Order,
    pub(super) after_end: u64,
    pub(super) left_open: u64,
    pub(super) misplaced: u64,
    /// How they ended.
    pub(super) endings: BTreeMap<&'static str, u64>,
}

impl Tally {
    pub(super) fn note(&mut self, operation: Operation, due: Instant, sent: Instant, performed: Performed) {
        let Performed { result, ended, watched } = performed;
        match &result {
            Ok(outcome) => {
                self.answered += 1;
                let timed = self.operations.entry(operation).or_default();
                timed.from_due.record(ended.saturating_duration_since(due));
                timed.from_sent.record(ended.saturating_duration_since(sent));
                match outcome {
                    Outcome::Task(state) => *self.outcomes.entry(v1::state_name(*state)).or_default() += 1,
                    Outcome::Message => *self.outcomes.entry("message").or_default() += 1,
                    Outcome::Read => {}
                }
            }
            Err(trouble) => {
                self.failed += 1;
                self.errors.add(trouble);
            }
        }
        if let Some(watched) = watched {
            self.streams.add(&watched, result.as_ref().err());
            if result.is_ok() && watched.task().is_some() && self.samples.len() < self.most_samples {
                self.samples.push(watched);
            }
        }
    }
}

impl StreamTally {
    pub(super) fn add(&mut self, watched: &Watched, trouble: Option<&Trouble>) {
        self.count += 1;
        self.events += watched.events;
        if let Some(time) = watched.first_event {
            self.first_event.record(time);
        }
        if let Some(time) = watched.longest_silence {
            self.silence.record(time);
        }
        self.order.absorb(&watched.numbers.order());
        self.after_end += watched.after_end;
        self.left_open += u64::from(watched.left_open);
        self.misplaced += u64::from(watched.misplaced.is_some());
        *self.endings.entry(ending(watched, trouble)).or_default() += 1;
    }

    /// Adds the counts of others; times are not mixed.
    pub(super) fn absorb(&mut self, other: &StreamTally) {
        self.count += other.count;
        self.events += other.events;
        self.order.absorb(&other.order);
        self.after_end += other.after_end;
        self.left_open += other.left_open;
        self.misplaced += other.misplaced;
        for (name, count) in &other.endings {
            *self.endings.entry(name).or_default() += count;
        }
    }
}

/// How a stream ended, in the words of the report.
fn ending(watched: &Watched, trouble: Option<&Trouble>) -> &'static str {
    match (trouble, watched.state()) {
        _ if watched.is_message() => "with a message",
        (_, Some(state)) if state.is_terminal() => "with their task",
        (None, Some(TaskState::InputRequired | TaskState::AuthRequired)) => "with a question",
        (Some(Trouble::ClosedEarly), _) => "closed early",
        (Some(Trouble::StreamTimeout), _) => "timed out",
        (Some(Trouble::Call(error)), _) if error.agent().is_some() => "refused",
        (Some(Trouble::Call(_)), _) => "cut",
        (None, _) => "left by bench",
    }
}
