//! Clients that read golden payloads.

use serde_json::{Map, Value};

use super::{Correction, Kind};
use crate::acts::document::Test;

pub(super) const LIST: &[Correction] = &[
    Correction::note(
        "CLIENT-PARSE-003",
        &["CLIENT-PARSE-003"],
        "messages of the history have no `messageId`",
        "a client must be able to do without",
    ),
    Correction::note(
        "CLIENT-PARSE-004",
        &["CLIENT-PARSE-004"],
        "`error.data` is an object, 1.0.1 has a list",
        "a client must take both",
    ),
    Correction::of(
        Kind::Fix,
        &["CLIENT-PARSE-006"],
        "parts `file` and `fileUrl`, which 1.0 does not have",
        "`raw` and `url`, with `filename` and `mediaType`",
        parts_of_this_generation,
    ),
    Correction::note(
        "CLIENT-CARDS",
        &["CLIENT-AUTH-001", "CLIENT-CAP-001"],
        "cards with the binding `REST`, odd addresses and required members missing",
        "a client must read them all the same; what it does with them is not looked at",
    ),
];

fn parts_of_this_generation(test: &mut Test) -> bool {
    let payloads = test.steps.iter_mut().filter_map(|step| step.client_response.as_mut());
    let artifacts = payloads.filter_map(|client| {
        client.wire_payload.pointer_mut("/result/artifacts").and_then(Value::as_array_mut)
    });
    let parts = artifacts.flatten().filter_map(|artifact| artifact.get_mut("parts")?.as_array_mut());
    let mut found = false;
    for part in parts.flatten() {
        let Some(members) = part.as_object_mut() else { continue };
        let inner = members.remove("file").or_else(|| members.remove("fileUrl"));
        let Some(Value::Object(inner)) = inner else { continue };
        let renamed: Map<String, Value> = inner
            .into_iter()
            .map(|(name, value)| match name.as_str() {
                "name" => ("filename".to_owned(), value),
                "bytes" => ("raw".to_owned(), value),
                _ => (name, value),
            })
            .collect();
        members.extend(renamed);
        found = true;
    }
    found
}
