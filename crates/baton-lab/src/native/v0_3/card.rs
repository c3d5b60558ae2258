//! The content of the card, and whether it is correct.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::shapes;
use crate::acts::assertion::Mismatch;
use crate::generation::{Binding, Generation};
use crate::native::older::{self, list};
use crate::native::shape::{fault, faults, judge, kind_faults};
use crate::native::talk::skip;
use crate::native::v1::card::is_json;
use crate::native::v1::endpoints;
use crate::native::{Checks, Done, checks, differs, fail};
use crate::run::Bench;
use crate::target::{self, Interface};
use crate::wire::{Answer, Request};

pub(in crate::native) const CHECKS: Checks = checks! {
    "v0_3.card.place" => place,
    "v0_3.card.public" => public,
    "v0_3.card.shape" => shape,
    "v0_3.card.version" => version,
    "v0_3.card.skills" => skills,
    "v0_3.card.interfaces" => interfaces,
    "v0_3.card.complete" => complete,
    "v0_3.card.endpoints" => all_answer,
    "v0_3.card.security" => security,
};

async fn read(bench: &Bench) -> Done<Value> {
    older::card(bench, bench.probe()).await.map(|(_, card)| card)
}

async fn place(bench: &Bench) -> Done {
    let (method, url) = ("GET".to_owned(), format!("{}/.well-known/agent-card.json", bench.target().base));
    let request = Request { method, url, headers: Vec::new(), body: None, streams: false };
    let asked = bench.probe().ask(Generation::V0_3, Binding::Rest, &request).await;
    let answer = asked.map_err(|error| fail(format!("no answer: {error}")))?;
    let kind = answer.header("content-type").unwrap_or_default().to_owned();
    match answer {
        Answer::Reply { status: 200, body: Some(Value::Object(_)), .. } if is_json(&kind) => Ok(()),
        other => Err(differs("HTTP 200 with the card as JSON", format!("{} ({kind})", other.summary()))),
    }
}

async fn public(bench: &Bench) -> Done {
    older::card(bench, &bench.probe().stranger()).await.map(|_| ())
}

async fn shape(bench: &Bench) -> Done {
    judge(faults(&shapes::CARD, &read(bench).await?, ""))
}

/// 0.2 and 0.3 have the same wire form; clients refuse a card with another version.
async fn version(bench: &Bench) -> Done {
    let card = read(bench).await?;
    let said = card["protocolVersion"].as_str().unwrap_or_default();
    if is_spoken_here(said) {
        return Ok(());
    }
    judge(vec![fault("protocolVersion", "0.3.0, or another 0.3.x or 0.2.x", card.get("protocolVersion"))])
}

fn is_spoken_here(version: &str) -> bool {
    let mut numbers = version.split('.').map(str::parse::<u32>);
    let (major, minor) = (numbers.next(), numbers.next());
    matches!((major, minor), (Some(Ok(0)), Some(Ok(2 | 3)))) && numbers.all(|number| number.is_ok())
}

async fn skills(bench: &Bench) -> Done {
    let card = read(bench).await?;
    if list(&card, "skills").is_empty() {
        bench.note("the card lists no skills; clients cannot tell what the agent is for");
    }
    judge(skill_faults(&card))
}

fn skill_faults(card: &Value) -> Vec<Mismatch> {
    let skills = list(card, "skills");
    let mut found = Vec::new();
    for (index, skill) in skills.iter().enumerate() {
        let place = format!("skills[{index}]");
        found.extend(faults(&shapes::SKILL, skill, &place));
        // A skill without its own modes uses the card's.
        for (own, general) in [("inputModes", "defaultInputModes"), ("outputModes", "defaultOutputModes")] {
            if list(skill, own).is_empty() && list(card, general).is_empty() {
                let wanted = format!("its own modes, or the card's {general}");
                found.push(fault(&format!("{place}.{own}"), &wanted, skill.get(own)));
            }
        }
        let id = &skill["id"];
        if id.is_string() && skills[..index].iter().any(|earlier| earlier["id"] == *id) {
            found.push(fault(&format!("{place}.id"), "an id no other skill has", Some(id)));
        }
    }
    found
}

