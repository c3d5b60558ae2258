//! What a card's author should know before publishing it, beyond the schema: addresses that nobody can call or that are not
//! encrypted, versions that are none, and characters that show a text as another.

use serde_json::{Value, json};

use super::card::list;
use super::card_security::is_local;
use super::shape::fault;
use crate::acts::assertion::Mismatch;

pub(super) fn problems(card: &Value) -> Vec<Mismatch> {
    let mut found = Vec::new();
    for (index, entry) in list(card, "supportedInterfaces").iter().enumerate() {
        let place = format!("supportedInterfaces[{index}]");
        found.extend(address_fault(&entry["url"], &entry["protocolBinding"], &format!("{place}.url")));
        let version = &entry["protocolVersion"];
        if version.as_str().is_some_and(|version| !is_version(version)) {
            found.push(fault(
                &format!("{place}.protocolVersion"),
                "numbers with dots, as in 1.0",
                Some(version),
            ));
        }
    }
    // For readers of 0.3.
    found.extend(address_fault(&card["url"], &card["preferredTransport"], "url"));
    for (index, entry) in list(card, "additionalInterfaces").iter().enumerate() {
        let place = format!("additionalInterfaces[{index}].url");
        found.extend(address_fault(&entry["url"], &entry["transport"], &place));
    }
    for (name, scheme) in card["securitySchemes"].as_object().into_iter().flatten() {
        scheme_faults(scheme, &format!("securitySchemes.{name}"), &mut found);
    }
    odd_characters(card, "", &mut found);
    found
}

/// Where clients send calls.
fn address_fault(url: &Value, binding: &Value, place: &str) -> Option<Mismatch> {
    let text = url.as_str().filter(|text| !text.is_empty())?;
    let is_grpc = binding.as_str().is_some_and(|name| name.eq_ignore_ascii_case("GRPC"));
    let whole = text.split_once("://").filter(|(scheme, _)| matches!(*scheme, "http" | "https"));
    let expected = match whole {
        Some((_, rest)) if !is_authority(rest.split(['/', '?', '#']).next().unwrap_or_default(), false) => {
            "an address with a host, and a port of 1 to 65535 if there is one"
        }
        // Plain HTTP is allowed for local addresses only.
        Some(("http", _)) if !is_local(text) => "an https:// address",
        None if is_grpc && !is_authority(text, true) => "host:port, or an https:// address",
        _ => return None,
    };
    Some(fault(place, expected, Some(&json!(shown(text)))))
}

/// Whoever reads the token on its way, or answers in place of the server, has what it lets do.
fn scheme_faults(scheme: &Value, place: &str, found: &mut Vec<Mismatch>) {
    for (name, member) in scheme.as_object().into_iter().flatten() {
        let place = format!("{place}.{name}");
        match member {
            Value::String(url) if url.starts_with("http://") && !is_local(url) => {
                found.push(fault(&place, "an https:// address", Some(&json!(shown(url)))));
            }
            Value::Object(_) => scheme_faults(member, &place, found),
            _ => {}
        }
    }
}

/// Without what may be a secret: name and password, and the query.
fn shown(url: &str) -> String {
    let url = url.split('?').next().unwrap_or_default();
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
    let at = rest.find(['/', '#']).unwrap_or(rest.len());
    let host = rest[..at].rsplit('@').next().unwrap_or_default();
    let separator = if scheme.is_empty() { "" } else { "://" };
    format!("{scheme}{separator}{host}{}", &rest[at..])
}

fn is_authority(text: &str, needs_port: bool) -> bool {
    let text = text.rsplit('@').next().unwrap_or_default();
    let is_name = |host: &str| {
        !host.is_empty() && host.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '.' | '_'))
    };
    let (is_host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').unwrap_or_default();
            (host.parse::<std::net::Ipv6Addr>().is_ok(), port)
        }
        None => {
            let (host, port) = text.split_at(text.find(':').unwrap_or(text.len()));
            (is_name(host), port)
        }
    };
    let is_port = match port.strip_prefix(':') {
        Some(port) => {
            port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0)
        }
        None => port.is_empty() && !needs_port,
    };
    is_host && is_port
}

fn is_version(text: &str) -> bool {
    let parts = text.split('.').collect::<Vec<_>>();
    (2..=3).contains(&parts.len()) && parts.iter().all(|part| part.parse::<u32>().is_ok())
}

