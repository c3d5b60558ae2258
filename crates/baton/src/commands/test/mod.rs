//! `baton test`: tests an agent.

mod args;
mod as_server;
mod choice;
mod compare;
mod credentials;
mod explain;
mod faults;
mod output;
pub(crate) mod terminal;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use baton_lab::baseline::Baseline;
use baton_lab::case::{Case, Outcome, Verdict};
use baton_lab::discover::{self, Diagnosis, Discovery, discover};
use baton_lab::fault::trial::Trial;
use baton_lab::plan::{Planned, Selection, plan};
use baton_lab::report::{Agent, Run, Subject, text::Paint};
use baton_lab::run::{self, Progress};
use baton_lab::wire::{Probe, ProbeOptions, Secrets};
use serde_json::Value;

use args::Verb;
pub(crate) use args::{RunArgs, Test};
use credentials::Given;

use crate::exit::Failure;

/// Prefixes of the environment variables that ACTS files may use: others may be secrets that an agent must not see.
const VISIBLE: &[&str] = &["A2A_", "ACTS_", "SUT_"];

pub(crate) async fn run(args: Test) -> Result<(), Failure> {
    match &args.verb {
        Some(Verb::Compare(compare)) => compare::run(compare),
        None => test(args.run).await,
    }
}

async fn test(args: RunArgs) -> Result<(), Failure> {
    let paint = Paint(terminal::colours(args.color));
    if args.corrections {
        terminal::print(&explain::corrections(paint));
        return Ok(());
    }
    if args.judging.as_server {
        return as_server::run(args, paint).await;
    }
    as_server::refuse_stray_flags(&args.judging)?;
    let mut cases = choice::cases(&args)?;
    if let Some(id) = &args.explain {
        cases.extend(as_server::cases());
        terminal::print(&explain::explain(choice::case_of(id, &cases)?, paint));
        return Ok(());
    }
    choice::check_words(&args.select, &cases)?;
    if args.list {
        let wanted = |case: &&Arc<Case>| {
            let generation = args.generation.is_empty() || args.generation.contains(&case.generation);
            generation && baton_lab::plan::selects(&args.select, case)
        };
        let cases: Vec<Arc<Case>> = cases.iter().filter(wanted).cloned().collect();
        terminal::print(&explain::list(&cases, paint));
        return Ok(());
    }
    test_agent(&args, &cases).await
}

/// The variables that cases may read.
fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| VISIBLE.iter().any(|prefix| name.starts_with(prefix)))
        .collect()
}

async fn test_agent(args: &RunArgs, cases: &[Arc<Case>]) -> Result<(), Failure> {
    let files = output::wanted(&args.report)?;
    report(&run_cases(args, cases).await?, args, &files)
}

/// Runs everything with these arguments and returns the result, for commands that report it in their own way.
pub(crate) async fn judge(args: &RunArgs) -> Result<Run, Failure> {
    run_cases(args, &choice::cases(args)?).await
}

