//! The rows: what is measured on which servers, and the goals.

mod cold_start;
mod durable;
mod growth;
mod grpc;
mod grpc_off;
mod guarded;
mod heap;
mod lists;
mod memory;
mod replies;
mod streams;
mod webhooks;
mod webhooks_dead;
mod workers;

use crate::bench::Bench;
use crate::figures::{Figures, shown};
use crate::subjects::Subject;

/// One row of the table.
pub struct Row {
    pub id: &'static str,
    pub work: &'static str,
    /// What a reader must know to interpret the figures.
    pub remark: &'static str,
    /// Rounds in quick and in full runs.
    pub rounds: (usize, usize),
    pub subjects: &'static [Subject],
    pub measure: fn(&Point<'_>) -> Result<Points, String>,
    pub columns: &'static [(&'static str, &'static str)],
    pub judge: fn(&Figures) -> Vec<Verdict>,
}

/// Figures by name.
pub type Points = Vec<(&'static str, f64)>;

/// One measurement.
pub struct Point<'a> {
    pub bench: &'a Bench,
    pub subject: Subject,
    pub round: usize,
    /// The figures of earlier rows and rounds.
    pub figures: &'a Figures,
}

/// One goal, and whether it was reached.
#[derive(Debug, Clone)]
pub struct Verdict {
    pub goal: &'static str,
    pub measured: String,
    /// `None` if it was not measured.
    pub reached: Option<bool>,
}

impl Verdict {
    /// Reached if the figure is at most the bound.
    fn at_most(goal: &'static str, value: Option<f64>, limit: f64, unit: &str) -> Self {
        Self::of(goal, value, unit, |value| value <= limit)
    }

    /// Reached if the figure is at least the bound.
    fn at_least(goal: &'static str, value: Option<f64>, limit: f64, unit: &str) -> Self {
        Self::of(goal, value, unit, |value| value >= limit)
    }

    fn of(goal: &'static str, value: Option<f64>, unit: &str, reached: impl Fn(f64) -> bool) -> Self {
        match value.filter(|value| value.is_finite()) {
            Some(value) => {
                Verdict { goal, measured: format!("{}{unit}", shown(value)), reached: Some(reached(value)) }
            }
            None => Verdict { goal, measured: "not measured".to_owned(), reached: None },
        }
    }
}

pub const ROWS: &[Row] = &[
    replies::SEND,
    replies::THROUGHPUT,
    replies::LATENCY,
    replies::GET,
    guarded::GET,
    streams::SHORT,
    streams::BURST,
    streams::FAN_OUT,
    streams::ENCODINGS,
    replies::LIST,
    lists::SQLITE,
    streams::IDLE,
    memory::TASK,
    durable::SEND,
    workers::TWO,
    heap::COUNTED,
    growth::FLAT,
    grpc::SEND,
    grpc::GET,
    grpc::BURST,
    grpc_off::SWITCHED_OFF,
    cold_start::COMMANDS,
    webhooks::DELIVERIES,
    webhooks_dead::RECEIVERS,
];
