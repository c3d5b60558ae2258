//! Compares what an agent's card declares with what is mounted.

use std::collections::HashSet;

#[cfg(feature = "grpc")]
use baton_protocol::domain::{AgentCapabilities, AgentExtension};
use baton_protocol::domain::{AgentCard, AgentSkill};

use super::generations;
use super::security::Enforced;
use crate::engine::agent::Skill;

/// The bindings that every agent has.
const BINDINGS: [&str; 2] = ["JSONRPC", "HTTP+JSON"];

/// Whether the server has this binding. Also true if the card leaves the binding out.
pub(super) fn is_served(binding: &str) -> bool {
    binding.is_empty() || BINDINGS.iter().any(|served| served.eq_ignore_ascii_case(binding))
}

/// What the server can do beside what every agent has.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Features {
    /// The agent has a card for authenticated callers.
    pub(crate) extended_card: bool,
    /// The server calls webhooks.
    pub(crate) push: bool,
    /// The agent is reached by gRPC.
    pub(crate) grpc: bool,
    /// And its card says so.
    #[cfg_attr(not(feature = "grpc"), expect(dead_code, reason = "always false"))]
    pub(crate) tells_grpc: bool,
}

/// Completes an author's card with the skills, modes and capabilities that are mounted. A card that declares anything
/// else is refused, with one line per problem that begins with the member's name.
pub(crate) fn mounted(
    mut card: AgentCard,
    skills: &[Skill],
    enforced: &Enforced,
    features: Features,
) -> Result<AgentCard, Vec<String>> {
    let mut wrong = wrong_skills(&card, skills);
    wrong.extend(unsupported(&card, features));
    if card.skills.is_empty() {
        card.skills = skills.iter().map(|skill| skill.card.clone()).collect();
    }
    wrong.extend(enforced.declare(&mut card).err().into_iter().flatten());
    let served = generations(&card);
    let served = match (served, wrong.is_empty()) {
        (Ok(served), true) => served,
        (served, _) => {
            wrong.extend(served.err().map(|unknown| unknown.to_string()));
            return Err(wrong);
        }
    };
    card.default_input_modes = modes(card.default_input_modes, &card.skills, |skill| &skill.input_modes);
    card.default_output_modes = modes(card.default_output_modes, &card.skills, |skill| &skill.output_modes);
    let capabilities = &mut card.capabilities;
    // `None` only on cards made in code: `card::read` always sets it.
    if !*capabilities.streaming.get_or_insert(true) {
        tracing::info!(
            "streaming is switched off: the card does not declare \"capabilities\": {{\"streaming\": true}}"
        );
    }
    capabilities.state_transition_history.get_or_insert(true);
    if !*capabilities.push_notifications.get_or_insert(features.push) && features.push {
        tracing::info!(
            "webhooks are switched off: the card does not declare \"capabilities\": {{\"pushNotifications\": true}}"
        );
    }
    if features.extended_card {
        capabilities.extended_agent_card.get_or_insert(true);
    }
    #[cfg(feature = "grpc")]
    if features.tells_grpc && capabilities.streaming == Some(true) {
        declare_resume(capabilities);
    }
    if !served.others().is_empty() {
        let (on, off) = (served.versions(), served.others().versions());
        tracing::info!("protocol {off} switched off: the card's supportedInterfaces name {on} only");
    }
    Ok(card)
}

/// Streams over gRPC have no ids, so an extension numbers their events.
#[cfg(feature = "grpc")]
fn declare_resume(capabilities: &mut AgentCapabilities) {
    let uri = crate::binding::grpc::RESUME.to_owned();
    if capabilities.extensions.iter().all(|extension| extension.uri != uri) {
        let description = "Over gRPC, metadata of stream events has their number under this URI; request metadata \
                           `last-event-id` continues a stream after it, as the header does elsewhere";
        let (description, required, params) = (Some(description.to_owned()), false, None);
        capabilities.extensions.push(AgentExtension { uri, description, required, params });
    }
}

/// A card that lists skills must list those that have logic, and no others.
fn wrong_skills(card: &AgentCard, skills: &[Skill]) -> Vec<String> {
    if skills.is_empty() {
        return vec!["skills: there is none; an agent needs at least one".to_owned()];
    }
    let (mut wrong, mut ids) = (Vec::new(), HashSet::new());
    for skill in skills {
        let id = skill.card.id.as_str();
        if !ids.insert(id) {
            wrong.push(format!("skills: `{id}` is there twice"));
        } else if !card.skills.is_empty() && !card.skills.iter().any(|listed| listed.id == id) {
            wrong.push(format!("skills: `{id}` has logic, but is not on the card"));
        }
    }
    for listed in card.skills.iter().filter(|listed| !ids.contains(listed.id.as_str())) {
        wrong.push(format!("skills: `{}` is on the card, but no logic is behind it", listed.id));
    }
    wrong
}

