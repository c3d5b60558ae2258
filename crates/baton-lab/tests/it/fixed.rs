//! A run with one outcome of every kind, always the same.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use baton_lab::case::{Case, Failure, Outcome, StepOutcome, Verdict};
use baton_lab::fault::Tally;
use baton_lab::fault::trial::{Difference, Kind, UnderFaults, UnderKind};
use baton_lab::generation::{Binding, Generation};
use baton_lab::report::{Agent, Run, Subject};
use baton_lab::suites;
use baton_lab::wire::{Exchange, Received, Sent};

use crate::bench::file;

/// An agent that would like to be more than text in a report.
const HOSTILE: &str = "<script>alert('x')</script> | `code` \u{1b}[31mred @everyone";

pub(crate) fn run() -> Run {
    let cases = suites::from_path(&file("fixed.acts.yaml"), true).unwrap();
    let case = |id: &str| Arc::clone(cases.iter().find(|case| case.id() == id).unwrap());
    let outcomes = vec![
        outcome(case("V1-CARD-901"), Binding::Jsonrpc, Verdict::Pass, 3),
        outcome(case("V1-LIFE-901"), Binding::Jsonrpc, Verdict::Pass, 12),
        noted(
            outcome(case("V1-LIFE-901"), Binding::Rest, Verdict::Pass, 11),
            "the reply was application/json",
        ),
        failed(case("V1-LIFE-902"), Binding::Jsonrpc, "01a1df52-d637-72a0-be40-f5aa5ff1a36e"),
        failed(case("V1-LIFE-902"), Binding::Rest, "01a1df52-d637-72a0-be40-f5aa5ff1a36f"),
        outcome(case("V1-STREAM-901"), Binding::Jsonrpc, Verdict::Pass, 1400),
        outcome(case("V1-ERR-901"), Binding::Jsonrpc, Verdict::Fail(Failure::new(HOSTILE)), 8),
        outcome(case("V1-ERR-902"), Binding::Jsonrpc, Verdict::Fail(Failure::new("there is none")), 2),
        outcome(
            case("V1-IOP-901"),
            Binding::Jsonrpc,
            skip("needs a second agent; give it with --second URL"),
            0,
        ),
        outcome(
            case("V1-LIFE-903"),
            Binding::Rest,
            Verdict::Inconclusive("the task had ended".to_owned()),
            5,
        ),
        outcome(case("V1-LIFE-903"), Binding::Jsonrpc, Verdict::Error("no variable `x`".to_owned()), 1),
        outcome(case("JSONRPC-ERR-003"), Binding::Jsonrpc, differs("an ErrorInfo", "[]"), 4),
    ];
    Run {
        subject: Subject::Agent,
        agent: Agent {
            url: "http://127.0.0.1:3000".to_owned(),
            name: "Sample & sons".to_owned(),
            version: "1.2.3".to_owned(),
            interfaces: [
                ((Generation::V1, Binding::Jsonrpc), "http://127.0.0.1:3000/".to_owned()),
                ((Generation::V1, Binding::Rest), "http://127.0.0.1:3000".to_owned()),
            ]
            .into(),
            streaming: true,
            unchecked: false,
            push: false,
        },
        began: UNIX_EPOCH + Duration::from_secs(1_794_738_666),
        duration: Duration::from_millis(1500),
        outcomes,
        warnings: vec!["1.0 JSONRPC: the card sends clients to another host".to_owned()],
        strict: false,
        selected: false,
        seed: 42,
        version: "0.0.0".to_owned(),
        baseline: None,
        faults: None,
        cut: None,
        all_evidence: false,
    }
}

pub(crate) fn outcome(case: Arc<Case>, binding: Binding, verdict: Verdict, milliseconds: u64) -> Outcome {
    let duration = Duration::from_millis(milliseconds);
    let steps = vec![StepOutcome { id: "get".to_owned(), verdict: verdict.clone(), duration }];
    let exchange = Exchange {
        sent: Sent {
            method: "POST".to_owned(),
            url: "http://127.0.0.1:3000/".to_owned(),
            headers: vec![
                ("A2A-Version".to_owned(), "1.0".to_owned()),
                ("Authorization".to_owned(), "***".to_owned()),
            ],
            body: Some(r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage"}"#.to_owned()),
        },
        received: Some(Received {
            status: 200,
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: format!("{{\"said\":\"{}\"}}", HOSTILE.replace('\u{1b}', "")),
        }),
        trouble: None,
        duration_ms: milliseconds,
    };
    Outcome {
        case,
        binding,
        verdict,
        notes: Vec::new(),
        steps,
        evidence: vec![exchange],
        duration,
        crashed: false,
    }
}

fn noted(mut outcome: Outcome, note: &str) -> Outcome {
    outcome.notes.push(note.to_owned());
    outcome
}

fn failed(case: Arc<Case>, binding: Binding, id: &str) -> Outcome {
    let mut failure =
        Failure::expected("UnsupportedOperationError", format!("HTTP 200 with {{\"id\":\"{id}\"}}"));
    failure.path = Some("task.status.state".to_owned());
    outcome(case, binding, Verdict::Fail(failure.in_step("send")), 20)
}

fn differs(expected: &str, actual: &str) -> Verdict {
    Verdict::Fail(Failure::expected(expected, actual))
}

fn skip(reason: &str) -> Verdict {
    Verdict::Skip(reason.to_owned())
}

/// The same run again on a bad network: one fault that changes nothing, one that does.
pub(crate) fn run_under_faults() -> Run {
    let mut run = run();
    let under = |kind, same, different| UnderKind {
        kind,
        same,
        different,
        open: Vec::new(),
        tally: Tally { connections: 9, faulted: 7, ..Tally::default() },
        duration: Duration::from_millis(1200),
    };
    let after =
        outcome(Arc::clone(&run.outcomes[1].case), Binding::Jsonrpc, Verdict::Fail(Failure::new(HOSTILE)), 9);
    let difference = Difference { before: Verdict::Pass, after };
    let checks = vec![("V1-LIFE-901".to_owned(), Generation::V1, Binding::Jsonrpc)];
    let kinds = vec![under(Kind::Delay, 2, Vec::new()), under(Kind::Split, 1, vec![difference])];
    run.faults = Some(UnderFaults { checks, kinds });
    run
}
