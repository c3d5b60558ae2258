//! The expected failures: a strict list. A failure that is not listed is an error, and so is a listed check that
//! passes, so that the list stays up to date.
//!
//! One line per case: its id, optionally a generation and a binding; `#` begins a comment.
//!
//! ```text
//! V1-LIST-004               # on every generation and binding
//! CORE-HIST-005 1.0 rest    # see issue 12
//! ```

use std::collections::BTreeSet;

use crate::case::{Outcome, Verdict};
use crate::generation::{Binding, Generation};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Baseline {
    lines: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    number: usize,
    id: String,
    generation: Option<Generation>,
    binding: Option<Binding>,
}

/// A run compared with its list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compared {
    /// Failed, and not listed.
    pub unexpected: Vec<String>,
    /// Listed, and passed.
    pub mended: Vec<String>,
    /// Listed, and failed.
    pub expected: Vec<String>,
    /// Listed, but neither passed nor failed.
    pub unseen: Vec<String>,
}

impl Compared {
    pub fn holds(&self) -> bool {
        self.unexpected.is_empty() && self.mended.is_empty()
    }
}

impl Baseline {
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
            let Some(id) = words.next() else { continue };
            let mut entry = Line { number, id: id.to_owned(), generation: None, binding: None };
            for word in words {
                if let Ok(generation) = word.parse() {
                    entry.generation = Some(generation);
                } else if let Ok(binding) = word.parse() {
                    entry.binding = Some(binding);
                } else {
                    return Err(format!(
                        "line {number}: `{word}` is neither a generation (1.0, 0.3, 0.1) nor a binding (jsonrpc, rest, grpc)"
                    ));
                }
            }
            lines.push(entry);
        }
        Ok(Baseline { lines })
    }

    /// The listed ids that no case has, each with its line.
    pub fn unknown(&self, known: &BTreeSet<&str>) -> Vec<(usize, String)> {
        let unknown = self.lines.iter().filter(|line| !known.contains(line.id.as_str()));
        unknown.map(|line| (line.number, line.id.clone())).collect()
    }

    pub fn compare(&self, outcomes: &[Outcome]) -> Compared {
        let mut compared = Compared::default();
        let mut seen = BTreeSet::new();
        for outcome in outcomes {
            let listed = self.lines.iter().find(|line| line.is_for(outcome));
            let name = place(outcome);
            match (&outcome.verdict, listed) {
                (Verdict::Fail(_), Some(line)) => {
                    seen.insert(line.number);
                    compared.expected.push(name);
                }
                (Verdict::Fail(_), None) => compared.unexpected.push(name),
                (Verdict::Pass, Some(line)) => {
                    seen.insert(line.number);
                    compared.mended.push(name);
                }
                _ => {}
            }
        }
        let unseen = self.lines.iter().filter(|line| !seen.contains(&line.number));
        compared.unseen = unseen.map(|line| line.id.clone()).collect();
        compared
    }

    /// The list that matches a run exactly.
    pub fn of(outcomes: &[Outcome]) -> String {
        let mut text = "# Failures that are expected: `baton test --baseline` fails when one is missing here, and when one\n\
                        # that is here passes.\n"
            .to_owned();
        for outcome in outcomes {
            if let Verdict::Fail(failure) = &outcome.verdict {
                let why: String =
                    failure.message.chars().take(100).map(|c| if c == '\n' { ' ' } else { c }).collect();
                text += &format!("{}  # {why}\n", place(outcome));
            }
        }
        text
    }
}

impl Line {
    fn is_for(&self, outcome: &Outcome) -> bool {
        self.id == outcome.case.id()
            && self.generation.is_none_or(|generation| generation == outcome.case.generation)
            && self.binding.is_none_or(|binding| binding == outcome.binding)
    }
}

fn place(outcome: &Outcome) -> String {
    format!("{} {} {}", outcome.case.id(), outcome.case.generation, outcome.binding)
}
