//! Official ids whose checks are prose in the files: the native checks in their place pass on an agent that guards its
//! door, and fail on one that only says so.

use std::collections::BTreeMap;

use baton_lab::acts::document::Level;
use baton_lab::case::{Outcome, Verdict};
use baton_lab::wire::Credentials;
use serde_json::json;

use crate::agent::{Agent, Door};
use crate::bench::{With, outcomes};

async fn behind(door: Door) -> Vec<Outcome> {
    let headers = vec![("Authorization".to_owned(), "Bearer good".to_owned())];
    let given = [("insufficientAuthToken", "weak"), ("otherUserTaskId", "foreign")];
    let given: BTreeMap<_, _> = given.map(|(name, value)| (name.to_owned(), json!(value))).into();
    let with = With {
        credentials: Credentials { headers, ..Credentials::default() },
        given,
        correct: true,
        ..With::default()
    };
    outcomes("official.acts.yaml", &Agent::behind(door).await, with).await
}

#[tokio::test]
async fn t05_a_guarded_door_passes_and_a_pretended_one_fails() {
    let guarded = behind(Door::Guarded).await;
    assert_eq!(guarded.len(), 6);
    for outcome in &guarded {
        assert_eq!(outcome.verdict, Verdict::Pass, "{}", outcome.case.id());
        assert!(!outcome.case.corrections.is_empty(), "{}", outcome.case.id());
    }
    for outcome in behind(Door::Pretended).await {
        assert!(matches!(outcome.verdict, Verdict::Fail(_)), "{}: {:?}", outcome.case.id(), outcome.verdict);
    }
}

/// What only the user can know is asked for by name.
#[tokio::test]
async fn without_the_users_values_tests_are_skipped() {
    let with = With { correct: true, ..With::default() };
    let outcomes = outcomes("official.acts.yaml", &Agent::behind(Door::Guarded).await, with).await;
    for (id, said) in
        [("SEC-AUTH-002", "--var insufficientAuthToken="), ("SEC-AUTH-003", "--var otherUserTaskId=")]
    {
        let outcome = outcomes.iter().find(|outcome| outcome.case.id() == id).unwrap();
        let Verdict::Skip(reason) = &outcome.verdict else { panic!("{id}: {:?}", outcome.verdict) };
        assert!(reason.contains(said), "{reason}");
    }
}

#[tokio::test]
async fn softened_tests_are_at_their_lower_level() {
    let run = crate::fixed::run();
    let softened = run.outcomes.iter().find(|outcome| outcome.case.id() == "JSONRPC-ERR-003").unwrap();
    assert_eq!((softened.case.written_level, softened.case.level()), (Level::Must, Level::Should));
    assert!(!run.is_counted_failure(softened));
}
