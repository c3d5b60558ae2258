//! A run under faults, in each report format.

use std::fmt::Write as _;

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};
use serde::{Deserialize, Serialize};

use super::text::{Paint, Style, cut};
use super::{curl, html, markdown, reason, tap};
use crate::case::Verdict;
use crate::fault::trial::{Difference, UnderFaults, UnderKind};
use crate::generation::{Binding, Generation};
use crate::wire::Exchange;

/// As JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    pub fault: String,
    pub about: String,
    pub holds: bool,
    pub same: usize,
    pub different: Vec<Change>,
    pub open: Vec<Change>,
    pub connections: u64,
    pub connections_hit: u64,
    pub duration_ms: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    pub test: String,
    pub generation: Generation,
    pub binding: Binding,
    pub before: String,
    pub after: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The agent did not answer after this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub critical: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curl: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Exchange>,
}

pub(super) fn records(under: &UnderFaults) -> Vec<Record> {
    let change = |found: &Difference| Change {
        test: found.after.case.id().to_owned(),
        generation: found.after.case.generation,
        binding: found.after.binding,
        before: found.before.word().to_owned(),
        after: found.after.verdict.word().to_owned(),
        message: reason(&found.after.verdict).to_owned(),
        critical: found.after.crashed,
        curl: curl(&found.after),
        evidence: found.evidence().to_vec(),
    };
    let record = |kind: &UnderKind| Record {
        fault: kind.kind.name().to_owned(),
        about: kind.kind.sentence().to_owned(),
        holds: kind.holds(),
        same: kind.same,
        different: kind.different.iter().map(change).collect(),
        open: kind.open.iter().map(change).collect(),
        connections: kind.tally.connections,
        connections_hit: kind.tally.faulted,
        duration_ms: u64::try_from(kind.duration.as_millis()).unwrap_or(u64::MAX),
    };
    under.kinds.iter().map(record).collect()
}

pub(super) fn checks(under: &UnderFaults) -> Vec<String> {
    under.checks.iter().map(|(id, generation, binding)| format!("{id} {generation} {binding}")).collect()
}

/// `was pass, is fail: …`.
fn change(found: &Difference) -> String {
    let why = reason(&found.after.verdict);
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    let gone = if found.after.crashed { "; the agent did not answer any more after this" } else { "" };
    match (&found.before, &found.after.verdict) {
        (Verdict::Fail(before), Verdict::Fail(_)) => format!("failed before ({}){why}{gone}", before.message),
        (before, after) => format!("was {}, is {}{why}{gone}", before.word(), after.word()),
    }
}

fn place(found: &Difference) -> String {
    format!("{} {}", found.after.case.generation, found.after.binding)
}

pub(super) fn text(under: &UnderFaults, style: &Style, paint: Paint) -> String {
    let mut text = "under faults\n".to_owned();
    for kind in &under.kinds {
        let word = if kind.holds() { paint.green("same") } else { paint.red("DIFF") };
        let numbers = kind.in_words();
        let _ = writeln!(text, "{word}  {:<11}{numbers}", kind.kind.name());
        let _ = writeln!(text, "      {}", paint.dim(kind.kind.sentence()));
        let both = [(&kind.different, paint.red("DIFF")), (&kind.open, paint.yellow("open"))];
        for (list, word) in both {
            for found in list {
                let line = format!("{}  {}  {}", found.after.case.id(), place(found), change(found));
                let width = style.width.map(|width| width.saturating_sub(12));
                let _ = writeln!(text, "      {word}  {}", cut(&line, width));
                if let Some(line) = curl(&found.after).filter(|_| !kind.holds()) {
                    let _ = writeln!(text, "            {}", paint.dim(&super::text::harmless(&line)));
                }
            }
        }
    }
    text + "\n"
}

