//! The report for machines: the guide's members, and additional ones of this lab.
//!
//! `status` is one of the guide's three words; `verdict` also distinguishes inconclusive cases and errors of the runner
//! from skipped ones.

use serde::{Deserialize, Serialize};

use super::summary::Counts;
use super::{Conformance, Run, advice, curl, grouped, reason, rfc3339};
use crate::acts::document::Level;
use crate::case::{Category, Outcome, Verdict};
use crate::generation::{Binding, Generation};
use crate::wire::Exchange;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub agent_url: String,
    pub agent_name: String,
    pub agent_version: String,
    pub test_date: String,
    pub summary: Numbers,
    pub categories: Categories,
    /// `null` if too little was run to say.
    pub conformance_level: Option<Conformance>,
    pub conformance_reason: String,
    #[serde(default)]
    pub remarks: Vec<String>,
    #[serde(default)]
    pub recommendations: Vec<Recommendation>,
    #[serde(default)]
    pub warnings: Vec<String>,
    #[serde(default)]
    pub critical: Vec<String>,
    pub strict: bool,
    pub seed: u64,
    pub tool: Tool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Against>,
    /// By kind of fault; only if cases were run under faults.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<super::faults::Record>,
    /// The checks that were run under faults: `V1-GET-001 1.0 rest`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fault_checks: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Numbers {
    #[serde(flatten)]
    pub all: Counts,
    pub duration_ms: u64,
    pub by_level: Levels,
    pub interfaces: Vec<Interface>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Levels {
    pub must: Counts,
    pub should: Counts,
    pub may: Counts,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Interface {
    pub generation: Generation,
    pub binding: Binding,
    pub url: String,
    #[serde(flatten)]
    pub counts: Counts,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Categories {
    pub agent_card: Vec<Record>,
    pub lifecycle: Vec<Record>,
    pub streaming: Vec<Record>,
    pub error_handling: Vec<Record>,
    pub interop: Vec<Record>,
}

/// One check on one interface.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    pub test: String,
    pub name: String,
    pub category: String,
    pub status: String,
    pub verdict: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    pub duration_ms: u64,
    pub generation: Generation,
    pub binding: Binding,
    pub level: Level,
    /// The level in the file, if a correction changed it.
    #[serde(default, rename = "writtenLevel", skip_serializing_if = "Option::is_none")]
    pub written_level: Option<Level>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    pub requirement: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub corrections: Vec<String>,
    /// The agent did not answer after this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub critical: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curl: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Exchange>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Recommendation {
    pub test: String,
    pub category: String,
    pub level: Level,
    /// `1.0 jsonrpc, rest`.
    pub interfaces: String,
    pub message: String,
    pub recommendation: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tool {
    pub name: String,
    pub version: String,
}

/// The comparison with the list of expected failures.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Against {
    pub holds: bool,
    pub unexpected: Vec<String>,
    pub mended: Vec<String>,
    pub expected: Vec<String>,
    pub unseen: Vec<String>,
}

pub fn of(run: &Run) -> Report {
    let summary = run.summary();
    let level = |level| summary.by_level.get(&level).copied().unwrap_or_default();
    let interfaces = summary.by_interface.iter().map(|((generation, binding), counts)| Interface {
        generation: *generation,
        binding: *binding,
        url: run.agent.interfaces.get(&(*generation, *binding)).cloned().unwrap_or_default(),
        counts: *counts,
    });
    Report {
        agent_url: run.agent.url.clone(),
        agent_name: run.agent.name.clone(),
        agent_version: run.agent.version.clone(),
        test_date: rfc3339(run.began),
        summary: Numbers {
            all: summary.all,
            duration_ms: milliseconds(run.duration),
            by_level: Levels {
                must: level(Level::Must),
                should: level(Level::Should),
                may: level(Level::May),
            },
            interfaces: interfaces.collect(),
        },
        categories: categories(run),
        conformance_level: summary.level,
        conformance_reason: summary.why.clone(),
        remarks: summary.remarks.clone(),
        recommendations: recommendations(run),
        warnings: run.warnings.clone(),
        critical: summary.critical.clone(),
        strict: run.strict,
        seed: run.seed,
        tool: Tool { name: "baton".to_owned(), version: run.version.clone() },
        baseline: run.baseline.as_ref().map(|compared| Against {
            holds: compared.holds(),
            unexpected: compared.unexpected.clone(),
            mended: compared.mended.clone(),
            expected: compared.expected.clone(),
            unseen: compared.unseen.clone(),
        }),
        faults: run.faults.as_ref().map(super::faults::records).unwrap_or_default(),
        fault_checks: run.faults.as_ref().map(super::faults::checks).unwrap_or_default(),
    }
}

pub fn render(run: &Run) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&of(run)).map(|text| text + "\n")
}