async fn run_cases(args: &RunArgs, cases: &[Arc<Case>]) -> Result<Run, Failure> {
    let environment = environment();
    let url = args.url.clone().or_else(|| environment.get("A2A_URL").cloned()).ok_or_else(|| {
        Failure::usage("the agent's address is missing: baton test http://127.0.0.1:3000 (or set A2A_URL)")
    })?;
    let wanted = faults::wanted(&args.faults)?;
    let baseline = args.baseline.as_deref().map(|path| baseline(path, cases)).transpose()?;
    let given = credentials::given(args, &environment).map_err(Failure::usage)?;
    let other = credentials::of_other_user(args).map_err(Failure::usage)?;
    let (mut found, probe) = discover_agent(&url, args, &given).await?;
    match found.target.refused {
        Some(status) if given.any() => {
            return Err(Failure::usage(format!(
                "the agent refuses the given credentials (HTTP {status}), so nothing was tested"
            )));
        }
        Some(status) => found.warnings.push(format!(
            "the agent asks for credentials (HTTP {status}), and none were given: only checks that need none were run"
        )),
        None => {}
    }
    let began = (SystemTime::now(), Instant::now());
    let target = Arc::new(found.target);
    let selection = Selection {
        generations: args.generation.clone(),
        bindings: args.binding.clone(),
        select: args.select.clone(),
        skills: args.skills.clone(),
        has_credentials: given.any(),
    };
    let planned = plan(cases, &target, &selection);
    if planned.is_empty() {
        return Err(Failure::usage(nothing_to_do(args, &target)));
    }
    let seed = args.seed.unwrap_or_else(super::any_seed);
    let options = run::Options {
        parallel: usize::from(args.parallel),
        timeout: args.timeout(),
        given: args.var.iter().map(|(name, value)| (name.clone(), Value::String(value.clone()))).collect(),
        other: if other.any() { Some(other.for_card(&target.card).map_err(Failure::usage)?) } else { None },
        environment,
        seed,
    };
    let secrets = options.secrets(&target, probe.credentials());
    let trial = wanted.map(|wanted| Trial {
        target: Arc::clone(&target),
        probe: probe.clone(),
        options: options.clone(),
        wanted,
    });
    let again = if trial.is_some() { planned.clone() } else { Vec::new() };
    let (outcomes, mut cut) = run_all(planned, Arc::clone(&target), probe, options, args).await;
    let mut under = None;
    if let (Some(trial), None) = (&trial, &cut) {
        (under, cut) = faults::run(trial, &again, &outcomes, !args.quiet).await?;
    }
    let hidden = |mut text: String| {
        secrets.hide(&mut text);
        text
    };
    let mut agent = Agent::of(&target);
    agent.url = hidden(agent.url);
    agent.unchecked =
        args.insecure && agent.interfaces.values().chain([&url]).any(|url| url.starts_with("https"));
    let mut result = Run {
        subject: Subject::Agent,
        agent,
        began: began.0,
        duration: began.1.elapsed(),
        baseline: baseline.map(|baseline| baseline.compare(&outcomes)),
        outcomes,
        warnings: found.warnings.into_iter().map(hidden).collect(),
        strict: args.strict,
        selected: !args.select.is_empty(),
        seed,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        faults: under,
        cut,
        all_evidence: args.all_evidence,
    };
    result.agent.interfaces.values_mut().for_each(|url| secrets.hide(url));
    Ok(result)
}

/// Writes every report that was asked for; the exit code says how the run ended.
fn report(result: &Run, args: &RunArgs, files: &[output::Wanted]) -> Result<(), Failure> {
    let mut troubles = output::deliver(result, args, files);
    if let Some(path) = &args.write_baseline {
        let written = std::fs::write(path, Baseline::of(&result.outcomes));
        troubles.extend(written.err().map(|error| format!("{}: {error}", path.display())));
    }
    conclude(result, &troubles)
}

/// 0: conforms. 1: does not. 2: could not be tested.
fn conclude(run: &Run, troubles: &[String]) -> Result<(), Failure> {
    if let Some(first) = troubles.first() {
        return Err(Failure::usage(format!("a report could not be made: {first}")));
    }
    if let Some(cut) = &run.cut {
        return Err(Failure::usage(cut.clone()));
    }
    if run.outcomes.iter().any(|outcome| outcome.crashed) {
        return Err(Failure::failed("the agent stopped answering"));
    }
    if let Some(under) = run.faults.as_ref().filter(|under| !under.holds()) {
        let verdicts = match under.different() {
            1 => "1 verdict differs".to_owned(),
            count => format!("{count} verdicts differ"),
        };
        return Err(Failure::failed(format!("{verdicts} under faults")));
    }
    if let Some(compared) = &run.baseline {
        let (new, mended) = (compared.unexpected.len(), compared.mended.len());
        if !compared.holds() {
            return Err(Failure::failed(format!(
                "the result differs from the baseline: {new} failed that are not listed, {mended} listed that passed"
            )));
        }
        return Ok(());
    }
    let failed = run.counted_failures().count();
    if failed > 0 {
        let checks = if failed == 1 { "1 check".to_owned() } else { format!("{failed} checks") };
        let subject = run.subject.word();
        return Err(Failure::failed(format!("the {subject} does not conform: {checks} failed")));
    }
    if let Some(outcome) = run.outcomes.iter().find(|outcome| matches!(outcome.verdict, Verdict::Error(_))) {
        let why = baton_lab::report::reason(&outcome.verdict);
        return Err(Failure::usage(format!("{}: the test runner failed: {why}", outcome.case.id())));
    }
    let judged = |outcome: &Outcome| matches!(outcome.verdict, Verdict::Pass | Verdict::Fail(_));
    if !run.outcomes.iter().any(judged) {
        return Err(Failure::usage("no check had a verdict; the report says why each was skipped"));
    }
    let refused = run.outcomes.iter().filter(|outcome| baton_lab::plan::is_refused(&outcome.verdict)).count();
    if refused > 0 {
        // Else a job that has lost its secret would stay green.
        return Err(Failure::usage(format!(
            "{refused} checks could not be made, since the agent refuses callers without credentials; give them with \
             --bearer, --api-key, --basic, --digest, --header or --client-cert"
        )));
    }
    Ok(())
}

