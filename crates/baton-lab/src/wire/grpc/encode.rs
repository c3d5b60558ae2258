//! ProtoJSON as protobuf. What the message has no field for cannot be sent: the reason says what it is.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;

use super::protobuf::{put_bytes, put_number};
use super::schema::{Field, Kind, Many, Schema};
use super::well_known::{put_struct, put_value, timestamp};

/// The bytes of a message.
pub(crate) fn message(schema: &Schema, name: &str, value: &Value) -> Result<Vec<u8>, String> {
    let members = value.as_object().ok_or_else(|| cannot(name, "a value that is no object"))?;
    let mut out = Vec::new();
    for (member, value) in members {
        let field = schema.fields(name).iter().find(|field| field.name == member);
        let field =
            field.ok_or_else(|| format!("protobuf cannot say this: {name} has no field `{member}`"))?;
        // In JSON null is the same as absent, but for a Value.
        if value.is_null() && field.kind != Kind::Value {
            continue;
        }
        let place = format!("{name}.{member}");
        match field.many {
            Many::One => one(schema, field, &place, value, true, &mut out)?,
            Many::List => {
                for item in value.as_array().ok_or_else(|| cannot(&place, "a value that is no list"))? {
                    one(schema, field, &place, item, false, &mut out)?;
                }
            }
            Many::Map => {
                for (key, item) in
                    value.as_object().ok_or_else(|| cannot(&place, "a value that is no map"))?
                {
                    let mut entry = Vec::new();
                    put_bytes(&mut entry, 1, key.as_bytes());
                    one(schema, &Field { number: 2, ..*field }, &place, item, false, &mut entry)?;
                    put_bytes(&mut out, field.number, &entry);
                }
            }
        }
    }
    Ok(out)
}

fn cannot(place: &str, what: &str) -> String {
    format!("protobuf cannot say this: {what} as {place}")
}

/// `alone`: neither in a list nor in a map. Then the default value is not written, unless the field has a presence.
fn one(
    schema: &Schema,
    field: &Field,
    place: &str,
    value: &Value,
    alone: bool,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let number = field.number;
    let skips_default = alone && !field.presence && !field.choice;
    match field.kind {
        Kind::Text => {
            let text = value.as_str().ok_or_else(|| cannot(place, "a value that is no text"))?;
            if !(skips_default && text.is_empty()) {
                put_bytes(out, number, text.as_bytes());
            }
        }
        Kind::Bytes => {
            let bytes = value.as_str().and_then(from_base64).ok_or_else(|| cannot(place, "no base64"))?;
            if !(skips_default && bytes.is_empty()) {
                put_bytes(out, number, &bytes);
            }
        }
        Kind::Bool => {
            let flag =
                value.as_bool().ok_or_else(|| cannot(place, "a value that is neither true nor false"))?;
            if flag || !skips_default {
                put_number(out, number, u64::from(flag));
            }
        }
        Kind::Int32 => {
            let whole = value.as_i64().and_then(|whole| i32::try_from(whole).ok());
            let whole = whole.ok_or_else(|| cannot(place, "a value that is no int32"))?;
            if !(skips_default && whole == 0) {
                put_number(out, number, i64::from(whole).cast_unsigned());
            }
        }
        Kind::Enum(name) => {
            let known =
                value.as_str().and_then(|text| schema.names(name).iter().position(|known| *known == text));
            let index = known.ok_or_else(|| cannot(place, "a name that the enum has not"))?;
            if !(skips_default && index == 0) {
                put_number(out, number, index as u64);
            }
        }
        Kind::Message(name) => put_bytes(out, number, &message(schema, name, value)?),
        Kind::Struct => {
            let members = value.as_object().ok_or_else(|| cannot(place, "a value that is no object"))?;
            let mut inner = Vec::new();
            put_struct(&mut inner, members)?;
            put_bytes(out, number, &inner);
        }
        Kind::Value => {
            let mut inner = Vec::new();
            put_value(&mut inner, value)?;
            put_bytes(out, number, &inner);
        }
        Kind::Timestamp => {
            let time = value.as_str().and_then(timestamp);
            let (seconds, nanos) = time.ok_or_else(|| cannot(place, "a value that is no time"))?;
            let mut inner = Vec::new();
            put_number(&mut inner, 1, seconds.cast_unsigned());
            put_number(&mut inner, 2, i64::from(nanos).cast_unsigned());
            put_bytes(out, number, &inner);
        }
        Kind::Any => return Err(cannot(place, "an Any")),
    }
    Ok(())
}

/// Either alphabet, with padding or without, as readers of ProtoJSON take it.
pub(crate) fn from_base64(text: &str) -> Option<Vec<u8>> {
    let lenient = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let standard = GeneralPurpose::new(&alphabet::STANDARD, lenient);
    let url_safe = GeneralPurpose::new(&alphabet::URL_SAFE, lenient);
    standard.decode(text).or_else(|_| url_safe.decode(text)).ok()
}
