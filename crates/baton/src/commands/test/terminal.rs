//! The terminal's abilities, and the progress line while checks run.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Mutex, PoisonError};

use baton_lab::case::Verdict;
use baton_lab::run::Progress;

use super::args::Colour;
use crate::output::progress::{ProgressLine, columns};

/// Whether to use colours on stdout.
pub(super) fn colours(wanted: Colour) -> bool {
    match wanted {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto => stdout_has_colours(),
    }
}

/// Whether stdout is a terminal whose user has nothing against colours.
pub(crate) fn stdout_has_colours() -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    io::stdout().is_terminal() && !unwanted && !dumb
}

/// Columns of stdout; `None` if it is not a terminal.
pub(super) fn width() -> Option<usize> {
    io::stdout().is_terminal().then(|| columns(io::stdout()))
}

/// Prints to stdout; a closed pipe is not an error.
pub(super) fn print(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

/// Prints a message to stderr.
pub(super) fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// A progress line on stderr; nothing if stderr is not a terminal.
pub(super) struct Line {
    total: usize,
    line: ProgressLine,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    done: usize,
    failed: usize,
    running: Vec<String>,
}

impl Line {
    pub(super) fn new(total: usize, wanted: bool) -> Self {
        Line { total, line: ProgressLine::new(wanted), state: Mutex::default() }
    }

    pub(super) fn tell(&self, progress: &Progress) {
        if !self.line.is_shown() {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match progress {
            Progress::Started { id, binding } => state.running.push(format!("{id} {binding}")),
            Progress::Ended(outcome) => {
                let name = format!("{} {}", outcome.case.id(), outcome.binding);
                state.running.retain(|running| *running != name);
                state.done += 1;
                state.failed += usize::from(matches!(outcome.verdict, Verdict::Fail(_)));
            }
        }
        let running = state.running.first().cloned().unwrap_or_default();
        let failed = if state.failed == 0 { String::new() } else { format!("  {} failed", state.failed) };
        self.line.show(&format!("{:>4}/{}{failed}  {running}", state.done, self.total));
    }

    /// Removes the progress line.
    pub(super) fn clear(&self) {
        self.line.clear();
    }
}
