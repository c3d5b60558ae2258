//! What the process says about itself, on stderr.

use std::io::{self, IsTerminal as _};

use tracing_subscriber::EnvFilter;

use crate::config::{Log, LogFormat};
use crate::exit::Failure;

/// Installs the log for the whole process.
pub(crate) fn install(log: &Log) -> Result<(), Failure> {
    let filter = log.filter.as_str();
    let filter = EnvFilter::try_new(filter)
        .map_err(|error| Failure::usage(format!("log.filter {filter}: {error}")))?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        // Told on stderr, of all places: with the terminal gone that would be a panic.
        .log_internal_errors(false);
    match *log.format {
        LogFormat::Text => subscriber.with_ansi(io::stderr().is_terminal()).init(),
        LogFormat::Json => subscriber.json().flatten_event(true).init(),
    }
    Ok(())
}
