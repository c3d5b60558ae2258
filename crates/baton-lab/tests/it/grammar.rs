//! Every feature of the document format, met and not met. The files are in `files/`; a test's id ends with the verdict
//! it must have.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_lab::case::Verdict;
use serde_json::json;

use crate::bench::{Parrot, With, check};

#[tokio::test]
async fn operators() {
    check("operators.acts.yaml", With::default()).await;
}

#[tokio::test]
async fn variables_and_captures() {
    let given = BTreeMap::from([("over".to_owned(), json!("given"))]);
    let environment = BTreeMap::from([("PLACE".to_owned(), "outside".to_owned())]);
    let outcomes = check("variables.acts.yaml", With { given, environment, ..With::default() }).await;
    let of = |id: &str| &outcomes.iter().find(|outcome| outcome.case.id() == id).unwrap().verdict;
    let Verdict::Error(unknown) = of("VAR-UNKNOWN-ERROR") else { panic!() };
    assert!(unknown.contains("{{nowhere.id}}"), "{unknown}");
    let Verdict::Skip(runner) = of("VAR-RUNNER-SKIP") else { panic!() };
    assert!(runner.contains("--var otherUserTaskId="), "{runner}");
}

#[tokio::test]
async fn repeated_steps() {
    check("repeats.acts.yaml", With::default()).await;
}

#[tokio::test]
async fn streams() {
    check("streams.acts.yaml", With::default()).await;
}

#[tokio::test]
async fn raw_steps() {
    check("raw.acts.yaml", With::default()).await;
}

#[tokio::test]
async fn expected_errors() {
    check("errors.acts.yaml", With::default()).await;
}

#[tokio::test]
async fn named_assertions() {
    check("named.acts.yaml", With::default()).await;
}

#[tokio::test]
async fn a_failing_step_ends_its_test() {
    let outcomes = check("steps.acts.yaml", With::default()).await;
    let words = |id: &str| -> Vec<String> {
        let outcome = outcomes.iter().find(|outcome| outcome.case.id() == id).unwrap();
        outcome.steps.iter().map(|step| format!("{} {}", step.id, step.verdict.word())).collect()
    };
    assert_eq!(words("STEP-ENDS-FAIL"), ["one pass", "two fail", "three skip"]);
    assert_eq!(words("STEP-UNNAMED-PASS"), ["step-1 pass", "step-2 pass"]);
}

#[tokio::test]
async fn client_steps_need_a_client() {
    let client = With { client: Some(Arc::new(Parrot)), ..With::default() };
    check("client.acts.yaml", client).await;
    let agent = crate::agent::Agent::start().await;
    let without = crate::bench::outcomes("client.acts.yaml", &agent, With::default()).await;
    assert!(without.iter().all(|outcome| matches!(outcome.verdict, Verdict::Skip(_))));
}

#[tokio::test]
async fn a_master_file_includes_others_and_gives_them_defaults() {
    let outcomes = check("master.acts.yaml", With::default()).await;
    let ids: Vec<&str> = outcomes.iter().map(|outcome| outcome.case.id()).collect();
    assert_eq!(ids, ["INC-FIRST-PASS", "INC-SECOND-PASS"]);
}

#[tokio::test]
async fn preconditions_skip() {
    let outcomes = check("preconditions.acts.yaml", With::default()).await;
    for outcome in &outcomes {
        if let Verdict::Skip(reason) = &outcome.verdict {
            assert!(reason.len() > 10, "{}: {reason}", outcome.case.id());
        }
    }
}
