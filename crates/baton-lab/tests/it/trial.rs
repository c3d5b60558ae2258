//! Runs the lab's own suites against the agent, right or wrong, and says what of it is not as it should be.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use baton_lab::case::{Case, Outcome, Verdict};
use baton_lab::discover::{self, discover};
use baton_lab::plan::{self, Planned, Selection};
use baton_lab::wire::{Credentials, Probe, ProbeOptions, Trust, TrustOptions};
use baton_lab::{run, suites};
use serde_json::json;

use crate::mutant::Mutant;
use crate::mutant::fault::Defect;
use crate::mutant::profile::{OTHER_TOKEN, Profile, TOKEN};

/// How long an answer, or a whole stream, may take. The agent is quick; whoever waits this long waits in vain.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many cases beside those of its section a defect must leave alone.
const SAMPLE: usize = 20;
/// Cases at a time.
const PARALLEL: usize = 6;

pub(crate) static CASES: LazyLock<Vec<Arc<Case>>> =
    LazyLock::new(|| suites::embedded().expect("our own suites can be read"));

/// Runs all planned cases that `choose` takes.
pub(crate) async fn run(
    profile: Profile,
    defect: Option<&'static Defect>,
    choose: impl Fn(Vec<Planned>) -> Vec<Planned>,
) -> Vec<Outcome> {
    let agent = Mutant::start(profile, defect).await;
    let token = ("Authorization".to_owned(), format!("Bearer {TOKEN}"));
    let headers = if profile.is_guarded() { vec![token] } else { Vec::new() };
    let credentials = Credentials { headers, ..Credentials::default() };
    let extra = agent.seal.iter().map(|seal| seal.certificate.clone()).collect();
    let trust = Trust::new(TrustOptions { extra, ..TrustOptions::default() }).expect("a good certificate");
    let options = ProbeOptions { timeout: PATIENCE, credentials };
    let probe = Probe::trusting(options, &trust).expect("a plain client");
    let name = defect.map_or("the right agent", |defect| defect.name);
    let beside = agent.beside(defect).await;
    let second = Some((beside.url.clone(), probe.credentials().clone()));
    let found = discover(&agent.url, &probe, &discover::Options { second, ..Default::default() }).await;
    let target = found.unwrap_or_else(|diagnosis| panic!("{name} cannot be tested: {diagnosis}")).target;
    let selection = Selection { has_credentials: profile.is_guarded(), ..Selection::default() };
    let plan = choose(plan::plan(&CASES, &target, &selection));
    let options = run::Options {
        parallel: if defect.is_some_and(|defect| defect.alone) { 1 } else { PARALLEL },
        timeout: 3 * PATIENCE,
        given: [("otherBearer", OTHER_TOKEN), ("callPhrase", "please call {url}")]
            .map(|(name, value)| (name.to_owned(), json!(value)))
            .into(),
        other: None,
        environment: BTreeMap::new(),
        seed: 1,
    };
    run::run(plan, Arc::new(target), probe, options, None, |_| {}).await
}

/// What came of one defect.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) defect: &'static Defect,
    /// Cases that failed.
    pub(crate) failed: BTreeSet<String>,
    /// What is not as the table says.
    pub(crate) problems: Vec<String>,
}

/// Runs a defect on all cases, or on those of its section and a sample of the others.
pub(crate) async fn judge(defect: &'static Defect, all: bool) -> Judged {
    let outcomes =
        run(defect.profile, Some(defect), |plan| if all { plan } else { near(defect, plan) }).await;
    let mut problems = Vec::new();
    let mut failed: BTreeMap<String, String> = BTreeMap::new();
    for outcome in &outcomes {
        let id = outcome.case.id();
        let why = match &outcome.verdict {
            Verdict::Fail(failure) => failure.message.clone(),
            Verdict::Error(trouble) => {
                problems.push(format!("{id} ({}) could not be run: {trouble}", outcome.binding));
                continue;
            }
            _ if outcome.crashed => "the agent was gone".to_owned(),
            Verdict::Pass | Verdict::Skip(_) | Verdict::Inconclusive(_) => continue,
        };
        failed.entry(id.to_owned()).or_insert_with(|| format!("({}) {why}", outcome.binding));
    }
    for id in defect.caught_by.iter().filter(|id| !failed.contains_key(**id)) {
        let verdicts: Vec<&str> = outcomes
            .iter()
            .filter(|outcome| outcome.case.id() == *id)
            .map(|outcome| outcome.verdict.word())
            .collect();
        problems.push(format!("{id} should have failed; it was {verdicts:?}"));
    }
    for (id, why) in failed.iter().filter(|(id, _)| !defect.is_related(id)) {
        problems.push(format!("{id} failed, though it is about something else: {why}"));
    }
    Judged { defect, failed: failed.into_keys().collect(), problems }
}

/// The cases of the sections that a defect is about, and some of the others: which ones is always the same for a name.
fn near(defect: &Defect, plan: Vec<Planned>) -> Vec<Planned> {
    let is_own = |planned: &&Planned| defect.caught_by.contains(&planned.case.id());
    let sections: BTreeSet<_> = plan
        .iter()
        .filter(is_own)
        .map(|planned| (planned.case.generation, planned.case.test.section.clone()))
        .collect();
    let belongs =
        |planned: &Planned| sections.contains(&(planned.case.generation, planned.case.test.section.clone()));
    let (mut near, mut far): (Vec<_>, Vec<_>) =
        plan.into_iter().enumerate().partition(|(_, planned)| belongs(planned));
    // FNV to begin with, then a linear congruential generator: good enough to spread, and the same everywhere.
    let mut seed = defect.name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    for _ in 0..SAMPLE.min(far.len()) {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let index = usize::try_from(seed >> 33).unwrap_or_default() % far.len();
        near.push(far.swap_remove(index));
    }
    near.sort_by_key(|(place, _)| *place);
    near.into_iter().map(|(_, planned)| planned).collect()
}