/// Discovery. An API key may belong in a header that only the card names.
async fn discover_agent(url: &str, args: &RunArgs, given: &Given) -> Result<(Discovery, Probe), Failure> {
    let trust = credentials::trust(args).map_err(Failure::usage)?;
    let probe = |credentials| {
        let options = ProbeOptions { timeout: args.timeout(), credentials };
        Probe::trusting(options, &trust).map_err(|error| Failure::usage(error.to_string()))
    };
    let mut options = discover::Options {
        wait: Duration::ZERO,
        generations: args.generation.clone(),
        second: credentials::for_second(url, args, given).map_err(Failure::usage)?,
        skills: args.skills.clone(),
    };
    let why = |diagnosis: Diagnosis| {
        // The address may contain a password.
        let mut sentence = diagnosis.sentence;
        Secrets::of([], &BTreeMap::new(), url).hide(&mut sentence);
        Failure::usage(sentence)
    };
    let mut chosen = probe(given.for_card(&Value::Null).map_err(Failure::usage)?)?;
    let mut found = discover(url, &chosen, &options).await;
    if let Err(diagnosis) = &found
        && diagnosis.temporary
        && !args.wait.is_zero()
    {
        if !args.quiet {
            let patience = args.wait.as_secs_f32();
            terminal::say(&format!("nothing answers yet; waiting up to {patience} s (--wait)"));
        }
        options.wait = args.wait;
        found = discover(url, &chosen, &options).await;
    }
    let found = found.map_err(why)?;
    if given.key.is_none() {
        return Ok((found, chosen));
    }
    let credentials = given.for_card(&found.target.card).map_err(Failure::usage)?;
    chosen = probe(credentials)?;
    let found = discover(url, &chosen, &options).await;
    Ok((found.map_err(why)?, chosen))
}

/// Runs the plan; after an interrupt, the finished checks are kept.
async fn run_all(
    planned: Vec<Planned>,
    target: Arc<baton_lab::target::Target>,
    probe: Probe,
    options: run::Options,
    args: &RunArgs,
) -> (Vec<Outcome>, Option<String>) {
    let key = |case: &Case, binding| (case.id().to_owned(), case.generation, binding);
    let order: BTreeMap<_, usize> =
        planned.iter().map(|planned| key(&planned.case, planned.binding)).zip(0..).collect();
    let total = planned.len();
    let line = terminal::Line::new(total, !args.quiet);
    let ended: Mutex<Vec<Outcome>> = Mutex::default();
    let tell = |progress: Progress| {
        line.tell(&progress);
        if let Progress::Ended(mut outcome) = progress {
            // Needed after an interrupt only, so evidence is dropped here: the final outcomes have it, too.
            if !args.all_evidence && matches!(outcome.verdict, Verdict::Pass | Verdict::Skip(_)) {
                outcome.evidence = Vec::new();
            }
            ended.lock().unwrap_or_else(PoisonError::into_inner).push(*outcome);
        }
    };
    let finished = tokio::select! {
        outcomes = run::run(planned, target, probe, options, None, tell) => Some(outcomes),
        _ = tokio::signal::ctrl_c() => None,
    };
    line.clear();
    if let Some(outcomes) = finished {
        return (outcomes, None);
    }
    let mut outcomes = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcomes.sort_by_key(|outcome| order.get(&key(&outcome.case, outcome.binding)).copied());
    let cut = format!("interrupted: {} of {total} checks did not run", total - outcomes.len());
    (outcomes, Some(cut))
}

fn baseline(path: &std::path::Path, cases: &[Arc<Case>]) -> Result<Baseline, Failure> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| Failure::usage(format!("{shown}: {error}")))?;
    let baseline = Baseline::parse(&text).map_err(|why| Failure::usage(format!("{shown}: {why}")))?;
    let known: BTreeSet<&str> = cases.iter().map(|case| case.id()).collect();
    if let Some((line, id)) = baseline.unknown(&known).into_iter().next() {
        let hint = choice::did_you_mean(&id, known.into_iter());
        return Err(Failure::usage(format!("{shown}: line {line}: no check is called `{id}`{hint}")));
    }
    Ok(baseline)
}

fn nothing_to_do(args: &RunArgs, target: &baton_lab::target::Target) -> String {
    let there: Vec<String> =
        target.interfaces.keys().map(|(generation, binding)| format!("{generation} {binding}")).collect();
    let asked = if args.select.is_empty() { "what was asked for" } else { "the selection" };
    format!("no check fits {asked}; the card declares {}", there.join(", "))
}
