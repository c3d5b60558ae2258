//! The line that is being typed: its text, the cursor, and what was typed before.

use super::keys::Key;

/// A line, and the lines before it.
#[derive(Debug, Default)]
pub(super) struct Line {
    text: Vec<char>,
    /// Where the next character goes.
    cursor: usize,
    /// The oldest first.
    history: Vec<String>,
    /// The place in the history that is shown, and the line that was left for it.
    recalled: Option<(usize, Vec<char>)>,
}

/// What a key did.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// The line has to be drawn again.
    Changed,
    ClearScreen,
    Done(String),
    End,
}

impl Line {
    pub(super) fn press(&mut self, key: Key) -> Effect {
        match key {
            Key::Char(c) => self.insert([c]),
            Key::Pasted(text) => {
                self.insert(text.chars().filter(|c| !c.is_control() || *c == '\n').collect::<Vec<_>>())
            }
            Key::Enter => return Effect::Done(self.done()),
            Key::End if self.text.is_empty() => return Effect::End,
            Key::ClearScreen => return Effect::ClearScreen,
            Key::Left => self.cursor = self.cursor.saturating_sub(1),
            Key::Right => self.cursor = (self.cursor + 1).min(self.text.len()),
            Key::WordLeft => self.cursor = self.word_before(),
            Key::WordRight => self.cursor = self.word_behind(),
            Key::Home => self.cursor = 0,
            Key::LineEnd => self.cursor = self.text.len(),
            Key::Backspace => self.delete(self.cursor.saturating_sub(1)..self.cursor),
            Key::End | Key::Delete => self.delete(self.cursor..(self.cursor + 1).min(self.text.len())),
            Key::DeleteWord => self.delete(self.word_before()..self.cursor),
            Key::DeleteBefore => self.delete(0..self.cursor),
            Key::DeleteBehind => self.delete(self.cursor..self.text.len()),
            Key::Up => self.recall(|shown, _| shown.checked_sub(1)),
            Key::Down => self.recall(|shown, most| (shown < most).then_some(shown + 1)),
            Key::Other => {}
        }
        Effect::Changed
    }

    fn insert(&mut self, text: impl IntoIterator<Item = char>) {
        let before = self.text.len();
        self.text.splice(self.cursor..self.cursor, text);
        self.cursor += self.text.len() - before;
    }

    fn delete(&mut self, range: std::ops::Range<usize>) {
        self.cursor = range.start;
        self.text.drain(range);
    }

    fn word_before(&self) -> usize {
        let word = self.text[..self.cursor].iter().rposition(|c| !c.is_whitespace());
        let word =
            word.and_then(|last| self.text[..last].iter().rposition(|c| c.is_whitespace()).map(|at| at + 1));
        word.unwrap_or(0)
    }

    fn word_behind(&self) -> usize {
        let rest = &self.text[self.cursor..];
        let word = rest.iter().position(|c| !c.is_whitespace()).unwrap_or(rest.len());
        let end = rest[word..].iter().position(|c| c.is_whitespace()).unwrap_or(rest.len() - word);
        self.cursor + word + end
    }

    /// Shows another line of the history; the place behind the last one is the line that is being typed.
    fn recall(&mut self, next: impl FnOnce(usize, usize) -> Option<usize>) {
        let most = self.history.len();
        let shown = self.recalled.as_ref().map_or(most, |(at, _)| *at);
        let Some(at) = next(shown, most) else { return };
        let (_, draft) = self.recalled.take().unwrap_or_else(|| (most, std::mem::take(&mut self.text)));
        match self.history.get(at) {
            Some(line) => {
                self.text = line.chars().collect();
                self.recalled = Some((at, draft));
            }
            None => self.text = draft,
        }
        self.cursor = self.text.len();
    }

    fn done(&mut self) -> String {
        self.recalled = None;
        self.cursor = 0;
        let line: String = std::mem::take(&mut self.text).into_iter().collect();
        if !line.trim().is_empty() && self.history.last() != Some(&line) {
            self.history.push(line.clone());
        }
        line
    }

    /// As much as fits into that many columns, with the cursor in it; and the cursor's column.
    pub(super) fn view(&self, columns: usize) -> (String, usize) {
        // One column stays free for the cursor behind the last character.
        let room = columns.saturating_sub(1).max(1);
        let mut start = self.cursor;
        let mut before = 0;
        while start > 0 && before + width(self.text[start - 1]) <= room {
            start -= 1;
            before += width(self.text[start]);
        }
        let mut shown = String::new();
        let mut used = 0;
        for c in &self.text[start..] {
            if used + width(*c) > room {
                break;
            }
            used += width(*c);
            shown.push(if *c == '\n' { '⏎' } else { *c });
        }
        (shown, before)
    }
}

/// How many columns a character takes. Wrong for a few; then the cursor is a column off until the next line.
fn width(c: char) -> usize {
    match u32::from(c) {
        0x300..=0x36f | 0x200d | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f
        | 0x2e80..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1faff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(line: &mut Line, text: &str) {
        text.chars().for_each(|c| drop(line.press(Key::Char(c))));
    }

    fn text(line: &Line) -> String {
        line.text.iter().collect()
    }

    #[test]
    fn keys_edit_the_line() {
        let mut line = Line::default();
        typed(&mut line, "hello wrld");
        for key in [Key::WordLeft, Key::Right] {
            line.press(key);
        }
        typed(&mut line, "o");
        assert_eq!(text(&line), "hello world");
        line.press(Key::LineEnd);
        line.press(Key::DeleteWord);
        assert_eq!(text(&line), "hello ");
        for key in [Key::Home, Key::Delete, Key::WordRight, Key::Backspace, Key::DeleteBehind] {
            line.press(key);
        }
        assert_eq!(text(&line), "ell");
        line.press(Key::DeleteBefore);
        assert_eq!((text(&line).as_str(), line.press(Key::End)), ("", Effect::End));
        line.press(Key::Pasted("two\nlines\u{1b}[A".to_owned()));
        assert_eq!(line.press(Key::Enter), Effect::Done("two\nlines[A".to_owned()));
    }

    #[test]
    fn earlier_lines_come_back_and_the_draft_is_kept() {
        let mut line = Line::default();
        for said in ["one", "two", "two", " "] {
            typed(&mut line, said);
            line.press(Key::Enter);
        }
        typed(&mut line, "dra");
        let mut seen = |key| {
            line.press(key);
            text(&line)
        };
        assert_eq!([seen(Key::Up), seen(Key::Up), seen(Key::Up)], ["two", "one", "one"]);
        assert_eq!([seen(Key::Down), seen(Key::Down), seen(Key::Down)], ["two", "dra", "dra"]);
        typed(&mut line, "ft");
        assert_eq!(line.press(Key::Enter), Effect::Done("draft".to_owned()));
    }

    #[test]
    fn a_long_line_is_shown_around_the_cursor() {
        let mut line = Line::default();
        typed(&mut line, "0123456789");
        assert_eq!(line.view(80), ("0123456789".to_owned(), 10));
        assert_eq!(line.view(5), ("6789".to_owned(), 4));
        line.press(Key::Home);
        assert_eq!(line.view(5), ("0123".to_owned(), 0));
        line.press(Key::Enter);
        typed(&mut line, "日本");
        line.press(Key::Pasted("\n".to_owned()));
        assert_eq!(line.view(80), ("日本⏎".to_owned(), 5));
    }
}
