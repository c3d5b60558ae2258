//! A line on stderr that is written over again and again while a command runs.

use std::io::{self, IsTerminal as _, Write as _};

use baton_lab::report::text::{Paint, cut};

/// For a terminal that does not report its width.
const USUAL_WIDTH: usize = 100;

/// Shows nothing if stderr is not a terminal.
#[derive(Debug)]
pub(crate) struct ProgressLine {
    is_shown: bool,
}

impl ProgressLine {
    pub(crate) fn new(wanted: bool) -> Self {
        ProgressLine { is_shown: wanted && io::stderr().is_terminal() }
    }

    pub(crate) fn is_shown(&self) -> bool {
        self.is_shown
    }

    /// Replaces the line.
    pub(crate) fn show(&self, line: &str) {
        if self.is_shown {
            let line = cut(line, Some(columns(io::stderr()).saturating_sub(1)));
            let _ = write!(io::stderr(), "\r\x1b[2K{}", Paint(true).dim(&line));
            let _ = io::stderr().flush();
        }
    }

    /// Removes the line.
    pub(crate) fn clear(&self) {
        if self.is_shown {
            let _ = write!(io::stderr(), "\r\x1b[2K");
            let _ = io::stderr().flush();
        }
    }
}

/// The width of a terminal.
#[cfg(unix)]
pub(crate) fn columns(of: impl std::os::fd::AsFd) -> usize {
    let size = rustix::termios::tcgetwinsize(of).map(|size| usize::from(size.ws_col));
    size.ok().filter(|columns| *columns > 0).unwrap_or(USUAL_WIDTH)
}

#[cfg(not(unix))]
pub(crate) fn columns<T>(_of: T) -> usize {
    USUAL_WIDTH
}
