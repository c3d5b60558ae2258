//! JSON as it was received, with other white space only: members keep their order and numbers their spelling.

use std::fmt::Write as _;

use super::safe::is_unsafe;

/// On one line, for JSON Lines.
pub(crate) fn compact(json: &str) -> String {
    written(json, None)
}

/// Over several lines, for people; ends without a line break.
pub(crate) fn pretty(json: &str) -> String {
    written(json, Some(0))
}

/// `json` must be valid. Inside strings, characters that a terminal could obey are written as `\u` escapes, which does not
/// change the value.
fn written(json: &str, mut level: Option<usize>) -> String {
    let mut out = String::with_capacity(json.len());
    let mut chars = json.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => string(&mut out, &mut chars),
            '{' | '[' => {
                out.push(c);
                while chars.next_if(|c| c.is_ascii_whitespace()).is_some() {}
                if let Some(end) = chars.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(end);
                } else if let Some(level) = &mut level {
                    *level += 1;
                    new_line(&mut out, *level);
                }
            }
            '}' | ']' => {
                if let Some(level) = &mut level {
                    *level = level.saturating_sub(1);
                    new_line(&mut out, *level);
                }
                out.push(c);
            }
            ',' => {
                out.push(c);
                if let Some(level) = level {
                    new_line(&mut out, level);
                }
            }
            ':' => out.push_str(if level.is_some() { ": " } else { ":" }),
            c if c.is_ascii_whitespace() => {}
            c => out.push(c),
        }
    }
    out
}

fn new_line(out: &mut String, level: usize) {
    out.push('\n');
    (0..level).for_each(|_| out.push_str("  "));
}

/// The rest of a string literal.
fn string(out: &mut String, chars: &mut impl Iterator<Item = char>) {
    out.push('"');
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                out.push(c);
                out.extend(chars.next());
                continue;
            }
            c if is_unsafe(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to a string cannot fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
        if c == '"' {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_white_space_changes() {
        let given = r#" { "b" : [ 1.0 , 1e2 ,[ ], { } ], "a" : "x \" , \\" ,"n":null } "#;
        assert_eq!(compact(given), r#"{"b":[1.0,1e2,[],{}],"a":"x \" , \\","n":null}"#);
        let expected = "{\n  \"b\": [\n    1.0,\n    1e2,\n    [],\n    {}\n  ],\n  \"a\": \"x \\\" , \\\\\",\n  \"n\": null\n}";
        assert_eq!(pretty(given), expected);
        assert_eq!(pretty("7"), "7");
    }

    #[test]
    fn characters_that_a_terminal_obeys_are_escaped_and_mean_the_same() {
        let given = "{\"a\":\"\u{9b}31m\u{202e}\u{e0041}é\"}";
        let written = compact(given);
        assert_eq!(written, r#"{"a":"\u009b31m\u202e\udb40\udc41é"}"#);
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&written), value(given));
    }
}
