//! What is sent where, who is asked with which credentials, what is kept of it.

use std::time::Duration;

use baton_lab::case::Verdict;
use baton_lab::discover::{self, discover};
use baton_lab::generation::Generation;
use baton_lab::wire::{Credentials, Probe, ProbeOptions};

use crate::agent::{Agent, Door};
use crate::bench::{With, check, outcomes};

fn secret() -> With {
    let headers = vec![("Authorization".to_owned(), "Bearer s3cret-token".to_owned())];
    With { credentials: Credentials { headers, ..Credentials::default() }, ..With::default() }
}

/// The agent repeats the token in its answer; nothing of it is left in what is kept.
#[tokio::test]
async fn t06_secrets_are_masked_wherever_they_turn_up() {
    let agent = Agent::start().await;
    let outcomes = outcomes("credentials.acts.yaml", &agent, secret()).await;
    let heard: Vec<_> = agent.asked().into_iter().filter(|asked| asked.path == "/who").collect();
    let tokens: Vec<Option<String>> =
        heard.iter().map(|asked| asked.header("authorization").map(str::to_owned)).collect();
    assert!(tokens.contains(&Some("Bearer s3cret-token".to_owned())), "the agent did get it: {tokens:?}");
    assert!(tokens.contains(&None), "a step without credentials: {tokens:?}");
    assert!(tokens.contains(&Some("Bearer other".to_owned())), "a step with its own: {tokens:?}");
    for outcome in &outcomes {
        let kept = format!("{:?} {:?} {:?}", outcome.verdict, outcome.notes, outcome.evidence);
        assert!(!kept.contains("s3cret"), "{}: {kept}", outcome.case.id());
        assert!(kept.contains("***"), "{}: {kept}", outcome.case.id());
    }
}

#[tokio::test]
async fn every_request_of_an_operation_names_its_version_and_a_fresh_message() {
    let agent = Agent::start().await;
    outcomes("operators.acts.yaml", &agent, With::default()).await;
    let sends: Vec<_> =
        agent.asked().into_iter().filter(|asked| asked.json()["method"] == "SendMessage").collect();
    assert!(sends.len() > 10);
    let mut ids: Vec<String> = Vec::new();
    for asked in &sends {
        assert_eq!(asked.header("a2a-version"), Some("1.0"));
        assert_eq!(asked.json()["jsonrpc"], "2.0");
        ids.push(asked.json()["params"]["message"]["messageId"].as_str().unwrap().to_owned());
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), sends.len(), "every message has an id of its own");
}

/// Some agents show another card to clients that send no version.
#[tokio::test]
async fn every_generation_is_planned_by_the_card_that_its_clients_see() {
    let agent = Agent::behind(Door::Guarded).await;
    let options = ProbeOptions { timeout: Duration::from_secs(30), credentials: Credentials::default() };
    let found = discover(&agent.url, &Probe::new(options).unwrap(), &discover::Options::default()).await;
    let target = found.unwrap().target;
    assert_eq!(target.capability_in(Generation::V1, "extendedAgentCard"), true);
    assert_eq!(target.capability_in(Generation::V0_3, "extendedAgentCard"), false);
    assert_eq!(target.card_of(Generation::V0_3)["supportsAuthenticatedExtendedCard"], true);
    assert!(target.card_of(Generation::V1).get("supportsAuthenticatedExtendedCard").is_none());
}

/// The case after which the agent was gone is named, and nobody waits for an agent that does not come back.
#[tokio::test]
async fn t05_a_crash_is_critical_and_ends_the_run() {
    let outcomes = check("crash.acts.yaml", With { in_turn: true, ..With::default() }).await;
    let crashed: Vec<&str> =
        outcomes.iter().filter(|outcome| outcome.crashed).map(|outcome| outcome.case.id()).collect();
    assert_eq!(crashed, ["CRASH-NOW-FAIL"]);
    let Verdict::Skip(reason) = &outcomes.last().unwrap().verdict else { panic!() };
    assert!(reason.contains("has not answered since CRASH-NOW-FAIL"), "{reason}");
}
