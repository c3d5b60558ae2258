//! Discovery.

use serde_json::{Value, json};

use super::{Correction, Kind, is_prose, relevel};
use crate::acts::document::{Level, Step, Test};

pub(super) const LIST: &[Correction] = &[
    Correction::of(
        Kind::Fix,
        &["CARD-DISC-002"],
        "the binding must be JSONRPC, GRPC or REST",
        "`HTTP+JSON` is its name, and others may be added: any text that is not empty",
        |test| {
            let place = expected(test, "/supportedInterfaces/items/protocolBinding");
            put(place, |place| place.get("one_of").is_some(), json!({"type": "string", "matches": ".+"}))
        },
    ),
    Correction::of(
        Kind::Fix,
        &["CARD-DISC-004", "CARD-DISC-005"],
        "level should",
        "must: skills and the default modes are required members",
        |test| relevel(test, &[Level::Should], Level::Must),
    )
    .named("CARD-REQUIRED"),
    Correction::of(
        Kind::Fix,
        &["CARD-DISC-006"],
        "the first interface must be of 1.x, which no rule says",
        "at least one interface is",
        one_interface_is_new,
    ),
    Correction::of(
        Kind::Fix,
        &["CARD-DISC-007"],
        "a top-level `url`, which is a member of 0.3, is enough",
        "`supportedInterfaces` has at least one entry",
        |test| {
            let right = json!({"supportedInterfaces": {"type": "array", "count_gte": 1}});
            put(expected(test, ""), |body| body.get("any_of").is_some(), right)
        },
    ),
    Correction::of(
        Kind::Fix,
        &["CARD-CACHE-001"],
        "the headers are named only in prose",
        "Cache-Control with max-age, and an ETag",
        |test| {
            let members = card_step(test).and_then(|step| step.expect.as_mut()?.as_object_mut());
            let Some(members) = members.filter(|members| !members.contains_key("headers")) else {
                return false;
            };
            let headers = json!({"cache-control": {"contains": "max-age"}, "etag": {"exists": true}});
            members.insert("headers".to_owned(), headers);
            true
        },
    ),
    Correction::native(
        &["CARD-SCHEMA-001"],
        "speaks of a JSON Schema, but the protocol buffers are the rule",
        "names, types and required members are checked by a table made from them",
        "v1.card.shape",
        is_prose,
    ),
    Correction::native(
        &["CARD-EXT-001"],
        "needs credentials, but does not say so",
        "skipped without credentials where the card asks for them",
        "acts.extended-card",
        |test| {
            let params = test.steps.first().and_then(|step| step.params.as_ref());
            params.is_some_and(|params| params["extended"] == true)
        },
    ),
];

fn card_step(test: &mut Test) -> Option<&mut Step> {
    test.steps.iter_mut().find(|step| step.operation.as_deref() == Some("get_agent_card"))
}

/// A value in the expected body.
fn expected<'a>(test: &'a mut Test, pointer: &str) -> Option<&'a mut Value> {
    card_step(test)?.expect.as_mut()?.pointer_mut("/body")?.pointer_mut(pointer)
}

fn put(place: Option<&mut Value>, is_wrong: impl Fn(&Value) -> bool, right: Value) -> bool {
    match place {
        Some(place) if is_wrong(place) => {
            *place = right;
            true
        }
        _ => false,
    }
}

fn one_interface_is_new(test: &mut Test) -> bool {
    let items = expected(test, "/supportedInterfaces").and_then(Value::as_object_mut);
    let Some(items) = items.filter(|items| items.get("items").is_some_and(Value::is_array)) else {
        return false;
    };
    items.remove("items");
    let Some(step) = card_step(test) else { return false };
    let id = step.id.clone().unwrap_or_else(|| "step-1".to_owned());
    let any = json!({"source": format!("{{{{{id}.response}}}}"), "any": {
        "path": "supportedInterfaces[*].protocolVersion", "match": {"starts_with": "1."}}});
    step.assertions.extend(serde_json::from_value(any));
    true
}
