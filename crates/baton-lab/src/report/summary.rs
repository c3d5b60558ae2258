//! The run in numbers, and its conformance level.
//!
//! The levels are those of the guide: *full* all checks pass, streaming and push included; *partial* the card and the
//! lifecycle are right, something else is not; *minimal* the card is right and a task can be sent and read;
//! *non-conformant* otherwise, and whenever the agent stopped answering. Duties (must) and recommendations (should)
//! count, options (may) never lower the level. What the agent does not advertise does not lower the level, but is
//! mentioned.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Run, Subject};
use crate::acts::document::Level;
use crate::case::{Category, Outcome, Verdict};
use crate::generation::{Binding, Generation};

/// The tag of cases for "a task can be sent and read"; those of the official files have no tag and are listed by id.
const BASIC_TAG: &str = "basic";
const BASIC_IDS: &[&str] = &["CORE-SEND-001", "CORE-GET-001"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Conformance {
    Full,
    Partial,
    Minimal,
    NonConformant,
}

impl Conformance {
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Partial => "partial",
            Self::Minimal => "minimal",
            Self::NonConformant => "non-conformant",
        }
    }
}

/// The number of results. `skipped` includes inconclusive cases and errors of the runner, since they have no verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub total: usize,
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
    pub inconclusive: usize,
    pub errors: usize,
}

impl Counts {
    pub fn add(&mut self, verdict: &Verdict) {
        self.total += 1;
        match verdict {
            Verdict::Pass => self.passed += 1,
            Verdict::Fail(_) => self.failed += 1,
            Verdict::Skip(_) => self.skipped += 1,
            Verdict::Inconclusive(_) => {
                self.skipped += 1;
                self.inconclusive += 1;
            }
            Verdict::Error(_) => {
                self.skipped += 1;
                self.errors += 1;
            }
        }
    }

    /// The number of cases that passed or failed.
    pub fn judged(&self) -> usize {
        self.passed + self.failed
    }

    /// `60/65 passed (3 failed, 2 skipped)`.
    pub fn in_words(&self) -> String {
        let mut rest = Vec::new();
        let plain = self.skipped - self.inconclusive - self.errors;
        for (count, word) in [
            (self.failed, "failed"),
            (plain, "skipped"),
            (self.inconclusive, "inconclusive"),
            (self.errors, "in error"),
        ] {
            if count > 0 {
                rest.push(format!("{count} {word}"));
            }
        }
        let rest = if rest.is_empty() { String::new() } else { format!(" ({})", rest.join(", ")) };
        format!("{}/{} passed{rest}", self.passed, self.total)
    }
}

#[derive(Debug, Clone)]
pub struct Summary {
    pub all: Counts,
    pub by_level: BTreeMap<Level, Counts>,
    pub by_category: BTreeMap<Category, Counts>,
    pub by_interface: BTreeMap<(Generation, Binding), Counts>,
    /// `None` if too little was run to say.
    pub level: Option<Conformance>,
    /// One sentence on why it is this level.
    pub why: String,
    /// Remarks on the level.
    pub remarks: Vec<String>,
    /// Cases after which the agent did not answer.
    pub critical: Vec<String>,
}

impl Summary {
    pub(super) fn of(run: &Run) -> Self {
        let mut all = Counts::default();
        let mut by_level: BTreeMap<_, Counts> = Level::ALL.map(|level| (level, Counts::default())).into();
        let mut by_category: BTreeMap<_, Counts> = Category::ALL.map(|each| (each, Counts::default())).into();
        let mut by_interface: BTreeMap<_, Counts> = BTreeMap::new();
        for outcome in &run.outcomes {
            all.add(&outcome.verdict);
            by_level.entry(outcome.case.level()).or_default().add(&outcome.verdict);
            by_category.entry(outcome.case.category).or_default().add(&outcome.verdict);
            let place = (outcome.case.generation, outcome.binding);
            by_interface.entry(place).or_default().add(&outcome.verdict);
        }
        let crashed = run.outcomes.iter().filter(|outcome| outcome.crashed);
        let critical: Vec<String> =
            crashed.map(|outcome| format!("{} ({})", outcome.case.id(), outcome.binding)).collect();
        let (level, why) = judge(run, &critical);
        let remarks = remarks(run);
        Summary { all, by_level, by_category, by_interface, level, why, remarks, critical }
    }

    /// The name of the level.
    pub fn level_name(&self) -> &'static str {
        self.level.map_or("not determined", Conformance::name)
    }
}

