//! Free-form JSON in protobuf: `google.protobuf.Struct` and `Value`, from and to the text that the domain keeps.
//!
//! What does not survive, since a `Value` has less than JSON:
//! - A number is a double: its spelling is lost (`1.0` becomes `1`, `-0` becomes `0`), whole numbers beyond 2^53 are
//!   rounded, and a number too large for a double becomes the largest one.
//! - Escapes in strings become the characters they stand for.
//!
//! Members keep their order between us; other implementations may send them in any. Refused when read: NaN and infinite
//! numbers, values of no kind, members given twice, nesting beyond [`JsonText::MAX_DEPTH`]. Many implementations read
//! only 100 nested messages, of which a list takes two and an object three: about 30 levels.

use bytes::Bytes;
use prost::Message;
use prost::encoding::{encode_varint, encoded_len_varint};

use super::bounds::have_values;
use super::fault::{Fault, Read};
use crate::domain::json::JsonRefused;
use crate::domain::{JsonObject, JsonText};
use crate::signature::jcs::number::write_double;
use crate::wire::scalars::advice;
use crate::wire::write::string;

/// One level of a `Struct`; nested messages stay encoded. A map is a list of entries on the wire.
#[derive(Clone, PartialEq, Message)]
struct Struct {
    #[prost(message, repeated, tag = "1")]
    fields: Vec<Entry>,
}

#[derive(Clone, PartialEq, Message)]
struct Entry {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(bytes = "bytes", tag = "2")]
    value: Bytes,
}

#[derive(Clone, PartialEq, Message)]
struct ListValue {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    values: Vec<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
struct Value {
    #[prost(oneof = "Kind", tags = "1, 2, 3, 4, 5, 6")]
    kind: Option<Kind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Kind {
    #[prost(int32, tag = "1")]
    Null(i32),
    #[prost(double, tag = "2")]
    Number(f64),
    #[prost(string, tag = "3")]
    String(String),
    #[prost(bool, tag = "4")]
    Bool(bool),
    #[prost(bytes, tag = "5")]
    Struct(Bytes),
    #[prost(bytes, tag = "6")]
    List(Bytes),
}

/// The text of a `Struct`.
pub(super) fn read_object(encoded: Bytes) -> Read<JsonObject> {
    let mut out = Vec::with_capacity(encoded.len());
    write_struct(&mut out, encoded, 0)?;
    text(out)?.try_into().map_err(|refused| refuse(&refused))
}

/// The text of a `Value`.
pub(super) fn read_value(encoded: Bytes) -> Read<JsonText> {
    let mut out = Vec::with_capacity(encoded.len());
    write_value(&mut out, encoded, 0)?;
    text(out)
}

/// The rules for free-form JSON are those of every other binding.
fn text(json: Vec<u8>) -> Read<JsonText> {
    let json = String::from_utf8(json).expect("made of strings");
    JsonText::parse(&json).map_err(|refused| refuse(&refused))
}

fn refuse(refused: &JsonRefused) -> Fault {
    Fault::new(advice(refused))
}

fn decode<M: Message + Default>(encoded: Bytes) -> Read<M> {
    M::decode(encoded).map_err(|_| Fault::new("is not a valid google.protobuf.Value"))
}

/// A message that is a list of values.
fn decode_items<M: Message + Default>(encoded: Bytes) -> Read<M> {
    if have_values(&encoded) { decode(encoded) } else { Err(no_kind()) }
}

fn no_kind() -> Fault {
    Fault::new("holds a value of no kind")
}

fn write_value(out: &mut Vec<u8>, encoded: Bytes, depth: usize) -> Read<()> {
    match decode::<Value>(encoded)?.kind {
        Some(Kind::Null(_)) => out.extend_from_slice(b"null"),
        Some(Kind::Number(number)) if number.is_finite() => write_double(out, number),
        Some(Kind::Number(_)) => return Err(Fault::new("must not hold NaN or an infinite number")),
        Some(Kind::String(value)) => string(out, &value),
        Some(Kind::Bool(value)) => out.extend_from_slice(if value { b"true" } else { b"false" }),
        Some(Kind::Struct(encoded)) => write_struct(out, encoded, depth)?,
        Some(Kind::List(encoded)) => {
            let values = decode_items::<ListValue>(encoded)?.values;
            nested(out, b"[]", depth, values, |out, value| write_value(out, value, depth + 1))?;
        }
        None => return Err(no_kind()),
    }
    Ok(())
}

fn write_struct(out: &mut Vec<u8>, encoded: Bytes, depth: usize) -> Read<()> {
    nested(out, b"{}", depth, decode_items::<Struct>(encoded)?.fields, |out, entry: Entry| {
        string(out, &entry.key);
        out.push(b':');
        write_value(out, entry.value, depth + 1)
    })
}

/// Bounds the recursion, too.
fn nested<T>(
    out: &mut Vec<u8>,
    brackets: &[u8; 2],
    depth: usize,
    items: Vec<T>,
    mut write: impl FnMut(&mut Vec<u8>, T) -> Read<()>,
) -> Read<()> {
    if depth == JsonText::MAX_DEPTH {
        return Err(refuse(&JsonRefused::TooDeep { limit: JsonText::MAX_DEPTH }));
    }
    out.push(brackets[0]);
    for (n, item) in items.into_iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        write(out, item)?;
    }
    out.push(brackets[1]);
    Ok(())
}

/// The `Struct` of an object.
pub(super) fn object(json: &JsonObject) -> Bytes {
    struct_of(json.as_str())
}

/// The `Struct` of the text of an object, which must be one that [`JsonText`] holds, or hold one.
pub(super) fn struct_of(json: &str) -> Bytes {
    Writer::write(json, Writer::object)
}

/// The `Value` of any JSON.
pub(super) fn value(json: &JsonText) -> Bytes {
    Writer::write(json.as_str(), Writer::value)
}

/// The key of a length-delimited field.
const fn key(field: u8) -> u8 {
    field << 3 | 2
}

/// Writes JSON that is known to be valid and minified. The length of a message comes before it, but is known after it:
/// lengths are noted, and put in at the end, so that the time is linear however deep the nesting is.
struct Writer<'a> {
    json: &'a str,
    at: usize,
    /// The messages without their lengths.
    out: Vec<u8>,
    /// Where a length goes, and the length.
    lengths: Vec<(usize, usize)>,
    /// The bytes that the lengths so far take.
    prefixes: usize,
}

