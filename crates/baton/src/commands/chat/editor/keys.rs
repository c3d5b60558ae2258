//! What a terminal sends when keys are pressed.

/// A key, or text that was pasted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Key {
    Char(char),
    /// May have several lines.
    Pasted(String),
    Enter,
    /// Ctrl-D.
    End,
    Left,
    Right,
    WordLeft,
    WordRight,
    Home,
    LineEnd,
    Up,
    Down,
    Backspace,
    Delete,
    /// Ctrl-W: the word before the cursor.
    DeleteWord,
    /// Ctrl-U: everything before the cursor.
    DeleteBefore,
    /// Ctrl-K: everything behind the cursor.
    DeleteBehind,
    /// Ctrl-L.
    ClearScreen,
    /// A key that means nothing here.
    Other,
}

/// Takes bytes as they come.
#[derive(Debug, Default)]
pub(super) struct Keys {
    pending: Vec<u8>,
    /// The text of a paste that is still going on.
    paste: Option<Vec<u8>>,
}

const PASTE_END: &[u8] = b"\x1b[201~";

impl Keys {
    /// The key that this byte completes.
    pub(super) fn take(&mut self, byte: u8) -> Option<Key> {
        if let Some(paste) = &mut self.paste {
            paste.push(byte);
            let text = paste.strip_suffix(PASTE_END)?;
            // Terminals send line breaks as the key Enter does.
            let text = String::from_utf8_lossy(text).replace("\r\n", "\n").replace('\r', "\n");
            self.paste = None;
            return Some(Key::Pasted(text));
        }
        self.pending.push(byte);
        let key = match complete(&self.pending) {
            Progress::More => return None,
            Progress::Paste => {
                self.paste = Some(Vec::new());
                None
            }
            Progress::Key(key) => Some(key),
        };
        self.pending.clear();
        key
    }
}

enum Progress {
    More,
    Paste,
    Key(Key),
}

fn complete(bytes: &[u8]) -> Progress {
    let key = match bytes {
        [0x1b] | [0x1b, b'[' | b'O'] => return Progress::More,
        [0x1b, b'[', parameters @ .., last @ 0x40..=0x7e] => {
            if (parameters, *last) == (b"200", b'~') {
                return Progress::Paste;
            }
            sequence(parameters, *last)
        }
        [0x1b, b'O', last] => sequence(b"", *last),
        // Parameters come before the last byte; no key has many.
        [0x1b, b'[', rest @ ..] if rest.len() < 16 => return Progress::More,
        [0x1b, b'b'] => Key::WordLeft,
        [0x1b, b'f'] => Key::WordRight,
        [0x1b, ..] => Key::Other,
        [b'\r' | b'\n'] => Key::Enter,
        [0x04] => Key::End,
        [0x01] => Key::Home,
        [0x02] => Key::Left,
        [0x05] => Key::LineEnd,
        [0x06] => Key::Right,
        [0x08 | 0x7f] => Key::Backspace,
        [0x0b] => Key::DeleteBehind,
        [0x0c] => Key::ClearScreen,
        [0x0e] => Key::Down,
        [0x10] => Key::Up,
        [0x15] => Key::DeleteBefore,
        [0x17] => Key::DeleteWord,
        [b'\t'] => Key::Char(' '),
        [..=0x1f] => Key::Other,
        text => match std::str::from_utf8(text) {
            Ok(text) => text.chars().next().map_or(Key::Other, Key::Char),
            Err(error) if error.error_len().is_none() => return Progress::More,
            Err(_) => Key::Other,
        },
    };
    Progress::Key(key)
}

/// `ESC [ parameters last`. Modifiers stand behind a semicolon: 5 is Ctrl, 3 is Alt.
fn sequence(parameters: &[u8], last: u8) -> Key {
    let with_modifier = parameters.ends_with(b";5") || parameters.ends_with(b";3");
    match (last, parameters) {
        (b'A', _) => Key::Up,
        (b'B', _) => Key::Down,
        (b'C', _) if with_modifier => Key::WordRight,
        (b'C', _) => Key::Right,
        (b'D', _) if with_modifier => Key::WordLeft,
        (b'D', _) => Key::Left,
        (b'H', _) | (b'~', b"1" | b"7") => Key::Home,
        (b'F', _) | (b'~', b"4" | b"8") => Key::LineEnd,
        (b'~', b"3") => Key::Delete,
        _ => Key::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        let mut keys = Keys::default();
        bytes.iter().filter_map(|byte| keys.take(*byte)).collect()
    }

    #[test]
    fn bytes_become_keys() {
        assert_eq!(keys("aé日".as_bytes()), [Key::Char('a'), Key::Char('é'), Key::Char('日')]);
        assert_eq!(keys(b"\x1b[A\x1bOB\x1b[C\x1b[D"), [Key::Up, Key::Down, Key::Right, Key::Left]);
        assert_eq!(keys(b"\x1b[1~\x1b[4~\x1b[H\x1b[F"), [Key::Home, Key::LineEnd, Key::Home, Key::LineEnd]);
        assert_eq!(
            keys(b"\x1b[1;5D\x1b[1;5C\x1bb\x1bf"),
            [Key::WordLeft, Key::WordRight, Key::WordLeft, Key::WordRight]
        );
        assert_eq!(
            keys(b"\x1b[3~\x7f\x17\x15\x0b\x04\r"),
            [
                Key::Delete,
                Key::Backspace,
                Key::DeleteWord,
                Key::DeleteBefore,
                Key::DeleteBehind,
                Key::End,
                Key::Enter
            ]
        );
        // What is not known does not end up in the text.
        assert_eq!(
            keys(b"\x1b[15~x\x1b[<0;1;1Mx\xffx"),
            [Key::Other, Key::Char('x'), Key::Other, Key::Char('x'), Key::Other, Key::Char('x')]
        );
    }

    #[test]
    fn a_paste_is_one_text_whatever_is_in_it() {
        let pasted = keys(b"\x1b[200~one\r\ntwo\rthree\x1b[A\x03\x1b[201~\r");
        assert_eq!(pasted, [Key::Pasted("one\ntwo\nthree\u{1b}[A\u{3}".to_owned()), Key::Enter]);
    }
}
