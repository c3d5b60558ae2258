//! The result of a run, and what a reader has to know to understand it.

use std::time::Duration;

use super::check::Checked;
use super::held::HeldReport;
use super::histogram::{SHARES, Summary};
use super::plan::{Pace, Plan};
use super::tally::{Errors, StreamTally, Tally};
use super::workload::Operation;

/// A delay of the generator itself that is worth a note.
const LATE: Duration = Duration::from_millis(1);

/// The result of a run.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) agent: String,
    pub(super) binding: &'static str,
    pub(super) version: &'static str,
    pub(super) url: String,
    pub(super) plan: Plan,
    /// Ctrl-C ended it after this time.
    pub(super) stopped_after: Option<Duration>,
    pub(super) load: Option<LoadReport>,
    pub(super) held: Option<HeldReport>,
    pub(super) checked: Checked,
}

/// The requests that were sent at a rate.
#[derive(Debug)]
pub(super) struct LoadReport {
    /// From the first request to the last answer.
    pub(super) elapsed: Duration,
    pub(super) tally: Tally,
}

/// A line of the table of times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// In the JSON form: the operation or the thing, and the point from which its time counts.
    pub(super) key: (&'static str, &'static str),
    /// In the text form.
    pub(super) label: String,
    pub(super) summary: Summary,
    /// The text form leaves it out: it says the same as the line above.
    pub(super) is_redundant: bool,
}

/// What can be said about events that did not come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lost {
    /// The agent replayed the events of all streams that were checked.
    Counted(u64),
    /// No stream was checked.
    NotChecked,
    /// The agent's events have no ids.
    NoIds,
    /// It gives ids, but did not replay everything; so many were found to be lost in what it did.
    NotAllReplayed(u64),
}

impl Report {
    /// All streams, those of the load and those that were held.
    pub(super) fn streams(&self) -> Option<StreamTally> {
        let mut all = StreamTally::default();
        if let Some(load) = &self.load {
            all.absorb(&load.tally.streams);
        }
        if let Some(held) = &self.held {
            all.absorb(&held.tally);
        }
        (all.count > 0).then_some(all)
    }

    pub(super) fn errors(&self) -> Errors {
        let mut all = self.load.as_ref().map(|load| load.tally.errors.clone()).unwrap_or_default();
        if let Some(held) = &self.held {
            all.absorb(&held.errors);
        }
        all
    }

    pub(super) fn lost(&self, streams: &StreamTally) -> Lost {
        match self.checked.replayed {
            _ if streams.order.numbered == 0 && streams.events > 0 => Lost::NoIds,
            _ if self.checked.streams == 0 => Lost::NotChecked,
            replayed if replayed == self.checked.streams => Lost::Counted(self.checked.lost),
            _ => Lost::NotAllReplayed(self.checked.lost),
        }
    }

    /// Whether nothing at all worked.
    pub(super) fn is_total_failure(&self) -> bool {
        let load = self.load.as_ref().is_none_or(|load| load.tally.answered == 0 && load.tally.failed > 0);
        let held = self.held.as_ref().is_none_or(|held| held.opened == 0);
        load && held && self.stopped_after.is_none()
    }

