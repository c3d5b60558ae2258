//! Which cases run on which binding, and why the others do not.

use std::sync::Arc;

use serde_json::Value;

use crate::acts::document::Raw;
use crate::case::{Case, Category, Verdict};
use crate::generation::{Binding, Generation};
use crate::target::{Behaviours, Interface, Target};

/// The user's selection; empty lists mean everything.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    pub generations: Vec<Generation>,
    pub bindings: Vec<Binding>,
    /// Case ids, tags, sections, categories or prefixes of ids, any of which selects; a leading `!` excludes.
    pub select: Vec<String>,
    /// Ids of the skills whose examples are used.
    pub skills: Vec<String>,
    /// Whether there are credentials: cases that need some are skipped otherwise.
    pub has_credentials: bool,
}

#[derive(Debug, Clone)]
pub struct Planned {
    pub case: Arc<Case>,
    pub binding: Binding,
    pub decision: Decision,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Run(Interface),
    Skip(String),
}

/// The plan: every selected case on every binding it applies to.
pub fn plan(cases: &[Arc<Case>], target: &Target, selection: &Selection) -> Vec<Planned> {
    let mut plan = Vec::new();
    for case in cases {
        let wanted = selection.generations.is_empty() || selection.generations.contains(&case.generation);
        if !wanted || !selects(&selection.select, case) {
            continue;
        }
        for binding in Binding::ALL {
            let asked = selection.bindings.is_empty() || selection.bindings.contains(&binding);
            if !asked || !applies(case, binding) {
                continue;
            }
            // A binding that neither the user named nor the card declares is not listed.
            let interface = target.interfaces.get(&(case.generation, binding));
            if interface.is_none() && selection.bindings.is_empty() {
                continue;
            }
            let decision = decide(case, binding, interface, target, selection);
            plan.push(Planned { case: Arc::clone(case), binding, decision });
        }
    }
    plan
}

/// A case without named bindings applies to all; raw steps are requests of HTTP with JSON.
fn applies(case: &Case, binding: Binding) -> bool {
    let named = &case.test.transport;
    let mut raw = case.test.steps.iter().filter_map(|step| step.raw.as_ref());
    let is_http = |raw: &Raw| !raw.path.starts_with("/.well-known/");
    named.contains(&binding) || named.is_empty() && !(binding == Binding::Grpc && raw.any(is_http))
}

fn decide(
    case: &Case,
    binding: Binding,
    interface: Option<&Interface>,
    target: &Target,
    selection: &Selection,
) -> Decision {
    let Some(interface) = interface else {
        let (generation, binding) = (case.generation, binding.in_cards());
        return Decision::Skip(format!("the card declares no {binding} interface of {generation}"));
    };
    match unmet(case, target, selection) {
        Some(reason) => Decision::Skip(reason),
        None => Decision::Run(interface.clone()),
    }
}

/// The first precondition that is not met.
fn unmet(case: &Case, target: &Target, selection: &Selection) -> Option<String> {
    if let Some(reason) = &case.test.off {
        return Some(reason.clone());
    }
    let conditions = &case.test.preconditions;
    if let Some(status) = target.refused.filter(|_| !may_be_asked_by_strangers(case)) {
        return Some(refused(status));
    }
    for (name, wanted) in &conditions.capabilities {
        let actual = target.capability_in(case.generation, name);
        if actual != *wanted {
            return Some(match wanted {
                // Not a capability of A2A: it means that the card requires credentials.
                Value::Bool(true) if name == "authentication" => {
                    "the card asks for no credentials".to_owned()
                }
                Value::Bool(true) => format!("the card does not declare `capabilities.{name}`"),
                Value::Bool(false) => {
                    format!("the card declares `capabilities.{name}`; this is for agents without")
                }
                _ => format!("`capabilities.{name}` is {actual}, not {wanted}"),
            });
        }
    }
    for skill in &conditions.skills {
        let id = skill.get("id").and_then(Value::as_str).unwrap_or_default();
        if !target.has_skill(id) {
            return Some(format!("the card has no skill `{id}`"));
        }
    }
    if let Some(uri) = conditions.extensions.iter().find(|uri| !target.declares_extension(uri)) {
        return Some(format!("the card does not declare the extension {uri}"));
    }
    for need in &case.test.runner_requirements {
        if need == "auth_credentials" && !selection.has_credentials {
            return Some(
                "needs credentials; give them with --bearer, --api-key, --basic or --header".to_owned(),
            );
        }
        if need == "second_agent" && target.second.is_none() {
            return Some("needs a second agent; give it with --second URL".to_owned());
        }
    }
    if let Behaviours::Examples(examples) = &target.behaviours {
        for prefix in &case.test.requires_behaviors {
            if prefix != "tck-complete-task" {
                return Some(format!("the agent does not know `{prefix}`, which this case asks it to do"));
            }
            if examples.is_empty() {
                return Some("the agent's skills have no example phrase to send".to_owned());
            }
        }
    }
    None
}

const REFUSES_CALLER: &str = "the agent refuses the caller";

/// Whether a case was skipped because the agent refuses the caller.
pub fn is_refused(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Skip(why) if why.starts_with(REFUSES_CALLER))
}

/// The reason why a case says nothing about an agent that refuses the caller.
pub(crate) fn refused(status: u16) -> String {
    format!(
        "{REFUSES_CALLER} (HTTP {status}); give credentials with --bearer, --api-key, --basic, --digest, \
         --header or --client-cert"
    )
}

/// True if the case can say something without credentials: it is about callers without any, about the card, or an
/// official one that asks the user for what it needs.
fn may_be_asked_by_strangers(case: &Case) -> bool {
    let needs = case.test.runner_requirements.iter().any(|need| need == "auth_credentials");
    let asks = case.test.native.as_deref().is_some_and(|name| name.starts_with("acts."));
    !needs && (asks || is_about_authentication(case) || case.category == Category::AgentCard)
}

/// True if a refused caller is what the case is about.
pub(crate) fn is_about_authentication(case: &Case) -> bool {
    let native = case.test.native.as_deref().unwrap_or_default();
    case.test.preconditions.capabilities.get("authentication") == Some(&Value::Bool(true))
        || native.starts_with("v1.auth.")
        || ["acts.refused", "acts.lesser-card"].contains(&native)
}

/// True if the selection includes the case. An empty selection includes all.
pub fn selects(select: &[String], case: &Case) -> bool {
    let fits = |word: &str| {
        let test = &case.test;
        test.id == word
            || test.id.starts_with(&format!("{word}-"))
            || test.tags.iter().any(|tag| tag == word)
            || case.category.name() == word
            || test.level.name() == word
            || case.source.suite_id == word
            || test.section.as_deref().is_some_and(|section| {
                section == word || section.strip_prefix(word).is_some_and(|rest| rest.starts_with('.'))
            })
    };
    let (out, inside): (Vec<_>, Vec<_>) = select.iter().partition(|word| word.starts_with('!'));
    !out.iter().any(|word| fits(&word[1..])) && (inside.is_empty() || inside.iter().any(|word| fits(word)))
}
