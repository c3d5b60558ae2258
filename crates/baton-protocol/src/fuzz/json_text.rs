//! Compares the parser of free-form JSON with `serde_json`.

use serde::de::IgnoredAny;
use serde_json::Value;

use crate::domain::json::JsonRefused;
use crate::domain::{JsonObject, JsonText};

pub(super) fn check(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let peer = serde_json::from_str::<Value>(text);
    match JsonText::parse(text) {
        Ok(json) => kept(&json, text, peer.ok()),
        Err(JsonRefused::Syntax { at }) => {
            assert!(at <= text.len());
            assert!(peer.is_err(), "refused at {at}, but serde_json takes it");
        }
        Err(JsonRefused::DuplicateKey { key, at }) => {
            assert!(key.chars().count() <= JsonRefused::KEY_CHARS && text.as_bytes()[at] == b'"');
        }
        Err(JsonRefused::TooDeep { .. }) => {
            assert!(text.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count() > JsonText::MAX_DEPTH);
        }
        Err(JsonRefused::NotAnObject) => panic!("any value was asked for"),
    }
    // Any text can be the value of a JSON string.
    let quoted = JsonText::from_string_value(text);
    assert_eq!(serde_json::from_str::<String>(quoted.as_str()).expect("a string"), text);
    assert_eq!(JsonText::parse(quoted.as_str()).as_ref(), Ok(&quoted));
}

fn kept(json: &JsonText, text: &str, peer: Option<Value>) {
    let minified = json.as_str();
    assert!(minified.len() <= text.len() && !minified.contains(['\n', '\r']));
    assert_eq!(JsonText::parse(minified).as_ref(), Ok(json), "minified once is minified for good");
    serde_json::from_str::<IgnoredAny>(minified).expect("what is kept is JSON");
    // serde_json cannot hold numbers beyond f64.
    assert_eq!(serde_json::from_str::<Value>(minified).ok(), peer, "space was dropped, and something else");
    let Ok(object) = JsonObject::try_from(json.clone()) else { return };
    let mut rebuilt = 2;
    for (key, value) in object.members() {
        assert_eq!(object.get(&key), Some(value), "{key:?}");
        assert_eq!(JsonText::parse(value).expect("a member's value").as_str(), value);
        rebuilt += value.len();
    }
    assert!(rebuilt <= minified.len() && object.is_empty() == (object.members().count() == 0));
}

/// Text that a codec wrote. It may be nested deeper than a free-form value, since such values are wrapped in objects.
pub(super) fn assert_well_formed(text: &str) {
    if let Err(refused) = JsonText::parse(text)
        && !matches!(refused, JsonRefused::TooDeep { .. })
    {
        panic!("{refused}: {text}");
    }
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        panic!("{error}: {text}");
    }
}
