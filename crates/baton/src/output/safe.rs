//! Text that an agent sent, made safe to print: nothing in it can move the cursor, change colours, reverse the reading
//! direction or pass for a line of ours. Such characters are shown as escapes instead.

use std::fmt::Write as _;

/// For a value on one line.
pub(crate) fn line(text: &str) -> String {
    escaped(text, |_| false)
}

/// For the content of a block: line breaks and tabs stay. `\r\n` is a line break.
pub(crate) fn lines(text: &str) -> String {
    escaped(&text.replace("\r\n", "\n"), |c| matches!(c, '\n' | '\t'))
}

fn escaped(text: &str, allowed: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if allowed(c) || !is_unsafe(c) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
        }
    }
    out
}

/// Control characters, line separators, characters that change the direction of text, and invisible ones that can hide
/// text from people but not from programs.
pub(crate) fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_as_a_command() {
        for (text, shown) in [
            ("plain ünï 日本 🙂", "plain ünï 日本 🙂"),
            ("\x1b[31mred\x1b[0m", "\\u{1b}[31mred\\u{1b}[0m"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("a\nState: x", "a\\nState: x"),
            ("a\rb\tc\0", "a\\rb\\tc\\u{0}"),
            ("\u{202e}txt.exe", "\\u{202e}txt.exe"),
            ("a\u{2028}b\u{7f}", "a\\u{2028}b\\u{7f}"),
            ("\u{e0041}", "\\u{e0041}"),
        ] {
            assert_eq!(line(text), shown);
        }
        assert_eq!(lines("a\r\n\tb\rc\n"), "a\n\tb\\rc\n");
    }
}
