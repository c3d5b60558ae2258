//! The content and form of the card.

use serde_json::{Value, json};

use super::shape::{fault, faults, judge};
use super::shapes;
use crate::acts::assertion::{Mismatch, show};
use crate::generation::{Binding, Generation};
use crate::native::{Checks, Done, checks, differs, fail};
use crate::run::Bench;
use crate::wire::{Answer, Probe, Request, request};

pub(in crate::native) const CHECKS: Checks = checks! {
    "v1.card.shape" => card_shape,
    "v1.card.interfaces" => interfaces,
    "v1.card.patch-versions" => patch_versions,
    "v1.card.skills" => skills,
    "v1.card.public" => public,
    "v1.card.media-types" => media_types,
    "v1.card.bindings-are-named" => bindings_are_named,
};

impl Bench {
    /// Fetches the card again; returns it with the whole answer.
    pub(super) async fn card(&self) -> Done<(Answer, Value)> {
        self.card_by(self.probe(), Vec::new()).await
    }

    pub(super) async fn card_answer(&self, probe: &Probe, more: Vec<(String, String)>) -> Done<Answer> {
        let mut headers: Vec<_> = request::version(Generation::V1).into_iter().collect();
        headers.extend(more);
        let url = self.card_url();
        let asked = Request { method: "GET".to_owned(), url, headers, body: None, streams: false };
        // The card is plain JSON in every binding.
        let answer = probe.ask(Generation::V1, Binding::Rest, &asked).await;
        answer.map_err(|error| fail(format!("no answer to the request for the card: {error}")))
    }

    async fn card_by(&self, probe: &Probe, more: Vec<(String, String)>) -> Done<(Answer, Value)> {
        let answer = self.card_answer(probe, more).await?;
        match &answer {
            Answer::Reply { status: 200, root: Some(card @ Value::Object(_)), .. } => {
                Ok((answer.clone(), card.clone()))
            }
            other => Err(differs("HTTP 200 with the card as a JSON object", other.summary())),
        }
    }
}

pub(super) fn list<'a>(card: &'a Value, member: &str) -> &'a [Value] {
    card[member].as_array().map_or(&[], Vec::as_slice)
}

/// Everything that is wrong with a card by the schema of 1.0: itself, its interfaces, skills and security schemes.
pub(in crate::native) fn problems(card: &Value) -> Vec<Mismatch> {
    let mut found = faults(&shapes::CARD, card, "");
    for (index, entry) in list(card, "supportedInterfaces").iter().enumerate() {
        let place = format!("supportedInterfaces[{index}]");
        found.extend(faults(&shapes::INTERFACE, entry, &place));
        found.extend(odd_url(entry, &place));
    }
    found.extend(skill_faults(card, list(card, "skills")));
    for (name, scheme) in card["securitySchemes"].as_object().into_iter().flatten() {
        found.extend(faults(&shapes::SECURITY_SCHEME, scheme, &format!("securitySchemes.{name}")));
    }
    for (index, requirement) in list(card, "securityRequirements").iter().enumerate() {
        let place = format!("securityRequirements[{index}]");
        found.extend(faults(&shapes::REQUIREMENT, requirement, &place));
        for name in requirement["schemes"].as_object().into_iter().flatten().map(|(name, _)| name) {
            if card["securitySchemes"].get(name).is_none() {
                let place = format!("{place}.schemes.{name}");
                found.push(fault(&place, "the name of a security scheme of the card", Some(&json!(name))));
            }
        }
    }
    found
}

async fn card_shape(bench: &Bench) -> Done {
    let (_, card) = bench.card().await?;
    judge(faults(&shapes::CARD, &card, ""))
}

async fn interfaces(bench: &Bench) -> Done {
    let (_, card) = bench.card().await?;
    let entries = list(&card, "supportedInterfaces").iter().enumerate();
    judge(
        entries
            .flat_map(|(index, entry)| {
                let place = format!("supportedInterfaces[{index}]");
                let mut found = faults(&shapes::INTERFACE, entry, &place);
                found.extend(odd_url(entry, &place));
                found
            })
            .collect(),
    )
}

/// HTTP bindings need a complete URL; for gRPC some documents have `host:port`, others a URL.
fn odd_url(entry: &Value, place: &str) -> Option<Mismatch> {
    let url = entry["url"].as_str()?;
    let http = matches!(entry["protocolBinding"].as_str(), Some("JSONRPC" | "HTTP+JSON"));
    let whole =
        ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme) && url.len() > scheme.len());
    (http && !whole).then(|| fault(&format!("{place}.url"), "an absolute http(s) URL", Some(&entry["url"])))
}

async fn patch_versions(bench: &Bench) -> Done {
    let (_, card) = bench.card().await?;
    let entries = list(&card, "supportedInterfaces").iter().enumerate();
    let odd = entries.filter(|(_, entry)| {
        let version = entry["protocolVersion"].as_str().unwrap_or("1.0");
        !is_major_minor(version)
    });
    judge(
        odd.map(|(index, entry)| {
            let place = format!("supportedInterfaces[{index}].protocolVersion");
            fault(&place, "Major.Minor, as in 1.0", Some(&entry["protocolVersion"]))
        })
        .collect(),
    )
}

