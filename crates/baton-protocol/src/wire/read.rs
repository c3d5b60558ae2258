//! Reads JSON into domain values, for every generation: absent members, spellings of numbers, and error messages that
//! say what to correct.
//!
//! Decoding runs a second time only if it fails, to find the path of the member for the error.

use std::marker::PhantomData;

use serde::de::{
    DeserializeOwned, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor, value,
};
use serde::{Deserialize, de};

use crate::error::{Error, ErrorKind};

/// A domain value that can be read in generation `G`. `G` is a marker type: the same value has other names in other
/// generations.
pub(crate) trait FromWire<G>: Sized {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;
}

/// What is being read, for error messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject {
    pub(crate) kind: ErrorKind,
    /// Opens the message: `Invalid parameters`.
    pub(crate) title: &'static str,
    /// The name for the whole text, used instead of a member's name.
    pub(crate) root: &'static str,
}

/// Decodes a whole text.
pub(crate) fn read<G, T: FromWire<G>>(text: &str, subject: Subject) -> Result<T, Error> {
    match serde_json::from_str::<Wire<G, T>>(text) {
        Ok(wire) => Ok(wire.0),
        Err(error) => Err(explain::<G, T>(text, subject, error)),
    }
}

#[cold]
fn explain<G, T: FromWire<G>>(text: &str, subject: Subject, error: serde_json::Error) -> Error {
    // If a member breaks a rule and the text is not valid JSON, the invalid JSON is reported.
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        return not_json(subject, &error);
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    match serde_path_to_error::deserialize::<_, Wire<G, T>>(&mut deserializer) {
        Err(traced) => {
            let path = traced.path().to_string();
            let (field, description) = fault(subject, &path, traced.inner());
            subject.refuse(field, description)
        }
        Ok(_) => not_json(subject, &error),
    }
}

fn not_json(subject: Subject, error: &serde_json::Error) -> Error {
    let kind = if subject.kind == ErrorKind::InvalidParams { ErrorKind::ParseError } else { subject.kind };
    // The text of a syntax error says what was expected and where, but does not quote the payload.
    Error::new(kind, format!("{}: not valid JSON ({error})", subject.title))
}

impl Subject {
    pub(crate) const PARAMS: Subject =
        Subject { kind: ErrorKind::InvalidParams, title: "Invalid parameters", root: "params" };

    /// An agent's answer. Errors in it are the agent's fault, not the caller's.
    pub(crate) const fn reply(root: &'static str) -> Subject {
        Subject { kind: ErrorKind::InvalidAgentResponse, title: "Invalid response", root }
    }

    pub(crate) fn refuse(self, field: impl Into<String>, description: impl Into<String>) -> Error {
        let (field, description) = (field.into(), description.into());
        Error::new(self.kind, format!("{}: {field} {description}", self.title))
            .with_violation(field, description)
    }
}

/// The member, and what to correct. serde's message may quote the payload, so only the part after its last "expected"
/// is used.
fn fault(subject: Subject, path: &str, error: &serde_json::Error) -> (String, String) {
    let text = error.to_string();
    let text = text.rfind(" at line ").map_or(text.as_str(), |at| &text[..at]);
    let here = || if path == "." { subject.root.to_owned() } else { path.to_owned() };
    let member = |name: &str| if path == "." { name.to_owned() } else { format!("{path}.{name}") };
    let quoted = |prefix| text.strip_prefix(prefix).and_then(|rest: &str| rest.strip_suffix('`'));
    if let Some(name) = quoted("missing field `") {
        (member(name), "is required".to_owned())
    } else if let Some(name) = quoted("duplicate field `") {
        (member(name), "is given twice".to_owned())
    } else if text.starts_with("invalid type: ") || text.starts_with("invalid value: ") {
        let expected =
            text.rfind(", expected ").map_or("something else", |at| &text[at + ", expected ".len()..]);
        (here(), format!("must be {expected}"))
    } else if error.classify() == serde_json::error::Category::Data {
        (here(), text.to_owned())
    } else {
        // For example half of a surrogate pair: JSON's grammar allows it, but a Rust string cannot hold it.
        (here(), format!("cannot be read ({text})"))
    }
}

