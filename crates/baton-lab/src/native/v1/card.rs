//! What the card says, and whether it says it in the right form.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::shape::{fault, faults, judge};
use super::shapes;
use super::talk::{filled, skip};
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
    "v1.card.security" => security,
    "v1.card.encrypted" => encrypted,
    "v1.card.secrets" => secrets,
    "v1.card.signatures" => signatures,
    "v1.card.public" => public,
    "v1.card.media-types" => media_types,
    "v1.card.bindings-are-named" => bindings_are_named,
};

impl Bench {
    /// The card and the answer it came in, fetched anew.
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

fn list<'a>(card: &'a Value, member: &str) -> &'a [Value] {
    card[member].as_array().map_or(&[], Vec::as_slice)
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

/// HTTP bindings need a whole URL; gRPC has `host:port` in some texts and a URL in others.
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
        // A skill without modes of its own has the card's.
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

async fn security(bench: &Bench) -> Done {
    let (_, card) = bench.card().await?;
    let declares = |member: &str| card.get(member).is_some_and(|value| !value.is_null());
    if !declares("securitySchemes") && !declares("securityRequirements") {
        return Err(skip("the card declares no security schemes"));
    }
    judge(security_faults(&card))
}

fn security_faults(card: &Value) -> Vec<Mismatch> {
    let mut found = Vec::new();
    let none = serde_json::Map::new();
    let schemes = card["securitySchemes"].as_object().unwrap_or(&none);
    for (name, scheme) in schemes {
        found.extend(faults(&shapes::SECURITY_SCHEME, scheme, &format!("securitySchemes.{name}")));
    }
    let own = list(card, "skills").iter().enumerate().flat_map(|(index, skill)| {
        let named = move |(at, wanted)| (format!("skills[{index}].securityRequirements[{at}]"), wanted);
        list(skill, "securityRequirements").iter().enumerate().map(named)
    });
    let all = list(card, "securityRequirements").iter().enumerate();
    let all = all.map(|(at, wanted)| (format!("securityRequirements[{at}]"), wanted)).chain(own);
    for (place, requirement) in all {
        found.extend(faults(&shapes::REQUIREMENT, requirement, &place));
        for name in requirement["schemes"].as_object().into_iter().flat_map(serde_json::Map::keys) {
            if !schemes.contains_key(name) {
                found.push(fault(&place, "a scheme of `securitySchemes`", Some(&json!(name))));
            }
        }
    }
    found
}

/// Plain HTTP is for one's own machine.
async fn encrypted(bench: &Bench) -> Done {
    let (_, card) = bench.card().await?;
    let entries = list(&card, "supportedInterfaces").iter().enumerate();
    let open = entries.filter(|(_, entry)| {
        let url = entry["url"].as_str().unwrap_or_default();
        url.starts_with("http://") && !is_local(url)
    });
    judge(
        open.map(|(index, entry)| {
            fault(&format!("supportedInterfaces[{index}].url"), "an https:// address", Some(&entry["url"]))
        })
        .collect(),
    )
}

/// Is the address on this machine or in a private network, where there may be no certificate?
pub(super) fn is_local(url: &str) -> bool {
    let host = host_of(url);
    if host.eq_ignore_ascii_case("localhost") || host.ends_with(".localhost") || !host.contains(['.', ':']) {
        return true;
    }
    match host.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(four)) => four.is_loopback() || four.is_private() || four.is_link_local(),
        Ok(std::net::IpAddr::V6(six)) => six.is_loopback() || (six.segments()[0] & 0xfe00) == 0xfc00,
        Err(_) => false,
    }
}

pub(in crate::native) fn is_loopback(url: &str) -> bool {
    let host = host_of(url);
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Without port and brackets.
fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    match authority.strip_prefix('[') {
        Some(inner) => inner.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    }
}

/// A card is public: whatever it holds, everybody has.
async fn secrets(bench: &Bench) -> Done {
    let (_, card) = bench.card().await?;
    let mut found = Vec::new();
    find_secrets(&card, "", &mut found);
    judge(found)
}

fn find_secrets(value: &Value, path: &str, found: &mut Vec<Mismatch>) {
    const NAMES: &[&str] = &[
        "password",
        "secret",
        "clientsecret",
        "credentials",
        "accesstoken",
        "refreshtoken",
        "privatekey",
        "apikey",
    ];
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let place = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                let plain = name.to_ascii_lowercase().replace(['_', '-'], "");
                if member.as_str().is_some_and(|text| !text.is_empty()) && NAMES.contains(&plain.as_str()) {
                    // The value itself is not repeated: reports are public, too.
                    found.push(Mismatch {
                        path: place,
                        expected: "no secrets in a public card".to_owned(),
                        actual: "a value".to_owned(),
                    });
                } else {
                    find_secrets(member, &place, found);
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                find_secrets(item, &format!("{path}[{index}]"), found);
            }
        }
        _ => {}
    }
}

