//! One pass over a JSON text: validates (RFC 8259), finds duplicate keys, and copies what is not whitespace.
//!
//! `serde_json` is not asked to validate: its raw values skip strings without checking surrogates, it keeps
//! no record of keys, and it does not minify.

use std::borrow::Cow;
use std::collections::HashSet;

use memchr::memchr2;

use super::{JsonRefused, JsonShape, JsonText};

pub(super) fn minify(text: &str) -> Result<Box<str>, JsonRefused> {
    let mut scan = Scanner { text, bytes: text.as_bytes(), at: 0, run: 0, out: String::new() };
    scan.drop_space();
    scan.value(0)?;
    let end = scan.at;
    // Not dropped but left out: a lone trailing newline must not cost a second copy.
    scan.skip_space();
    if scan.at != text.len() {
        return Err(scan.syntax());
    }
    Ok(scan.finish(end))
}

struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// Where the text not yet copied to `out` begins.
    run: usize,
    /// Stays unallocated until whitespace is met in the middle; minified input is copied once, at the end.
    out: String,
}

/// Recursion is bounded by `JsonText::MAX_DEPTH`, so the stack is too.
impl<'a> Scanner<'a> {
    fn value(&mut self, depth: usize) -> Result<(), JsonRefused> {
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(drop),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal(b"true"),
            Some(b'f') => self.literal(b"false"),
            Some(b'n') => self.literal(b"null"),
            _ => Err(self.syntax()),
        }
    }

    fn object(&mut self, depth: usize) -> Result<(), JsonRefused> {
        self.open(depth)?;
        if self.take(b'}') {
            return Ok(());
        }
        let mut seen = SeenKeys::default();
        loop {
            let at = self.at;
            if let Err(key) = seen.insert(self.key()?) {
                let key = key.chars().take(JsonRefused::KEY_CHARS).collect();
                return Err(JsonRefused::DuplicateKey { key, at });
            }
            self.drop_space();
            if !self.take(b':') {
                return Err(self.syntax());
            }
            self.drop_space();
            self.value(depth + 1)?;
            self.drop_space();
            if self.take(b'}') {
                return Ok(());
            }
            if !self.take(b',') {
                return Err(self.syntax());
            }
            self.drop_space();
        }
    }

    fn array(&mut self, depth: usize) -> Result<(), JsonRefused> {
        self.open(depth)?;
        if self.take(b']') {
            return Ok(());
        }
        loop {
            self.value(depth + 1)?;
            self.drop_space();
            if self.take(b']') {
                return Ok(());
            }
            if !self.take(b',') {
                return Err(self.syntax());
            }
            self.drop_space();
        }
    }

    /// Steps over the opening bracket and the space behind it.
    fn open(&mut self, depth: usize) -> Result<(), JsonRefused> {
        if depth == JsonText::MAX_DEPTH {
            return Err(JsonRefused::TooDeep { limit: JsonText::MAX_DEPTH });
        }
        self.at += 1;
        self.drop_space();
        Ok(())
    }

    fn key(&mut self) -> Result<Cow<'a, str>, JsonRefused> {
        if self.peek() != Some(b'"') {
            return Err(self.syntax());
        }
        let start = self.at;
        let text = self.text;
        if self.string()? {
            unescape(&text[start..self.at]).ok_or(JsonRefused::Syntax { at: start })
        } else {
            Ok(Cow::Borrowed(&text[start + 1..self.at - 1]))
        }
    }

    /// Whether the string has escapes.
    fn string(&mut self) -> Result<bool, JsonRefused> {
        let mut escaped = false;
        self.at += 1;
        loop {
            self.at += plain_run(&self.bytes[self.at..]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    self.at += self.escape_len().ok_or_else(|| self.syntax())?;
                    escaped = true;
                }
                _ => return Err(self.syntax()),
            }
        }
    }

    /// The length of the escape at the backslash here, a surrogate pair counting as one. A lone surrogate is
    /// no Unicode text: no Rust peer could read it as a string.
    fn escape_len(&self) -> Option<usize> {
        match self.bytes.get(self.at + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
            b'u' => match self.hex4(self.at + 2)? {
                0xD800..=0xDBFF => {
                    let paired = self.bytes.get(self.at + 6..self.at + 8) == Some(b"\\u")
                        && matches!(self.hex4(self.at + 8), Some(0xDC00..=0xDFFF));
                    paired.then_some(12)
                }
                0xDC00..=0xDFFF => None,
                _ => Some(6),
            },
            _ => None,
        }
    }

    fn hex4(&self, at: usize) -> Option<u32> {
        let digits = self.bytes.get(at..at + 4)?;
        digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | char::from(*digit).to_digit(16)?))
    }

    fn number(&mut self) -> Result<(), JsonRefused> {
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            if !self.take(b'+') {
                self.take(b'-');
            }
            self.digits()?;
        }
        Ok(())
    }

    /// One digit or more.
    fn digits(&mut self) -> Result<(), JsonRefused> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(self.syntax()) } else { Ok(()) }
    }

    fn literal(&mut self, word: &[u8]) -> Result<(), JsonRefused> {
        if !self.bytes[self.at..].starts_with(word) {
            return Err(self.syntax());
        }
        self.at += word.len();
        Ok(())
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let here = self.peek() == Some(byte);
        self.at += usize::from(here);
        here
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Skips whitespace and keeps it out of the copy.
    fn drop_space(&mut self) {
        let end = self.at;
        self.skip_space();
        if self.at == end {
            return;
        }
        if self.run < end {
            if self.out.is_empty() {
                self.out.reserve_exact(self.text.len() - self.run);
            }
            self.out.push_str(&self.text[self.run..end]);
        }
        self.run = self.at;
    }

    fn finish(mut self, end: usize) -> Box<str> {
        let rest = &self.text[self.run..end];
        if self.out.is_empty() {
            return rest.into();
        }
        self.out.push_str(rest);
        self.out.into_boxed_str()
    }

    fn syntax(&self) -> JsonRefused {
        JsonRefused::Syntax { at: self.at }
    }
}