    pub(super) fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut row = |key, label: &str, summary: Summary, is_redundant| {
            if summary.count > 0 {
                rows.push(Row { key, label: label.to_owned(), summary, is_redundant });
            }
        };
        if let Some(LoadReport { tally, .. }) = &self.load {
            for (operation, timed) in &tally.operations {
                let name = operation.name();
                let (due, sent) = (timed.from_due.summary(), timed.from_sent.summary());
                let is_same = is_same(&due, &sent);
                let label = match operation {
                    Operation::Stream => {
                        let streams = &tally.streams;
                        row(
                            (name, "firstEvent"),
                            "stream, first event",
                            streams.first_event.summary(),
                            false,
                        );
                        "stream, last event"
                    }
                    _ => name,
                };
                row((name, "fromDue"), label, due, false);
                row((name, "fromSent"), &format!("{label}, from sending"), sent, is_same);
            }
            row(("stream", "silence"), "stream, longest silence", tally.streams.silence.summary(), false);
        }
        if let Some(held) = &self.held {
            row(("held", "firstEvent"), "held stream, first event", held.tally.first_event.summary(), false);
            row(("held", "silence"), "held stream, longest silence", held.tally.silence.summary(), false);
            if let Some(storm) = &held.storm {
                row(("storm", "back"), "storm, back after", storm.times.summary(), false);
            }
        }
        rows
    }

    /// Answers per second.
    pub(super) fn per_second(&self, load: &LoadReport) -> f64 {
        let scheduled = self.plan.load.as_ref().map(super::plan::Load::scheduled).unwrap_or_default();
        let time = match self.stopped_after {
            None => load.elapsed.max(scheduled),
            Some(_) => load.elapsed,
        };
        load.tally.answered as f64 / time.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Sentences for whoever reads the figures.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let (Some(load), Some(plan)) = (&self.load, &self.plan.load) {
            notes.push(match plan.pace {
                Pace::Open { .. } => "Times count from the moment a request was due, so that waiting for a slow agent is part of them.",
                Pace::Max => "With --rate max a request is due when one before it is answered: an agent that stalls is asked less, and its stalls show less than users would feel them.",
            }.to_owned());
            let tally = &load.tally;
            let concurrency = self.plan.concurrency;
            if tally.waited > 0 {
                notes.push(format!(
                    "{} requests were sent late, because {concurrency} were under way already (--concurrency).",
                    tally.waited
                ));
            }
            if tally.unsent > 0 {
                notes.push(format!(
                    "{} requests were due and never sent: the agent did not keep up with the rate, and {concurrency} (--concurrency) were under way until the end.",
                    tally.unsent
                ));
            }
            let delay = tally.send_delay.summary();
            let (late, share) = match delay.shares[2] {
                Some(late) => (late, "at p99"),
                None => (delay.max.unwrap_or_default(), "at most"),
            };
            if tally.waited == 0 && late > LATE {
                notes.push(format!(
                    "The generator itself was late, by {} {share}: this machine is busy, or the rate is more than the generator can do. That is part of the times, except of those from sending.",
                    super::text::time(late)
                ));
            }
        }
        let rows = self.rows();
        let short = rows.iter().filter(|row| !row.is_redundant).map(|row| &row.summary);
        let lacking = |summary: &Summary| summary.shares.iter().position(Option::is_none);
        if let Some(at) = short.filter_map(lacking).min() {
            let needed = |(name, _, needed): &(&str, f64, u64)| format!("{name} takes {needed}");
            let missing: Vec<String> = SHARES[at..].iter().map(needed).collect();
            notes.push(format!("\"-\": too few samples; {} or more.", missing.join(", ")));
        }
        if let Some(streams) = self.streams() {
            self.note_streams(&streams, &mut notes);
        }
        notes
    }

    fn note_streams(&self, streams: &StreamTally, notes: &mut Vec<String>) {
        let checked = &self.checked;
        match self.lost(streams) {
            Lost::Counted(_) => notes.push(
                "Lost events were found by asking the agent for the events of each stream again, and comparing the ids."
                    .to_owned(),
            ),
            Lost::NotChecked => {
                notes.push("Lost events were not looked for: no stream was there to be checked at the end.".to_owned());
            }
            Lost::NoIds => notes.push(
                "The agent gives its events no ids, so that nobody can tell whether one is missing or came twice; only the tasks at the end can be compared."
                    .to_owned(),
            ),
            Lost::NotAllReplayed(_) => {
                let why = checked.not_replayed.as_deref().unwrap_or_default();
                notes.push(format!(
                    "Lost events cannot be counted: asked for the events of {} streams again, the agent repeated those of {} ({why}). {} event numbers were skipped, which are lost events, or numbers that the agent does not show.",
                    checked.streams, checked.replayed, streams.order.skipped
                ));
            }
        }
        if let Some(difference) = &checked.difference {
            notes.push(format!("Differs: {difference}."));
        }
        if streams.after_end > 0 {
            notes.push(format!("{} events came after their task had ended.", streams.after_end));
        }
        if streams.misplaced > 0 {
            notes.push(format!("{} streams brought events of another task.", streams.misplaced));
        }
        if streams.left_open > 0 {
            notes.push(format!(
                "{} streams were not closed by the agent, although their task had ended or asked for something.",
                streams.left_open
            ));
        }
        if let Some(held) = self.held.as_ref().filter(|held| held.unfinished > 0) {
            notes.push(format!(
                "{} streams had not ended some time after their tasks were canceled; nothing else is known of them.",
                held.unfinished
            ));
        }
        if let Some(held) = &self.held
            && held.held < held.opened
            && held.storm.is_none()
            && self.stopped_after.is_none()
        {
            notes.push(format!(
                "{} held streams ended before {}: a text on which the agent works longer holds them longer.",
                held.opened - held.held,
                super::plan::seconds(self.plan.duration)
            ));
        }
    }
}

/// Whether two summaries look the same to a reader: within a tenth, or within a tenth of a millisecond.
fn is_same(one: &Summary, other: &Summary) -> bool {
    let pairs = one.shares.iter().zip(&other.shares).chain([(&one.max, &other.max)]);
    pairs.into_iter().all(|(one, other)| {
        let (one, other) = (one.unwrap_or_default(), other.unwrap_or_default());
        one.abs_diff(other) < Duration::from_micros(100).max(one / 10)
    })
}
