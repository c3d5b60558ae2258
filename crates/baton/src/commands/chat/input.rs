//! What the user types in a chat.

use std::io::{self, BufRead as _};

use tokio::sync::mpsc;

#[cfg(unix)]
use super::editor::Editor;

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
  Enter alone  look at the task again
  \\            at the end of a line: the message goes on in the next; pasted text keeps its lines
  Ctrl-C       cancel the task that is at work; at the prompt, leave";

/// Before a message, and before its further lines.
const PROMPTS: (&str, &str) = ("> ", "… ");

/// Where the user's lines come from.
pub(super) enum Lines {
    /// Somebody at a terminal.
    #[cfg(unix)]
    Edited(Editor),
    /// Somebody at a terminal that can do nothing but show text.
    Typed(mpsc::Receiver<io::Result<String>>),
    Program(mpsc::Receiver<io::Result<String>>),
}

impl Lines {
    pub(super) fn open(is_live: bool) -> io::Result<Self> {
        if !is_live {
            return Ok(Self::Program(plain()));
        }
        #[cfg(unix)]
        if std::env::var_os("TERM").is_some_and(|name| name != "dumb") {
            return Editor::start().map(Self::Edited);
        }
        Ok(Self::Typed(plain()))
    }

    async fn line(&mut self, prompt: &'static str) -> Option<io::Result<String>> {
        match self {
            #[cfg(unix)]
            Self::Edited(editor) => editor.next(prompt).await,
            Self::Typed(lines) => {
                super::live::put(prompt);
                lines.recv().await
            }
            Self::Program(lines) => lines.recv().await,
        }
    }

    /// The next entry; `None` at the end of the input.
    pub(super) async fn next(&mut self) -> Option<io::Result<Entry>> {
        let mut text = String::new();
        loop {
            let prompt = if text.is_empty() { PROMPTS.0 } else { PROMPTS.1 };
            let line = match self.line(prompt).await {
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
}

/// Lines of the standard input, read by a thread: a read cannot be given up.
fn plain() -> mpsc::Receiver<io::Result<String>> {
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
        // What is pasted often ends with a line break.
        _ => Entry::Text(text.trim_end_matches('\n').to_owned()),
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
