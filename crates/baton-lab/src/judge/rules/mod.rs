//! The rules for clients, each a case with requirement, section and remedy.
//!
//! A rule examines the recorded requests of one script at a time, and returns pass, fail, or "not seen" if there was
//! nothing to judge. Rules must not fail a correct client: what the specification leaves open is not judged, and a rule
//! passes if a client could have a good reason.

mod cards;
mod credentials;
mod endings;
mod envelope;
mod messages;
mod operations;
mod retries;
mod service;
mod streams;
mod talk;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::heard::{Heard, Place};
use super::script::{Does, Script};
use super::stage::{Ran, ScriptState};
use super::variant::Variant;
use crate::acts::document::{Level, Preconditions, Test};
use crate::case::{Case, Category, Failure, Source};
use crate::generation::{Binding, Generation};

/// The name of the suite with these cases.
pub const SUITE: &str = "clients";

/// One rule.
#[derive(Debug)]
pub struct Rule {
    /// Without the generation: `SEND-001` is `C1-SEND-001` in 1.0.
    pub id: &'static str,
    pub name: &'static str,
    pub level: Level,
    pub category: Category,
    pub requirement: &'static str,
    pub remedy: &'static str,
    /// The section in 1.0, 0.3 and 0.1; empty if the generation has no such rule.
    pub sections: [&'static str; 3],
    /// The bindings it applies to; empty: all.
    pub bindings: &'static [Binding],
    /// The scripts it applies to; empty: all.
    pub scripts: &'static [&'static str],
    /// It needs the client's command: the requests alone do not show it.
    pub needs_command: bool,
    pub(super) check: fn(&Trial<'_>) -> Finding,
}

/// Defaults of most rules.
pub(super) const INTEROP: Rule = Rule {
    id: "",
    name: "",
    level: Level::Must,
    category: Category::Interop,
    requirement: "",
    remedy: "",
    sections: [""; 3],
    bindings: &[],
    scripts: &[],
    needs_command: false,
    check: |_| Finding::Pass,
};

/// The result of a rule for one script.
#[derive(Debug)]
pub(super) enum Finding {
    Pass,
    /// With the index of the request that shows it.
    Fail(Box<Failure>, Option<usize>),
    NotSeen(String),
}

/// The input of a rule.
#[derive(Debug)]
pub(super) struct Trial<'a> {
    pub(super) stage: &'a ScriptState,
    pub(super) basics: Basics,
}

/// What is known about the client from other scripts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Basics {
    /// It has called some script of this generation and binding.
    pub(super) called: bool,
    /// Whether its command succeeded on a correct agent, without and with a stream.
    pub(super) sends: Option<bool>,
    pub(super) streams: Option<bool>,
}

pub(super) const NEEDS_COMMAND: &str =
    "not seen: this rule needs the client as a command (baton test --as-server -- COMMAND)";

impl Rule {
    fn section(&self, generation: Generation) -> &'static str {
        match generation {
            Generation::V1 => self.sections[0],
            Generation::V0_3 => self.sections[1],
            Generation::V0_1 => self.sections[2],
        }
    }

    /// True if the rule exists in that generation and binding.
    pub fn holds_in(&self, variant: Variant) -> bool {
        let bound = self.bindings.is_empty() || self.bindings.contains(&variant.binding);
        bound && !self.section(variant.generation).is_empty()
    }

    pub fn looks_at(&self, script: &Script) -> bool {
        self.scripts.is_empty() || self.scripts.contains(&script.name)
    }

    pub fn id_in(&self, generation: Generation) -> String {
        let generation = match generation {
            Generation::V1 => "C1",
            Generation::V0_3 => "C03",
            Generation::V0_1 => "C01",
        };
        format!("{generation}-{}", self.id)
    }

    /// The rule as a case of a generation.
    fn case(&self, generation: Generation) -> Case {
        let transport: Vec<Binding> = self.bindings.to_vec();
        let test = Test {
            id: self.id_in(generation),
            name: self.name.to_owned(),
            level: self.level,
            steps: Vec::new(),
            description: None,
            spec_ref: None,
            tags: vec![SUITE.to_owned()],
            origin: None,
            transport,
            preconditions: Preconditions::default(),
            requires_behaviors: Vec::new(),
            runner_requirements: if self.needs_command { vec!["a command".to_owned()] } else { Vec::new() },
            assertions: Vec::new(),
            section: Some(self.section(generation).to_owned()),
            requirement: Some(self.requirement.to_owned()),
            remedy: Some(self.remedy.to_owned()),
            category: Some(self.category.name().to_owned()),
            native: None,
            off: None,
        };
        let source = Source {
            file: format!("judge/{}", self.id.split('-').next().unwrap_or_default().to_lowercase()),
            suite_id: SUITE.to_owned(),
            suite_name: "Judging clients".to_owned(),
            spec_version: generation.version().to_owned(),
            variables: BTreeMap::new(),
            embedded: true,
        };
        Case {
            test: Arc::new(test),
            category: self.category,
            generation,
            source: Arc::new(source),
            corrections: Vec::new(),
            written_level: self.level,
        }
    }
}

