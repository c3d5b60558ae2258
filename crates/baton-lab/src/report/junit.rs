//! JUnit XML: a suite per interface, a test case per check.
//!
//! Only failures that count are failures here. A missed recommendation counts only with `strict`; otherwise it is a
//! skipped test whose message says what was found, so that a CI run that ends with 0 is not shown as broken.

use quick_junit::{NonSuccessKind, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};

use super::{Run, advice, curl, reason};
use crate::case::{Outcome, Verdict};

pub fn render(run: &Run) -> Result<String, SerializeError> {
    let mut report = Report::new(format!("A2A conformance of {}", run.agent.url));
    report.set_time(run.duration);
    let summary = run.summary();
    for (generation, binding) in summary.by_interface.keys() {
        let mut suite = TestSuite::new(format!("a2a {generation} {binding}"));
        let here = run
            .outcomes
            .iter()
            .filter(|outcome| (outcome.case.generation, outcome.binding) == (*generation, *binding));
        for outcome in here {
            suite.add_test_case(case(run, outcome));
        }
        suite.add_property(("agent.name", run.agent.name.as_str()));
        suite.add_property(("agent.version", run.agent.version.as_str()));
        suite.add_property(("conformance.level", summary.level_name()));
        report.add_test_suite(suite);
    }
    if let Some(under) = &run.faults {
        report.add_test_suite(super::faults::junit(under));
    }
    report.to_string()
}

fn case(run: &Run, outcome: &Outcome) -> TestCase {
    let level = outcome.case.level().name();
    let why = reason(&outcome.verdict);
    let mut status = match &outcome.verdict {
        Verdict::Pass => TestCaseStatus::success(),
        Verdict::Fail(_) if run.counts(outcome.case.level()) => {
            TestCaseStatus::non_success(NonSuccessKind::Failure)
        }
        Verdict::Error(_) => TestCaseStatus::non_success(NonSuccessKind::Error),
        _ => TestCaseStatus::skipped(),
    };
    match &outcome.verdict {
        Verdict::Pass => {}
        Verdict::Fail(_) => {
            let message =
                if run.is_counted_failure(outcome) { why.to_owned() } else { format!("{level}: {why}") };
            status.set_message(message).set_type(level).set_description(details(outcome));
        }
        _ => {
            status.set_message(why).set_type(outcome.verdict.word());
        }
    }
    let mut case = TestCase::new(format!("{} {}", outcome.case.id(), outcome.case.test.name), status);
    case.set_classname(format!("a2a.{}", outcome.case.category.name())).set_time(outcome.duration);
    if !outcome.notes.is_empty() {
        case.set_system_out(outcome.notes.join("\n"));
    }
    case
}

fn details(outcome: &Outcome) -> String {
    let mut lines = vec![format!("requirement: {}", outcome.case.requirement())];
    if let Some(section) = &outcome.case.test.section {
        lines.push(format!("section:     {section}"));
    }
    if let Verdict::Fail(failure) = &outcome.verdict {
        for (name, part) in [
            ("step:        ", &failure.step),
            ("path:        ", &failure.path),
            ("expected:    ", &failure.expected),
            ("actual:      ", &failure.actual),
        ] {
            lines.extend(part.as_ref().map(|part| format!("{name}{part}")));
        }
    }
    lines.push(format!("remedy:      {}", advice(&outcome.case)));
    lines.extend(curl(outcome).map(|line| format!("try:         {line}")));
    lines.join("\n")
}
