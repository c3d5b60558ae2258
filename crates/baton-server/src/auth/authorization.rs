//! The one reader of the `Authorization` header (RFC 9110, section 11.4), for all schemes that use it.
//!
//! It is strict, because a proxy in front may have checked the same header: what two readers could take for different
//! credentials is refused, such as a second header, a list of credentials or a parameter that is there twice.

use std::borrow::Cow;

use http::HeaderMap;
use http::header::AUTHORIZATION;

/// Most parameters in one header, empty list elements included. Digest has eleven.
const MAX_PARAMETERS: usize = 32;

/// What the request's `Authorization` header has for one scheme.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    /// There is no such header, or it is for another scheme.
    Absent,
    /// The header names the scheme, but cannot be used; this says why and may be shown.
    Malformed(&'static str),
    Credentials(Credentials<'a>),
}

/// What follows the name of the scheme. It has no `Debug`, since it is a secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Credentials<'a>(&'a [u8]);

/// The credentials of this scheme, such as `basic`; its case does not matter.
pub(crate) fn find<'a>(headers: &'a HeaderMap, scheme: &str) -> Found<'a> {
    let mut found = Found::Absent;
    let mut count = 0;
    for value in headers.get_all(AUTHORIZATION) {
        count += 1;
        let value = value.as_bytes();
        let end = value.iter().position(|byte| !is_token(*byte)).unwrap_or(value.len());
        let (name, rest) = value.split_at(end);
        if !name.eq_ignore_ascii_case(scheme.as_bytes()) {
            continue;
        }
        let credentials = trim_spaces(rest);
        found = if credentials.len() == rest.len() || credentials.is_empty() {
            Found::Malformed("no credentials after the scheme")
        } else {
            Found::Credentials(Credentials(credentials))
        };
    }
    if count > 1 && found != Found::Absent {
        return Found::Malformed("more than one Authorization header");
    }
    found
}

impl<'a> Credentials<'a> {
    /// The bytes after the scheme and its spaces.
    pub(crate) fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// One token, as `Basic` and `Bearer` have it: letters, digits, `-._~+/`, then any number of `=`.
    pub(crate) fn token68(&self) -> Result<&'a str, &'static str> {
        let is_letter = |byte: &u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/')
        };
        let body = self.0.iter().position(|byte| !is_letter(byte)).unwrap_or(self.0.len());
        let is_token = body > 0 && self.0[body..].iter().all(|byte| *byte == b'=');
        let text = std::str::from_utf8(self.0).ok().filter(|_| is_token);
        text.ok_or("the credentials are not one token")
    }

    /// Parameters, as `Digest` has them: `name=token` or `name="text"`, with commas between.
    pub(crate) fn parameters(&self) -> Result<Parameters<'a>, &'static str> {
        let text = std::str::from_utf8(self.0).map_err(|_| "the credentials are not UTF-8")?;
        let mut parameters = Parameters(Vec::new());
        let mut rest = text;
        for _ in 0..MAX_PARAMETERS {
            rest = rest.trim_start_matches([' ', '\t']);
            if !rest.is_empty() && !rest.starts_with(',') {
                let (name, value, after) = parameter(rest)?;
                if parameters.get(name).is_some() {
                    return Err("a parameter is there twice");
                }
                parameters.0.push((name, value));
                rest = after.trim_start_matches([' ', '\t']);
            }
            if rest.is_empty() {
                return Ok(parameters);
            }
            // RFC 9110, section 5.6.1.2: empty elements of a list are skipped.
            rest = rest.strip_prefix(',').ok_or("no comma between two parameters")?;
        }
        Err("too many parameters")
    }
}

/// Named values in the order of the header. A name is there once, and its case does not matter.
pub(crate) struct Parameters<'a>(Vec<(&'a str, Cow<'a, str>)>);

impl Parameters<'_> {
    #[cfg(any(test, fuzzing))]
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_ref()))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_ref())
    }
}

