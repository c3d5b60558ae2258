//! TAP version 14, with details as a YAML block.

use super::{Run, advice, reason};
use crate::case::{Outcome, Verdict};

pub fn render(run: &Run) -> String {
    let kinds = run.faults.as_ref().map_or(0, |under| under.kinds.len());
    let mut text = format!("TAP version 14\n1..{}\n", run.outcomes.len() + kinds);
    for (number, outcome) in (1..).zip(&run.outcomes) {
        text += &line(run, number, outcome);
    }
    if let Some(under) = &run.faults {
        text += &super::faults::tap(under, run.outcomes.len() + 1);
    }
    let summary = run.summary();
    text += &format!("# level: {} ({})\n", summary.level_name(), one_line(&summary.why));
    for remark in &summary.remarks {
        text += &format!("# {}\n", one_line(remark));
    }
    text
}

fn line(run: &Run, number: usize, outcome: &Outcome) -> String {
    let case = &outcome.case;
    let name = format!("{} {} {} {}", case.id(), case.generation, outcome.binding, case.test.name);
    let name = escaped(&name);
    let why = one_line(reason(&outcome.verdict));
    match &outcome.verdict {
        Verdict::Pass => format!("ok {number} - {name}\n"),
        Verdict::Skip(_) | Verdict::Inconclusive(_) => {
            format!("ok {number} - {name} # SKIP {}\n", escaped(&why))
        }
        Verdict::Error(_) => format!("not ok {number} - {name}\n{}", diagnosis(outcome)),
        // TAP's TODO marks failures that do not count.
        Verdict::Fail(_) if !run.counts(case.level()) => {
            format!("not ok {number} - {name} # TODO {}\n{}", case.level().name(), diagnosis(outcome))
        }
        Verdict::Fail(_) => format!("not ok {number} - {name}\n{}", diagnosis(outcome)),
    }
}

fn diagnosis(outcome: &Outcome) -> String {
    let mut members = vec![("message", reason(&outcome.verdict).to_owned())];
    members.push(("severity", outcome.verdict.word().to_owned()));
    members.push(("level", outcome.case.level().name().to_owned()));
    if let Verdict::Fail(failure) = &outcome.verdict {
        members.extend(failure.expected.clone().map(|text| ("expected", text)));
        members.extend(failure.actual.clone().map(|text| ("actual", text)));
        members.push(("remedy", advice(&outcome.case)));
    }
    let lines: String = members
        .into_iter()
        // A JSON string is also a YAML string.
        .map(|(name, value)| format!("  {name}: {}\n", serde_json::Value::String(value)))
        .collect();
    format!("  ---\n{lines}  ...\n")
}

/// `#` begins a directive.
pub(super) fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('#', "\\#")
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