fn categories(run: &Run) -> Categories {
    let of = |category: Category| {
        let outcomes = run.outcomes.iter().filter(|outcome| outcome.case.category == category);
        outcomes.map(|outcome| record(run, outcome)).collect()
    };
    Categories {
        agent_card: of(Category::AgentCard),
        lifecycle: of(Category::Lifecycle),
        streaming: of(Category::Streaming),
        error_handling: of(Category::ErrorHandling),
        interop: of(Category::Interop),
    }
}

impl Categories {
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        let Categories { agent_card, lifecycle, streaming, error_handling, interop } = self;
        [agent_card, lifecycle, streaming, error_handling, interop].into_iter().flatten()
    }
}

fn record(run: &Run, outcome: &Outcome) -> Record {
    let case = &outcome.case;
    let failure = match &outcome.verdict {
        Verdict::Fail(failure) => Some(failure),
        _ => None,
    };
    let of = |part: fn(&crate::case::Failure) -> &Option<String>| {
        failure.and_then(|failure| part(failure).clone())
    };
    let shown = run.shows_evidence(outcome);
    Record {
        test: case.id().to_owned(),
        name: case.test.name.clone(),
        category: case.category.name().to_owned(),
        status: match &outcome.verdict {
            Verdict::Pass => "pass",
            Verdict::Fail(_) => "fail",
            Verdict::Skip(_) | Verdict::Inconclusive(_) | Verdict::Error(_) => "skip",
        }
        .to_owned(),
        verdict: outcome.verdict.word().to_owned(),
        message: reason(&outcome.verdict).to_owned(),
        duration_ms: milliseconds(outcome.duration),
        generation: case.generation,
        binding: outcome.binding,
        level: case.level(),
        written_level: (case.written_level != case.level()).then_some(case.written_level),
        section: case.test.section.clone(),
        requirement: case.requirement().to_owned(),
        remedy: failure.map(|_| advice(case)),
        step: of(|failure| &failure.step),
        path: of(|failure| &failure.path),
        expected: of(|failure| &failure.expected),
        actual: of(|failure| &failure.actual),
        notes: outcome.notes.clone(),
        corrections: case.corrections.iter().map(|name| (*name).to_owned()).collect(),
        critical: outcome.crashed,
        curl: if shown { curl(outcome) } else { None },
        evidence: if shown { outcome.evidence.clone() } else { Vec::new() },
    }
}

fn recommendations(run: &Run) -> Vec<Recommendation> {
    let failed = run.outcomes.iter().filter(|outcome| matches!(outcome.verdict, Verdict::Fail(_)));
    let mut all: Vec<Recommendation> = grouped(failed)
        .iter()
        .map(|group| Recommendation {
            test: group.first.case.id().to_owned(),
            category: group.first.case.category.name().to_owned(),
            level: group.first.case.level(),
            interfaces: group.places(),
            message: reason(&group.first.verdict).to_owned(),
            recommendation: advice(&group.first.case),
        })
        .collect();
    all.sort_by_key(|each| each.level);
    all
}

fn milliseconds(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
