//! Lenient JSON parsing.

use serde_json::Value;

/// Parses JSON. The grammar allows an escape for half a surrogate pair, which is not valid text: it is read as U+FFFD,
/// so that the rest of the answer can be used.
pub fn read(bytes: &[u8]) -> Option<Value> {
    match serde_json::from_slice(bytes) {
        Ok(value) => Some(value),
        Err(_) => serde_json::from_str(&whole_pairs(std::str::from_utf8(bytes).ok()?)?).ok(),
    }
}

/// The text with every lone surrogate replaced; `None` if there are none.
fn whole_pairs(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut changed) = (text, false);
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let unit = |text: &str| u16::from_str_radix(text.strip_prefix('u')?.get(..4)?, 16).ok();
        let next = |text: &str| unit(text.get(5..)?.strip_prefix('\\')?);
        match unit(after) {
            Some(0xd800..=0xdbff) if next(after).is_some_and(|low| (0xdc00..=0xdfff).contains(&low)) => {
                out.push('\\');
                out.push_str(&after[..11]);
                rest = &after[11..];
            }
            Some(0xd800..=0xdfff) => {
                out.push_str("\\ufffd");
                rest = &after[5..];
                changed = true;
            }
            _ => {
                // Skip the escaped character, which may be a backslash.
                let length = after.chars().next().map_or(0, char::len_utf8);
                out.push('\\');
                out.push_str(&after[..length]);
                rest = &after[length..];
            }
        }
    }
    out.push_str(rest);
    changed.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lone_surrogates_do_not_spoil_an_answer() {
        for (text, value) in [
            (r#"{"a": 1}"#, json!({"a": 1})),
            (r#""\ud83c\udfc3""#, json!("\u{1f3c3}")),
            (r#""a\ud800b""#, json!("a\u{fffd}b")),
            (r#""\udc00""#, json!("\u{fffd}")),
            (r#""\ud800\ud83c\udfc3""#, json!("\u{fffd}\u{1f3c3}")),
            (r#"["\ud800", "\\ud800"]"#, json!(["\u{fffd}", "\\ud800"])),
        ] {
            assert_eq!(read(text.as_bytes()), Some(value), "{text}");
        }
        for bad in [&b"{"[..], b"\"\\ud80", b"\"\\ud800", b"\xff\"\\ud800\"", b""] {
            assert_eq!(read(bad), None);
        }
    }
}
