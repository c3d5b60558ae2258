//! Cards that readers of several generations can read, and reading a card without knowing its generation.
//!
//! The generations' members do not collide, so such a card is merged from the cards that each codec writes: schemes and
//! skills, which differ between generations, get the members of both.

use super::members::{Members, items};
use super::v0_1::{self, JSONRPC, LegacyCardFacts, legacy_url};
use super::write::{Object, list};
use super::{v0_3, v1};
use crate::domain::{AgentCard, AgentInterface};
use crate::error::Error;
use crate::generation::{AskedVersion, Generation};

/// `/.well-known/agent.json`: one document for clients of 0.1 and for those of 0.2 and 0.3, which look here, too. All
/// use the one `url`, so it is a JSON-RPC address. For an agent without 0.3 it is a 0.1 card.
pub fn write_union_legacy(out: &mut Vec<u8>, card: &AgentCard, facts: &LegacyCardFacts) {
    if !speaks_v0_3(card) {
        return v0_1::write_card(out, card, facts);
    }
    let legacy = written(|out| v0_1::write_card(out, card, facts));
    let mut later = card.clone();
    // Signatures are of the 1.0 form, which is not in this document.
    later.signatures.clear();
    later.interfaces.retain(is_v0_3);
    let preferred = AgentInterface {
        url: legacy_url(card, facts).to_owned(),
        protocol_binding: JSONRPC.to_owned(),
        protocol_version: Generation::V0_3.version().to_owned(),
        tenant: None,
    };
    later
        .interfaces
        .retain(|it| (&it.url, &it.protocol_binding) != (&preferred.url, &preferred.protocol_binding));
    later.interfaces.insert(0, preferred);
    lay_over(out, &legacy, &written(|out| v0_3::write_card(out, &later)));
}

/// `/.well-known/agent-card.json` for a reader that names no version: the card of 1.0 with the members of 0.3 added.
/// Signatures are those of the 1.0 form. For an agent without 0.3 it is a 1.0 card.
pub fn write_superset(out: &mut Vec<u8>, card: &AgentCard) {
    if !speaks_v0_3(card) {
        return v1::write_card(out, card);
    }
    let newest = written(|out| v1::write_card(out, card));
    lay_over(out, &newest, &written(|out| v0_3::write_card(out, card)));
}

/// The reply of 0.3 in HTTP+JSON for a reader that names no version. Some read the form of the JSON schema (a2a-sdk 0.3 in
/// Python), some ProtoJSON (@a2a-js/sdk): schemes have the members of both forms. Requirements cannot, since each form is
/// invalid in the other; the schema's is written, because readers of ProtoJSON ignore what they do not know.
pub fn write_v0_3_rest(out: &mut Vec<u8>, card: &AgentCard) {
    let mut later = card.clone();
    later.security_requirements.clear();
    later.skills.iter_mut().for_each(|skill| skill.security_requirements.clear());
    let schema = written(|out| v0_3::write_card(out, card));
    lay_over(out, &schema, &written(|out| v0_3::proto_json::write_card(out, &later)));
}

