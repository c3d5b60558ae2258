//! Reading JSON into domain values, for every generation: what an absent member means, how numbers may be
//! spelled, and how a fault is told to the person who has to mend it.
//!
//! Decoding runs twice only when it fails: plainly first, then once more while keeping track of the path.

use std::marker::PhantomData;

use serde::de::{
    DeserializeOwned, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor, value,
};
use serde::{Deserialize, de};

use crate::error::{Error, ErrorKind};

/// A domain value that generation `G` can spell. `G` is a marker: the same role has other names in other
/// generations.
pub(crate) trait FromWire<G>: Sized {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;
}

/// What a text is meant to be, for its error message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject {
    pub(crate) kind: ErrorKind,
    /// Opens the message: `Invalid parameters`.
    pub(crate) title: &'static str,
    /// Stands for the whole text where a member would be named.
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
    // A member may break a rule before the text breaks JSON; the broken JSON is the news then.
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
    // The text of a syntax error names what was expected and where, never what was found.
    Error::new(kind, format!("{}: not valid JSON ({error})", subject.title))
}

impl Subject {
    pub(crate) const PARAMS: Subject =
        Subject { kind: ErrorKind::InvalidParams, title: "Invalid parameters", root: "params" };

    /// Something an agent sent. What is wrong with it is the agent's fault, not the caller's.
    pub(crate) const fn reply(root: &'static str) -> Subject {
        Subject { kind: ErrorKind::InvalidAgentResponse, title: "Invalid response", root }
    }

    pub(crate) fn refuse(self, field: impl Into<String>, description: impl Into<String>) -> Error {
        let (field, description) = (field.into(), description.into());
        Error::new(self.kind, format!("{}: {field} {description}", self.title))
            .with_violation(field, description)
    }
}

/// Which member, and what to do about it. The decoder's own words may quote the payload, so only what follows
/// its last "expected" is passed on.
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
        // Such as half of a surrogate pair in a string: JSON's grammar allows it, no string can hold it.
        (here(), format!("cannot be read ({text})"))
    }
}

/// Carries the generation's reading of `T` through serde.
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

/// A member whose `null`, like its absence, is the type's default.
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

/// An object read by its twin. Derived twins alone would take arrays, too.
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

/// Any twin, read as an object where a value of the domain could stand.
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

/// A map whose keys are data, in the order given.
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

/// Reads a string without keeping it: ids, enum names, base64, times.
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
