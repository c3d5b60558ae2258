//! Makes outcomes from the recorded requests: each rule is applied to its scripts, and the results are combined.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::heard::Heard;
use super::rules::{self, Basics, Finding, Rule, Trial};
use super::server::{ScriptServer, held};
use super::stage::{Ran, ScriptState};
use super::variant::Variant;
use crate::case::{Case, Outcome, StepOutcome, Verdict};
use crate::generation::Binding;
use crate::wire::Secrets;
use crate::wire::evidence::{self, Exchange, Sent};

/// Headers whose values are hidden.
const SECRET: &[&str] = &["authorization", "proxy-authorization", "cookie", "x-api-key", "x-judge-key"];
/// Most exchanges that are shown for a failure without a single request.
const MOST_EXCHANGES: usize = 6;
/// Longest excerpt of a command's output.
const MOST_WORDS: usize = 600;

pub(super) fn outcomes(running: &ScriptServer, wanted: impl Fn(&Case) -> bool) -> Vec<Outcome> {
    let stages: Vec<_> = running.stages().map(held).collect();
    let mut basics: BTreeMap<Variant, Basics> = BTreeMap::new();
    for stage in &stages {
        let basics = basics.entry(stage.variant).or_default();
        basics.called |= stage.heard.iter().any(|heard| heard.call.is_some());
        let ended = stage.ran.as_ref().map(|ran| ran.code == Some(0));
        match stage.script.name {
            "send" => basics.sends = ended,
            "stream" => basics.streams = ended,
            _ => {}
        }
    }
    let guarded = stages.iter().filter(|stage| stage.script.credential().is_some());
    let secrets = Secrets::new(guarded.map(|stage| stage.secret()));
    let mut outcomes = Vec::new();
    for (rule, case) in rules::cases() {
        if !wanted(&case) {
            continue;
        }
        for binding in Binding::ALL {
            let variant = Variant { generation: case.generation, binding };
            let Some(basics) = basics.get(&variant).filter(|_| rule.holds_in(variant)) else { continue };
            let looked_at =
                stages.iter().filter(|stage| stage.variant == variant && rule.looks_at(stage.script));
            let trials: Vec<Trial<'_>> = looked_at.map(|stage| Trial { stage, basics: *basics }).collect();
            if !trials.is_empty() {
                let mut outcome = outcome(rule, &case, binding, &trials);
                outcome.hide(&secrets);
                outcomes.push(outcome);
            }
        }
    }
    outcomes
}

fn outcome(rule: &Rule, case: &Arc<Case>, binding: Binding, trials: &[Trial<'_>]) -> Outcome {
    let (mut steps, mut notes, mut evidence) = (Vec::new(), Vec::new(), Vec::new());
    let (mut failed, mut passed, mut unseen) = (None, false, None);
    for trial in trials {
        let name = trial.stage.script.name;
        let duration = trial.ran().map_or(Duration::ZERO, |ran| ran.duration);
        let verdict = match (rule.check)(trial) {
            Finding::Pass => {
                passed = true;
                Verdict::Pass
            }
            Finding::Fail(failure, at) => {
                let failure = failure.in_step(name);
                if failed.is_none() {
                    evidence = exchanges(trial.stage, at);
                    notes.extend(trial.ran().filter(|_| at.is_none()).and_then(last_output));
                    failed = Some(failure.clone());
                } else {
                    notes.push(format!("also in {name}: {}", failure.message));
                }
                Verdict::Fail(failure)
            }
            Finding::NotSeen(why) => {
                // Reasons of scripts that were called are preferred.
                if unseen.is_none() || !trial.stage.heard.is_empty() {
                    unseen = Some(why.clone());
                }
                Verdict::Skip(why)
            }
        };
        steps.push(StepOutcome { id: name.to_owned(), verdict, duration });
    }
    let verdict = match (failed, passed) {
        (Some(failure), _) => Verdict::Fail(failure),
        (None, true) => Verdict::Pass,
        (None, false) => Verdict::Skip(unseen.unwrap_or_else(|| "not seen".to_owned())),
    };
    if evidence.is_empty() && verdict == Verdict::Pass {
        let shown = trials.iter().find(|trial| !trial.stage.heard.is_empty());
        evidence = shown.map(|trial| exchanges(trial.stage, None)).unwrap_or_default();
    }
    let duration = steps.iter().map(|step| step.duration).sum();
    Outcome { case: Arc::clone(case), binding, verdict, notes, steps, evidence, duration, crashed: false }
}

/// The end of the command's error output.
fn last_output(ran: &Ran) -> Option<String> {
    let said = ran.stderr.trim_end();
    let from = said.char_indices().rev().nth(MOST_WORDS).map_or(0, |(at, _)| at);
    (!said.is_empty()).then(|| format!("the command said: {}", &said[from..]))
}

/// The request that shows the failure, or the last ones.
fn exchanges(stage: &ScriptState, at: Option<usize>) -> Vec<Exchange> {
    match at {
        Some(at) => stage.heard.get(at).map(exchange).into_iter().collect(),
        None => {
            let from = stage.heard.len().saturating_sub(MOST_EXCHANGES);
            stage.heard[from..].iter().map(exchange).collect()
        }
    }
}

fn exchange(heard: &Heard) -> Exchange {
    let headers = heard.headers.iter().map(|(name, value)| {
        let secret = SECRET.contains(&name.to_ascii_lowercase().as_str());
        (name.clone(), if secret { "***".to_owned() } else { value.clone() })
    });
    let body = (!heard.body.is_empty()).then(|| evidence::shown(&heard.body));
    let url = format!("http://{}{}", heard.host, heard.target);
    Exchange {
        sent: Sent { method: heard.method.clone(), url, headers: headers.collect(), body },
        received: heard.answer.clone(),
        trouble: heard.answer.is_none().then(|| "the script closes the connection here".to_owned()),
        duration_ms: 0,
    }
}
