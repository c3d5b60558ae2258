//! The scripted agents' cards, in each generation's own form.

use serde_json::{Value, json};

use super::script::{CardKind, Script};
use super::variant::Variant;
use crate::generation::Generation;

/// The path of the right interface in the card; the others are wrong.
pub(super) const INTERFACE: &str = "a2a";
/// An equivalent interface, later in the card.
pub(super) const SECOND: &str = "second";
/// An interface of an unknown version.
pub(super) const FUTURE: &str = "future";
/// An interface of an unknown binding.
pub(super) const PIGEON: &str = "pigeon";
/// The target of a redirect.
pub(super) const MOVED: &str = "moved";

pub(super) const TENANT: &str = "acme-7";
pub(super) const EXTENSION: &str = "https://example.com/extensions/judged/v1";
pub(super) const KEY_HEADER: &str = "X-Judge-Key";
const MANY_SKILLS: usize = 1500;

/// The tenant of the script's interface.
pub(super) fn tenant(script: &Script) -> Option<&'static str> {
    (script.card_kind == CardKind::Tenant).then_some(TENANT)
}

/// `base` is the script's own address, `down` an address where nothing listens.
pub(super) fn card(variant: Variant, script: &Script, base: &str, down: &str) -> Value {
    let streaming = script.card_kind != CardKind::NoStreaming;
    let tour = script.card_kind == CardKind::Tour;
    let mut card = json!({
        "name": format!("Judge of {}", script.name),
        "description": script.about,
        "version": "1.0.0",
        "capabilities": {"streaming": streaming, "pushNotifications": tour},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [skill("any")],
    });
    match variant.generation {
        Generation::V1 => card["supportedInterfaces"] = interfaces(variant, script, base, down),
        Generation::V0_3 | Generation::V0_1 => {
            card["url"] = json!(format!("{base}/{INTERFACE}"));
        }
    }
    if variant.generation == Generation::V0_3 {
        older(&mut card, variant, script, base, down);
    }
    let capabilities = &mut card["capabilities"];
    match (script.card_kind, variant.generation) {
        (CardKind::Extended, Generation::V1) => capabilities["extendedAgentCard"] = json!(true),
        (CardKind::Extended, Generation::V0_3) => card["supportsAuthenticatedExtendedCard"] = json!(true),
        (CardKind::Extension, _) => {
            capabilities["extensions"] = json!([{"uri": EXTENSION, "required": true, "description": "Nothing is asked but to name it."}]);
        }
        (CardKind::Huge, _) => {
            card["skills"] = (0..MANY_SKILLS).map(|number| skill(&format!("s{number}"))).collect()
        }
        (CardKind::UnknownMembers, _) => {
            card["weather"] = json!({"today": ["sun", 7, null]});
            card["capabilities"]["telepathy"] = json!(true);
            card["skills"][0]["colour"] = json!("blue");
        }
        (CardKind::Bearer, _) => secure(&mut card, variant, "Bearer", None),
        (CardKind::ApiKey, _) => secure(&mut card, variant, "apiKey", Some(KEY_HEADER)),
        _ => {}
    }
    if script.card_kind == CardKind::Extended {
        secure(&mut card, variant, "Bearer", None);
    }
    card
}

fn skill(id: &str) -> Value {
    let about = "Takes any message. ".repeat(24);
    json!({"id": id, "name": "Any message", "description": about.trim(), "tags": ["judge"], "examples": ["hello"]})
}

fn interfaces(variant: Variant, script: &Script, base: &str, down: &str) -> Value {
    let entry = |url: String, binding: &str, version: &str| json!({"url": url, "protocolBinding": binding, "protocolVersion": version});
    let ours = variant.binding.in_cards();
    let at = |door: &str| format!("{base}/{door}");
    let mut right = entry(at(INTERFACE), ours, variant.generation.version());
    match script.card_kind {
        CardKind::Interfaces => json!([
            entry(at(PIGEON), "https://example.com/bindings/carrier-pigeon", "1.0"),
            entry(at(FUTURE), ours, "9.9"),
            right,
            entry(at(SECOND), ours, variant.generation.version()),
        ]),
        CardKind::FirstDown => {
            json!([entry(format!("{down}/{INTERFACE}"), ours, variant.generation.version()), right])
        }
        CardKind::Tenant => {
            right["tenant"] = json!(TENANT);
            json!([right])
        }
        _ => json!([right]),
    }
}

/// What 0.3 has instead of a list.
fn older(card: &mut Value, variant: Variant, script: &Script, base: &str, down: &str) {
    let ours = variant.binding.in_cards();
    card["protocolVersion"] = json!("0.3.0");
    card["preferredTransport"] = json!(ours);
    let entry = |url: String| json!({"url": url, "transport": ours});
    match script.card_kind {
        CardKind::Interfaces => {
            card["url"] = json!(format!("{base}/{PIGEON}"));
            card["preferredTransport"] = json!("CARRIER-PIGEON");
            card["additionalInterfaces"] = json!([
                {"url": format!("{base}/{PIGEON}"), "transport": "CARRIER-PIGEON"},
                entry(format!("{base}/{INTERFACE}"))]);
        }
        CardKind::FirstDown => {
            card["url"] = json!(format!("{down}/{INTERFACE}"));
            card["additionalInterfaces"] =
                json!([entry(format!("{down}/{INTERFACE}")), entry(format!("{base}/{INTERFACE}"))]);
        }
        _ => {}
    }
}

/// Requires a credential: an HTTP scheme, or an API key in a header.
fn secure(card: &mut Value, variant: Variant, scheme: &str, header: Option<&str>) {
    match (variant.generation, header) {
        (Generation::V1, None) => {
            card["securitySchemes"] = json!({"judge": {"httpAuthSecurityScheme": {"scheme": scheme}}});
        }
        (Generation::V1, Some(name)) => {
            card["securitySchemes"] =
                json!({"judge": {"apiKeySecurityScheme": {"location": "header", "name": name}}});
        }
        (Generation::V0_3, None) => {
            card["securitySchemes"] = json!({"judge": {"type": "http", "scheme": scheme.to_lowercase()}});
        }
        (Generation::V0_3, Some(name)) => {
            card["securitySchemes"] = json!({"judge": {"type": "apiKey", "in": "header", "name": name}});
        }
        (Generation::V0_1, _) => card["authentication"] = json!({"schemes": [scheme]}),
    }
    match variant.generation {
        Generation::V1 => card["securityRequirements"] = json!([{"schemes": {"judge": {"list": []}}}]),
        Generation::V0_3 => card["security"] = json!([{"judge": []}]),
        Generation::V0_1 => {}
    }
}
