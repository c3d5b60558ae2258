//! Reads scalars in every generation: strings, numbers, ids, free-form JSON, bytes, times.

use std::fmt;

use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde_json::value::RawValue;

use super::read::{FromWire, from_str};
use super::time::{parse_not_before, parse_timestamp};
use crate::domain::json::JsonRefused;
use crate::domain::{
    ArtifactId, ContextId, JsonObject, JsonText, MessageId, PushConfigId, TaskId, Timestamp,
};

impl<G> FromWire<G> for String {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)
    }
}

impl<G> FromWire<G> for bool {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        bool::deserialize(deserializer)
    }
}

/// ProtoJSON allows a number as a string, and `5.0` for `5`.
struct Whole;

impl Visitor<'_> for Whole {
    type Value = i64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number")
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<i64, E> {
        Ok(number)
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<i64, E> {
        i64::try_from(number).map_err(|_| E::custom("is too large a number"))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<i64, E> {
        // Beyond 2^53 a double cannot hold every whole number.
        if number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0 {
            Ok(number as i64)
        } else {
            Err(E::custom("must be a whole number"))
        }
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<i64, E> {
        text.parse().map_err(|_| E::custom("must be a whole number"))
    }
}

pub(crate) fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    deserializer.deserialize_any(Whole)
}

impl<G> FromWire<G> for i32 {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        i32::try_from(whole(deserializer)?).map_err(|_| D::Error::custom("must fit in 32 bits"))
    }
}

/// Counts are int32 on the wire, so the upper half of `u32` is refused.
impl<G> FromWire<G> for u32 {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = <i32 as FromWire<G>>::from_wire(deserializer)?;
        u32::try_from(number).map_err(|_| D::Error::custom("must not be negative"))
    }
}

impl<G> FromWire<G> for u64 {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u64::try_from(whole(deserializer)?).map_err(|_| D::Error::custom("must not be negative"))
    }
}

macro_rules! read_ids {
    ($($id:ty)*) => {$(
        impl<G> FromWire<G> for $id {
            fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                from_str(deserializer, "a string", |text| <$id>::parse(text).map_err(|bad| bad.to_string()))
            }
        }

        // Clients that print every default send `""` for an id they do not have.
        impl<G> FromWire<G> for MaybeId<$id> {
            fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                from_str(deserializer, "a string", |text| match text {
                    "" => Ok(MaybeId(None)),
                    text => <$id>::parse(text).map(|id| MaybeId(Some(id))).map_err(|bad| bad.to_string()),
                })
            }
        }
    )*};
}

read_ids! { TaskId ContextId MessageId ArtifactId PushConfigId }

/// An optional id: absent, `null` and empty are the same.
pub(crate) struct MaybeId<T>(pub(crate) Option<T>);

pub(crate) fn maybe_id<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    MaybeId<T>: FromWire<()>,
    D: Deserializer<'de>,
{
    Ok(super::read::optional::<(), MaybeId<T>, D>(deserializer)?.and_then(|maybe| maybe.0))
}

impl<G> FromWire<G> for JsonText {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        JsonText::parse(raw.get()).map_err(|refused| D::Error::custom(advice(&refused)))
    }
}

impl<G> FromWire<G> for JsonObject {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        JsonObject::parse(raw.get()).map_err(|refused| D::Error::custom(advice(&refused)))
    }
}

pub(crate) fn advice(refused: &JsonRefused) -> String {
    match refused {
        JsonRefused::Syntax { .. } => "cannot be read: a string in it is not valid text".to_owned(),
        JsonRefused::DuplicateKey { key, .. } => format!("names the member {key:?} twice"),
        JsonRefused::TooDeep { limit } => format!("must not be nested deeper than {limit} levels"),
        JsonRefused::NotAnObject => "must be an object".to_owned(),
    }
}

/// Inline bytes.
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl<G> FromWire<G> for Bytes {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_str(deserializer, "a base64 string", |text| decode_base64(text).map(Bytes))
    }
}

/// Standard or URL-safe, padded or not.
fn decode_base64(text: &str) -> Result<Vec<u8>, String> {
    const LENIENT: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    const PLAIN: GeneralPurpose = GeneralPurpose::new(&STANDARD, LENIENT);
    const URL: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, LENIENT);
    let engine = if text.bytes().any(|byte| matches!(byte, b'-' | b'_')) { &URL } else { &PLAIN };
    engine.decode(text).map_err(|_| "must be base64 without spaces or line breaks".to_owned())
}

impl<G> FromWire<G> for Timestamp {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_time(deserializer, parse_timestamp)
    }
}

/// The lower bound of a filter by time.
pub(crate) struct NotBefore(pub(crate) Timestamp);

impl<G> FromWire<G> for NotBefore {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_time(deserializer, parse_not_before).map(NotBefore)
    }
}

fn read_time<'de, D: Deserializer<'de>>(
    deserializer: D,
    parse: impl Fn(&str) -> Option<Timestamp>,
) -> Result<Timestamp, D::Error> {
    const EXPECTED: &str = "an RFC 3339 time such as 2026-01-31T12:00:00.000Z";
    from_str(deserializer, EXPECTED, |text| parse(text).ok_or_else(|| format!("must be {EXPECTED}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_comes_in_four_spellings() {
        for text in ["/+8=", "_-8=", "/+8", "_-8"] {
            assert_eq!(decode_base64(text).as_deref(), Ok(&b"\xff\xef"[..]), "{text}");
        }
        assert_eq!(decode_base64("").as_deref(), Ok(&b""[..]));
        for text in ["/-8=", "/+8==", "a", "YQ ==", "YQ\n", "====", "ä"] {
            assert!(decode_base64(text).is_err(), "{text}");
        }
    }
}