/// What the card declares and this server does not have, apart from skills.
fn unsupported(card: &AgentCard, features: Features) -> Vec<String> {
    let mut wrong = Vec::new();
    if card.capabilities.push_notifications == Some(true) && !features.push {
        wrong.push("capabilities.pushNotifications: true, but webhooks are off; `[push] enabled = true` switches them on".to_owned());
    }
    if card.capabilities.extended_agent_card == Some(true) && !features.extended_card {
        wrong.push("capabilities.extendedAgentCard: true, but no extended card is configured".to_owned());
    }
    let mut bindings: Vec<_> = card.interfaces.iter().map(|interface| &*interface.protocol_binding).collect();
    let is_grpc = |binding: &str| features.grpc && binding.eq_ignore_ascii_case("GRPC");
    bindings.retain(|binding| !is_served(binding) && !is_grpc(binding));
    bindings.sort_unstable();
    bindings.dedup();
    let with_grpc = ", GRPC if it is switched on (`grpc = true`), for agents without a path of their own";
    let with_grpc = if cfg!(feature = "grpc") { with_grpc } else { "" };
    for binding in bindings {
        let (binding, served) = (binding.chars().take(64).collect::<String>(), BINDINGS.join(" and "));
        wrong.push(format!(
            "supportedInterfaces: {binding:?} is no binding of this server; take it off the card (in one of 0.3: \
             preferredTransport, additionalInterfaces). {served} are always served{with_grpc}"
        ));
    }
    wrong
}