/// The main address and all others, as `(place, url, transport)`.
fn declared(card: &Value) -> Vec<(String, Value, Value)> {
    let transport = card.get("preferredTransport").cloned().unwrap_or(json!("JSONRPC"));
    let main = card.get("url").map(|url| ("url".to_owned(), url.clone(), transport));
    let more = list(card, "additionalInterfaces").iter().enumerate().map(|(index, entry)| {
        (format!("additionalInterfaces[{index}]"), entry["url"].clone(), entry["transport"].clone())
    });
    main.into_iter().chain(more).collect()
}

async fn interfaces(bench: &Bench) -> Done {
    judge(interface_faults(&read(bench).await?))
}

fn interface_faults(card: &Value) -> Vec<Mismatch> {
    let mut found = Vec::new();
    for (index, entry) in list(card, "additionalInterfaces").iter().enumerate() {
        found.extend(faults(&shapes::INTERFACE, entry, &format!("additionalInterfaces[{index}]")));
    }
    for (place, url, transport) in declared(card) {
        let text = url.as_str().unwrap_or_default();
        let whole = ["http://", "https://"]
            .iter()
            .any(|scheme| text.starts_with(scheme) && text.len() > scheme.len());
        let http = matches!(transport.as_str(), Some("JSONRPC" | "HTTP+JSON"));
        if http && !text.is_empty() && !whole {
            found.push(fault(&place, "an absolute http(s) URL", Some(&url)));
        }
    }
    found
}

async fn complete(bench: &Bench) -> Done {
    let card = read(bench).await?;
    if list(&card, "additionalInterfaces").is_empty() {
        return Err(skip("the card declares no additional interfaces"));
    }
    let all = declared(&card);
    let same = |url: &Value, other: &Value| {
        let plain = |url: &Value| url.as_str().unwrap_or_default().trim_end_matches('/').to_owned();
        plain(url) == plain(other)
    };
    match all.split_first() {
        Some(((_, url, transport), others))
            if !others.iter().any(|(_, one, kind)| same(one, url) && kind == transport) =>
        {
            let wanted = format!("an entry with the main address, {url}, and its transport, {transport}");
            judge(vec![fault("additionalInterfaces", &wanted, card.get("additionalInterfaces"))])
        }
        _ => Ok(()),
    }
}

/// Every address must support the transport that it is declared for.
async fn all_answer(bench: &Bench) -> Done {
    let card = read(bench).await?;
    let mut found = Vec::new();
    for (place, url, transport) in declared(&card) {
        let name = transport.as_str().unwrap_or_default();
        let known = Binding::ALL.into_iter().find(|binding| binding.in_cards() == name);
        let (Some(url), Some(binding)) = (url.as_str(), known) else {
            bench.note(format!("{name} at {url} was not tried; this runner does not speak it"));
            continue;
        };
        let url = target::with_scheme(&bench.target().base, url.to_owned(), binding);
        let interface = Interface { url, tenant: None };
        if let Err((expected, actual)) = endpoints::speaks(bench, Generation::V0_3, binding, interface).await
        {
            found.push(Mismatch { path: place, expected, actual });
        }
    }
    judge(found)
}

async fn security(bench: &Bench) -> Done {
    let card = read(bench).await?;
    let declares = |member: &str| card.get(member).is_some_and(|value| !value.is_null());
    if !declares("securitySchemes") && !declares("security") {
        return Err(skip("the card declares no security schemes"));
    }
    judge(security_faults(&card))
}

