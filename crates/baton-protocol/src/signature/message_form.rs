//! The canonical form of a message, from which its hash is made. Two sends with one message id are the same message if
//! their forms are equal: member order, white space and the spelling of numbers in free JSON make no difference.
//!
//! A form must not change as long as stores have hashes made from it. Golden hashes check this; the codec of 1.0 may
//! change independently.

use super::jcs::{self, Numbers};
use crate::domain::{JsonObject, Message, Part, PartContent, Role};
use crate::wire::write::{Object, string};

/// How free JSON is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As it was sent: the 1.0 encoding of the message, which was used before there were versions.
    V1,
    /// By RFC 8785, but numbers from 2^53 on as they were sent. Equal to V1 if there is no free JSON.
    V2,
}

/// Appends the form of a message.
pub fn write_form(out: &mut Vec<u8>, message: &Message, form: Form) {
    let mut object = Object::begin(out);
    object.string("messageId", message.id.as_str());
    object.optional("contextId", message.context_id.as_ref().map(|id| id.as_str()));
    object.optional("taskId", message.task_id.as_ref().map(|id| id.as_str()));
    let role = match message.role {
        Role::User => "ROLE_USER",
        Role::Agent => "ROLE_AGENT",
    };
    object.string("role", role);
    object.list("parts", &message.parts, |out, part| write_part(out, part, form));
    write_metadata(&mut object, message.metadata.as_ref(), form);
    object.strings_unless_empty("extensions", &message.extensions);
    object.list_unless_empty("referenceTaskIds", &message.reference_task_ids, |out, id| {
        string(out, id.as_str());
    });
    object.end();
}

/// True if the two forms could differ for this message.
pub fn holds_free_json(message: &Message) -> bool {
    message.metadata.is_some()
        || message
            .parts
            .iter()
            .any(|part| part.metadata.is_some() || matches!(part.content, PartContent::Data(_)))
}

fn write_part(out: &mut Vec<u8>, part: &Part, form: Form) {
    let mut object = Object::begin(out);
    match &part.content {
        PartContent::Text(text) => object.string("text", text),
        PartContent::Raw(bytes) => object.base64("raw", bytes),
        PartContent::Url(url) => object.string("url", url),
        PartContent::Data(data) => write_free(object.member("data"), data.as_str(), form),
    }
    write_metadata(&mut object, part.metadata.as_ref(), form);
    object.optional("filename", part.filename.as_deref());
    object.optional("mediaType", part.media_type.as_deref());
    object.end();
}

fn write_metadata(object: &mut Object<'_>, metadata: Option<&JsonObject>, form: Form) {
    if let Some(metadata) = metadata {
        write_free(object.member("metadata"), metadata.as_str(), form);
    }
}

fn write_free(out: &mut Vec<u8>, text: &str, form: Form) {
    match form {
        Form::V1 => out.extend_from_slice(text.as_bytes()),
        Form::V2 => jcs::write_text(out, text, Numbers::LargeAsWritten),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::v1;

    fn message(json: &str) -> Message {
        v1::read_message(json).unwrap()
    }

    fn form(message: &Message, form: Form) -> String {
        let mut out = Vec::new();
        write_form(&mut out, message, form);
        String::from_utf8(out).unwrap()
    }

    /// Every member, in an order and spelling that is not canonical.
    const FULL: &str = r#"{"messageId":"m","contextId":"c","taskId":"t","role":"ROLE_USER","parts":[{"text":"a\n\"é"},{"raw":"AAEC","filename":"x","mediaType":"image/png"},{"url":"https://a.example/b"},{"data":{"b":1.0,"a":[1e2,9007199254740993]},"metadata":{"z":1,"y":"\u0041"}}],"metadata":{"n":-0,"m":{}},"extensions":["urn:e"],"referenceTaskIds":["r"]}"#;

    /// Golden: if this changes, stored records can no longer be found.
    #[test]
    fn forms_stay_as_they_are() {
        let full = message(FULL);
        let golden = r#"{"messageId":"m","contextId":"c","taskId":"t","role":"ROLE_USER","parts":[{"text":"a\n\"é"},{"raw":"AAEC","filename":"x","mediaType":"image/png"},{"url":"https://a.example/b"},{"data":{"b":1.0,"a":[1e2,9007199254740993]},"metadata":{"z":1,"y":"\u0041"}}],"metadata":{"n":-0,"m":{}},"extensions":["urn:e"],"referenceTaskIds":["r"]}"#;
        assert_eq!(form(&full, Form::V1), golden);
        let golden = r#"{"messageId":"m","contextId":"c","taskId":"t","role":"ROLE_USER","parts":[{"text":"a\n\"é"},{"raw":"AAEC","filename":"x","mediaType":"image/png"},{"url":"https://a.example/b"},{"data":{"a":[100,9007199254740993],"b":1},"metadata":{"y":"A","z":1}}],"metadata":{"m":{},"n":0},"extensions":["urn:e"],"referenceTaskIds":["r"]}"#;
        assert_eq!(form(&full, Form::V2), golden);
        assert!(holds_free_json(&full));
    }

    #[test]
    fn the_forms_differ_in_free_json_alone() {
        for json in [
            r#"{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}"#,
            r#"{"messageId":"m","role":"ROLE_USER","parts":[{"raw":"AAEC"}],"metadata":{"a":1,"b":[true]}}"#,
            r#"{"messageId":"m","role":"ROLE_AGENT","parts":[{"data":{"a":{},"b":"é"}}]}"#,
        ] {
            let message = message(json);
            assert_eq!(form(&message, Form::V1), form(&message, Form::V2));
            assert_eq!(holds_free_json(&message), json.contains("data"), "{json}");
        }
    }

    #[test]
    fn s17_member_order_space_and_number_spelling_make_no_other_message() {
        let same = [
            r#"{"messageId":"m","role":"ROLE_USER","parts":[{"data":{"a":1,"b":[1.50]}}],"metadata":{"x":"A","y":2}}"#,
            r#"{"role":"ROLE_USER","metadata":{ "y" : 2.0 , "x":"\u0041"},"parts":[{"data":{"b":[15e-1],"a":1.0}}],"messageId":"m"}"#,
        ];
        let forms = same.map(|json| form(&message(json), Form::V2));
        assert_eq!(forms[0], forms[1]);
        for other in [
            r#"{"messageId":"m","role":"ROLE_USER","parts":[{"data":{"a":1,"b":[1.51]}}],"metadata":{"x":"A","y":2}}"#,
            r#"{"messageId":"m","role":"ROLE_USER","parts":[{"data":{"a":"1","b":[1.5]}}],"metadata":{"x":"A","y":2}}"#,
            r#"{"messageId":"m","role":"ROLE_USER","parts":[{"data":{"a":1,"b":[1.5]}}],"metadata":{"x":"A","y":null}}"#,
        ] {
            assert_ne!(form(&message(other), Form::V2), forms[0]);
        }
        let large =
            |number: &str| format!(r#"{{"messageId":"m","role":"ROLE_USER","parts":[{{"data":{number}}}]}}"#);
        let [one, other] =
            ["9007199254740992", "9007199254740993"].map(|it| form(&message(&large(it)), Form::V2));
        assert_ne!(one, other, "beyond 2^53 doubles are too few");
    }
}