/// The card's default modes, which the protocol requires. If the card has none: the modes of its skills, and
/// `text/plain` if a skill has no modes of its own.
fn modes(
    defaults: Vec<String>,
    skills: &[AgentSkill],
    own: impl Fn(&AgentSkill) -> &Vec<String>,
) -> Vec<String> {
    if !defaults.is_empty() {
        return defaults;
    }
    let mut all: Vec<String> = Vec::new();
    for mode in skills.iter().flat_map(&own) {
        if !all.contains(mode) {
            all.push(mode.clone());
        }
    }
    let text = "text/plain".to_owned();
    if skills.iter().any(|skill| own(skill).is_empty()) && !all.contains(&text) {
        all.push(text);
    }
    all
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use baton_protocol::domain::AgentInterface;

    use super::*;
    use crate::card::read;
    use crate::engine::agent::{AgentError, Logic};
    use crate::engine::turn::Turn;

    fn skill(id: &str) -> Skill {
        async fn run(_turn: Turn) -> Result<(), AgentError> {
            Ok(())
        }
        Skill { card: AgentSkill::new(id, id, id), logic: Logic::Task(Arc::new(run)) }
    }

    #[test]
    fn s03_a_card_that_promises_more_than_is_there_is_refused_by_name() {
        let card = || AgentCard::new("a", "b", "1");
        let with = |change: fn(&mut AgentCard)| {
            let mut card = card();
            change(&mut card);
            card
        };
        for (card, skills, named) in [
            (with(|c| c.capabilities.push_notifications = Some(true)), vec![skill("x")], "pushNotifications"),
            (
                with(|c| c.capabilities.extended_agent_card = Some(true)),
                vec![skill("x")],
                "extendedAgentCard",
            ),
            (
                with(|c| c.skills = vec![AgentSkill::new("y", "y", "y")]),
                vec![skill("y"), skill("x")],
                "`x` has logic",
            ),
            (
                with(|c| c.skills = vec![AgentSkill::new("x", "x", "x"), AgentSkill::new("y", "y", "y")]),
                vec![skill("x")],
                "`y` is on the card",
            ),
            (card(), vec![skill("x"), skill("x")], "twice"),
            (card(), vec![], "at least one"),
        ] {
            let refused = mounted(card, &skills, &Enforced::Nothing, Features::default()).unwrap_err();
            assert!(refused.len() == 1 && refused[0].contains(named), "{refused:?}");
        }
        let mounted = mounted(card(), &[skill("x")], &Enforced::Nothing, Features::default()).unwrap();
        assert_eq!(mounted.capabilities.streaming, Some(true));
        assert_eq!(mounted.skills[0].id, "x");
    }

    #[test]
    fn s03_a_card_file_switches_off_what_it_leaves_out_and_may_not_name_what_is_not_mounted() {
        let own = r#""name": "n", "description": "d", "version": "1""#;
        let told = |more: &str| {
            let card = read(&format!("{{{own}{more}}}")).unwrap_or_else(|error| panic!("{more}: {error}"));
            let mounted = mounted(card, &[skill("x")], &Enforced::Nothing, Features::default());
            mounted.map(|it| (it.capabilities.streaming, it.capabilities.state_transition_history))
        };
        let (on, off) = (Some(true), Some(false));
        for (more, streaming, history) in [
            ("", off, on),
            (r#", "capabilities": {}"#, off, on),
            (r#", "capabilities": {"streaming": false}"#, off, on),
            (r#", "capabilities": {"streaming": true}"#, on, on),
            (r#", "capabilities": {"streaming": true, "stateTransitionHistory": false}"#, on, off),
            (r#", "url": "http://a.example", "capabilities": {}"#, off, off),
            (r#", "url": "http://a.example", "preferredTransport": "HTTP+JSON""#, off, off),
            (r#", "url": "http://a.example", "capabilities": {"stateTransitionHistory": true}"#, off, on),
        ] {
            assert_eq!(told(more), Ok((streaming, history)), "{more}");
        }
        let interfaces = |bindings: &[&str]| {
            let one = |binding: &&str| {
                format!(
                    r#"{{"url": "http://a.example", "protocolBinding": "{binding}", "protocolVersion": "1.0"}}"#
                )
            };
            let all: Vec<_> = bindings.iter().map(one).collect();
            format!(r#", "supportedInterfaces": [{}]"#, all.join(", "))
        };
        told(&interfaces(&["HTTP+JSON"])).unwrap();
        for (more, named) in [
            (interfaces(&["GRPC"]), "GRPC"),
            (interfaces(&["JSONRPC", "GRPC", "GRPC"]), "GRPC"),
            (interfaces(&["https://bindings.example/carrier-pigeon"]), "carrier-pigeon"),
            (r#", "url": "http://a.example", "preferredTransport": "GRPC""#.to_owned(), "GRPC"),
        ] {
            let refused = told(&more).unwrap_err();
            assert!(refused.len() == 1 && refused[0].contains(named), "{refused:?}");
            assert!(refused[0].contains("JSONRPC and HTTP+JSON"), "says what to do: {refused:?}");
        }
    }

    #[test]
    fn s03_all_that_is_wrong_with_a_card_is_told_at_once() {
        let mut card = AgentCard::new("a", "b", "1");
        card.skills = vec![AgentSkill::new("y", "y", "y")];
        card.capabilities.push_notifications = Some(true);
        card.interfaces = vec![AgentInterface {
            url: String::new(),
            protocol_binding: "GRPC".to_owned(),
            protocol_version: "7.0".to_owned(),
            tenant: None,
        }];
        let refused = mounted(card, &[skill("x")], &Enforced::Nothing, Features::default()).unwrap_err();
        for named in ["`x` has logic", "`y` is on the card", "pushNotifications", "\"GRPC\"", "\"7.0\""] {
            assert!(refused.iter().any(|line| line.contains(named)), "{named}: {refused:?}");
        }
    }

    #[test]
    fn p01_a_card_without_modes_has_those_of_its_skills_or_text() {
        for (said, own, expected) in [
            (vec!["a/b"], vec![vec!["c/d"]], vec!["a/b"]),
            (vec![], vec![vec![]], vec!["text/plain"]),
            (vec![], vec![vec!["c/d"], vec!["e/f", "c/d"]], vec!["c/d", "e/f"]),
            (vec![], vec![vec!["c/d"], vec![]], vec!["c/d", "text/plain"]),
        ] {
            let owned = |modes: Vec<&str>| modes.into_iter().map(str::to_owned).collect::<Vec<_>>();
            let mut card = AgentCard::new("a", "b", "1");
            card.default_input_modes = owned(said);
            let skills = own.into_iter().enumerate().map(|(at, modes)| {
                let mut skill = skill(&at.to_string());
                skill.card.input_modes = owned(modes);
                skill
            });
            let mounted =
                mounted(card, &skills.collect::<Vec<_>>(), &Enforced::Nothing, Features::default()).unwrap();
            assert_eq!(mounted.default_input_modes, expected);
        }
    }
}
