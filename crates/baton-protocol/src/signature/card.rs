//! What the signatures of a card cover (section 8.4 of the specification).
//!
//! The specification has one form, that of the 1.0 card. Two more are met: documents for older readers are signed as they are
//! served, since their members are not in the 1.0 card; and the SDKs of Python and JavaScript leave out everything that is
//! empty. A signer signs every form in which the document differs; for a verifier one good signature is enough.

use std::borrow::Cow;

use super::jcs::{Numbers, write_canonical, write_without_empty};
use super::uncovered;
use crate::domain::{AgentCard, CardSignature, JsonObject, JsonText};
use crate::error::Error;
use crate::generation::Generation;
use crate::wire::card::read_any;
use crate::wire::objects::write_signature;
use crate::wire::v1;
use crate::wire::write::Object;

pub(super) const SIGNATURES: &str = "signatures";

/// A form in which a card is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CardForm {
    /// The members of 1.0, as the specification has it: set members and required ones are kept, others that are empty left out.
    V1,
    /// The same without anything that is empty, as two SDKs have it. It does not cover a requirement without scopes, nor any
    /// other member that is empty.
    WithoutEmpty,
    /// Every member of the document.
    AsServed,
}

/// What a signature may cover: the canonical bytes of one form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    pub form: CardForm,
    pub bytes: Vec<u8>,
}

/// A card, with the document that it was read from and the forms in which that can be signed.
#[derive(Debug, Clone)]
pub struct CardDocument {
    pub card: AgentCard,
    pub generation: Generation,
    object: JsonObject,
}

/// Why a document has no signed form.
#[derive(Debug, Clone, thiserror::Error)]
pub enum BadDocument {
    /// Also if a member is there twice: readers disagree about which of the two counts.
    #[error("the card cannot be signed or verified: {0}")]
    Json(String),
    #[error("not a valid agent card: {}", .0.to_string().trim_start_matches("Invalid response: "))]
    Card(Error),
    /// With signatures it would be a card of 0.3.
    #[error("a card of 0.1 has no place for signatures")]
    V0_1,
}

impl CardDocument {
    pub fn read(json: &str) -> Result<Self, BadDocument> {
        let object = JsonObject::parse(json).map_err(|error| BadDocument::Json(error.to_string()))?;
        let (generation, card) = read_any(object.as_str()).map_err(BadDocument::Card)?;
        match generation {
            Generation::V0_1 => Err(BadDocument::V0_1),
            Generation::V1 | Generation::V0_3 => Ok(CardDocument { card, generation, object }),
        }
    }

    /// The forms that differ, the specification's first. A document of 0.3 has one, as it is served.
    pub fn payloads(&self) -> Vec<Payload> {
        let mut all: Vec<Payload> = Vec::new();
        let mut add = |form, bytes: Vec<u8>| {
            if !all.iter().any(|known| known.bytes == bytes) {
                all.push(Payload { form, bytes });
            }
        };
        if self.generation == Generation::V1 {
            add(CardForm::V1, v1_form(&self.card));
            add(CardForm::WithoutEmpty, without_empty(&self.card));
        }
        add(CardForm::AsServed, self.as_served());
        all
    }

    /// The places of what the document says and a signature over this form leaves open, such as `url`: members of 0.3, and those
    /// that 1.0 does not know. Empty members are not among them, also if the form leaves them out.
    pub fn uncovered_by(&self, form: CardForm) -> Vec<String> {
        match (form, self.generation) {
            (CardForm::V1 | CardForm::WithoutEmpty, Generation::V1) => {
                uncovered::beside(self.object.as_str(), &v1_form(&self.card))
            }
            _ => Vec::new(),
        }
    }

    /// The document with these signatures and no others.
    pub fn with_signatures(&self, signatures: &[CardSignature]) -> String {
        written(|object| {
            for (name, value) in self.others() {
                object.entry(&name).extend_from_slice(value.as_bytes());
            }
            object.list_unless_empty(SIGNATURES, signatures, write_signature);
        })
    }

