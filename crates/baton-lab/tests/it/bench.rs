//! Runs a document against an agent.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use baton_lab::case::Outcome;
use baton_lab::discover::{self, discover};
use baton_lab::plan::{Selection, plan};
use baton_lab::run::{self, ClientAdapter};
use baton_lab::suites;
use baton_lab::wire::{Credentials, Probe, ProbeOptions};
use serde_json::{Value, json};

use crate::agent::Agent;

pub(crate) fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/files").join(name)
}

/// What a run is given.
#[derive(Default)]
pub(crate) struct With {
    pub(crate) credentials: Credentials,
    pub(crate) given: BTreeMap<String, Value>,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) client: Option<Arc<dyn ClientAdapter>>,
    /// One case after the other.
    pub(crate) in_turn: bool,
    /// With corrections.
    pub(crate) correct: bool,
}

pub(crate) async fn outcomes(name: &str, agent: &Agent, with: With) -> Vec<Outcome> {
    let cases = suites::from_path(&file(name), with.correct).unwrap_or_else(|error| panic!("{error}"));
    let timeout = Duration::from_secs(30);
    let has_credentials = !with.credentials.headers.is_empty();
    let selection = Selection { has_credentials, ..Selection::default() };
    let probe = Probe::new(ProbeOptions { timeout, credentials: with.credentials }).unwrap();
    let found = discover(&agent.url, &probe, &discover::Options::default()).await.unwrap();
    let target = Arc::new(found.target);
    let planned = plan(&cases, &target, &selection);
    let options = run::Options {
        parallel: if with.in_turn { 1 } else { 8 },
        timeout,
        given: with.given,
        other: None,
        environment: with.environment,
        seed: 1,
    };
    run::run(planned, target, probe, options, with.client, |_| {}).await
}

/// Runs a file whose ids end with the verdict each test must have.
pub(crate) async fn check(name: &str, with: With) -> Vec<Outcome> {
    let agent = Agent::start().await;
    let outcomes = outcomes(name, &agent, with).await;
    assert!(!outcomes.is_empty(), "{name} holds no test");
    for outcome in &outcomes {
        let wanted = outcome.case.id().rsplit('-').next().unwrap().to_lowercase();
        assert_eq!(outcome.verdict.word(), wanted, "{}: {:#?}", outcome.case.id(), outcome.verdict);
    }
    outcomes
}

/// A client that understands everything, and calls the operation by its name.
#[derive(Debug)]
pub(crate) struct Parrot;

impl ClientAdapter for Parrot {
    fn parse(&self, operation: &str, payload: &Value) -> Result<Value, String> {
        match payload.get("result") {
            Some(result) => Ok(json!({"operation": operation, "result": result})),
            None => Err("there is no result".to_owned()),
        }
    }
}
