//! Percent-encoding; decoding is strict.

use std::borrow::Cow;

/// Decodes once. Broken escapes and bytes that are not UTF-8 are refused.
pub(super) fn decode(text: &str) -> Option<Cow<'_, str>> {
    decode_with(text, false)
}

/// Decodes a name or a value of a query: as in forms, a plus means a space. Broken escapes and bytes that are not UTF-8
/// are refused.
pub fn decode_form(text: &str) -> Option<Cow<'_, str>> {
    decode_with(text, true)
}

fn decode_with(text: &str, plus_is_space: bool) -> Option<Cow<'_, str>> {
    if !text.bytes().any(|byte| byte == b'%' || (plus_is_space && byte == b'+')) {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = match (first, tail) {
            (b'%', [high, low, tail @ ..]) => {
                bytes.push(hex(*high)? << 4 | hex(*low)?);
                tail
            }
            (b'%', _) => return None,
            (b'+', tail) if plus_is_space => {
                bytes.push(b' ');
                tail
            }
            (byte, tail) => {
                bytes.push(*byte);
                tail
            }
        };
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// Encodes a name or a value of a query or a form: everything but RFC 3986's unreserved characters.
pub fn encode_form(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    encode(&mut encoded, text);
    encoded
}

/// Encodes everything but RFC 3986's unreserved characters; also colons, since a raw colon starts a verb.
pub(super) fn encode(out: &mut String, text: &str) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(DIGITS[usize::from(byte >> 4)]));
            out.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
}

/// Decodes an id in a path segment. Ids name store keys, never files; but an id that could be a path traversal, if a
/// proxy decodes it once more, is refused.
pub(super) fn decode_id(segment: &str) -> Option<String> {
    let id = decode(segment)?.into_owned();
    let mut layer = id.clone();
    for _ in 0..MOST_LAYERS {
        if climbs(&layer) {
            return None;
        }
        match decode(&layer) {
            Some(next) if next != layer => layer = next.into_owned(),
            _ => return Some(id),
        }
    }
    None
}

/// An id that is escaped more often than this is refused.
const MOST_LAYERS: usize = 4;

fn climbs(text: &str) -> bool {
    // Some servers ignore what follows `;` in a segment.
    let up = |piece: &str| matches!(piece.split(';').next(), Some("." | ".."));
    text.chars().any(|it| it == '\\' || it.is_control()) || text.split('/').any(up)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_decodes() {
        for text in ["", "a", "a b+c", "ünï/👩‍🚀", "a:b:cancel", "%41", "100%", "\0\n\u{7f}"] {
            let encoded = encode_form(text);
            assert!(encoded.bytes().all(|byte| byte.is_ascii_graphic()), "{encoded}");
            assert_eq!(decode(&encoded).as_deref(), Some(text));
            assert_eq!(decode_form(&encoded).as_deref(), Some(text));
        }
    }

    #[test]
    fn broken_escapes_are_refused() {
        for text in ["%", "a%4", "%zz", "%+1", "%-1", "%ff", "%c0%ae", "%e2%82", "%ed%a0%80"] {
            assert_eq!(decode(text), None, "{text}");
        }
        assert_eq!(decode("%e2%82%ac%C3%a9").as_deref(), Some("€é"));
    }

    #[test]
    fn a_plus_is_a_space_in_forms_only() {
        for (text, form) in [("a+b%2B", Some("a b+")), ("+", Some(" ")), ("a", Some("a")), ("a+%", None)] {
            assert_eq!(decode_form(text).as_deref(), form, "{text}");
        }
        assert_eq!(decode("a+b%2B").as_deref(), Some("a+b+"));
    }

    #[test]
    fn an_id_is_decoded_once() {
        for (segment, id) in [
            ("a%20b", "a b"),
            ("a%2520b", "a%20b"),
            ("a%2Fb", "a/b"),
            ("a%3Acancel", "a:cancel"),
            ("100%25", "100%"),
            ("v1.2..3", "v1.2..3"),
            ("...", "..."),
        ] {
            assert_eq!(decode_id(segment).as_deref(), Some(id));
        }
        for segment in [
            ".",
            "..",
            "%2e%2E",
            "..%2f",
            "a%2f..",
            "%252e",
            "%25252e%25252e",
            "a%5Cb",
            "a%255cb",
            "..;x",
            "%00",
        ] {
            assert_eq!(decode_id(segment), None, "{segment}");
        }
    }
}