/// The keys of one object so far. Most objects are small, and comparing a few strings is cheaper than hashing
/// one; past that a set (with the standard keyed hasher, for keys come from strangers) keeps it linear.
#[derive(Default)]
struct SeenKeys<'a> {
    few: [&'a str; SeenKeys::FEW],
    len: usize,
    /// Once there, it holds all keys. An escaped key needs it too: `few` owns nothing.
    many: Option<HashSet<Cow<'a, str>>>,
}

impl<'a> SeenKeys<'a> {
    const FEW: usize = 12;

    /// Gives the key back if it was there.
    fn insert(&mut self, key: Cow<'a, str>) -> Result<(), Cow<'a, str>> {
        if let (Cow::Borrowed(key), None) = (&key, &self.many)
            && self.len < Self::FEW
        {
            if self.few[..self.len].contains(key) {
                return Err(Cow::Borrowed(key));
            }
            self.few[self.len] = key;
            self.len += 1;
            return Ok(());
        }
        let few = &self.few[..self.len];
        let many = self.many.get_or_insert_with(|| few.iter().map(|key| Cow::Borrowed(*key)).collect());
        many.replace(key).map_or(Ok(()), Err)
    }
}

/// The value of a string given with its quotes; `None` only if it is not a valid one.
pub(super) fn unescape(quoted: &str) -> Option<Cow<'_, str>> {
    let inner = quoted.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.contains('\\') {
        return Some(Cow::Borrowed(inner));
    }
    let mut value = String::with_capacity(inner.len());
    let mut rest = inner.chars();
    while let Some(character) = rest.next() {
        if character != '\\' {
            value.push(character);
            continue;
        }
        value.push(match rest.next()? {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => match four_digits(&mut rest)? {
                high @ 0xd800..=0xdbff => {
                    let (backslash, u) = (rest.next()?, rest.next()?);
                    let low = four_digits(&mut rest).filter(|low| (0xdc00..=0xdfff).contains(low))?;
                    if (backslash, u) != ('\\', 'u') {
                        return None;
                    }
                    char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))?
                }
                unit => char::from_u32(unit)?,
            },
            itself @ ('"' | '\\' | '/') => itself,
            _ => return None,
        });
    }
    Some(Cow::Owned(value))
}

fn four_digits(rest: &mut std::str::Chars<'_>) -> Option<u32> {
    (0..4).try_fold(0, |number, _| Some(number * 16 + rest.next()?.to_digit(16)?))
}

/// The JSON string whose value is `value`, quotes included.
pub(super) fn escape(value: &str) -> String {
    let mut out = String::with_capacity(value.len() + 2);
    out.push('"');
    for character in value.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            control if control < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

/// Of text already validated.
pub(super) fn shape(bytes: &[u8]) -> JsonShape {
    let (mut shape, mut open, mut at) = (JsonShape::default(), Vec::new(), 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = string_end(bytes, at);
                continue;
            }
            b'{' | b'[' => {
                open.push(0);
                shape.depth = shape.depth.max(open.len());
            }
            // Outside strings there is one for each member of an object, and none in arrays.
            b':' => {
                if let Some(keys) = open.last_mut() {
                    *keys += 1;
                    shape.keys = shape.keys.max(*keys);
                }
            }
            b'}' | b']' => drop(open.pop()),
            _ => {}
        }
        at += 1;
    }
    shape
}

/// The deepest nesting of any text: it need not be JSON.
pub(super) fn depth(bytes: &[u8]) -> usize {
    let (mut deepest, mut open, mut at) = (0_usize, 0_usize, 0);
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'"' => loop {
                let Some(found) = bytes.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) else {
                    return deepest;
                };
                at += found + 1;
                if bytes[at - 1] == b'"' {
                    break;
                }
                // What is escaped is no end.
                at += 1;
            },
            b'{' | b'[' => {
                open += 1;
                deepest = deepest.max(open);
            }
            b'}' | b']' => open = open.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Just past the string that opens at `at`, in text already validated.
pub(super) fn string_end(bytes: &[u8], mut at: usize) -> usize {
    at += 1;
    loop {
        at += plain_run(&bytes[at..]);
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
}

/// Just past the value that begins at `at` inside an object, in text already validated.
pub(super) fn value_end(bytes: &[u8], mut at: usize) -> usize {
    let mut open = 0_usize;
    loop {
        match bytes[at] {
            b'"' => at = string_end(bytes, at),
            b'{' | b'[' => {
                open += 1;
                at += 1;
                continue;
            }
            b'}' | b']' if open > 0 => {
                open -= 1;
                at += 1;
            }
            b'}' | b']' | b',' if open == 0 => return at,
            _ => {
                at += 1;
                continue;
            }
        }
        if open == 0 {
            return at;
        }
    }
}

/// How many bytes at the front are neither a quote, a backslash nor a control character.
fn plain_run(bytes: &[u8]) -> usize {
    let end = memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len());
    let run = &bytes[..end];
    // All bytes are looked at, which the compiler does for many at once; as a rule there is nothing to be found.
    let has_control = run.iter().fold(false, |found, byte| found | (*byte < b' '));
    if has_control { run.iter().take_while(|byte| **byte >= b' ').count() } else { end }
}