fn security_faults(card: &Value) -> Vec<Mismatch> {
    let none = serde_json::Map::new();
    let schemes = card["securitySchemes"].as_object().unwrap_or(&none);
    let mut found: Vec<Mismatch> = schemes
        .iter()
        .flat_map(|(name, scheme)| {
            kind_faults(&shapes::SECURITY_SCHEME, scheme, &format!("securitySchemes.{name}"))
        })
        .collect();
    let own = list(card, "skills").iter().enumerate();
    let own = own.flat_map(|(index, skill)| {
        list(skill, "security").iter().map(move |wanted| (format!("skills[{index}].security"), wanted))
    });
    let all = list(card, "security").iter().map(|wanted| ("security".to_owned(), wanted)).chain(own);
    let mut told = BTreeSet::new();
    for (place, requirement) in all {
        for name in requirement.as_object().into_iter().flat_map(serde_json::Map::keys) {
            if !schemes.contains_key(name) && told.insert((place.clone(), name.clone())) {
                found.push(fault(&place, "a scheme of `securitySchemes`", Some(&json!(name))));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(found: Vec<Mismatch>) -> Vec<String> {
        found.into_iter().map(|fault| fault.path).collect()
    }

    #[test]
    fn versions_and_modes_and_ids_are_judged() {
        for good in ["0.3.0", "0.3", "0.2.6"] {
            assert!(is_spoken_here(good), "{good}");
        }
        for bad in ["", "1.0", "0.1", "0.3.x", "3"] {
            assert!(!is_spoken_here(bad), "{bad}");
        }
        let skill = json!({"id": "a", "name": "A", "description": "", "tags": []});
        let card = |skills: Value, modes: Value| json!({"skills": skills, "defaultInputModes": modes, "defaultOutputModes": ["text/plain"]});
        assert_eq!(places(skill_faults(&card(json!([skill]), json!(["text/plain"])))), [""; 0]);
        assert_eq!(places(skill_faults(&card(json!([skill]), json!([])))), ["skills[0].inputModes"]);
        assert_eq!(places(skill_faults(&card(json!([skill, skill]), json!(["*/*"])))), ["skills[1].id"]);
        assert_eq!(
            places(skill_faults(&card(json!([{"id": "a", "description": 1}]), json!(["*/*"])))),
            ["skills[0].name", "skills[0].description", "skills[0].tags"]
        );
    }

    #[test]
    fn interfaces_are_judged() {
        let card = |url: &str, more: Value| json!({"url": url, "preferredTransport": "JSONRPC", "additionalInterfaces": more});
        assert_eq!(places(interface_faults(&card("http://h", json!([])))), [""; 0]);
        assert_eq!(places(interface_faults(&card("h:1", json!([])))), ["url"]);
        let more = json!([{"url": "grpc.h:443", "transport": "GRPC"}, {"url": "http://", "transport": "HTTP+JSON"}, {"transport": "JSONRPC"}]);
        assert_eq!(
            places(interface_faults(&card("http://h", more))),
            ["additionalInterfaces[2].url", "additionalInterfaces[1]"]
        );
        assert_eq!(declared(&json!({"url": "http://h"}))[0].2, "JSONRPC");
    }

    #[test]
    fn schemes_are_judged_by_their_type() {
        let card =
            |scheme: Value, wanted: Value| json!({"securitySchemes": {"s": scheme}, "security": wanted});
        let key = json!({"type": "apiKey", "in": "header", "name": "X-Key"});
        assert_eq!(places(security_faults(&card(key.clone(), json!([{"s": []}])))), [""; 0]);
        assert_eq!(places(security_faults(&card(key, json!([{"s": [], "t": []}])))), ["security"]);
        for (bad, place) in [
            (json!({"type": "apiKey", "in": "body", "name": "k"}), "securitySchemes.s.in"),
            (json!({"type": "http"}), "securitySchemes.s.scheme"),
            (
                json!({"type": "oauth2", "flows": {"clientCredentials": {"scopes": {}}}}),
                "securitySchemes.s.flows.clientCredentials.tokenUrl",
            ),
            (json!({"type": "openIdConnect"}), "securitySchemes.s.openIdConnectUrl"),
            (json!({"type": "magic"}), "securitySchemes.s.type"),
            (json!({}), "securitySchemes.s.type"),
        ] {
            assert_eq!(places(security_faults(&card(bad, json!([])))), [place]);
        }
    }
}
