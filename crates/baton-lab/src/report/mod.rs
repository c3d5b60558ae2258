//! Reports of a run, for people and machines.
//!
//! Every format is a pure function from a [`Run`] to text: no clock, no files, no terminal. Secrets were removed from
//! the outcomes before (see [`secrets`](crate::wire::secrets)).
//!
//! | form | for |
//! |---|---|
//! | [`text`] | a terminal |
//! | [`json`] | machines; what `compare` reads |
//! | [`markdown`] | a comment on a pull request |
//! | [`junit`] | CI systems |
//! | [`acts`] | ACTS dashboards: one report per binding |
//! | [`html`] | a browser, offline |
//! | [`tap`] | the Test Anything Protocol |
//! | [`badge`] | a README |

pub mod acts;
pub mod badge;
pub mod compare;
mod date;
pub mod faults;
pub mod html;
pub mod json;
pub mod junit;
pub mod markdown;
pub mod summary;
pub mod tap;
pub mod text;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use crate::acts::document::Level;
use crate::baseline::Compared;
use crate::case::{Case, Outcome, Verdict};
use crate::fault::trial::UnderFaults;
use crate::generation::{Binding, Generation};
use crate::target::Target;

pub use date::{compact, rfc3339};
pub use summary::{Conformance, Summary};

/// What was tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Subject {
    #[default]
    Agent,
    /// A client that called scripted agents: see [`judge`](crate::judge).
    Client,
}

impl Subject {
    pub fn word(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Client => "client",
        }
    }
}

/// A run, complete or interrupted: the input of all reports.
#[derive(Debug, Clone)]
pub struct Run {
    pub subject: Subject,
    pub agent: Agent,
    pub began: SystemTime,
    pub duration: Duration,
    pub outcomes: Vec<Outcome>,
    /// Warnings of discovery.
    pub warnings: Vec<String>,
    /// Recommendations count like duties.
    pub strict: bool,
    /// The user selected cases, so the level says little about the agent as a whole.
    pub selected: bool,
    pub seed: u64,
    /// The version of this program.
    pub version: String,
    /// The comparison with the list of expected failures.
    pub baseline: Option<Compared>,
    /// The results of the run under faults.
    pub faults: Option<UnderFaults>,
    /// Why it was interrupted.
    pub cut: Option<String>,
    /// Exchanges are shown for passed cases, too.
    pub all_evidence: bool,
}

/// The agent's data for reports.
#[derive(Debug, Clone, Default)]
pub struct Agent {
    pub url: String,
    pub name: String,
    pub version: String,
    pub interfaces: BTreeMap<(Generation, Binding), String>,
    pub streaming: bool,
    /// Its certificate was not checked.
    pub unchecked: bool,
    pub push: bool,
}

impl Agent {
    pub fn of(target: &Target) -> Self {
        let text = |name: &str| target.card[name].as_str().unwrap_or_default().to_owned();
        let interfaces = target.interfaces.iter().map(|(key, interface)| (*key, interface.url.clone()));
        Agent {
            url: target.base.clone(),
            name: text("name"),
            version: text("version"),
            interfaces: interfaces.collect(),
            streaming: target.capability("streaming") == true,
            unchecked: false,
            push: target.capability("pushNotifications") == true,
        }
    }
}

impl Run {
    pub fn summary(&self) -> Summary {
        Summary::of(self)
    }

    /// True if a failure at this level counts against the agent.
    pub fn counts(&self, level: Level) -> bool {
        level == Level::Must || (self.strict && level == Level::Should)
    }

    /// The outcomes that count against the agent.
    pub fn counted_failures(&self) -> impl Iterator<Item = &Outcome> {
        self.outcomes.iter().filter(|outcome| self.is_counted_failure(outcome))
    }

    pub fn is_counted_failure(&self, outcome: &Outcome) -> bool {
        matches!(outcome.verdict, Verdict::Fail(_)) && self.counts(outcome.case.level())
    }

    /// True if the exchanges of this outcome are shown.
    pub fn shows_evidence(&self, outcome: &Outcome) -> bool {
        self.all_evidence || !matches!(outcome.verdict, Verdict::Pass | Verdict::Skip(_))
    }
}

/// What the agent's author should do; if the file does not say, the case's requirement.
pub fn advice(case: &Case) -> String {
    match &case.test.remedy {
        Some(remedy) => in_one_line(remedy),
        None => about(case).unwrap_or_else(|| case.requirement().to_owned()),
    }
}

/// The description of a test in its file.
pub fn about(case: &Case) -> Option<String> {
    let test = &case.test;
    let description = in_one_line(test.description.as_ref()?);
    Some(match &test.spec_ref {
        Some(place) if place.contains('#') => format!("{description} See {place}."),
        _ => description,
    })
}

fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The reason of a verdict, in one line; empty for a pass.
pub fn reason(verdict: &Verdict) -> &str {
    match verdict {
        Verdict::Pass => "",
        Verdict::Fail(failure) => &failure.message,
        Verdict::Skip(reason) | Verdict::Inconclusive(reason) | Verdict::Error(reason) => reason,
    }
}

/// The last request of an outcome as a `curl` line; it is the failing one, since a case ends there.
pub fn curl(outcome: &Outcome) -> Option<String> {
    outcome.evidence.last().map(|exchange| crate::wire::curl::line(&exchange.sent))
}

/// Several outcomes of one case that failed for the same reason.
pub(crate) struct Group<'a> {
    pub(crate) first: &'a Outcome,
    pub(crate) bindings: Vec<(Generation, Binding)>,
}

/// How many characters of two reasons are compared.
const MOST_COMPARED: usize = 160;

/// Groups outcomes by case and reason, in their order.
pub(crate) fn grouped<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for outcome in outcomes {
        let place = (outcome.case.generation, outcome.binding);
        // Ids differ each time: reasons that differ only in ids are treated as equal.
        let form = |outcome: &Outcome| -> String {
            // Long values are shortened, perhaps inside an id.
            without_ids(reason(&outcome.verdict)).chars().take(MOST_COMPARED).collect()
        };
        let same = |group: &&mut Group<'_>| {
            group.first.case.id() == outcome.case.id() && form(group.first) == form(outcome)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.bindings.push(place),
            None => groups.push(Group { first: outcome, bindings: vec![place] }),
        }
    }
    groups
}

/// Replaces UUIDs by a placeholder.
fn without_ids(text: &str) -> String {
    const LENGTH: usize = 36;
    let is_uuid = |window: &[u8]| {
        let fits = |(at, byte): (usize, &u8)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        };
        window.len() == LENGTH && window.iter().enumerate().all(fits)
    };
    let bytes = text.as_bytes();
    let (mut out, mut at, mut kept) = (String::new(), 0, 0);
    while at + LENGTH <= bytes.len() {
        if is_uuid(&bytes[at..at + LENGTH]) {
            out.push_str(&text[kept..at]);
            out.push('#');
            at += LENGTH;
            kept = at;
        } else {
            at += 1;
        }
    }
    out + &text[kept..]
}

impl Group<'_> {
    /// `1.0 jsonrpc, rest`.
    pub(crate) fn places(&self) -> String {
        let mut by_generation: BTreeMap<Generation, Vec<&str>> = BTreeMap::new();
        for (generation, binding) in &self.bindings {
            by_generation.entry(*generation).or_default().push(binding.name());
        }
        let all =
            by_generation.iter().map(|(generation, names)| format!("{generation} {}", names.join(", ")));
        all.collect::<Vec<_>>().join("; ")
    }
}