/// All rules, by area.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    [
        cards::RULES,
        envelope::RULES,
        service::RULES,
        messages::RULES,
        talk::RULES,
        operations::RULES,
        streams::RULES,
        endings::RULES,
        retries::RULES,
        credentials::RULES,
    ]
    .into_iter()
    .flatten()
}

/// The rules as cases, each generation's after the other's.
pub fn cases() -> Vec<(&'static Rule, Arc<Case>)> {
    let of = |generation| {
        let rules = all().filter(move |rule| !rule.section(generation).is_empty());
        rules.map(move |rule| (rule, Arc::new(rule.case(generation))))
    };
    Generation::ALL.into_iter().flat_map(of).collect()
}

/// The rule of a case's id.
pub fn of_case(id: &str) -> Option<&'static Rule> {
    all().find(|rule| Generation::ALL.iter().any(|generation| rule.id_in(*generation) == id))
}

impl<'a> Trial<'a> {
    pub(super) fn variant(&self) -> Variant {
        self.stage.variant
    }

    pub(super) fn generation(&self) -> Generation {
        self.stage.variant.generation
    }

    pub(super) fn heard(&self) -> &'a [Heard] {
        &self.stage.heard
    }

    /// Requests to the agent's own interfaces.
    pub(super) fn calls(&self) -> impl Iterator<Item = (usize, &'a Heard)> {
        self.stage.heard.iter().enumerate().filter(|(_, heard)| heard.is_call() && !heard.foreign)
    }

    /// Messages, with or without a stream.
    pub(super) fn sends(&self) -> impl Iterator<Item = (usize, &'a Heard)> {
        self.calls().filter(|(_, heard)| heard.sends())
    }

    /// Messages grouped by run of the client: fetching the card again after a message begins a new run.
    pub(super) fn runs(&self) -> Vec<Vec<(usize, &'a Heard)>> {
        let mut runs: Vec<Vec<(usize, &Heard)>> = vec![Vec::new()];
        for (at, heard) in self.stage.heard.iter().enumerate() {
            let anew = !heard.is_call() && runs.last().is_some_and(|run| !run.is_empty());
            if anew {
                runs.push(Vec::new());
            } else if heard.sends() && !heard.foreign {
                runs.last_mut().into_iter().for_each(|run| run.push((at, heard)));
            }
        }
        runs
    }

    pub(super) fn has_card(&self) -> bool {
        self.stage.heard.iter().any(|heard| !heard.is_call())
    }

    pub(super) fn ran(&self) -> Option<&'a Ran> {
        self.stage.ran.as_ref()
    }
}

impl Finding {
    pub(super) fn fail(failure: Failure, at: usize) -> Self {
        Self::Fail(Box::new(failure), Some(at))
    }

    /// A failure of the client as a whole, not of one request.
    pub(super) fn fail_of_all(failure: Failure) -> Self {
        Self::Fail(Box::new(failure), None)
    }