/// Reads a card of any generation, recognised by its members: only 1.0 has `supportedInterfaces`; members that were new
/// in 0.2 mean 0.3; otherwise it is 0.1, or an early 0.2 card that looks the same.
pub fn read_any(text: &str) -> Result<(Generation, AgentCard), Error> {
    // If it is not an object, the 1.0 reader makes the error.
    let members = Members::of(text).unwrap_or_else(|| Members(Vec::new()));
    let said = |name: &str| members.get(name).filter(|value| *value != "null");
    let capabilities = said("capabilities").and_then(Members::of);
    let capability = |name: &str| capabilities.as_ref().and_then(|it| it.get(name));
    let interfaces = V1_MEMBERS.iter().find_map(|name| said(name));
    if interfaces.is_some() || members.0.is_empty() {
        let mut card = match (v1::read_card(text), interfaces) {
            // Some servers add `supportedInterfaces` to a card that is otherwise 0.3.
            (Err(_), Some(interfaces)) if said("url").is_some() => {
                AgentCard { interfaces: read_interfaces(interfaces)?, ..v0_3::read_card(text)? }
            }
            (read, _) => read?,
        };
        // Not a member of 1.0, but a card file has no other way to enable it.
        card.capabilities.state_transition_history =
            capability("stateTransitionHistory").and_then(|flag| flag.parse().ok());
        return Ok((Generation::V1, card));
    }
    let later = V0_3_MEMBERS.iter().any(|name| said(name).is_some())
        || V0_3_CAPABILITIES.iter().any(|name| capability(name).is_some_and(|value| value != "null"));
    if later {
        v0_3::read_card(text).map(|card| (Generation::V0_3, card))
    } else {
        v0_1::read_card(text).map(|card| (Generation::V0_1, card))
    }
}

const V1_MEMBERS: &[&str] = &["supportedInterfaces", "supported_interfaces"];

const V0_3_MEMBERS: &[&str] = &[
    "protocolVersion",
    "protocol_version",
    "preferredTransport",
    "preferred_transport",
    "additionalInterfaces",
    "additional_interfaces",
    "securitySchemes",
    "security_schemes",
    "security",
    "supportsAuthenticatedExtendedCard",
    "supports_authenticated_extended_card",
    "iconUrl",
    "icon_url",
    "signatures",
];

const V0_3_CAPABILITIES: &[&str] = &["extensions", "extendedAgentCard", "extended_agent_card"];

fn speaks_v0_3(card: &AgentCard) -> bool {
    card.interfaces.iter().any(is_v0_3)
}

fn is_v0_3(interface: &AgentInterface) -> bool {
    AskedVersion::read(Some(&interface.protocol_version), None) == AskedVersion::Known(Generation::V0_3)
}

/// There is no reader for interfaces alone, so they are read inside a minimal card.
fn read_interfaces(interfaces: &str) -> Result<Vec<AgentInterface>, Error> {
    let text = format!(r#"{{"name":"","description":"","version":"","supportedInterfaces":{interfaces}}}"#);
    v1::read_card(&text).map(|card| card.interfaces)
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).expect("codecs write text")
}

/// Merges two JSON values. Objects get the members of both, lists with the same number of objects are merged item by
/// item, and of two other values `upper` wins.
fn lay_over(out: &mut Vec<u8>, upper: &str, lower: &str) {
    if upper == lower {
        out.extend_from_slice(upper.as_bytes());
    } else if let (Some(upper), Some(lower)) = (Members::of(upper), Members::of(lower)) {
        let mut object = Object::begin(out);
        for (name, value) in &upper.0 {
            match lower.get(name) {
                Some(other) => lay_over(object.entry(name), value.get(), other),
                None => object.entry(name).extend_from_slice(value.get().as_bytes()),
            }
        }
        for (name, value) in lower.0.iter().filter(|(name, _)| upper.get(name).is_none()) {
            object.entry(name).extend_from_slice(value.get().as_bytes());
        }
        object.end();
    } else if let Some(pairs) = objects_of_both(upper, lower) {
        list(out, &pairs, |out, (upper, lower)| lay_over(out, upper, lower));
    } else {
        out.extend_from_slice(upper.as_bytes());
    }
}

/// The items of two lists with the same number of objects, in pairs.
fn objects_of_both<'a>(upper: &'a str, lower: &'a str) -> Option<Vec<(&'a str, &'a str)>> {
    let (upper, lower) = (items(upper)?, items(lower)?);
    let object = |text: &str| text.starts_with('{');
    let pairs: Vec<_> = upper.iter().zip(&lower).map(|(upper, lower)| (upper.get(), lower.get())).collect();
    (upper.len() == lower.len() && pairs.iter().all(|(upper, lower)| object(upper) && object(lower)))
        .then_some(pairs)
}
