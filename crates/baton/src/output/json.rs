//! JSON as it was received, with other white space only: members keep their order and numbers their spelling.

use std::io::{self, Write};

use super::safe::is_unsafe;

/// What is nested deeper stays on one line: an agent may nest without end, and the indentation would grow with the square
/// of the depth.
const DEEPEST_INDENTED: usize = 50;
/// Larger data is not indented for people: indentation can make it a hundred times as large.
const LARGEST_INDENTED: usize = 64 << 10;

/// On one line, for JSON Lines.
pub(crate) fn compact(json: &str) -> String {
    written(json, false)
}

/// Over several lines, for people; ends without a line break.
pub(crate) fn pretty(json: &str) -> String {
    written(json, json.len() <= LARGEST_INDENTED)
}

fn written(json: &str, indented: bool) -> String {
    let mut out = Vec::with_capacity(json.len());
    // Writing to memory cannot fail.
    let _ = write(&mut out, json, indented);
    String::from_utf8_lossy(&out).into_owned()
}

/// `json` must be valid. Inside strings, characters that a terminal could obey are written as `\u` escapes, which does not
/// change the value. What stays as it is, is written in pieces as large as possible.
pub(crate) fn write(out: &mut impl Write, json: &str, indented: bool) -> io::Result<()> {
    let mut pieces = Pieces { out, json, done: 0 };
    let mut depth = 0_usize;
    let breaks = |depth: usize| indented && depth <= DEEPEST_INDENTED;
    let mut chars = json.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => string(&mut pieces, &mut chars)?,
            '{' | '[' => {
                while let Some((space, _)) = chars.next_if(|(_, c)| c.is_ascii_whitespace()) {
                    pieces.instead(space, 1, b"")?;
                }
                if chars.next_if(|(_, next)| matches!(next, '}' | ']')).is_some() {
                    continue;
                }
                depth += 1;
                if breaks(depth) {
                    let next = chars.peek().map_or(json.len(), |(next, _)| *next);
                    pieces.new_line(next, depth)?;
                }
            }
            '}' | ']' => {
                if breaks(depth) {
                    pieces.new_line(at, depth.saturating_sub(1))?;
                }
                depth = depth.saturating_sub(1);
            }
            ',' if breaks(depth) => pieces.new_line(at + 1, depth)?,
            ':' if indented => pieces.instead(at + 1, 0, b" ")?,
            c if c.is_ascii_whitespace() => pieces.instead(at, 1, b"")?,
            _ => {}
        }
    }
    pieces.up_to(json.len())
}

/// The text, as far as it is written.
struct Pieces<'a, W> {
    out: &'a mut W,
    json: &'a str,
    done: usize,
}

impl<W: Write> Pieces<'_, W> {
    fn up_to(&mut self, at: usize) -> io::Result<()> {
        self.out.write_all(&self.json.as_bytes()[self.done..at])?;
        self.done = at;
        Ok(())
    }

    /// Something else in place of so many bytes.
    fn instead(&mut self, at: usize, bytes: usize, other: &[u8]) -> io::Result<()> {
        self.up_to(at)?;
        self.done += bytes;
        self.out.write_all(other)
    }

    fn new_line(&mut self, at: usize, depth: usize) -> io::Result<()> {
        self.instead(at, 0, b"\n")?;
        (0..depth).try_for_each(|_| self.out.write_all(b"  "))
    }
}

/// The rest of a string literal.
fn string<W: Write>(
    pieces: &mut Pieces<'_, W>,
    chars: &mut impl Iterator<Item = (usize, char)>,
) -> io::Result<()> {
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => break,
            '\\' => drop(chars.next()),
            c if is_unsafe(c) => {
                pieces.instead(at, c.len_utf8(), b"")?;
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(pieces.out, "\\u{unit:04x}")?;
                }
            }
            _ => {}
        }
    }
    Ok(())
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

    /// As many lines as there are levels, each longer than the one before it, would be more than any memory.
    #[test]
    fn p09_nesting_without_end_is_written_in_little_more_than_it_has() {
        let nested = "[".repeat(20_000) + &"]".repeat(20_000);
        let shown = pretty(&nested);
        assert!(shown.len() < nested.len() + 4 * DEEPEST_INDENTED * DEEPEST_INDENTED, "{}", shown.len());
        assert_eq!(compact(&shown), nested);
        let large = format!("[{}1]", "1,".repeat(LARGEST_INDENTED));
        assert_eq!(pretty(&large), large);
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
