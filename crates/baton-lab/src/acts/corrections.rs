//! The mistakes of the draft and of the official files, and their corrections: a named list that can be printed and
//! switched off.
//!
//! A correction changes a test only if it finds its mistake there: a file that was fixed since, or another test with
//! the same id, runs as written.

mod cards;
mod client;
mod data;
mod errors;
mod format;
mod operations;
mod push;
mod security;
mod streams;

use serde_json::Value;

use super::document::{Level, Step, Test};

/// How a mistake is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The corrected form is run.
    Fix,
    /// A failure counts at a lower level.
    Soften,
    /// Skipped, with the reason.
    Off,
    /// The reader tolerates it even without corrections, or it is only information.
    Note,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Fix => "fix",
            Self::Soften => "soften",
            Self::Off => "off",
            Self::Note => "note",
        }
    }
}

/// Changes a test; returns whether it found the mistake.
type Change = fn(&mut Test) -> bool;

#[derive(Debug, Clone, Copy)]
enum Remedy {
    None,
    Change(Change),
    /// A native check replaces the steps, if they have the wrong form.
    Native(&'static str, fn(&Test) -> bool),
}

/// One line of the list.
#[derive(Debug, Clone, Copy)]
pub struct Correction {
    /// `F…` for the files' format, `D…` for the draft's text, otherwise the id of the test.
    pub id: &'static str,
    pub kind: Kind,
    /// The tests it applies to; empty if the form of a test decides.
    pub tests: &'static [&'static str],
    /// What is wrong.
    pub wrong: &'static str,
    /// What is done instead.
    pub right: &'static str,
    remedy: Remedy,
}

impl Correction {
    /// A correction whose id is that of its first test.
    const fn of(
        kind: Kind,
        tests: &'static [&'static str],
        wrong: &'static str,
        right: &'static str,
        change: Change,
    ) -> Self {
        Correction { id: tests[0], kind, tests, wrong, right, remedy: Remedy::Change(change) }
    }

    const fn native(
        tests: &'static [&'static str],
        wrong: &'static str,
        right: &'static str,
        check: &'static str,
        found: fn(&Test) -> bool,
    ) -> Self {
        let remedy = Remedy::Native(check, found);
        Correction { id: tests[0], kind: Kind::Fix, tests, wrong, right, remedy }
    }

    const fn note(
        id: &'static str,
        tests: &'static [&'static str],
        wrong: &'static str,
        right: &'static str,
    ) -> Self {
        Correction { id, kind: Kind::Note, tests, wrong, right, remedy: Remedy::None }
    }

    const fn named(mut self, id: &'static str) -> Self {
        self.id = id;
        self
    }
}

/// Applied in this order: the format first, so that the others find every test in the same form.
const AREAS: &[&[Correction]] = &[
    format::LIST,
    operations::LIST,
    data::LIST,
    cards::LIST,
    errors::LIST,
    streams::LIST,
    push::LIST,
    security::LIST,
    client::LIST,
];

pub fn list() -> impl Iterator<Item = &'static Correction> {
    AREAS.iter().copied().flatten()
}

/// Applies the corrections that a test needs; returns their names.
pub fn apply(test: &mut Test) -> Vec<&'static str> {
    let mut made = Vec::new();
    for correction in list() {
        if !(correction.tests.is_empty() || correction.tests.contains(&test.id.as_str())) {
            continue;
        }
        let found = match correction.remedy {
            Remedy::None => false,
            Remedy::Change(change) => change(test),
            Remedy::Native(check, found) => {
                let found = test.native.is_none() && found(test);
                if found {
                    test.native = Some(check.to_owned());
                }
                found
            }
        };
        if found {
            made.push(correction.id);
        }
    }
    made
}

/// The file itself says that its steps are not the real test.
fn is_prose(test: &Test) -> bool {
    test.tags.iter().any(|tag| tag == "runner-special" || tag == "schema-validation")
}

/// Changes the level, if the test has one of the wrong levels.
fn relevel(test: &mut Test, from: &[Level], to: Level) -> bool {
    let wrong = from.contains(&test.level);
    if wrong {
        test.level = to;
    }
    wrong
}

/// Replaces a value in a step's `expect`, if it is the one of the official file.
fn replace_in_expect(step: &mut Step, pointer: &str, wrong: &Value, right: Value) -> bool {
    let place = step.expect.as_mut().and_then(|expect| expect.pointer_mut(pointer));
    match place {
        Some(place) if place == wrong => {
            *place = right;
            true
        }
        _ => false,
    }
}

fn step<'a>(test: &'a mut Test, id: &str) -> Option<&'a mut Step> {
    test.steps.iter_mut().find(|step| step.id.as_deref() == Some(id))
}

#[cfg(test)]
mod tests;
