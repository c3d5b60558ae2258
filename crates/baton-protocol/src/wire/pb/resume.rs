//! The extension that numbers the events of streams over gRPC, whose messages have no ids: each has its number in its metadata.
//! See `docs/grpc.md`.

use crate::domain::{JsonObject, JsonText};
use crate::wire::StreamItem;

/// The extension's URI, and the key of the number.
pub const RESUME: &str = "urn:baton:resume:v1";

/// Puts the number into an event, in place of one that is there.
pub fn set_number(item: &mut StreamItem, number: u64) {
    let metadata = metadata(item);
    *metadata = Some(with_number(metadata.as_ref(), number));
}

/// Takes the number out of an event.
pub fn take_number(item: &mut StreamItem) -> Option<u64> {
    let metadata = metadata(item);
    let found = metadata.as_ref()?.get(RESUME)?;
    // Numbers of protobuf's JSON are doubles, which some write with a fraction.
    let number = found.parse().ok().or_else(|| whole(found.parse().ok()?));
    let rest = without_number(metadata.as_ref()?);
    *metadata = Some(rest).filter(|rest| rest.members().next().is_some());
    number
}

/// Metadata with the number, in place of one that is there.
pub fn with_number(metadata: Option<&JsonObject>, number: u64) -> JsonObject {
    object(Some(format!("\"{RESUME}\":{number}")), metadata)
}

fn without_number(metadata: &JsonObject) -> JsonObject {
    object(None, Some(metadata))
}

/// An object of this member and all others but the number.
fn object(first: Option<String>, metadata: Option<&JsonObject>) -> JsonObject {
    let others = metadata.into_iter().flat_map(|metadata| metadata.members());
    let others = others
        .filter(|(key, _)| key != RESUME)
        .map(|(key, value)| format!("{}:{value}", JsonText::from_string_value(&key).as_str()));
    let members: Vec<String> = first.into_iter().chain(others).collect();
    JsonObject::parse(&format!("{{{}}}", members.join(","))).expect("members of an object make an object")
}

/// The number of a double, if it is one that counts.
fn whole(number: f64) -> Option<u64> {
    (number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number)).then_some(number as u64)
}

fn metadata(item: &mut StreamItem) -> &mut Option<JsonObject> {
    match item {
        StreamItem::Status { update, .. } => &mut update.metadata,
        StreamItem::Artifact { update, .. } => &mut update.metadata,
        StreamItem::Task(task) => &mut task.metadata,
        StreamItem::Message(message) => &mut message.metadata,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{ContextId, Message, MessageId, Part, Role};

    fn object(text: &str) -> JsonObject {
        JsonObject::parse(text).unwrap()
    }

    fn event(metadata: Option<&str>) -> StreamItem {
        let mut message = Message::new(MessageId::parse("m").unwrap(), Role::Agent, vec![Part::text("hi")]);
        message.context_id = Some(ContextId::parse("c").unwrap());
        message.metadata = metadata.map(object);
        StreamItem::Message(message)
    }

    #[test]
    fn p04_a_number_is_put_beside_the_metadata_that_is_there() {
        for (before, after) in [
            (None, r#"{"urn:baton:resume:v1":7}"#),
            (Some("{}"), r#"{"urn:baton:resume:v1":7}"#),
            (Some(r#"{"a\"b":1.0,"c":[null]}"#), r#"{"urn:baton:resume:v1":7,"a\"b":1.0,"c":[null]}"#),
            (Some(r#"{"urn:baton:resume:v1":"mine"}"#), r#"{"urn:baton:resume:v1":7}"#),
        ] {
            assert_eq!(with_number(before.map(object).as_ref(), 7).as_str(), after);
        }
    }

    #[test]
    fn p04_a_number_is_taken_out_and_the_rest_stays() {
        for (before, number, after) in [
            (None, None, None),
            (Some(r#"{"a":1}"#), None, Some(r#"{"a":1}"#)),
            (Some(r#"{"urn:baton:resume:v1":7}"#), Some(7), None),
            (Some(r#"{"a":1,"urn:baton:resume:v1":7.0,"b":{}}"#), Some(7), Some(r#"{"a":1,"b":{}}"#)),
            (Some(r#"{"urn:baton:resume:v1":7.5}"#), None, None),
            (Some(r#"{"urn:baton:resume:v1":-1}"#), None, None),
            (Some(r#"{"urn:baton:resume:v1":1e300}"#), None, None),
            (Some(r#"{"urn:baton:resume:v1":"7"}"#), None, None),
        ] {
            let mut item = event(before);
            assert_eq!(take_number(&mut item), number, "{before:?}");
            assert_eq!(item, event(after), "{before:?}");
        }
        let mut item = event(Some(r#"{"a":1}"#));
        set_number(&mut item, 9);
        assert_eq!(take_number(&mut item), Some(9));
        assert_eq!(item, event(Some(r#"{"a":1}"#)));
    }
}
