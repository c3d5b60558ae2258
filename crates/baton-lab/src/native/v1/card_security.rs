//! Security in the card: usable schemes, encrypted addresses, no secrets, readable signatures.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::card::list;
use super::shape::{fault, faults, judge};
use super::shapes;
use super::talk::{filled, skip};
use super::{card_addresses, card_secrets};
use crate::acts::assertion::Mismatch;
use crate::native::{Checks, Done, checks};
use crate::run::Bench;

pub(in crate::native) const CHECKS: Checks = checks! {
    "v1.card.security" => security,
    "v1.card.encrypted" => encrypted,
    "v1.card.secrets" => secrets,
    "v1.card.signatures" => signatures,
};

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

async fn encrypted(bench: &Bench) -> Done {
    let (_, card) = bench.card().await?;
    judge(open_addresses(&card))
}

/// Plain HTTP is allowed for local addresses only.
fn open_addresses(card: &Value) -> Vec<Mismatch> {
    let entries = list(card, "supportedInterfaces").iter().enumerate();
    let open = entries.filter(|(_, entry)| {
        let url = entry["url"].as_str().unwrap_or_default();
        url.starts_with("http://") && !is_local(url)
    });
    open.map(|(index, entry)| {
        fault(&format!("supportedInterfaces[{index}].url"), "an https:// address", Some(&entry["url"]))
    })
    .collect()
}

/// True if the address is on this machine or in a private network, where certificates are not expected.
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

/// A card is public, so it must not contain secrets.
async fn secrets(bench: &Bench) -> Done {
    let (_, card) = bench.card().await?;
    judge(card_secrets::find(&card))
}

async fn signatures(bench: &Bench) -> Done {
    let (_, card) = bench.card().await?;
    let signatures = list(&card, "signatures");
    if signatures.is_empty() {
        return Err(skip("the card is not signed"));
    }
    judge(unreadable_signatures(&card))
}

fn unreadable_signatures(card: &Value) -> Vec<Mismatch> {
    let all = list(card, "signatures").iter().enumerate();
    all.flat_map(|(index, signature)| signature_faults(signature, &format!("signatures[{index}]"))).collect()
}

/// What is unsafe about a card, or keeps its signatures from being verified.
pub(in crate::native) fn problems(card: &Value) -> Vec<Mismatch> {
    let mut found = card_addresses::problems(card);
    found.extend(card_secrets::find(card));
    found.extend(unreadable_signatures(card));
    found
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

#[cfg(test)]
mod tests {
    use super::*;

    fn places(found: Vec<Mismatch>) -> Vec<String> {
        found.into_iter().map(|fault| fault.path).collect()
    }

    #[test]
    fn schemes_need_what_clients_need_to_use_them() {
        let good = json!({
            "securitySchemes": {
                "k": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}},
                "o": {"oauth2SecurityScheme": {"flows": {"clientCredentials": {"tokenUrl": "https://t"}}}},
                // A card for two generations has members of both.
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
                "securitySchemes.k.apiKeySecurityScheme.name",
                "securitySchemes.k.apiKeySecurityScheme.location",
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
    fn addresses_are_told_apart() {
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
    }
}
