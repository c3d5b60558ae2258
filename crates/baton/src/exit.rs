//! How the process ends: one line on stderr and an exit code for scripts. The codes must not change;
//! `docs/operating.md` lists them.

use std::io::{self, Write as _};
use std::process::ExitCode;

/// Something went wrong while running.
const FAILED: u8 = 1;
/// The command line or the configuration is wrong. Clap uses the same code.
const USAGE: u8 = 2;
/// The store can no longer guarantee that writes are durable (`EX_IOERR` of sysexits.h). A supervisor may restart the
/// process; an operator should check the disk.
const STORE_LOST: u8 = 74;
/// Stopped by a second signal; shells use the same code for an interrupt.
const INTERRUPTED: u8 = 130;

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    /// Empty if it was told already.
    message: String,
}

impl Failure {
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Failure { code: FAILED, message: message.into() }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Failure { code: USAGE, message: message.into() }
    }

    pub(crate) fn store_lost(message: impl Into<String>) -> Self {
        Failure { code: STORE_LOST, message: message.into() }
    }

    /// A failure that the command has reported in its own form.
    pub(crate) fn reported(code: u8) -> Self {
        Failure { code, message: String::new() }
    }

    /// A client that was stopped by Ctrl-C.
    pub(crate) fn stopped() -> Self {
        Self::reported(INTERRUPTED)
    }

    /// The same, with more about it.
    pub(crate) fn with(mut self, more: &str) -> Self {
        self.message = format!("{}; {more}", self.message);
        self
    }

    pub(crate) fn interrupted() -> Self {
        Failure { code: INTERRUPTED, message: "stopped before the running turns had ended".to_owned() }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

pub(crate) fn report(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.message.is_empty() {
                // If stderr is closed, there is nowhere to write.
                let _ = writeln!(io::stderr(), "error: {}", failure.message);
            }
            ExitCode::from(failure.code)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_documented() {
        let page = include_str!("../../../docs/operating.md");
        for code in [0, FAILED, USAGE, STORE_LOST, INTERRUPTED] {
            assert!(page.lines().any(|line| line.starts_with(&format!("| {code} |"))), "{code}");
        }
    }
}
