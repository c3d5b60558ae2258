//! Every form of report against its golden file. `BATON_UPDATE_GOLDEN=1` writes the files anew.

use std::path::Path;

use baton_lab::case::Verdict;
use baton_lab::report::compare::Comparison;
use baton_lab::report::text::{Detail, Style};
use baton_lab::report::{Conformance, Run, acts, badge, html, json, junit, markdown, tap, text};

use crate::fixed;

#[track_caller]
fn golden(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden").join(name);
    if std::env::var_os("BATON_UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, actual).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    let differing = expected.lines().zip(actual.lines()).position(|(one, two)| one != two);
    let line = differing.unwrap_or(expected.lines().count().min(actual.lines().count()));
    assert!(
        expected == actual,
        "{name} differs at line {}:\n- {}\n+ {}\n(BATON_UPDATE_GOLDEN=1 writes it anew)",
        line + 1,
        expected.lines().nth(line).unwrap_or("(end)"),
        actual.lines().nth(line).unwrap_or("(end)")
    );
}

#[test]
fn t06_json_has_the_guides_shape() {
    let text = json::render(&fixed::run()).unwrap();
    golden("report.json", &text);
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    for member in
        ["agentUrl", "agentName", "agentVersion", "testDate", "summary", "categories", "conformanceLevel"]
    {
        assert!(!report[member].is_null(), "{member}");
    }
    for category in ["agentCard", "lifecycle", "streaming", "errorHandling", "interop"] {
        for record in report["categories"][category].as_array().unwrap() {
            for member in ["test", "category", "status", "duration_ms"] {
                assert!(!record[member].is_null(), "{category}: {member}");
            }
            assert!(["pass", "fail", "skip"].contains(&record["status"].as_str().unwrap()));
        }
    }
    let number = |name: &str| report["summary"][name].as_u64().unwrap();
    assert_eq!(number("total"), number("passed") + number("failed") + number("skipped"));
    let failed = report["recommendations"].as_array().unwrap();
    assert!(
        !failed.is_empty()
            && failed.iter().all(|each| each["recommendation"].as_str().is_some_and(|text| !text.is_empty()))
    );
    // What was read is what was written.
    let read: json::Report = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string_pretty(&read).unwrap() + "\n", text);
}

#[test]
fn t06_markdown() {
    golden("report.md", &markdown::render(&fixed::run()));
}

/// Read back with a reader of JUnit: the counts and the messages are the run's.
#[test]
fn t06_junit_can_be_read_back() {
    let run = fixed::run();
    let text = junit::render(&run).unwrap();
    golden("report.xml", &text);
    let report = quick_junit::Report::deserialize_from_str(&text).unwrap();
    assert_eq!(report.tests, run.outcomes.len());
    assert_eq!((report.failures, report.errors), (2, 1), "only duties are red");
    let names: Vec<&str> = report.test_suites.iter().map(|suite| suite.name.as_str()).collect();
    assert_eq!(names, ["a2a 1.0 jsonrpc", "a2a 1.0 rest"]);
    let strict = junit::render(&Run { strict: true, ..run }).unwrap();
    let strict = quick_junit::Report::deserialize_from_str(&strict).unwrap();
    assert_eq!(strict.failures, 4, "recommendations count when asked for");
}

#[test]
fn t06_tap_acts_and_badge() {
    let run = fixed::run();
    golden("report.tap", &tap::render(&run));
    golden("report.svg", &badge::render(&run));
    let reports = acts::of(&run);
    assert_eq!(reports.len(), 2, "one per binding");
    for ((generation, binding), report) in &reports {
        golden(&format!("report-{generation}-{binding}.acts.json"), &format!("{report:#}\n"));
        let count = |name: &str| report["summary"][name].as_u64().unwrap();
        assert_eq!(count("total"), count("passed") + count("failed") + count("skipped") + count("errors"));
    }
    assert_eq!(acts::file_name(&run, reports[0].0), "acts-report-sample-sons-jsonrpc-20261115T103106Z.json");
}

/// How a page looks may change every day; what it says may not.
fn without(page: &str, element: &str) -> String {
    let (before, rest) = page.split_once(&format!("<{element}>\n")).unwrap();
    let (_, after) = rest.split_once(&format!("</{element}>")).unwrap();
    format!("{before}<{element}></{element}>{after}")
}

#[test]
fn t06_html_holds_everything_and_runs_nothing_of_the_agents() {
    let text = html::render(&fixed::run());
    golden("report.html", &without(&without(&text, "style"), "script"));
    assert!(!text.contains("<script>alert"), "what an agent says is text");
    assert_eq!(text.matches("<script>").count(), 1, "ours alone");
    for foreign in ["src=", "href=\"http", "@import", "url("] {
        assert!(!text.contains(foreign), "{foreign}: the page needs nothing else");
    }
}

#[test]
fn t06_text_for_people() {
    let style = |detail| Style { colour: false, width: Some(100), detail };
    golden("report.txt", &text::render(&fixed::run(), &style(Detail::Normal)));
    golden("report-verbose.txt", &text::render(&fixed::run(), &style(Detail::Verbose)));
    let quiet = text::render(&fixed::run(), &style(Detail::Quiet));
    assert!(quiet.lines().count() <= 5, "{quiet}");
    let coloured = text::render(&fixed::run(), &Style { colour: true, ..style(Detail::Normal) });
    let hostile = coloured.matches("\u{1b}[31mred").count();
    assert_eq!(hostile, 0, "an agent does not paint our terminal");
}

