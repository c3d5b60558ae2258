//! Cases and their results.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::acts::assertion::Mismatch;
use crate::acts::document::{Level, Test};
use crate::generation::{Binding, Generation};
use crate::wire::{Exchange, Secrets};

/// The report's five categories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    AgentCard,
    Lifecycle,
    Streaming,
    ErrorHandling,
    Interop,
}

impl Category {
    pub const ALL: [Self; 5] =
        [Self::AgentCard, Self::Lifecycle, Self::Streaming, Self::ErrorHandling, Self::Interop];

    pub fn name(self) -> &'static str {
        match self {
            Self::AgentCard => "agent-card",
            Self::Lifecycle => "lifecycle",
            Self::Streaming => "streaming",
            Self::ErrorHandling => "error-handling",
            Self::Interop => "interop",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|category| category.name() == name)
    }
}

/// One case: a test of a document, with the document's data that applies to all its tests.
#[derive(Debug, Clone)]
pub struct Case {
    pub test: Arc<Test>,
    pub category: Category,
    pub generation: Generation,
    pub source: Arc<Source>,
    /// Names of the corrections that were made to it.
    pub corrections: Vec<&'static str>,
    /// The level in its file, before any correction.
    pub written_level: Level,
}

/// Where a case comes from.
#[derive(Debug)]
pub struct Source {
    pub file: String,
    pub suite_id: String,
    pub suite_name: String,
    pub spec_version: String,
    pub variables: std::collections::BTreeMap<String, serde_json::Value>,
    /// One of our own, embedded suites.
    pub embedded: bool,
}

impl Case {
    pub fn id(&self) -> &str {
        &self.test.id
    }

    pub fn level(&self) -> Level {
        self.test.level
    }

    /// The requirement as a sentence; the test's name if the file has none.
    pub fn requirement(&self) -> &str {
        self.test.requirement.as_deref().unwrap_or(&self.test.name)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "result", content = "why", rename_all = "lowercase")]
pub enum Verdict {
    Pass,
    Fail(Failure),
    /// Does not apply, or cannot be tested on this agent: never counts against it.
    Skip(String),
    /// Neither a pass nor a failure, for example because the agent finished before it could be canceled.
    Inconclusive(String),
    /// An error of the test runner, not of the agent.
    Error(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// One sentence for people.
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actual: Option<String>,
}

impl Failure {
    pub fn new(message: impl Into<String>) -> Self {
        Failure { message: message.into(), step: None, path: None, expected: None, actual: None }
    }

    pub fn expected(expected: impl Into<String>, actual: impl Into<String>) -> Self {
        let (expected, actual) = (expected.into(), actual.into());
        let message = format!("expected {expected}, got {actual}");
        Failure { message, step: None, path: None, expected: Some(expected), actual: Some(actual) }
    }

    pub fn of(found: Mismatch) -> Self {
        let Mismatch { path, expected, actual } = found;
        let place = if path.is_empty() { String::new() } else { format!("`{path}`: ") };
        let message = format!("{place}expected {expected}, got {actual}");
        let path = (!path.is_empty()).then_some(path);
        Failure { message, step: None, path, expected: Some(expected), actual: Some(actual) }
    }

    #[must_use]
    pub fn in_step(mut self, step: &str) -> Self {
        self.step.get_or_insert_with(|| step.to_owned());
        self
    }
}

impl Verdict {
    pub fn word(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail(_) => "fail",
            Self::Skip(_) => "skip",
            Self::Inconclusive(_) => "inconclusive",
            Self::Error(_) => "error",
        }
    }
}

/// How one case ended on one binding.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub case: Arc<Case>,
    pub binding: Binding,
    pub verdict: Verdict,
    /// Remarks on what was accepted or assumed.
    pub notes: Vec<String>,
    pub steps: Vec<StepOutcome>,
    pub evidence: Vec<Exchange>,
    pub duration: Duration,
    /// The agent did not answer any more after this case.
    pub crashed: bool,
}

impl Outcome {
    /// Removes the user's secrets from everything that is kept.
    pub fn hide(&mut self, secrets: &Secrets) {
        self.verdict.hide(secrets);
        self.steps.iter_mut().for_each(|step| step.verdict.hide(secrets));
        self.notes.iter_mut().for_each(|note| secrets.hide(note));
        for exchange in &mut self.evidence {
            let Exchange { sent, received, trouble, .. } = exchange;
            secrets.hide(&mut sent.url);
            let sent = sent.headers.iter_mut().map(|(_, value)| value).chain(&mut sent.body);
            let received = received.iter_mut().flat_map(|received| {
                received.headers.iter_mut().map(|(_, value)| value).chain([&mut received.body])
            });
            sent.chain(received).chain(trouble).for_each(|text| secrets.hide(text));
        }
    }
}

impl Verdict {
    fn hide(&mut self, secrets: &Secrets) {
        match self {
            Self::Pass => {}
            Self::Fail(failure) => {
                secrets.hide(&mut failure.message);
                let rest = [&mut failure.step, &mut failure.path, &mut failure.expected, &mut failure.actual];
                rest.into_iter().flatten().for_each(|text| secrets.hide(text));
            }
            Self::Skip(why) | Self::Inconclusive(why) | Self::Error(why) => secrets.hide(why),
        }
    }
}

#[derive(Debug, Clone)]
pub struct StepOutcome {
    pub id: String,
    pub verdict: Verdict,
    pub duration: Duration,
}