pub(super) fn markdown(under: &UnderFaults) -> String {
    let mut text = "\n### Under faults\n\n| Fault | Same | Different | Open | Connections hit |\n|---|--:|--:|--:|--:|\n".to_owned();
    for kind in &under.kinds {
        let (name, about) = (kind.kind.name(), kind.kind.sentence());
        let (different, open) = (kind.different.len(), kind.open.len());
        let hit = format!("{}/{}", kind.tally.faulted, kind.tally.connections);
        let _ = writeln!(text, "| **{name}**: {about} | {} | {different} | {open} | {hit} |", kind.same);
    }
    if !under.holds() {
        text += "\n| Fault | Test | Where | Change |\n|---|---|---|---|\n";
    }
    for kind in &under.kinds {
        for found in &kind.different {
            let (name, id) = (kind.kind.name(), found.after.case.id());
            let _ =
                writeln!(text, "| {name} | `{id}` | {} | {} |", place(found), markdown::cell(&change(found)));
        }
    }
    text
}

pub(super) fn html(under: &UnderFaults) -> String {
    let mut text = "<section><h2>Under faults</h2><div class=\"scroll\"><table class=\"counts\"><tr><th></th><th>same</th><th>different</th><th>open</th><th>connections hit</th></tr>".to_owned();
    for kind in &under.kinds {
        let _ = write!(
            text,
            "<tr><td><b>{}</b>: {}</td><td>{}</td><td>{}</td><td>{}</td><td>{}/{}</td></tr>",
            kind.kind.name(),
            kind.kind.sentence(),
            kind.same,
            kind.different.len(),
            kind.open.len(),
            kind.tally.faulted,
            kind.tally.connections
        );
    }
    text += "</table></div>\n";
    for kind in &under.kinds {
        let found = kind.different.iter().map(|found| (found, "fail"));
        for (found, class) in found.chain(kind.open.iter().map(|found| (found, "inconclusive"))) {
            let case = &found.after.case;
            let exchanged: String = found.evidence().iter().map(html::exchange).collect();
            let _ = writeln!(
                text,
                "<details class=\"case\"><summary><span class=\"chip {class}\">{}</span><span class=\"id mono\">{}</span><span class=\"name\">{}<span class=\"why\">{}</span></span><span class=\"where\">{}</span></summary>\n<div class=\"body\">{exchanged}</div></details>",
                kind.kind.name(),
                html::escaped(case.id()),
                html::escaped(&case.test.name),
                html::escaped(&change(found)),
                place(found)
            );
        }
    }
    text + "</section>\n"
}

/// One suite, one test per kind of fault: a failure is what makes the run fail.
pub(super) fn junit(under: &UnderFaults) -> TestSuite {
    let mut suite = TestSuite::new("a2a under faults");
    for kind in &under.kinds {
        let mut status = if kind.holds() {
            TestCaseStatus::success()
        } else {
            TestCaseStatus::non_success(NonSuccessKind::Failure)
        };
        if !kind.holds() {
            let lines = kind.different.iter();
            let lines =
                lines.map(|found| format!("{} {}: {}", found.after.case.id(), place(found), change(found)));
            status.set_message(kind.in_words()).set_description(lines.collect::<Vec<_>>().join("\n"));
        }
        let mut case = TestCase::new(format!("{}: {}", kind.kind.name(), kind.kind.sentence()), status);
        case.set_classname("a2a.faults").set_time(kind.duration);
        case.set_system_out(kind.in_words());
        suite.add_test_case(case);
    }
    suite
}

/// One line per kind of fault, numbered from `number` on.
pub(super) fn tap(under: &UnderFaults, number: usize) -> String {
    let mut text = String::new();
    for (number, kind) in (number..).zip(&under.kinds) {
        let not = if kind.holds() { "" } else { "not " };
        let name = tap::escaped(&format!("under faults: {}", kind.kind.name()));
        let _ = writeln!(text, "{not}ok {number} - {name}");
        let lines: Vec<String> = kind
            .different
            .iter()
            .map(|found| format!("{} {}: {}", found.after.case.id(), place(found), change(found)))
            .collect();
        let message = [vec![kind.in_words()], lines].concat().join("; ");
        let _ = writeln!(text, "  ---\n  message: {}\n  ...", serde_json::Value::String(message));
    }
    text
}