impl<'a> Writer<'a> {
    fn write(json: &'a str, write: impl FnOnce(&mut Self)) -> Bytes {
        let out = Vec::with_capacity(json.len());
        let mut writer = Writer { json, at: 0, out, lengths: Vec::new(), prefixes: 0 };
        write(&mut writer);
        let Writer { out, lengths, prefixes, .. } = writer;
        let mut whole = Vec::with_capacity(out.len() + prefixes);
        let mut copied = 0;
        for (at, length) in lengths {
            whole.extend_from_slice(&out[copied..at]);
            encode_varint(length as u64, &mut whole);
            copied = at;
        }
        whole.extend_from_slice(&out[copied..]);
        whole.into()
    }

    /// A field that is a message.
    fn message(&mut self, field: u8, write: impl FnOnce(&mut Self)) {
        self.out.push(key(field));
        let (place, start, prefixes) = (self.lengths.len(), self.out.len(), self.prefixes);
        self.lengths.push((start, 0));
        write(self);
        let length = self.out.len() - start + self.prefixes - prefixes;
        self.lengths[place].1 = length;
        self.prefixes += encoded_len_varint(length as u64);
    }

    fn string(&mut self, field: u8) {
        let start = self.at;
        self.at += 1;
        while self.peek() != b'"' {
            self.at += if self.peek() == b'\\' { 2 } else { 1 };
        }
        self.at += 1;
        let value = JsonText::unescape(&self.json[start..self.at]).unwrap_or_default();
        self.out.push(key(field));
        encode_varint(value.len() as u64, &mut self.out);
        self.out.extend_from_slice(value.as_bytes());
    }

    fn value(&mut self) {
        match self.peek() {
            b'{' => self.message(5, Self::object),
            b'[' => self.message(6, Self::list),
            b'"' => self.string(3),
            _ => {
                let rest = &self.json[self.at..];
                let word = rest.find([',', ']', '}']).map_or(rest, |end| &rest[..end]);
                self.at += word.len();
                match word {
                    "null" => self.out.extend_from_slice(&[1 << 3, 0]),
                    "true" => self.out.extend_from_slice(&[4 << 3, 1]),
                    "false" => self.out.extend_from_slice(&[4 << 3, 0]),
                    number => {
                        let number: f64 = number.parse().unwrap_or_default();
                        self.out.push(2 << 3 | 1);
                        self.out.extend_from_slice(&number.clamp(f64::MIN, f64::MAX).to_le_bytes());
                    }
                }
            }
        }
    }

    fn object(&mut self) {
        while self.has_more(b'}') {
            self.message(1, |entry| {
                entry.string(1);
                // The colon.
                entry.at += 1;
                entry.message(2, Self::value);
            });
        }
    }

    fn list(&mut self) {
        while self.has_more(b']') {
            self.message(1, Self::value);
        }
    }

    /// Steps over the opening bracket or a comma to the next item; or over both brackets of an empty list, or the
    /// closing one.
    fn has_more(&mut self, end: u8) -> bool {
        let before = self.peek();
        self.at += 1;
        if before != end && self.peek() == end {
            self.at += 1;
            return false;
        }
        before != end
    }

    /// 0 at the end of the text; JSON never contains it.
    fn peek(&self) -> u8 {
        self.json.as_bytes().get(self.at).copied().unwrap_or_default()
    }
}
