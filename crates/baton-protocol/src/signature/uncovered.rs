//! What a document says beside the 1.0 form of its card: members that a signature over that form leaves open.

use serde_json::Value;

/// The places of all members of the document that are not in the form, such as `url` and `securitySchemes.k.type`. One that is
/// empty says nothing, and signatures are not signed.
pub(super) fn beside(document: &str, form: &[u8]) -> Vec<String> {
    let read = |bytes: &[u8]| serde_json::from_slice(bytes).unwrap_or(Value::Null);
    let (mut document, form): (Value, Value) = (read(document.as_bytes()), read(form));
    if let Value::Object(members) = &mut document {
        members.remove(super::card::SIGNATURES);
    }
    let mut found = Vec::new();
    compare(&document, Some(&form), String::new(), &mut found);
    found
}

fn compare(said: &Value, covered: Option<&Value>, place: String, found: &mut Vec<String>) {
    if is_empty(said) {
        return;
    }
    match (said, covered) {
        (Value::Object(said), Some(Value::Object(covered))) => {
            for (name, value) in said {
                let member = covered.get(name).or_else(|| covered.get(&in_camel_case(name)));
                let place = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
                compare(value, member, place, found);
            }
        }
        (Value::Array(said), Some(Value::Array(covered))) => {
            for (at, value) in said.iter().enumerate() {
                compare(value, covered.get(at), format!("{place}[{at}]"), found);
            }
        }
        // Of two kinds, one of which the other cannot be read as.
        (Value::Object(_) | Value::Array(_), Some(_)) | (_, None) => found.push(place),
        (_, Some(_)) => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// ProtoJSON is read in both spellings, and written in this one.
fn in_camel_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for (at, word) in name.split('_').enumerate() {
        match word.chars().next() {
            Some(first) if at > 0 => {
                out.push(first.to_ascii_uppercase());
                out.push_str(&word[first.len_utf8()..]);
            }
            _ => out.push_str(word),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p09_what_is_said_beside_the_form_is_named_by_its_place() {
        let form = br#"{"capabilities":{"streaming":true},"name":"n","securitySchemes":{"k":{"mtlsSecurityScheme":{}}},"skills":[{"id":"s"}],"supportedInterfaces":[{"protocolBinding":"GRPC"}]}"#;
        let place = |document: &str| beside(document, form);
        for same in [
            r#"{"name":"n","signatures":[{"protected":"p"}],"iconUrl":"","provider":null,"security":[],"x":{}}"#,
            r#"{"supported_interfaces":[{"protocol_binding":"GRPC"}],"skills":[{"id":"s","tags":[]}]}"#,
        ] {
            assert_eq!(place(same), [""; 0], "{same}");
        }
        for (document, places) in [
            (r#"{"name":"n","url":"http://h","security":[{}]}"#, &["security", "url"][..]),
            (
                r#"{"capabilities":{"streaming":true,"stateTransitionHistory":false},"securitySchemes":{"k":{"mtlsSecurityScheme":{},"type":"mutualTLS"}}}"#,
                &["capabilities.stateTransitionHistory", "securitySchemes.k.type"],
            ),
            (
                r#"{"skills":[{"id":"s","x":1},{"id":"t"}],"name":["n"]}"#,
                &["name", "skills[0].x", "skills[1]"],
            ),
        ] {
            let mut found = place(document);
            found.sort();
            assert_eq!(found, places, "{document}");
        }
    }
}
