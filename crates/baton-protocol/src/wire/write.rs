//! Writes JSON directly from borrowed values. Nothing here can fail, and the output has no raw newline.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Writes one JSON object. Member names are constants of the codec, so they need no escaping.
pub(crate) struct Object<'a> {
    out: &'a mut Vec<u8>,
    empty: bool,
}

impl<'a> Object<'a> {
    pub(crate) fn begin(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Object { out, empty: true }
    }

    /// Continues an object that already has members.
    pub(crate) fn resume(out: &'a mut Vec<u8>) -> Self {
        Object { out, empty: false }
    }

    /// Starts a member; the caller writes its value. Inlined, so that the name's length is a compile-time constant.
    #[inline]
    pub(crate) fn member(&mut self, name: &str) -> &mut Vec<u8> {
        self.comma();
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    /// Starts a member whose name is data, such as a scheme's.
    pub(crate) fn entry(&mut self, name: &str) -> &mut Vec<u8> {
        self.comma();
        string(self.out, name);
        self.out.push(b':');
        self.out
    }

    #[inline]
    pub(crate) fn string(&mut self, name: &str, value: &str) {
        string(self.member(name), value);
    }

    /// A string without presence: empty is the default and is dropped.
    #[inline]
    pub(crate) fn string_unless_empty(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.string(name, value);
        }
    }

    #[inline]
    pub(crate) fn optional(&mut self, name: &str, value: Option<&str>) {
        self.string_unless_empty(name, value.unwrap_or_default());
    }

    pub(crate) fn raw(&mut self, name: &str, json: &str) {
        self.member(name).extend_from_slice(json.as_bytes());
    }

    pub(crate) fn optional_raw(&mut self, name: &str, json: Option<&str>) {
        if let Some(json) = json {
            self.raw(name, json);
        }
    }

    pub(crate) fn number(&mut self, name: &str, value: impl Into<i64>) {
        number(self.member(name), value.into());
    }

    pub(crate) fn flag(&mut self, name: &str, value: bool) {
        self.raw(name, if value { "true" } else { "false" });
    }

    pub(crate) fn flag_if_set(&mut self, name: &str, value: bool) {
        if value {
            self.flag(name, true);
        }
    }

    pub(crate) fn base64(&mut self, name: &str, bytes: &[u8]) {
        let out = self.member(name);
        out.push(b'"');
        let start = out.len();
        out.resize(start + bytes.len().div_ceil(3) * 4, 0);
        let written = STANDARD.encode_slice(bytes, &mut out[start..]).expect("the room was made above");
        out.truncate(start + written);
        out.push(b'"');
    }

    /// A list of strings that is always present.
    pub(crate) fn strings(&mut self, name: &str, items: &[String]) {
        self.list(name, items, |out, item| string(out, item));
    }

    /// A list of strings that is dropped when empty.
    pub(crate) fn strings_unless_empty(&mut self, name: &str, items: &[String]) {
        if !items.is_empty() {
            self.strings(name, items);
        }
    }

    /// A list that is always present.
    pub(crate) fn list<T>(&mut self, name: &str, items: &[T], write: impl FnMut(&mut Vec<u8>, &T)) {
        list(self.member(name), items, write);
    }

    /// A list that is dropped when empty.
    pub(crate) fn list_unless_empty<T>(
        &mut self,
        name: &str,
        items: &[T],
        write: impl FnMut(&mut Vec<u8>, &T),
    ) {
        if !items.is_empty() {
            self.list(name, items, write);
        }
    }

    pub(crate) fn end(self) {
        self.out.push(b'}');
    }

    #[inline]
    fn comma(&mut self) {
        if !std::mem::take(&mut self.empty) {
            self.out.push(b',');
        }
    }
}

pub(crate) fn list<T>(out: &mut Vec<u8>, items: &[T], mut write: impl FnMut(&mut Vec<u8>, &T)) {
    out.push(b'[');
    for (n, item) in items.iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}

pub(crate) fn string(out: &mut Vec<u8>, value: &str) {
    // Nearly every string needs no escaping.
    if is_plain(value.as_bytes()) {
        out.reserve(value.len() + 2);
        out.push(b'"');
        out.extend_from_slice(value.as_bytes());
        out.push(b'"');
    } else {
        serde_json::to_writer(out, value)
            .expect("a string always has a JSON form and memory takes every byte");
    }
}

/// True if no byte needs escaping in a JSON string. Always checks all bytes: without an early exit the compiler
/// vectorizes the loop.
fn is_plain(text: &[u8]) -> bool {
    !text.iter().fold(false, |found, byte| found | (*byte < b' ') | (*byte == b'"') | (*byte == b'\\'))
}

pub(crate) fn number(out: &mut Vec<u8>, value: i64) {
    serde_json::to_writer(out, &value)
        .expect("an integer always has a JSON form and memory takes every byte");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expected: &str, write: impl FnOnce(&mut Object<'_>)) {
        let mut out = Vec::new();
        let mut object = Object::begin(&mut out);
        write(&mut object);
        object.end();
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn members_are_separated_and_defaults_dropped() {
        check("{}", |_| {});
        check(r#"{"a":"x","b":-7,"c":true}"#, |object| {
            object.string("a", "x");
            object.optional("gone", None);
            object.optional("gone", Some(""));
            object.number("b", -7);
            object.flag_if_set("gone", false);
            object.flag_if_set("c", true);
        });
        check(r#"{"a":[],"b":["x","y"]}"#, |object| {
            object.strings("a", &[]);
            object.strings_unless_empty("gone", &[]);
            object.strings("b", &["x".to_owned(), "y".to_owned()]);
        });
    }

    #[test]
    fn no_string_brings_a_raw_newline() {
        check("{\"a\":\"\\n\\r\\u0000\\\"\\\\\u{2028}😀\"}", |object| {
            object.string("a", "\n\r\0\"\\\u{2028}😀")
        });
        check(r#"{"\n":1}"#, |object| number(object.entry("\n"), 1));
    }

    #[test]
    fn every_character_is_written_as_serde_json_writes_it() {
        for code in 0..=0x2100 {
            let Some(character) = char::from_u32(code) else { continue };
            let place = |at| format!("{}{character}{}", &"something before it"[..at], "something after it");
            for text in (0..18).map(place).chain([character.to_string()]) {
                let mut out = Vec::new();
                string(&mut out, &text);
                assert_eq!(out, serde_json::to_vec(&text).unwrap(), "{text:?}");
            }
        }
    }

    #[test]
    fn bytes_are_padded_base64() {
        for (bytes, expected) in [
            (&b""[..], r#"{"a":""}"#),
            (b"a", r#"{"a":"YQ=="}"#),
            (b"ab", r#"{"a":"YWI="}"#),
            (b"abc", r#"{"a":"YWJj"}"#),
            (b"\xff\xef", r#"{"a":"/+8="}"#),
        ] {
            check(expected, |object| object.base64("a", bytes));
        }
    }
}