fn judge(run: &Run, critical: &[String]) -> (Option<Conformance>, String) {
    if let Some(first) = critical.first() {
        let why = format!("the agent stopped answering after {first}");
        return (Some(Conformance::NonConformant), why);
    }
    if run.subject == Subject::Client {
        return judge_client(run);
    }
    let of = |category: Category| move |outcome: &&Outcome| outcome.case.category == category;
    let outcomes = || run.outcomes.iter();
    let judged = |outcome: &&Outcome| matches!(outcome.verdict, Verdict::Pass | Verdict::Fail(_));
    for category in [Category::AgentCard, Category::Lifecycle] {
        if !outcomes().filter(of(category)).any(|outcome| judged(&outcome)) {
            let why = format!("no {} check was run", category.name().replace('-', " "));
            return (None, why);
        }
    }
    let failed = |outcome: &&Outcome| matches!(outcome.verdict, Verdict::Fail(_));
    let duty = |outcome: &&Outcome| outcome.case.level() == Level::Must;
    let card = outcomes().filter(of(Category::AgentCard)).filter(duty).filter(failed).count();
    if card > 0 {
        return (Some(Conformance::NonConformant), format!("the card is not right: {}", checks(card)));
    }
    let basic = |outcome: &&Outcome| {
        let test = &outcome.case.test;
        test.tags.iter().any(|tag| tag == BASIC_TAG) || BASIC_IDS.contains(&test.id.as_str())
    };
    let broken = outcomes().filter(basic).filter(failed).count();
    if broken > 0 {
        let why = format!("a task cannot be sent and read: {}", checks(broken));
        return (Some(Conformance::NonConformant), why);
    }
    let lifecycle = || outcomes().filter(of(Category::Lifecycle));
    if !lifecycle().any(|outcome| outcome.verdict == Verdict::Pass) {
        return (Some(Conformance::NonConformant), "no lifecycle check passed".to_owned());
    }
    let bad = lifecycle().filter(duty).filter(failed).count();
    if bad > 0 {
        return (Some(Conformance::Minimal), format!("the lifecycle is not right: {}", checks(bad)));
    }
    let binding = |outcome: &&Outcome| outcome.case.level() != Level::May;
    let rest = outcomes().filter(binding).filter(failed).count();
    if rest > 0 {
        let why = format!("card and lifecycle are right, something else is not: {}", checks(rest));
        return (Some(Conformance::Partial), why);
    }
    // *Full* includes streaming and push: if advertised, they must have been tested.
    let streaming = |outcome: &&Outcome| outcome.case.category == Category::Streaming;
    for (advertised, name, seen) in [
        (run.agent.streaming, "streaming is", outcomes().filter(streaming).any(|outcome| judged(&outcome))),
        (
            run.agent.push,
            "push notifications are",
            outcomes().filter(is_push).any(|outcome| judged(&outcome)),
        ),
    ] {
        if advertised && !seen {
            let why = format!("every check passed, but {name} advertised and no check of that was run");
            return (Some(Conformance::Partial), why);
        }
    }
    (Some(Conformance::Full), "every check that applies passed".to_owned())
}

/// A client has no card and no lifecycle: its level depends on duties, and the best level on recommendations, too.
fn judge_client(run: &Run) -> (Option<Conformance>, String) {
    let failed = |level: Level| {
        let failed = run.outcomes.iter().filter(|outcome| matches!(outcome.verdict, Verdict::Fail(_)));
        failed.filter(|outcome| outcome.case.level() == level).count()
    };
    let judged = |outcome: &Outcome| matches!(outcome.verdict, Verdict::Pass | Verdict::Fail(_));
    if !run.outcomes.iter().any(judged) {
        return (None, "no client called".to_owned());
    }
    match (failed(Level::Must), failed(Level::Should)) {
        (0, 0) => (Some(Conformance::Full), "the client keeps every rule that was seen".to_owned()),
        (0, count) => (
            Some(Conformance::Partial),
            format!("the client keeps every duty that was seen; {}", checks(count)),
        ),
        (count, _) => (Some(Conformance::NonConformant), format!("duties are not kept: {}", checks(count))),
    }
}

/// True for a check of push notifications that applies to agents with them.
fn is_push(outcome: &&Outcome) -> bool {
    outcome.case.test.preconditions.capabilities.get("pushNotifications") == Some(&true.into())
}

fn checks(count: usize) -> String {
    if count == 1 { "1 check failed".to_owned() } else { format!("{count} checks failed") }
}

fn remarks(run: &Run) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(cut) = &run.cut {
        remarks.push(cut.clone());
    }
    if run.agent.unchecked {
        remarks.push("--insecure: certificates were NOT checked, so it is not known who answered".to_owned());
    }
    if run.selected {
        remarks.push("only a selection of the checks was run".to_owned());
    }
    let agent = run.subject == Subject::Agent;
    if agent && !run.agent.streaming {
        remarks.push("streaming is not advertised, so it was not tested".to_owned());
    }
    if agent && !run.agent.push {
        remarks.push("push notifications are not advertised, so they were not tested".to_owned());
    }
    if let Some(under) = &run.faults {
        let verdicts = match under.different() {
            0 => "every verdict is the same as".to_owned(),
            1 => "1 verdict differs from that".to_owned(),
            count => format!("{count} verdicts differ from those"),
        };
        remarks.push(format!("under faults {verdicts} without"));
    }
    let options = run
        .outcomes
        .iter()
        .filter(|outcome| matches!(outcome.verdict, Verdict::Fail(_)) && outcome.case.level() == Level::May);
    match options.count() {
        0 => {}
        1 => remarks.push("1 optional (may) check failed, which does not lower the level".to_owned()),
        count => {
            remarks.push(format!("{count} optional (may) checks failed, which does not lower the level"))
        }
    }
    remarks
}