/// Control characters move a terminal's cursor or colour it, and others turn the direction of the text around.
fn odd_characters(value: &Value, path: &str, found: &mut Vec<Mismatch>) {
    let is_odd = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    match value {
        Value::String(text) => {
            if let Some(odd) = text.chars().find(|c| is_odd(*c)) {
                let actual = format!("U+{:04X}", u32::from(odd));
                found.push(Mismatch {
                    path: path.to_owned(),
                    expected: "no control characters".to_owned(),
                    actual,
                });
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                odd_characters(item, &format!("{path}[{index}]"), found);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                let place = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                odd_characters(member, &place, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_interface(url: &str, binding: &str, version: &str) -> Vec<String> {
        let entry = json!({"url": url, "protocolBinding": binding, "protocolVersion": version});
        problems(&json!({"supportedInterfaces": [entry]})).into_iter().map(|fault| fault.path).collect()
    }

    #[test]
    fn p09_addresses_that_nobody_can_call_are_named() {
        for (url, binding) in [
            ("https://agent.example", "JSONRPC"),
            ("https://agent.example:8443/a?b=c", "HTTP+JSON"),
            ("http://127.0.0.1:3000/", "JSONRPC"),
            ("http://[::1]:3000/", "JSONRPC"),
            ("agent.example:443", "GRPC"),
            ("[2001:db8::1]:50051", "GRPC"),
            ("https://agent.example", "GRPC"),
            ("dns:///agent.example:443", "urn:x:other"),
        ] {
            assert_eq!(of_interface(url, binding, "1.0"), [""; 0], "{url}");
        }
        for (url, binding) in [
            ("not a host!!", "GRPC"),
            ("agent.example", "GRPC"),
            ("agent.example:99999", "GRPC"),
            ("agent.example:0", "GRPC"),
            ("agent.example:+1", "GRPC"),
            ("[::1", "GRPC"),
            ("[::1]", "GRPC"),
            ("[::1]x:1", "GRPC"),
            ("[a.example]:1", "GRPC"),
            ("http://agent.example", "GRPC"),
            ("http://agent.example/", "JSONRPC"),
            ("https://agent.example:99999/", "JSONRPC"),
            ("https:///a", "HTTP+JSON"),
            ("https://a b/", "HTTP+JSON"),
        ] {
            assert_eq!(of_interface(url, binding, "1.0"), ["supportedInterfaces[0].url"], "{url}");
        }
        for version in ["0.3", "0.3.0", "1.0"] {
            assert_eq!(of_interface("https://a.example", "JSONRPC", version), [""; 0]);
        }
        for version in ["banana", "1", "v1.0", "1.0.0.0", "1."] {
            let found = of_interface("https://a.example", "JSONRPC", version);
            assert_eq!(found, ["supportedInterfaces[0].protocolVersion"], "{version}");
        }
    }

    #[test]
    fn p09_open_addresses_are_found_wherever_clients_go() {
        let card = json!({
            "url": "http://agent.example/",
            "additionalInterfaces": [{"url": "nowhere", "transport": "GRPC"}],
            "securitySchemes": {
                "o": {"oauth2SecurityScheme": {"flows": {"clientCredentials": {"tokenUrl": "http://user:s3cret@t.example/?k=v"}}}},
                "c": {"openIdConnectSecurityScheme": {"openIdConnectUrl": "https://t.example"}},
                "l": {"openIdConnectSecurityScheme": {"openIdConnectUrl": "http://localhost:1/"}}},
            "documentationUrl": "http://docs.example"});
        let found = problems(&card);
        let places: Vec<_> = found.iter().map(|fault| fault.path.as_str()).collect();
        let token = "securitySchemes.o.oauth2SecurityScheme.flows.clientCredentials.tokenUrl";
        assert_eq!(places, ["url", "additionalInterfaces[0].url", token]);
        assert!(found[2].actual.contains("http://t.example/") && !format!("{found:?}").contains("s3cret"));
    }

    #[test]
    fn p09_characters_that_hide_a_text_are_named() {
        let card = json!({"name": "\u{1b}[31mred", "description": "two\nlines", "skills": [{"name": "\u{202e}live"}]});
        let found: Vec<_> = problems(&card).into_iter().map(|fault| (fault.path, fault.actual)).collect();
        let odd = |place: &str, code: &str| (place.to_owned(), code.to_owned());
        assert_eq!(found, [odd("name", "U+001B"), odd("skills[0].name", "U+202E")]);
    }
}
