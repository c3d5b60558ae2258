//! How results are written: the text form for people, and the JSON forms for programs. Only the result goes to stdout;
//! everything else goes to stderr.

pub(crate) mod json;
pub(crate) mod safe;
pub(crate) mod text;

pub(crate) mod card;
pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod progress;
pub(crate) mod push_config;
pub(crate) mod task;
pub(crate) mod view;

use std::io::{self, Write as _};

use crate::client::error::CallError;
use crate::client::settings::{Format, Settings};

/// Where results go, and in which form.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    format: Format,
    lines: bool,
    verbose: bool,
}

impl Output {
    pub(crate) fn new(settings: &Settings) -> Self {
        Output { format: settings.format, lines: settings.stream, verbose: settings.verbose }
    }

    pub(crate) fn is_text(&self) -> bool {
        self.format == Format::Text
    }

    /// JSON Lines: one object per line.
    pub(crate) fn is_lines(&self) -> bool {
        self.format == Format::Json && self.lines
    }

    pub(crate) fn is_verbose(&self) -> bool {
        self.verbose
    }

    /// Writes a result: its JSON, or what `text` makes of it.
    pub(crate) fn result(
        &self,
        json: &str,
        text: impl FnOnce() -> Result<String, CallError>,
    ) -> Result<(), CallError> {
        match self.format {
            Format::Text => self.text(&text()?),
            Format::Json => self.json(json),
        }
    }

    pub(crate) fn json(&self, json: &str) -> Result<(), CallError> {
        // Indented, it may be many times as large: it is written as it is made.
        write(|stdout| {
            let mut stdout = io::BufWriter::with_capacity(1 << 16, stdout);
            json::write(&mut stdout, json, !self.lines)?;
            stdout.write_all(b"\n")?;
            stdout.flush()
        })
    }

    pub(crate) fn text(&self, text: &str) -> Result<(), CallError> {
        write(|stdout| stdout.write_all(text.as_bytes()))
    }
}

fn write(write: impl FnOnce(&mut io::StdoutLock<'_>) -> io::Result<()>) -> Result<(), CallError> {
    let mut stdout = io::stdout().lock();
    match write(&mut stdout).and_then(|()| stdout.flush()) {
        // The reader has read enough: following the task any further would be for nobody.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(CallError::internal(format!("cannot write: {error}"))),
        Ok(()) => Ok(()),
    }
}

/// Warns on stderr.
pub(crate) fn warn(text: &str) {
    note(&format!("Warning: {text}"));
}

/// A line on stderr.
pub(crate) fn note(text: &str) {
    // If stderr is closed, there is nowhere to write.
    let _ = writeln!(io::stderr(), "{}", safe::line(text));
}