/// The parameter at the beginning of the text, and what follows it.
fn parameter(text: &str) -> Result<(&str, Cow<'_, str>, &str), &'static str> {
    let (name, rest) = token(text).ok_or("a parameter without a name")?;
    let rest = rest.trim_start_matches([' ', '\t']).strip_prefix('=').ok_or("a parameter without a value")?;
    let rest = rest.trim_start_matches([' ', '\t']);
    if let Some(quoted) = rest.strip_prefix('"') {
        let (value, rest) = quoted_string(quoted)?;
        return Ok((name, value, rest));
    }
    let (value, rest) = token(rest).ok_or("a parameter without a value")?;
    Ok((name, Cow::Borrowed(value), rest))
}

fn token(text: &str) -> Option<(&str, &str)> {
    let end = text.bytes().position(|byte| !is_token(byte)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// The text up to the closing quote, without the backslashes, and what follows the quote. Characters beyond ASCII are
/// accepted, because `curl` sends user names so; control characters are not.
fn quoted_string(text: &str) -> Result<(Cow<'_, str>, &str), &'static str> {
    let mut unescaped: Option<String> = None;
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => {
                let value = unescaped.map_or(Cow::Borrowed(&text[..at]), Cow::Owned);
                return Ok((value, &text[at + 1..]));
            }
            '\\' => {
                let value = unescaped.get_or_insert_with(|| text[..at].to_owned());
                match characters.next() {
                    Some((_, escaped)) if !escaped.is_control() => value.push(escaped),
                    _ => return Err("a backslash in a quoted text escapes nothing"),
                }
            }
            _ if character.is_control() => return Err("a control character in a quoted text"),
            _ => {
                if let Some(value) = &mut unescaped {
                    value.push(character);
                }
            }
        }
    }
    Err("a quoted text has no end")
}

fn trim_spaces(mut bytes: &[u8]) -> &[u8] {
    while let [b' ', rest @ ..] = bytes {
        bytes = rest;
    }
    bytes
}

/// Whether a token of RFC 9110, section 5.6.2, may have this byte.
pub(crate) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(values: &[&[u8]]) -> HeaderMap {
        let values = values.iter().map(|value| HeaderValue::from_bytes(value).unwrap());
        values.map(|value| (AUTHORIZATION, value)).collect()
    }

    /// `-` for absent, `!reason` for malformed, else the credentials.
    fn shown(values: &[&[u8]], scheme: &str) -> String {
        match find(&headers(values), scheme) {
            Found::Absent => "-".to_owned(),
            Found::Malformed(reason) => format!("!{reason}"),
            Found::Credentials(found) => String::from_utf8_lossy(found.0).into_owned(),
        }
    }

    #[test]
    fn a_scheme_finds_only_its_own_credentials() {
        const TWO: &str = "!more than one Authorization header";
        const NONE: &str = "!no credentials after the scheme";
        let table: &[(&[&[u8]], &str)] = &[
            (&[], "-"),
            (&[b""], "-"),
            (&[b"Basic abc"], "abc"),
            (&[b"bASIC abc"], "abc"),
            (&[b"BASIC   abc"], "abc"),
            (&[b"Basic"], NONE),
            (&[b"Basic "], NONE),
            (&[b"Basic\tabc"], NONE),
            (&[b"Basic,abc"], NONE),
            (&[b"Basic=abc"], NONE),
            (&[b"Basic \xff"], "\u{fffd}"),
            (&[b"Basic\xff abc"], NONE),
            (&[b"Basics abc"], "-"),
            (&[b"Bas abc"], "-"),
            (&[b" Basic abc"], "-"),
            (&[b"Bearer Basic abc"], "-"),
            (&[b"Bearer abc, Basic abc"], "-"),
            (&[b"Basic abc, Bearer abc"], "abc, Bearer abc"),
            (&[b"Basic abc", b"Basic abc"], TWO),
            (&[b"Basic abc", b"Bearer abc"], TWO),
            (&[b"Bearer abc", b"Basic abc"], TWO),
            (&[b"Basic", b"Bearer abc"], TWO),
            (&[b"Basic abc", b""], TWO),
            (&[b"Bearer abc", b"Bearer abc"], "-"),
        ];
        for (values, expected) in table {
            assert_eq!(shown(values, "basic"), *expected, "{values:?}");
        }
    }

    #[test]
    fn a_token_is_one_token() {
        for (text, good) in [
            ("a", true),
            ("aA0-._~+/==", true),
            ("a=", true),
            ("=", false),
            ("a=b", false),
            ("a b", false),
            ("a ", false),
            ("a,b", false),
            ("a\tb", false),
            ("a\"", false),
            ("ä", false),
            ("a:b", false),
        ] {
            assert_eq!(Credentials(text.as_bytes()).token68(), text_or_refusal(text, good), "{text:?}");
        }
        assert!(Credentials(b"a\xff").token68().is_err());
    }

    fn text_or_refusal(text: &str, good: bool) -> Result<&str, &'static str> {
        if good { Ok(text) } else { Err("the credentials are not one token") }
    }

    #[test]
    fn parameters_are_tokens_or_quoted() {
        for (text, expected) in [
            ("a=b", &[("a", "b")][..]),
            ("a=b,c=d", &[("a", "b"), ("c", "d")]),
            ("a = b , c\t=\t\"d\"", &[("a", "b"), ("c", "d")]),
            (",, a=b ,, c=d ,", &[("a", "b"), ("c", "d")]),
            ("", &[]),
            (",", &[]),
            (r#"a="""#, &[("a", "")]),
            (r#"a="b, c=d""#, &[("a", "b, c=d")]),
            (r#"a="b\"c\\d\e""#, &[("a", r#"b"c\de"#)]),
            ("a=\"Jäsøn\"", &[("a", "Jäsøn")]),
            ("username*=UTF-8''J%C3%A4s", &[("username*", "UTF-8''J%C3%A4s")]),
            ("A=b", &[("a", "b")]),
        ] {
            let parameters =
                Credentials(text.as_bytes()).parameters().unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(parameters.0.len(), expected.len(), "{text}");
            for (name, value) in expected {
                assert_eq!(parameters.get(name), Some(*value), "{text}");
            }
        }
    }

    #[test]
    fn other_parameters_are_refused() {
        let many = "a,".repeat(MAX_PARAMETERS);
        let empty = ",".repeat(MAX_PARAMETERS);
        for text in [
            "a",
            "a=",
            "=b",
            "a=b c=d",
            "a=b;c=d",
            "a=b=c",
            "a=/x",
            "a=ä",
            "ä=b",
            "a=\"b",
            "a=\"b\\",
            "a=\"b\\\"",
            "a=\"b\"c",
            "a=\"b\"\"c\"",
            "a=\"b\tc\"",
            "a=\"b\u{85}c\"",
            "a=\"\\\tc\"",
            "a=b,a=b",
            "a=b,A=c",
            &many,
            &empty,
        ] {
            assert!(Credentials(text.as_bytes()).parameters().is_err(), "{text:?}");
        }
        assert!(Credentials(b"a=\"\xff\"").parameters().is_err());
    }
}