/// A serde wrapper that reads `T` as generation `G` does.
pub(crate) struct Wire<G, T>(pub(crate) T, PhantomData<G>);

impl<'de, G, T: FromWire<G>> Deserialize<'de> for Wire<G, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::from_wire(deserializer).map(|value| Wire(value, PhantomData))
    }
}

/// A required member.
pub(crate) fn one<'de, G, T: FromWire<G>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::from_wire(deserializer)
}

/// An optional member; `null` is the same as absent.
pub(crate) fn optional<'de, G, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: FromWire<G>,
    D: Deserializer<'de>,
{
    Ok(Option::<Wire<G, T>>::deserialize(deserializer)?.map(|wire| wire.0))
}

/// A member whose default value is used if it is absent or `null`.
pub(crate) fn or_default<'de, G, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromWire<G> + Default,
    D: Deserializer<'de>,
{
    optional::<G, T, D>(deserializer).map(Option::unwrap_or_default)
}

/// A string without presence: empty is the same as absent.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.filter(|text| !text.is_empty()))
}

/// Reads an object by its twin, a struct that derives `Deserialize`. Without this, derived twins would accept arrays,
/// too.
pub(crate) fn object<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    struct Members<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
        type Value = T;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            T::deserialize(value::MapAccessDeserializer::new(map))
        }
    }
    deserializer.deserialize_map(Members(PhantomData))
}

/// Like [`object`], for twins that borrow nothing.
pub(crate) fn twin<'de, T: DeserializeOwned, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    object(deserializer)
}

/// A twin as a value that can be read like a domain value.
#[derive(Default)]
pub(crate) struct Twin<T>(pub(crate) T);

impl<G, T: DeserializeOwned> FromWire<G> for Twin<T> {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        twin(deserializer).map(Twin)
    }
}

impl<G, T: FromWire<G>> FromWire<G> for Vec<T> {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Items<G, T>(PhantomData<(G, T)>);
        impl<'de, G, T: FromWire<G>> Visitor<'de> for Items<G, T> {
            type Value = Vec<T>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element::<Wire<G, T>>()? {
                    list.push(item.0);
                }
                Ok(list)
            }
        }
        deserializer.deserialize_seq(Items(PhantomData))
    }
}

/// A map whose keys are data; keeps their order.
pub(crate) struct Pairs<T>(pub(crate) Vec<(String, T)>);

impl<T> Default for Pairs<T> {
    fn default() -> Self {
        Pairs(Vec::new())
    }
}

impl<G, T: FromWire<G>> FromWire<G> for Pairs<T> {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<G, T>(PhantomData<(G, T)>);
        impl<'de, G, T: FromWire<G>> Visitor<'de> for Entries<G, T> {
            type Value = Pairs<T>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Pairs<T>, A::Error> {
                let mut pairs = Vec::new();
                while let Some((name, value)) = entries.next_entry::<String, Wire<G, T>>()? {
                    pairs.push((name, value.0));
                }
                let mut names: Vec<&str> = pairs.iter().map(|(name, _)| name.as_str()).collect();
                names.sort_unstable();
                if names.windows(2).any(|pair| pair[0] == pair[1]) {
                    return Err(A::Error::custom("names a member twice"));
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Entries(PhantomData))
    }
}

/// Parses a string without copying it: ids, enum names, base64, times.
pub(crate) fn from_str<'de, T, D: Deserializer<'de>>(
    deserializer: D,
    expecting: &'static str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    struct Str<F>(&'static str, F);
    impl<T, F: Fn(&str) -> Result<T, String>> Visitor<'_> for Str<F> {
        type Value = T;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(self.0)
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
            (self.1)(text).map_err(E::custom)
        }
    }
    deserializer.deserialize_str(Str(expecting, parse))
}
