//! Reads what the user types on a terminal: with the cursor keys, deleting by word and line, and a history that is kept as
//! long as the chat lasts. A pasted text may have several lines.
//!
//! While the user types, the terminal neither echoes nor collects lines. Ctrl-C stays a signal.

mod keys;
mod line;

use std::io::{self, Read as _, Write as _};
use std::sync::Arc;

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};
use tokio::sync::mpsc;

use self::keys::Keys;
use self::line::{Effect, Line};

/// For a terminal that does not report its width.
const USUAL_WIDTH: usize = 80;

/// Terminals mark pasted text between these two.
const PASTES_MARKED: &str = "\x1b[?2004h";
const PASTES_AS_TYPED: &str = "\x1b[?2004l";

/// Asks for lines, one at a time.
pub(super) struct Editor {
    prompts: mpsc::Sender<&'static str>,
    lines: mpsc::Receiver<io::Result<String>>,
    terminal: Arc<Terminal>,
}

impl Editor {
    /// Lines are read by a thread: a read cannot be given up.
    pub(super) fn start() -> io::Result<Self> {
        let terminal = Arc::new(Terminal { usual: tcgetattr(io::stdin())? });
        let (prompts, mut asked) = mpsc::channel::<&'static str>(1);
        let (typed, lines) = mpsc::channel(1);
        let of_thread = Arc::clone(&terminal);
        std::thread::spawn(move || {
            let (mut keys, mut line) = (Keys::default(), Line::default());
            while let Some(prompt) = asked.blocking_recv() {
                let Some(read) = of_thread.read(&mut keys, &mut line, prompt).transpose() else { return };
                if typed.blocking_send(read).is_err() {
                    return;
                }
            }
        });
        Ok(Editor { prompts, lines, terminal })
    }

    /// The next line; `None` after Ctrl-D.
    pub(super) async fn next(&mut self, prompt: &'static str) -> Option<io::Result<String>> {
        // The thread has ended if nobody takes it.
        let _ = self.prompts.send(prompt).await;
        self.lines.recv().await
    }
}

/// The user may have been stopped in the middle of a line.
impl Drop for Editor {
    fn drop(&mut self) {
        self.terminal.usual_again();
    }
}

struct Terminal {
    usual: Termios,
}

impl Terminal {
    fn read(&self, keys: &mut Keys, line: &mut Line, prompt: &str) -> io::Result<Option<String>> {
        let mut modes = self.usual.clone();
        modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        modes.special_codes[SpecialCodeIndex::VMIN] = 1;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(io::stdin(), OptionalActions::Now, &modes)?;
        put(PASTES_MARKED)?;
        let read = self.read_keys(keys, line, prompt);
        self.usual_again();
        read
    }

    fn read_keys(&self, keys: &mut Keys, line: &mut Line, prompt: &str) -> io::Result<Option<String>> {
        draw(line, prompt)?;
        loop {
            let mut byte = [0];
            if io::stdin().read(&mut byte)? == 0 {
                return Ok(None);
            }
            let Some(key) = keys.take(byte[0]) else { continue };
            match line.press(key) {
                Effect::Changed => {}
                Effect::ClearScreen => put("\x1b[H\x1b[2J")?,
                Effect::Done(text) => {
                    // All of it, also what did not fit into the line.
                    put(&format!("\r\x1b[K{prompt}{}\n", text.replace('\n', "\n… ")))?;
                    return Ok(Some(text));
                }
                Effect::End => return Ok(None),
            }
            draw(line, prompt)?;
        }
    }

    fn usual_again(&self) {
        // A terminal that is gone needs nothing.
        let _ = put(PASTES_AS_TYPED);
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.usual);
    }
}

/// Writes the line over itself.
fn draw(line: &Line, prompt: &str) -> io::Result<()> {
    let columns = tcgetwinsize(io::stdout()).map(|size| usize::from(size.ws_col)).ok();
    let columns = columns.filter(|columns| *columns > 0).unwrap_or(USUAL_WIDTH);
    let taken = prompt.chars().count();
    let (text, cursor) = line.view(columns.saturating_sub(taken));
    put(&format!("\r\x1b[K{prompt}{text}\r\x1b[{}C", taken + cursor))
}

fn put(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}
