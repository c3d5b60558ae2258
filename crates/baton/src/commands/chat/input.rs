//! What the user types in a chat.

use std::io::{self, BufRead as _};

use tokio::sync::mpsc;

/// One thing the user said.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Text(String),
    /// Goes along with the next text.
    File(String),
    /// Look at the task again.
    Look,
    /// Start anew, in another context.
    New,
    Help,
    Quit,
    Unknown(String),
}

pub(super) const HELP: &str = "  /file PATH   attach a file to the next message
  /new         begin another conversation
  /quit        leave (as Ctrl-D does)
  a \\ at the end of a line goes on in the next; an empty line looks at the task again";

/// Lines of the standard input, read by a thread: a read cannot be given up.
pub(super) fn lines() -> mpsc::Receiver<io::Result<String>> {
    let (typed, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            if typed.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// The next entry; `None` at the end of the input. `prompt` is called before each line.
pub(super) async fn next(
    lines: &mut mpsc::Receiver<io::Result<String>>,
    prompt: impl Fn(bool),
) -> Option<io::Result<Entry>> {
    let mut text = String::new();
    loop {
        prompt(text.is_empty());
        let line = match lines.recv().await {
            Some(Ok(line)) => line,
            Some(Err(error)) => return Some(Err(error)),
            None if text.is_empty() => return None,
            None => return Some(Ok(entry(&text))),
        };
        match line.strip_suffix('\\') {
            Some(begun) => {
                text += begun;
                text.push('\n');
            }
            None => return Some(Ok(entry(&(text + &line)))),
        }
    }
}

fn entry(text: &str) -> Entry {
    let trimmed = text.trim();
    let (word, rest) = trimmed.split_once(char::is_whitespace).unwrap_or((trimmed, ""));
    match word {
        "" => Entry::Look,
        "/file" if !rest.trim().is_empty() => Entry::File(rest.trim().to_owned()),
        "/new" => Entry::New,
        "/help" | "/?" => Entry::Help,
        "/quit" | "/exit" => Entry::Quit,
        word if word.starts_with('/') => Entry::Unknown(word.to_owned()),
        _ => Entry::Text(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_texts_are_told_apart() {
        for (typed, expected) in [
            ("hello /file", Entry::Text("hello /file".to_owned())),
            (" two\nlines", Entry::Text(" two\nlines".to_owned())),
            ("/file  a b.txt ", Entry::File("a b.txt".to_owned())),
            ("/file", Entry::Unknown("/file".to_owned())),
            ("", Entry::Look),
            ("/new", Entry::New),
            ("/quit", Entry::Quit),
            ("/?", Entry::Help),
            ("/what", Entry::Unknown("/what".to_owned())),
        ] {
            assert_eq!(entry(typed), expected);
        }
    }
}
