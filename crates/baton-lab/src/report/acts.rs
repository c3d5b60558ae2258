//! The report of the ACTS draft (its section 13): one per binding. Additional members are our own, and readers may
//! ignore them.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::summary::Counts;
use super::{Run, compact, reason, rfc3339};
use crate::acts::document::Level;
use crate::case::{Failure, Outcome, Verdict};
use crate::generation::{Binding, Generation};

/// The reports of a run, each with its generation and binding.
pub fn of(run: &Run) -> Vec<((Generation, Binding), Value)> {
    let mut places: Vec<_> =
        run.outcomes.iter().map(|outcome| (outcome.case.generation, outcome.binding)).collect();
    places.sort();
    places.dedup();
    places.into_iter().map(|place| (place, report(run, place))).collect()
}

/// One object for one report, a list for several.
pub fn render(run: &Run) -> Result<String, serde_json::Error> {
    let mut reports: Vec<Value> = of(run).into_iter().map(|(_, report)| report).collect();
    let value = if reports.len() == 1 { reports.remove(0) } else { Value::Array(reports) };
    serde_json::to_string_pretty(&value).map(|text| text + "\n")
}

/// `acts-report-{agent}-{binding}-{time}.json`, as the draft specifies.
pub fn file_name(run: &Run, (generation, binding): (Generation, Binding)) -> String {
    let name: String = run
        .agent
        .name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .collect();
    let name = name.split('-').filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-");
    let name = if name.is_empty() { "agent".to_owned() } else { name };
    // The draft has only one generation.
    let generation = if generation == Generation::V1 { String::new() } else { format!("-{generation}") };
    format!("acts-report-{name}{generation}-{binding}-{}.json", compact(run.began))
}

fn report(run: &Run, (generation, binding): (Generation, Binding)) -> Value {
    let outcomes: Vec<&Outcome> = run
        .outcomes
        .iter()
        .filter(|outcome| (outcome.case.generation, outcome.binding) == (generation, binding))
        .collect();
    let mut suites: Vec<(String, Value)> = Vec::new();
    for outcome in &outcomes {
        let source = &outcome.case.source;
        let place = suites.iter().position(|(id, _)| *id == source.suite_id).unwrap_or_else(|| {
            let suite = json!({"id": source.suite_id, "name": source.suite_name, "tests": []});
            suites.push((source.suite_id.clone(), suite));
            suites.len() - 1
        });
        if let Some(tests) = suites[place].1["tests"].as_array_mut() {
            tests.push(test(outcome));
        }
    }
    let suites: Vec<Value> = suites.into_iter().map(|(_, suite)| suite).collect();
    json!({
        "acts_version": "1.0",
        "spec_version": generation.version(),
        "generated_at": rfc3339(run.began + run.duration),
        "sdk": {"name": run.agent.name, "version": run.agent.version, "language": "unknown"},
        "transport": binding.name(),
        "environment": {"agent_url": run.agent.url, "runner": format!("baton {}", run.version)},
        "summary": summary(&outcomes),
        "suites": suites,
    })
}

fn summary(outcomes: &[&Outcome]) -> Value {
    let count = |wanted: Option<Level>| {
        let mut counts = Counts::default();
        let chosen =
            outcomes.iter().filter(|outcome| wanted.is_none_or(|level| outcome.case.level() == level));
        chosen.for_each(|outcome| counts.add(&outcome.verdict));
        // The draft counts errors separately from skipped tests.
        json!({
            "total": counts.total,
            "passed": counts.passed,
            "failed": counts.failed,
            "skipped": counts.skipped - counts.errors,
            "errors": counts.errors,
        })
    };
    let mut summary = count(None);
    let whole: Duration = outcomes.iter().map(|outcome| outcome.duration).sum();
    summary["duration_ms"] = milliseconds(whole);
    let levels: Map<String, Value> =
        Level::ALL.into_iter().map(|level| (level.name().to_owned(), count(Some(level)))).collect();
    summary["by_level"] = Value::Object(levels);
    summary
}

fn test(outcome: &Outcome) -> Value {
    let case = &outcome.case;
    let mut test = json!({
        "id": case.id(),
        "name": case.test.name,
        "level": case.level().name(),
        "result": word(&outcome.verdict),
        "duration_ms": milliseconds(outcome.duration),
    });
    match &outcome.verdict {
        Verdict::Pass => {}
        Verdict::Fail(failure) => test["failure"] = failed(failure),
        Verdict::Error(why) => test["failure"] = json!({ "message": why }),
        Verdict::Skip(_) | Verdict::Inconclusive(_) => test["skip_reason"] = json!(reason(&outcome.verdict)),
    }
    let steps = outcome.steps.iter().map(|step| {
        let mut shown = json!({
            "id": step.id, "result": word(&step.verdict), "duration_ms": milliseconds(step.duration)});
        if let Verdict::Fail(failure) = &step.verdict {
            shown["failure"] = failed(failure);
        }
        shown
    });
    let steps: Vec<Value> = steps.collect();
    if !steps.is_empty() {
        test["steps"] = Value::Array(steps);
    }
    if !case.corrections.is_empty() {
        test["corrections"] = json!(case.corrections);
    }
    if case.written_level != case.level() {
        test["written_level"] = json!(case.written_level.name());
    }
    if !outcome.notes.is_empty() {
        test["notes"] = json!(outcome.notes);
    }
    test
}

fn failed(failure: &Failure) -> Value {
    let mut shown = json!({ "message": failure.message });
    for (name, part) in [
        ("step_id", &failure.step),
        ("expected", &failure.expected),
        ("actual", &failure.actual),
        ("assertion_path", &failure.path),
    ] {
        if let Some(part) = part {
            shown[name] = json!(part);
        }
    }
    shown
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Fail(_) => "fail",
        Verdict::Skip(_) | Verdict::Inconclusive(_) => "skip",
        Verdict::Error(_) => "error",
    }
}

fn milliseconds(duration: Duration) -> Value {
    json!(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}
