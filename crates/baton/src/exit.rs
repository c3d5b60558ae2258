//! How the process ends: one line on stderr and a code that scripts can tell apart. The codes are a promise;
//! `docs/operating.md` lists them.

use std::io::{self, Write as _};
use std::process::ExitCode;

/// Something went wrong while running.
const FAILED: u8 = 1;
/// The command was not understood, or asks for what is not allowed. Clap uses the same.
const USAGE: u8 = 2;
/// The store can no longer promise that what it takes is durable (`EX_IOERR` of sysexits.h). A supervisor may start
/// the process again; somebody should look at the disk.
const STORE_LOST: u8 = 74;
/// Stopped by a second signal, as a shell counts an interrupt.
const INTERRUPTED: u8 = 130;

/// Why a command did not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
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

    pub(crate) fn interrupted() -> Self {
        Failure { code: INTERRUPTED, message: "stopped before the running turns had ended".to_owned() }
    }
}

pub(crate) fn report(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Nobody is left to tell when stderr is closed.
            let _ = writeln!(io::stderr(), "error: {}", failure.message);
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
