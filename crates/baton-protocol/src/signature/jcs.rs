//! The JSON Canonicalization Scheme, RFC 8785: members sorted, no white space, one spelling for each string and number.
//!
//! It works on [`JsonText`], which is already valid, minified, without duplicate keys, and nested at most 100 deep,
//! which bounds the recursion. Members are written in the order of the input and sorted at the end of their object, so
//! memory use is at most about twice the text.

pub(crate) mod number;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::domain::JsonText;
use crate::wire::write::string;

/// How a number that a double cannot hold exactly is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// As in RFC 8785: every number is converted to a double.
    Doubles,
    /// Numbers from 2^53 on keep their spelling: as doubles, different numbers could become equal.
    LargeAsWritten,
}

/// Appends the canonical form of a value.
pub fn write_canonical(out: &mut Vec<u8>, json: &JsonText, numbers: Numbers) {
    write_text(out, json.as_str(), numbers);
}

/// Appends the canonical form of a value without what is empty in it: members and items that are `null`, `""`, `[]` or `{}`,
/// or become so. Two SDKs sign cards in this form.
pub fn write_without_empty(out: &mut Vec<u8>, json: &JsonText) {
    let text = json.as_str();
    let numbers = Numbers::Doubles;
    Writer { text, bytes: text.as_bytes(), at: 0, numbers, drops_empty: true }.value(out);
}

/// The canonical form of the text of a value, which must be one that [`JsonText`] holds.
pub(super) fn write_text(out: &mut Vec<u8>, text: &str, numbers: Numbers) {
    Writer { text, bytes: text.as_bytes(), at: 0, numbers, drops_empty: false }.value(out);
}

struct Writer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    numbers: Numbers,
    drops_empty: bool,
}

/// A member that was written: its key as text, and its position.
struct Member<'a> {
    key: Cow<'a, str>,
    start: usize,
    end: usize,
}

impl<'a> Writer<'a> {
    fn value(&mut self, out: &mut Vec<u8>) {
        match self.peek() {
            b'{' => self.object(out),
            b'[' => self.array(out),
            b'"' => {
                let raw = self.string();
                write_string(out, raw, &unescaped(raw));
            }
            b'-' | b'0'..=b'9' => {
                let start = self.at;
                while matches!(self.peek(), b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9') {
                    self.at += 1;
                }
                number::write(out, &self.text[start..self.at], self.numbers);
            }
            // true, false, null
            _ => {
                let start = self.at;
                while self.peek().is_ascii_lowercase() {
                    self.at += 1;
                }
                out.extend_from_slice(&self.bytes[start..self.at]);
            }
        }
    }

    fn array(&mut self, out: &mut Vec<u8>) {
        out.push(self.step());
        let first = out.len();
        while self.peek() != b']' {
            let start = out.len();
            self.value(out);
            if self.drops(&out[start..]) {
                out.truncate(start);
            } else {
                // A comma is written after each item, and removed after the last.
                out.push(b',');
            }
            if self.peek() == b',' {
                self.at += 1;
            }
        }
        if out.len() > first {
            out.pop();
        }
        out.push(self.step());
    }

    fn object(&mut self, out: &mut Vec<u8>) {
        out.push(self.step());
        let first = out.len();
        let mut members: Vec<Member<'a>> = Vec::new();
        let mut sorted = true;
        while self.peek() == b'"' {
            let raw = self.string();
            let key = unescaped(raw);
            let start = out.len();
            write_string(out, raw, &key);
            out.push(self.step());
            let value = out.len();
            self.value(out);
            if self.drops(&out[value..]) {
                out.truncate(start);
                if self.peek() == b',' {
                    self.at += 1;
                }
                continue;
            }
            sorted &= members.last().is_none_or(|last| order(&last.key, &key) == Ordering::Less);
            members.push(Member { key, start, end: out.len() });
            // A comma is written after each member, and removed after the last.
            out.push(b',');
            if self.peek() == b',' {
                self.at += 1;
            }
        }
        if !members.is_empty() {
            out.pop();
        }
        if !sorted {
            members.sort_by(|one, other| order(&one.key, &other.key));
            let written = out[first..].to_vec();
            out.truncate(first);
            for (place, member) in members.iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(&written[member.start - first..member.end - first]);
            }
        }
        out.push(self.step());
    }

    /// Whether a value that was written is left out.
    fn drops(&self, written: &[u8]) -> bool {
        self.drops_empty && matches!(written, b"null" | b"\"\"" | b"[]" | b"{}")
    }

    /// The string here, with its quotes.
    fn string(&mut self) -> &'a str {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        &self.text[start..self.at]
    }

    /// 0 at the end of the text; JSON never contains it.
    fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or_default()
    }

    fn step(&mut self) -> u8 {
        let byte = self.peek();
        self.at += 1;
        byte
    }
}

fn unescaped(raw: &str) -> Cow<'_, str> {
    JsonText::unescape(raw).unwrap_or_default()
}

/// A string without escapes is canonical already.
fn write_string(out: &mut Vec<u8>, raw: &str, value: &str) {
    match raw.contains('\\') {
        true => string(out, value),
        false => out.extend_from_slice(raw.as_bytes()),
    }
}

/// By UTF-16 code units, whose order differs from UTF-8 outside the basic multilingual plane.
fn order(one: &str, other: &str) -> Ordering {
    if one.is_ascii() && other.is_ascii() {
        return one.cmp(other);
    }
    one.encode_utf16().cmp(other.encode_utf16())
}