async fn signatures(bench: &Bench) -> Done {
    let (_, card) = bench.card().await?;
    let signatures = list(&card, "signatures");
    if signatures.is_empty() {
        return Err(skip("the card is not signed"));
    }
    let found = signatures.iter().enumerate();
    judge(
        found
            .flat_map(|(index, signature)| signature_faults(signature, &format!("signatures[{index}]")))
            .collect(),
    )
}

fn signature_faults(signature: &Value, place: &str) -> Vec<Mismatch> {
    let mut found = faults(&shapes::SIGNATURE, signature, place);
    if !found.is_empty() {
        return found;
    }
    let decoded = |member: &str| {
        let text = signature[member].as_str().unwrap_or_default();
        URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()
    };
    if decoded("signature").is_none_or(|bytes| bytes.is_empty()) {
        found.push(fault(&format!("{place}.signature"), "base64url", Some(&signature["signature"])));
    }
    let place = format!("{place}.protected");
    let header = decoded("protected").and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    let Some(header) = header.filter(Value::is_object) else {
        found.push(fault(&place, "base64url of a JSON object", Some(&signature["protected"])));
        return found;
    };
    for name in ["alg", "kid", "typ"] {
        if filled(&header, name).is_none() {
            found.push(fault(&format!("{place}.{name}"), "to be there", header.get(name)));
        }
    }
    if header["alg"].as_str().is_some_and(|alg| alg.eq_ignore_ascii_case("none")) {
        found.push(fault(&format!("{place}.alg"), "a signature algorithm", Some(&header["alg"])));
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
    fn schemes_need_what_clients_need_to_use_them() {
        let good = json!({
            "securitySchemes": {
                "k": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}},
                "o": {"oauth2SecurityScheme": {"flows": {"clientCredentials": {"tokenUrl": "https://t"}}}},
                // A card for two generations in one.
                "h": {"type": "http", "scheme": "bearer", "httpAuthSecurityScheme": {"scheme": "bearer"}}},
            "securityRequirements": [{"schemes": {"k": {}}}]});
        assert_eq!(places(security_faults(&good)), [""; 0]);
        let bad = json!({
            "securitySchemes": {
                "k": {"apiKeySecurityScheme": {"location": "head"}},
                "o": {"oauth2SecurityScheme": {"flows": {"clientCredentials": {}}}},
                "t": {"type": "http"}},
            "securityRequirements": [{"schemes": {"none": {"list": []}}}]});
        assert_eq!(
            places(security_faults(&bad)),
            [
                "securitySchemes.k.apiKeySecurityScheme.location",
                "securitySchemes.k.apiKeySecurityScheme.name",
                "securitySchemes.o.oauth2SecurityScheme.flows.clientCredentials.tokenUrl",
                "securitySchemes.t",
                "securityRequirements[0]",
            ]
        );
    }

    #[test]
    fn signatures_need_a_readable_header() {
        let signed = |header: &str| json!({"protected": URL_SAFE_NO_PAD.encode(header), "signature": "YWJj"});
        let good = signed(r#"{"alg":"ES256","kid":"1","typ":"JOSE"}"#);
        assert_eq!(places(signature_faults(&good, "s")), [""; 0]);
        let none = signed(r#"{"alg":"none","kid":"","typ":"JOSE"}"#);
        assert_eq!(places(signature_faults(&none, "s")), ["s.protected.kid", "s.protected.alg"]);
        assert_eq!(places(signature_faults(&signed("no json"), "s")), ["s.protected"]);
        assert_eq!(places(signature_faults(&json!({"protected": "e30"}), "s")), ["s.signature"]);
    }

    #[test]
    fn secrets_are_found_by_name() {
        let mut found = Vec::new();
        let card =
            json!({"a": {"client_secret": "s"}, "b": [{"password": ""}, {"apiKey": "k"}], "name": "secret"});
        find_secrets(&card, "", &mut found);
        assert_eq!(places(found), ["a.client_secret", "b[1].apiKey"]);
    }

    #[test]
    fn words_are_told_apart() {
        for url in [
            "http://127.0.0.1:1/",
            "http://localhost",
            "http://[::1]:3/a",
            "http://10.1.2.3",
            "http://agent:80",
        ] {
            assert!(is_local(url), "{url}");
        }
        for url in ["http://a.example", "http://8.8.8.8/", "http://[2001:db8::1]/"] {
            assert!(!is_local(url) && !is_loopback(url), "{url}");
        }
        assert!(is_loopback("http://127.9.9.9:1/x") && !is_loopback("http://10.1.2.3"));
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
