//! Free-form JSON: `metadata`, `data` and extension `params`.
//!
//! Kept as minified text, never as a tree: a number keeps its spelling (`1.0` and `1e2` would change if converted to
//! `f64`), members keep their order, and encoding is a copy. The text has no line breaks outside strings, and JSON
//! forbids raw ones inside, so it always fits on one SSE `data:` line.

mod scan;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

/// Any JSON value as minified text.
///
/// Number spelling, string escapes and member order survive; whitespace outside strings is dropped;
/// duplicate keys are refused (compared after unescaping); depth is bounded. Equality is equality of text, so
/// `1.0` differs from `1` and `{"a":1,"b":2}` from `{"b":2,"a":1}`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JsonText(Box<str>);

/// A [`JsonText`] known to be an object, as `metadata` must be.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JsonObject(JsonText);

/// The type of a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JsonKind {
    /// `{…}`
    Object,
    /// `[…]`
    Array,
    /// `"…"`
    String,
    /// `1.5`
    Number,
    /// `true` or `false`
    Bool,
    /// `null`
    Null,
}

/// See [`JsonText::shape`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JsonShape {
    /// The largest number of members of any object.
    pub keys: usize,
    /// The deepest nesting of arrays and objects.
    pub depth: usize,
}

/// Why a text was refused. `at` is a byte offset into the given text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonRefused {
    /// It is not JSON.
    #[error("not valid JSON at byte {at}")]
    Syntax {
        /// Where.
        at: usize,
    },
    /// An object has a member twice. `key` is unescaped and shortened to [`JsonRefused::KEY_CHARS`].
    #[error("duplicate key {key:?} at byte {at}")]
    DuplicateKey {
        /// Which.
        key: String,
        /// Where the second one is.
        at: usize,
    },
    /// It is nested too deeply; a peer might not be able to read it.
    #[error("JSON nested deeper than {limit} levels")]
    TooDeep {
        /// How deep it may be.
        limit: usize,
    },
    /// It is valid JSON, but not an object.
    #[error("JSON value is not an object")]
    NotAnObject,
}

impl JsonRefused {
    /// A key may be as long as the request; the copy in an error message must be short.
    pub const KEY_CHARS: usize = 64;
}

impl JsonText {
    /// The deepest nesting of arrays and objects. Below the 127 that `serde_json` allows, so that a peer can still read
    /// the value after it was wrapped in a task, an event and an envelope.
    pub const MAX_DEPTH: usize = 100;

    /// The deepest nesting of a whole answer, which wraps such values. It is what `serde_json` allows.
    pub const MAX_ANSWER_DEPTH: usize = 127;

    /// Refuses an answer that is nested too deeply. For text that is kept as it came: values that nobody reads may be nested
    /// without end. The syntax is not checked.
    pub fn check_answer_depth(text: &str) -> Result<(), JsonRefused> {
        match scan::depth(text.as_bytes()) > Self::MAX_ANSWER_DEPTH {
            true => Err(JsonRefused::TooDeep { limit: Self::MAX_ANSWER_DEPTH }),
            false => Ok(()),
        }
    }

    /// Checks and minifies a text.
    pub fn parse(text: &str) -> Result<Self, JsonRefused> {
        scan::minify(text).map(Self)
    }

    /// The largest number of members of any object, and the deepest nesting.
    pub fn shape(&self) -> JsonShape {
        scan::shape(self.as_str().as_bytes())
    }

    /// `null`
    pub fn null() -> Self {
        Self("null".into())
    }

    /// The JSON string whose value is `s`.
    pub fn from_string_value(s: &str) -> Self {
        Self(scan::escape(s).into_boxed_str())
    }

    /// The minified text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The value of a string literal, which is given with its quotes. `None` if it is not one.
    pub(crate) fn unescape(literal: &str) -> Option<Cow<'_, str>> {
        scan::unescape(literal)
    }

    /// The type of the value.
    pub fn kind(&self) -> JsonKind {
        match self.0.as_bytes().first() {
            Some(b'{') => JsonKind::Object,
            Some(b'[') => JsonKind::Array,
            Some(b'"') => JsonKind::String,
            Some(b't' | b'f') => JsonKind::Bool,
            Some(b'n') => JsonKind::Null,
            _ => JsonKind::Number,
        }
    }
}

impl JsonObject {
    /// Checks and minifies a text that must be an object.
    pub fn parse(text: &str) -> Result<Self, JsonRefused> {
        JsonText::parse(text)?.try_into()
    }

    /// `{}`
    pub fn empty() -> Self {
        Self(JsonText("{}".into()))
    }

    /// The minified text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// True for `{}`.
    pub fn is_empty(&self) -> bool {
        self.as_str() == "{}"
    }

    /// See [`JsonText::shape`].
    pub fn shape(&self) -> JsonShape {
        self.0.shape()
    }

    /// The raw text of the top-level member `key` (unescaped). Scans the text each time, so it is meant for single
    /// look-ups.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.members().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Top-level members in order: unescaped key, raw value.
    pub fn members(&self) -> Members<'_> {
        Members { text: self.as_str(), at: 1 }
    }
}

impl TryFrom<JsonText> for JsonObject {
    type Error = JsonRefused;

    fn try_from(text: JsonText) -> Result<Self, JsonRefused> {
        match text.kind() {
            JsonKind::Object => Ok(Self(text)),
            _ => Err(JsonRefused::NotAnObject),
        }
    }
}

impl From<JsonObject> for JsonText {
    fn from(object: JsonObject) -> Self {
        object.0
    }
}

impl fmt::Display for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for JsonObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// See [`JsonObject::members`].
#[derive(Debug, Clone)]
pub struct Members<'a> {
    /// The whole object, already validated and minified.
    text: &'a str,
    /// At a key's opening quote, or at the closing brace.
    at: usize,
}

impl<'a> Iterator for Members<'a> {
    type Item = (Cow<'a, str>, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.text.as_bytes();
        if bytes.get(self.at) != Some(&b'"') {
            return None;
        }
        let colon = scan::string_end(bytes, self.at);
        let end = scan::value_end(bytes, colon + 1);
        let key = scan::unescape(&self.text[self.at..colon]).expect("strings were validated by parse");
        let value = &self.text[colon + 1..end];
        // Minified, so what follows is `,` and the next key, or the closing brace.
        self.at = if bytes.get(end) == Some(&b',') { end + 1 } else { end };
        Some((key, value))
    }
}