    pub(super) fn not_seen(what: &str) -> Self {
        Self::NotSeen(format!("not seen: {what}"))
    }
}

/// All requests must pass; the first that does not is reported.
pub(super) fn each<'a>(
    requests: impl Iterator<Item = (usize, &'a Heard)>,
    what: &str,
    check: impl Fn(&Heard) -> Result<(), Failure>,
) -> Finding {
    let mut seen = false;
    for (at, heard) in requests {
        seen = true;
        if let Err(failure) = check(heard) {
            return Finding::fail(failure, at);
        }
    }
    if seen { Finding::Pass } else { Finding::not_seen(what) }
}

/// Calls, including those to a wrong address.
pub(super) fn posts<'a>(trial: &Trial<'a>) -> impl Iterator<Item = (usize, &'a Heard)> {
    trial.calls().filter(|(_, heard)| heard.place != Place::Elsewhere || heard.method == "POST")
}

/// The result of the client's command, or why it cannot be judged.
fn came_out<'a>(trial: &Trial<'a>) -> Result<&'a Ran, Finding> {
    let Some(ran) = trial.ran() else { return Err(Finding::NotSeen(NEEDS_COMMAND.to_owned())) };
    if !trial.basics.called {
        return Err(Finding::not_seen(
            "the client never called an interface of this generation and binding; it may not support it",
        ));
    }
    if trial.heard().is_empty() {
        return Err(Finding::not_seen("the client did not call this script"));
    }
    let script = trial.stage.script;
    let (basic, good) = match script.does {
        Does::Stream | Does::Follow => ("stream", trial.basics.streams),
        _ => ("send", trial.basics.sends),
    };
    if script.name != basic && good == Some(false) {
        return Err(Finding::NotSeen(format!(
            "not seen: the client also fails on a correct agent (script {basic})"
        )));
    }
    if ran.hung {
        return Err(Finding::not_seen("the command did not end, which RUN-001 reports"));
    }
    Ok(ran)
}

/// The command must succeed, and its output must contain the agent's text unchanged, if it prints texts.
pub(super) fn ends_well(trial: &Trial<'_>) -> Finding {
    let ran = match came_out(trial) {
        Ok(ran) => ran,
        Err(finding) => return finding,
    };
    if ran.code != Some(0) {
        let expected = "that the client accepts this (exit status 0)";
        return Finding::fail_of_all(Failure::expected(expected, ran.in_words()));
    }
    let (marker, text) = (trial.stage.marker(), trial.stage.text());
    let printed = ran.stdout.replace("\r\n", "\n");
    if printed.contains(&marker) && !printed.contains(&text) {
        let said = printed.lines().find(|line| line.contains(&marker)).unwrap_or_default();
        return Finding::fail_of_all(Failure::expected(format!("the text {text:?}"), format!("{said:?}")));
    }
    Finding::Pass
}

/// The client must report an error.
pub(super) fn ends_badly(trial: &Trial<'_>) -> Finding {
    let ran = match came_out(trial) {
        Ok(ran) => ran,
        Err(finding) => return finding,
    };
    if trial.sends().next().is_none() {
        return Finding::not_seen("the client sent no message");
    }
    if ran.code == Some(0) {
        let expected = "that the client reports an error (exit status other than 0)";
        return Finding::fail_of_all(Failure::expected(expected, ran.in_words()));
    }
    Finding::Pass
}

impl Ran {
    /// `exit status 1: last line of stderr`.
    pub(super) fn in_words(&self) -> String {
        let end = match (self.hung, self.code) {
            (true, _) => format!("a command that did not end within {:.0} s", self.duration.as_secs_f32()),
            (false, Some(code)) => format!("exit status {code}"),
            (false, None) => "a command ended by a signal".to_owned(),
        };
        let last =
            |text: &str| text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned);
        match last(&self.stderr).or_else(|| last(&self.stdout)) {
            Some(line) => format!("{end}: {}", line.chars().take(200).collect::<String>()),
            None => end,
        }
    }
}
