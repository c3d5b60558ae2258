//! `baton config …`: shows the configuration, checks it, prints the default.

mod check;
mod default;
mod show;

use std::io::{self, Write as _};

use crate::args::ConfigVerb;
use crate::exit::Failure;

pub(crate) async fn run(verb: ConfigVerb) -> Result<(), Failure> {
    match verb {
        ConfigVerb::Show { settings, format, all } => show::run(settings, format, all).await,
        ConfigVerb::Check(settings) => check::run(settings).await,
        ConfigVerb::Default => default::run(),
    }
}

/// Warnings go to stderr, so that stdout has only the result.
fn warn(warnings: &[String]) {
    for warning in warnings {
        // If stderr is closed, there is nowhere to write.
        let _ = writeln!(io::stderr(), "warning: {warning}");
    }
}

/// A closed pipe is not an error: the reader has read enough.
pub(in crate::commands) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write: {error}")))
        }
        _ => Ok(()),
    }
}
