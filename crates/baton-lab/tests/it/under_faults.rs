//! The suites under faults: a right agent is judged the same, and one that is hurt by its network is found out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use baton_lab::discover::{self, discover};
use baton_lab::fault::trial::{Kind, Trial, UnderFaults, Wanted};
use baton_lab::plan::{self, Selection};
use baton_lab::run;
use baton_lab::wire::{Credentials, Probe, ProbeOptions, Trust, TrustOptions};

use crate::mutant::Mutant;
use crate::mutant::fault::{ALWAYS, Defect, Fault, Quirk};
use crate::mutant::profile::Profile;
use crate::trial::CASES;

const PATIENCE: Duration = Duration::from_secs(10);

static ONE_READ: Defect = Defect {
    name: "one-read",
    wrong: "What the first read brings is taken for the whole body.",
    profile: Profile::Open,
    faults: &[Fault::Quirk(Quirk::OneRead, ALWAYS)],
    second: &[],
    caught_by: &[],
    related: &[],
    alone: false,
};

static DIES_OF_HALVES: Defect = Defect {
    name: "dies-of-halves",
    wrong: "A request that breaks off ends the agent.",
    faults: &[Fault::Quirk(Quirk::DiesOfHalves, ALWAYS)],
    ..ONE_READ
};

static DEAF_AFTER_HALVES: Defect = Defect {
    name: "deaf-after-halves",
    wrong: "After a request that breaks off no message is understood any more.",
    faults: &[Fault::Quirk(Quirk::DeafAfterHalves, ALWAYS)],
    ..ONE_READ
};

/// Runs some cases without faults, then under them.
pub(crate) async fn under(
    profile: Profile,
    defect: Option<&'static Defect>,
    kinds: &[Kind],
    seed: u64,
) -> UnderFaults {
    let agent = Mutant::start(profile, defect).await;
    let options = ProbeOptions { timeout: PATIENCE, credentials: Credentials::default() };
    let extra = agent.seal.iter().map(|seal| seal.certificate.clone()).collect();
    let trust = Trust::new(TrustOptions { extra, ..TrustOptions::default() }).unwrap();
    let probe = Probe::trusting(options, &trust).unwrap();
    let found = discover(&agent.url, &probe, &discover::Options::default()).await.unwrap();
    let target = Arc::new(found.target);
    // What is sent on purpose in halves would hurt the agents that halves hurt before any fault does.
    let selection =
        Selection { select: vec!["!hostile".to_owned(), "!streaming".to_owned()], ..Selection::default() };
    // Some of each sort are enough to draw from.
    let plan: Vec<_> = plan::plan(&CASES, &target, &selection).into_iter().step_by(5).collect();
    let options = run::Options {
        parallel: 6,
        timeout: 3 * PATIENCE,
        given: BTreeMap::new(),
        other: None,
        environment: BTreeMap::new(),
        seed,
    };
    let (to, by) = (Arc::clone(&target), probe.clone());
    let plain = run::run(plan.clone(), to, by, options.clone(), None, |_| {}).await;
    let trial = Trial { target, probe, options, wanted: Wanted { kinds: kinds.to_vec(), all: false } };
    trial.run(&plan, &plain, |_, _| {}).await.unwrap()
}

pub(crate) fn lines(under: &UnderFaults) -> String {
    let of = |kind: &baton_lab::fault::trial::UnderKind| {
        let different = kind.different.iter().map(|found| {
            format!("\n  {} ({}): {:?}", found.after.case.id(), found.after.binding, found.after.verdict)
        });
        format!("{}: {}{}", kind.kind, kind.in_words(), different.collect::<String>())
    };
    under.kinds.iter().map(of).collect::<Vec<_>>().join("\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_right_agent_is_judged_the_same() {
    let under = under(Profile::Open, None, &Kind::ALL, 11).await;
    assert!(under.holds(), "{}", lines(&under));
    for kind in &under.kinds {
        assert!(kind.tally.faulted > 0 && kind.same > 10, "{}", lines(&under));
    }
}

/// Loopback brings a short body in one read, so the cases alone find nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_reads_once_is_found_by_pieces() {
    let under = under(Profile::Open, Some(&ONE_READ), &[Kind::Split], 11).await;
    assert!(under.different() > 0, "{}", lines(&under));
    let found = &under.kinds[0].different[0];
    assert_eq!(found.before.word(), "pass", "{}", lines(&under));
    assert!(!found.evidence().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_dies_of_a_cut_is_found() {
    let of = |kind: Kind| async move { under(Profile::Open, Some(&DIES_OF_HALVES), &[kind], 11).await };
    let all = tokio::join!(of(Kind::Cut), of(Kind::Reset), of(Kind::HalfClose));
    for under in [all.0, all.1, all.2] {
        assert!(under.kinds[0].is_gone() && !under.holds(), "{}", lines(&under));
    }
}

/// It lives, its card is there, and yet the next client pays for the one before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_hurt_by_a_cut_is_found() {
    let under = under(Profile::Open, Some(&DEAF_AFTER_HALVES), &[Kind::Cut], 11).await;
    assert!(under.different() > 0, "{}", lines(&under));
    assert!(under.kinds[0].different.iter().all(|found| !found.after.crashed), "{}", lines(&under));
}

/// A seed draws the same cases again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seed_draws_the_same_cases() {
    let (one, two, other) = tokio::join!(
        under(Profile::Open, None, &[Kind::Split], 1),
        under(Profile::Open, None, &[Kind::Split], 1),
        under(Profile::Open, None, &[Kind::Split], 2)
    );
    assert_eq!(one.checks, two.checks);
    assert_ne!(one.checks, other.checks);
}
