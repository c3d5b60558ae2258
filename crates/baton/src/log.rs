//! What the process says about itself, on stderr.

use std::io::{self, IsTerminal as _};

use tracing_subscriber::EnvFilter;

use crate::exit::Failure;

const FILTER: &str = "BATON_LOG";
const DEFAULT_FILTER: &str = "info";

/// Installs the log for the whole process; `BATON_LOG` says what it holds.
pub(crate) fn install() -> Result<(), Failure> {
    let filter = match std::env::var(FILTER) {
        Ok(wanted) if !wanted.trim().is_empty() => wanted,
        Ok(_) | Err(std::env::VarError::NotPresent) => DEFAULT_FILTER.to_owned(),
        Err(error) => return Err(Failure::usage(format!("{FILTER}: {error}"))),
    };
    let filter =
        EnvFilter::try_new(&filter).map_err(|error| Failure::usage(format!("{FILTER}={filter}: {error}")))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(io::stderr)
        .init();
    Ok(())
}