fn is_major_minor(version: &str) -> bool {
    let mut parts = version.split('.');
    let mut number = || parts.next().is_some_and(|part| part.parse::<u32>().is_ok());
    number() && number() && parts.next().is_none()
}

async fn skills(bench: &Bench) -> Done {
    let (_, card) = bench.card().await?;
    let skills = list(&card, "skills");
    if skills.is_empty() {
        bench.note("the card lists no skills; clients cannot tell what the agent is for");
    }
    judge(skill_faults(&card, skills))
}

fn skill_faults(card: &Value, skills: &[Value]) -> Vec<Mismatch> {
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

async fn public(bench: &Bench) -> Done {
    let stranger = bench.probe().stranger();
    let origin = vec![("Origin".to_owned(), "https://client.example".to_owned())];
    let (answer, _) = bench.card_by(&stranger, origin).await?;
    if answer.header("access-control-allow-origin").is_none() {
        bench.note(
            "no Access-Control-Allow-Origin: clients in browsers cannot read the card (that is allowed)",
        );
    }
    let kind = answer.header("content-type").unwrap_or_default().to_ascii_lowercase();
    if is_json(&kind) { Ok(()) } else { Err(differs("a JSON content type", show(&json!(kind)))) }
}

pub(in crate::native) fn is_json(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

async fn media_types(bench: &Bench) -> Done {
    let (_, card) = bench.card().await?;
    let mut all: Vec<(String, &Value)> = Vec::new();
    for member in ["defaultInputModes", "defaultOutputModes"] {
        all.extend(
            list(&card, member).iter().enumerate().map(|(at, mode)| (format!("{member}[{at}]"), mode)),
        );
    }
    for (index, skill) in list(&card, "skills").iter().enumerate() {
        for member in ["inputModes", "outputModes"] {
            let modes = list(skill, member).iter().enumerate();
            all.extend(modes.map(|(at, mode)| (format!("skills[{index}].{member}[{at}]"), mode)));
        }
    }
    let odd = all.into_iter().filter(|(_, mode)| !mode.as_str().is_some_and(is_media_type));
    judge(odd.map(|(place, mode)| fault(&place, "a media type such as text/plain", Some(mode))).collect())
}

fn is_media_type(text: &str) -> bool {
    let token = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "!#$&^_.+-*".contains(c))
    };
    let kind = text.split(';').next().unwrap_or_default().trim();
    kind.split_once('/').is_some_and(|(main, sub)| token(main) && token(sub))
}

async fn bindings_are_named(bench: &Bench) -> Done {
    let (_, card) = bench.card().await?;
    let entries = list(&card, "supportedInterfaces").iter().enumerate();
    let odd = entries.filter(|(_, entry)| {
        let name = entry["protocolBinding"].as_str().unwrap_or_default();
        !(Binding::ALL.iter().any(|known| known.in_cards() == name) || is_uri(name))
    });
    judge(
        odd.map(|(index, entry)| {
            let place = format!("supportedInterfaces[{index}].protocolBinding");
            fault(&place, "JSONRPC, GRPC, HTTP+JSON or a URI", Some(&entry["protocolBinding"]))
        })
        .collect(),
    )
}

fn is_uri(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, rest)| {
        let letters = |c: char| c.is_ascii_alphanumeric() || "+.-".contains(c);
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(letters)
            && !rest.is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(found: Vec<Mismatch>) -> Vec<String> {
        found.into_iter().map(|fault| fault.path).collect()
    }

    #[test]
    fn skills_are_judged_with_the_cards_modes() {
        let skill = json!({"id": "a", "name": "A", "description": "does a", "tags": ["x"]});
        let card = json!({"defaultInputModes": ["text/plain"], "defaultOutputModes": []});
        let own = json!({"id": "b", "name": "B", "description": "d", "tags": [], "outputModes": ["a/b"]});
        let faulty = json!({"id": "a", "description": "", "tags": "x", "outputModes": ["a/b"]});
        assert_eq!(places(skill_faults(&card, &[own])), [""; 0]);
        assert_eq!(
            places(skill_faults(&card, &[skill, faulty])),
            [
                "skills[0].outputModes",
                "skills[1].name",
                "skills[1].description",
                "skills[1].tags",
                "skills[1].id"
            ]
        );
    }

    #[test]
    fn words_are_told_apart() {
        assert!(
            is_major_minor("1.0")
                && !is_major_minor("1.0.1")
                && !is_major_minor("1")
                && !is_major_minor("v1.0")
        );
        assert!(is_media_type("*/*") && is_media_type("text/plain; charset=utf-8") && !is_media_type("text"));
        assert!(is_uri("urn:x:y") && is_uri("https://a/b") && !is_uri("REST") && !is_uri("9:x"));
        assert!(is_json("application/a2a+json; charset=utf-8") && !is_json("text/html"));
    }
}
