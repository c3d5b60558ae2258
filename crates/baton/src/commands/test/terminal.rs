//! The terminal's abilities, and the progress line while checks run.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Mutex, PoisonError};

use baton_lab::case::Verdict;
use baton_lab::report::text::{Paint, cut};
use baton_lab::run::Progress;

use super::args::Colour;

/// For a terminal that does not report its width.
const USUAL_WIDTH: usize = 100;

/// Whether to use colours on stdout.
pub(super) fn colours(wanted: Colour) -> bool {
    match wanted {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto => {
            let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
            let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
            io::stdout().is_terminal() && !unwanted && !dumb
        }
    }
}

/// Columns of stdout; `None` if it is not a terminal.
pub(super) fn width() -> Option<usize> {
    io::stdout().is_terminal().then(|| columns(io::stdout()))
}

#[cfg(unix)]
fn columns(of: impl std::os::fd::AsFd) -> usize {
    let size = rustix::termios::tcgetwinsize(of).map(|size| usize::from(size.ws_col));
    size.ok().filter(|columns| *columns > 0).unwrap_or(USUAL_WIDTH)
}

#[cfg(not(unix))]
fn columns<T>(_of: T) -> usize {
    USUAL_WIDTH
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
    state: Option<Mutex<State>>,
}

#[derive(Default)]
struct State {
    done: usize,
    failed: usize,
    running: Vec<String>,
}

impl Line {
    pub(super) fn new(total: usize, wanted: bool) -> Self {
        let shown = wanted && io::stderr().is_terminal();
        Line { total, state: shown.then(Mutex::default) }
    }

    pub(super) fn tell(&self, progress: &Progress) {
        let Some(state) = &self.state else { return };
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
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
        let line = format!("{:>4}/{}{failed}  {running}", state.done, self.total);
        let line = cut(&line, Some(columns(io::stderr()).saturating_sub(1)));
        let _ = write!(io::stderr(), "\r\x1b[2K{}", Paint(true).dim(&line));
        let _ = io::stderr().flush();
    }

    /// Removes the progress line.
    pub(super) fn clear(&self) {
        if self.state.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[2K");
            let _ = io::stderr().flush();
        }
    }
}
