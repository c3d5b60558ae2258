//! Secrets in a card: members with the names of secrets, and texts that are one, whatever the name.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

use crate::acts::assertion::Mismatch;

/// Members, and parameters of addresses, that hold secrets.
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

/// The places of all secrets in a card. The values themselves are not reported: reports may be public, too.
pub(super) fn find(card: &Value) -> Vec<Mismatch> {
    let mut found = Vec::new();
    search(card, "", &mut found);
    found
}

fn search(value: &Value, path: &str, found: &mut Vec<Mismatch>) {
    match value {
        Value::Object(members) => {
            if is_private_key(members) {
                return report(found, path.to_owned(), "a private key");
            }
            for (name, member) in members {
                let place = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match member.as_str() {
                    Some(text) if !text.is_empty() && is_named(name) => report(found, place, "a value"),
                    _ => search(member, &place, found),
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                search(item, &format!("{path}[{index}]"), found);
            }
        }
        Value::String(text) => {
            if let Some(what) = secret_in(text) {
                report(found, path.to_owned(), what);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn report(found: &mut Vec<Mismatch>, path: String, what: &str) {
    let expected = "no secrets in a public card".to_owned();
    found.push(Mismatch { path, expected, actual: what.to_owned() });
}

fn is_named(name: &str) -> bool {
    NAMES.contains(&name.to_ascii_lowercase().replace(['_', '-'], "").as_str())
}

/// A JSON Web Key with its private part.
fn is_private_key(members: &Map<String, Value>) -> bool {
    let has = |name: &str| members.get(name).is_some_and(Value::is_string);
    has("kty") && (has("d") || has("k"))
}

fn secret_in(text: &str) -> Option<&'static str> {
    if text.contains("PRIVATE KEY-----") {
        return Some("a private key");
    }
    let is_apart = |c: char| c.is_whitespace() || "\"'`()<>,;".contains(c);
    text.split(is_apart).find_map(|word| {
        let (_, rest) = word.split_once("://").unwrap_or_default();
        let (authority, _) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let query = rest.split_once('?').map_or("", |(_, query)| query).split('#').next().unwrap_or_default();
        let has_value = |pair: &str| {
            pair.split_once('=').is_some_and(|(name, value)| is_named(name) && !value.is_empty())
        };
        if authority.contains('@') {
            Some("an address with a name or password in it")
        } else if query.split('&').any(has_value) {
            Some("an address with a secret in its query")
        } else {
            word.split(['=', ':', '/', '?', '&']).any(is_token).then_some("a token (JWT)")
        }
    })
}

/// Three parts, of which the first is a header.
fn is_token(word: &str) -> bool {
    let parts: Vec<_> = word.trim_end_matches(['.', '!', '?']).split('.').collect();
    let [header, payload, signature] = parts[..] else { return false };
    let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
    let header = decoded(header).and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    header.is_some_and(|header| header["alg"].is_string())
        && decoded(payload).is_some_and(|bytes| !bytes.is_empty())
        && decoded(signature).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_found_by_name_and_by_what_they_are() {
        let places = |card: Value| find(&card).into_iter().map(|fault| fault.path).collect::<Vec<_>>();
        let named =
            json!({"a": {"client_secret": "s"}, "b": [{"password": ""}, {"apiKey": "k"}], "name": "secret"});
        assert_eq!(places(named), ["a.client_secret", "b[1].apiKey"]);
        let b64 = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let jwt = format!("{}.{}.{}", b64(r#"{"alg":"HS256"}"#), b64("{}"), b64("s"));
        for secret in [
            "https://user:pass@agent.example/".to_owned(),
            "see https://user@agent.example".to_owned(),
            "https://agent.example/a?x=1&access_token=abc#top".to_owned(),
            "-----BEGIN PRIVATE KEY-----\nMIGH".to_owned(),
            "-----BEGIN RSA PRIVATE KEY-----".to_owned(),
            format!("Call it with Bearer {jwt}."),
            format!("https://agent.example/?t={jwt}"),
        ] {
            let found = find(&json!({"skills": [{"description": secret}]}));
            assert_eq!(found.len(), 1, "{secret}");
            assert_eq!(found[0].path, "skills[0].description");
            assert!(!format!("{found:?}").contains("pass@"), "{found:?}");
        }
        let keys = json!({"params": {"keys": [{"kty": "EC", "x": "a", "d": "b"}, {"kty": "oct", "k": "c"}]}});
        assert_eq!(places(keys), ["params.keys[0]", "params.keys[1]"]);
        for plain in [
            "https://agent.example/@name?q=access_token",
            "mail me@agent.example, or see a.b.c and 1.2.3",
            "https://agent.example/?access_token=",
            "-----BEGIN PUBLIC KEY-----",
            "Passwords and an access_token are never asked for",
        ] {
            assert_eq!(find(&json!({"description": plain})), [], "{plain}");
        }
        assert_eq!(places(json!({"jwks": {"keys": [{"kty": "EC", "x": "a", "y": "b"}]}})), [""; 0]);
    }
}