    fn as_served(&self) -> Vec<u8> {
        let text = self.with_signatures(&[]);
        let mut out = Vec::with_capacity(text.len());
        write_canonical(&mut out, &checked(&text), Numbers::Doubles);
        out
    }

    fn others(&self) -> impl Iterator<Item = (Cow<'_, str>, &str)> {
        self.object.members().filter(|(name, _)| name != SIGNATURES)
    }
}

/// The 1.0 form. Members that 1.0 does not know are not part of it, so a card that also serves older readers has the same
/// payload.
fn v1_form(card: &AgentCard) -> Vec<u8> {
    let mut out = Vec::new();
    write_canonical(&mut out, &unsigned(card), Numbers::Doubles);
    out
}

fn without_empty(card: &AgentCard) -> Vec<u8> {
    let mut out = Vec::new();
    write_without_empty(&mut out, &unsigned(card));
    out
}

/// The text of the 1.0 card without its signatures.
fn unsigned(card: &AgentCard) -> JsonText {
    let mut bare = card.clone();
    bare.signatures.clear();
    let mut json = Vec::new();
    v1::write_card(&mut json, &bare);
    checked(&String::from_utf8_lossy(&json))
}

fn written(write: impl FnOnce(&mut Object<'_>)) -> String {
    let mut out = Vec::new();
    let mut object = Object::begin(&mut out);
    write(&mut object);
    object.end();
    String::from_utf8(out).expect("codecs write text")
}

fn checked(text: &str) -> JsonText {
    JsonText::parse(text).expect("codecs write JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Members of other generations, order, white space and the signatures themselves make no difference; a false that was
    /// stated does.
    #[test]
    fn p09_the_payload_is_the_card_of_1_0() {
        let read = |text: &str| crate::wire::card::read_any(text).unwrap().1;
        let one = r#"{"name":"é","description":"","version":"1","supportedInterfaces":[],"capabilities":{"streaming":false},
            "defaultInputModes":[],"defaultOutputModes":[],"skills":[],"signatures":[{"protected":"p","signature":"s"}]}"#;
        let other = r#"{"skills":[], "version":"1","protocolVersion":"0.3","url":"http://h","description":"","name":"\u00e9",
            "capabilities":{"streaming":false},"supportedInterfaces":[],"defaultOutputModes":[],"defaultInputModes":[]}"#;
        let expected = r#"{"capabilities":{"streaming":false},"defaultInputModes":[],"defaultOutputModes":[],"description":"","name":"é","skills":[],"supportedInterfaces":[],"version":"1"}"#;
        for card in [one, other] {
            assert_eq!(String::from_utf8(v1_form(&read(card))).unwrap(), expected);
        }
        let absent = read(&one.replace(r#""streaming":false"#, ""));
        assert_ne!(v1_form(&absent), expected.as_bytes());
    }

    fn forms(json: &str) -> Vec<(CardForm, String)> {
        let payloads = CardDocument::read(json).unwrap().payloads();
        payloads.into_iter().map(|it| (it.form, String::from_utf8(it.bytes).unwrap())).collect()
    }

    /// A pure 1.0 card without anything empty has one form; what is empty, and what is of another generation, makes others.
    #[test]
    fn p09_a_document_has_a_form_for_each_way_to_read_it() {
        let plain = r#"{"version":"1","name":"n","description":"d","capabilities":{"streaming":false},"skills":[{"id":"s","name":"s","description":"d","tags":["t"]}],"supportedInterfaces":[{"url":"http://h","protocolBinding":"JSONRPC","protocolVersion":"1.0"}],"defaultInputModes":["a/b"],"defaultOutputModes":["a/b"]}"#;
        let v1 = r#"{"capabilities":{"streaming":false},"defaultInputModes":["a/b"],"defaultOutputModes":["a/b"],"description":"d","name":"n","skills":[{"description":"d","id":"s","name":"s","tags":["t"]}],"supportedInterfaces":[{"protocolBinding":"JSONRPC","protocolVersion":"1.0","url":"http://h"}],"version":"1"}"#;
        assert_eq!(forms(plain), [(CardForm::V1, v1.to_owned())]);
        let superset =
            plain.replace(r#""version""#, r#""url":"http://h","protocolVersion":"0.3.0","version""#);
        let served = v1
            .replace(r#""skills""#, r#""protocolVersion":"0.3.0","skills""#)
            .replace(r#""version":"1"}"#, r#""url":"http://h","version":"1"}"#);
        assert_eq!(forms(&superset), [(CardForm::V1, v1.to_owned()), (CardForm::AsServed, served)]);
        let locked = plain.replace(
            r#""version""#,
            r#""securitySchemes":{"k":{"mtlsSecurityScheme":{}}},"securityRequirements":[{"schemes":{"k":{"list":[]}}}],"version""#,
        );
        let found = forms(&locked);
        let said = r#""securityRequirements":[{"schemes":{"k":{}}}],"securitySchemes":{"k":{"mtlsSecurityScheme":{}}},"#;
        let members = |form| &found.iter().find(|(known, _)| *known == form).unwrap().1;
        assert_eq!(*members(CardForm::V1), v1.replace(r#""skills""#, &format!(r#"{said}"skills""#)));
        assert_eq!(*members(CardForm::WithoutEmpty), v1);
        assert!(members(CardForm::AsServed).contains(r#"{"k":{"list":[]}}"#));
        // 0.3 has no form of its own, and 0.1 has no signatures.
        let older = r#"{"name":"n","description":"d","url":"http://h","version":"1","protocolVersion":"0.3.0","capabilities":{},"skills":[],"defaultInputModes":[],"defaultOutputModes":[],"signatures":[]}"#;
        let expected = r#"{"capabilities":{},"defaultInputModes":[],"defaultOutputModes":[],"description":"d","name":"n","protocolVersion":"0.3.0","skills":[],"url":"http://h","version":"1"}"#;
        assert_eq!(forms(older), [(CardForm::AsServed, expected.to_owned())]);
        let oldest = r#"{"name":"n","url":"http://h","version":"1","capabilities":{},"skills":[]}"#;
        assert!(matches!(CardDocument::read(oldest), Err(BadDocument::V0_1)));
    }

    #[test]
    fn p09_a_member_that_is_there_twice_has_no_signed_form() {
        for json in [
            r#"{"name":"a","name":"b","description":"","version":"1","supportedInterfaces":[]}"#,
            r#"{"name":"a","x":{"y":1,"\u0079":2},"description":"","version":"1","supportedInterfaces":[]}"#,
            r#"{"name":"a","signatures":[],"signatures":[],"description":"","version":"1","supportedInterfaces":[]}"#,
        ] {
            let refused = CardDocument::read(json).unwrap_err().to_string();
            assert!(refused.contains("duplicate key"), "{refused}");
        }
    }

    #[test]
    fn p09_signatures_are_put_into_a_document_that_stays_as_it_is() {
        let json = r#"{ "name": "a", "x": 1.50, "signatures": [1], "description": "", "version": "1", "supportedInterfaces": [] }"#;
        let json = json.replace("[1]", r#"[{"protected":"old","signature":"old"}]"#);
        let document = CardDocument::read(&json).unwrap();
        let new = CardSignature { protected: "p".to_owned(), signature: "s".to_owned(), header: None };
        let signed = document.with_signatures(&[new]);
        let expected = r#"{"name":"a","x":1.50,"description":"","version":"1","supportedInterfaces":[],"signatures":[{"protected":"p","signature":"s"}]}"#;
        assert_eq!(signed, expected);
        assert_eq!(CardDocument::read(&signed).unwrap().payloads(), document.payloads());
    }
}
