//! `baton serve config …`: shows the configuration, checks it, prints the default.

mod check;
mod default;
mod show;

use std::io::{self, Write as _};

use crate::args::ServeConfigVerb;
use crate::commands::print;
use crate::exit::Failure;

pub(crate) async fn run(verb: ServeConfigVerb) -> Result<(), Failure> {
    match verb {
        ServeConfigVerb::Show { settings, format, all } => show::run(*settings, format, all).await,
        ServeConfigVerb::Check(settings) => check::run(*settings).await,
        ServeConfigVerb::Default => default::run(),
    }
}

/// Warnings go to stderr, so that stdout has only the result.
fn warn(warnings: &[String]) {
    for warning in warnings {
        // If stderr is closed, there is nowhere to write.
        let _ = writeln!(io::stderr(), "warning: {warning}");
    }
}
