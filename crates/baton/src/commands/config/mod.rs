//! `baton config …`: what the configuration is, whether it is right, and what it can hold.

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

/// What is odd goes to stderr, so that stdout holds the answer alone.
fn warn(warnings: &[String]) {
    for warning in warnings {
        // Nobody is left to tell when stderr is closed.
        let _ = writeln!(io::stderr(), "warning: {warning}");
    }
}

/// Whoever closed the pipe has read enough.
fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write: {error}")))
        }
        _ => Ok(()),
    }
}
