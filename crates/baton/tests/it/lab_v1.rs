//! The lab's suites of 1.0 on the demo agent: nothing fails, and skipped cases have a reason.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use baton_lab::case::{Outcome, Verdict};
use baton_lab::discover::{self, discover};
use baton_lab::generation::{Binding, Generation};
use baton_lab::plan::{Selection, plan};
use baton_lab::run::{self, run};
use baton_lab::suites;
use baton_lab::wire::{Credentials, Probe, ProbeOptions};

use crate::served::Served;

/// Longer than any healthy case takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

async fn outcomes(url: &str, binding: Binding) -> Vec<Outcome> {
    let probe = Probe::new(ProbeOptions { timeout: PATIENCE, credentials: Credentials::default() }).unwrap();
    let found = discover(url, &probe, &discover::Options::default()).await.unwrap();
    let selection =
        Selection { generations: vec![Generation::V1], bindings: vec![binding], ..Selection::default() };
    let target = Arc::new(found.target);
    let plan = plan(&suites::embedded().unwrap(), &target, &selection);
    let (given, environment) = (BTreeMap::new(), BTreeMap::new());
    let options = run::Options { parallel: 8, timeout: PATIENCE, given, other: None, environment, seed: 0 };
    run(plan, target, probe, options, None, |_| {}).await
}

/// Runs all cases on one profile of the demo agent; answers with those that passed.
async fn passed(profile: &str) -> BTreeSet<String> {
    let served =
        Served::with(&["serve", "--listen", "127.0.0.1:0", "--store", "memory:", "--profile", profile]);
    let mut passed = BTreeSet::new();
    for binding in [Binding::Jsonrpc, Binding::Rest] {
        for outcome in outcomes(&served.url, binding).await {
            let (id, verdict) = (outcome.case.id(), &outcome.verdict);
            let good = match verdict {
                Verdict::Pass => passed.insert(format!("{binding} {id}")),
                Verdict::Skip(reason) => !reason.is_empty(),
                Verdict::Fail(_) | Verdict::Inconclusive(_) | Verdict::Error(_) => false,
            };
            assert!(good && !outcome.crashed, "{profile} {binding} {id}: {verdict:?}\n{}", served.log());
        }
    }
    passed
}

#[tokio::test(flavor = "multi_thread")]
async fn t02_t03_t04_t05_the_full_demo_agent_passes() {
    let passed = passed("full").await;
    for id in ["V1-CARD-002", "V1-LIFE-001", "V1-CANCEL-001", "V1-STREAM-021", "V1-HOST-001", "V1-GET-002"] {
        for binding in ["jsonrpc", "rest"] {
            assert!(passed.contains(&format!("{binding} {id}")), "{binding} {id} did not run");
        }
    }
    for id in ["V1-PUSH-001", "V1-PUSH-010", "V1-PUSH-014"] {
        assert!(
            passed.contains(&format!("jsonrpc {id}")) && passed.contains(&format!("rest {id}")),
            "{passed:?}"
        );
    }
    assert!(passed.contains("jsonrpc V1-EQUIV-001") && passed.contains("jsonrpc V1-RPC-006"));
}

#[tokio::test(flavor = "multi_thread")]
async fn t04_streams_are_left_out_where_they_are_not_advertised() {
    let passed = passed("minimal").await;
    assert!(passed.contains("jsonrpc V1-CAP-001") && passed.contains("rest V1-CAP-002"));
    assert!(!passed.iter().any(|case| case.contains("V1-STREAM") || case.contains("V1-SUB")));
}