/// The guide's four levels, and what lowers them.
#[test]
fn t09_the_level_is_the_guides() {
    let level = |change: fn(&mut Run)| {
        let mut run = fixed::run();
        change(&mut run);
        run.summary().level
    };
    fn set(run: &mut Run, id: &str, verdict: Verdict) {
        run.outcomes
            .iter_mut()
            .filter(|outcome| outcome.case.id() == id)
            .for_each(|outcome| outcome.verdict = verdict.clone());
    }
    fn fail() -> Verdict {
        Verdict::Fail(baton_lab::case::Failure::new("x"))
    }
    fn mend(run: &mut Run) {
        run.outcomes.iter_mut().for_each(|outcome| outcome.verdict = Verdict::Pass);
    }
    assert_eq!(level(|_| {}), Some(Conformance::Minimal), "the lifecycle is not right");
    assert_eq!(level(mend), Some(Conformance::Full));
    assert_eq!(
        level(|run| {
            mend(run);
            set(run, "V1-ERR-902", fail());
        }),
        Some(Conformance::Full),
        "options do not lower it"
    );
    for id in ["V1-STREAM-901", "V1-ERR-901"] {
        let mut run = fixed::run();
        mend(&mut run);
        set(&mut run, id, fail());
        assert_eq!(run.summary().level, Some(Conformance::Partial), "{id}");
    }
    for id in ["V1-CARD-901", "V1-LIFE-901"] {
        let mut run = fixed::run();
        mend(&mut run);
        set(&mut run, id, fail());
        assert_eq!(run.summary().level, Some(Conformance::NonConformant), "{id}");
    }
    assert_eq!(
        level(|run| {
            mend(run);
            run.outcomes[4].crashed = true;
        }),
        Some(Conformance::NonConformant),
        "a crash is critical"
    );
    assert_eq!(
        level(|run| {
            mend(run);
            run.agent.push = true;
        }),
        Some(Conformance::Partial),
        "push is advertised, and nothing shows that it works"
    );
    assert_eq!(level(|run| run.outcomes.retain(|outcome| outcome.case.id().contains("STREAM"))), None);

    let mut run = fixed::run();
    mend(&mut run);
    let said = run.summary().remarks.join("\n");
    assert!(said.contains("push notifications are not advertised"), "{said}");
}

#[test]
fn reports_are_put_side_by_side() {
    let before = json::of(&fixed::run());
    let mut run = fixed::run();
    run.agent.version = "1.2.4".to_owned();
    run.outcomes[3].verdict = Verdict::Pass;
    run.outcomes.pop();
    let after = json::of(&run);
    let comparison = Comparison::of(vec![("before".to_owned(), before.clone()), ("after".to_owned(), after)]);
    assert_eq!(comparison.differences(), 2);
    golden("compare.txt", &comparison.text(false, false));
    golden("compare.md", &comparison.markdown(true));
    assert!(!comparison.html(true).contains("<script>alert"));
    let same = Comparison::of(vec![("a".to_owned(), before.clone()), ("b".to_owned(), before)]);
    assert!(same.text(false, false).contains("no difference"));
}

/// A verdict that changes on a bad network is in every form, red where the form knows colours, and harmless.
#[test]
fn what_faults_change_is_in_every_report() {
    let run = fixed::run_under_faults();
    let style = Style { colour: false, width: None, detail: Detail::Normal };
    let text = text::render(&run, &style);
    assert!(text.contains("same  delay      2 verdicts the same; 7 of 9 connections hit"), "{text}");
    assert!(text.contains("DIFF  split      1 verdict the same, 1 different"), "{text}");
    assert!(text.contains("V1-LIFE-901  1.0 jsonrpc  was pass, is fail: "), "{text}");
    assert!(text.contains("note: under faults 1 verdict differs from that without"), "{text}");
    let page = html::render(&run);
    assert!(page.contains("<h2>Under faults</h2>") && page.contains("was pass, is fail"));
    assert!(!page.contains("<script>alert"));
    let markdown = markdown::render(&run);
    assert!(
        markdown.contains("### Under faults") && markdown.contains("| split | `V1-LIFE-901` |"),
        "{markdown}"
    );
    assert!(!markdown.contains("<script>"));
    let report: serde_json::Value = serde_json::from_str(&json::render(&run).unwrap()).unwrap();
    let found = &report["faults"][1]["different"][0];
    assert_eq!(
        (&found["test"], &found["before"], &found["after"]),
        (&"V1-LIFE-901".into(), &"pass".into(), &"fail".into())
    );
    assert!(found["evidence"][0]["received"]["status"] == 200 && found["curl"].is_string(), "{found}");
    assert_eq!(report["faultChecks"][0], "V1-LIFE-901 1.0 jsonrpc");
    let xml = quick_junit::Report::deserialize_from_str(&junit::render(&run).unwrap()).unwrap();
    let suite = xml.test_suites.iter().find(|suite| suite.name.as_str() == "a2a under faults").unwrap();
    assert_eq!((suite.tests, suite.failures), (2, 1));
    let tap = tap::render(&run);
    let plan: usize = tap.lines().nth(1).unwrap().strip_prefix("1..").unwrap().parse().unwrap();
    let lines = tap.lines().filter(|line| line.starts_with("ok ") || line.starts_with("not ok ")).count();
    assert!(plan == lines && tap.contains(&format!("not ok {plan} - under faults: split")), "{tap}");
}
