//! `baton auth …`: signing in at an agent.

mod login;

use crate::exit::Failure;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum AuthVerb {
    /// Obtain a token and keep it for later calls.
    Login(Box<login::AuthLogin>),
}

pub(crate) async fn run(verb: AuthVerb) -> Result<(), Failure> {
    match verb {
        AuthVerb::Login(args) => login::run(*args).await,
    }
}
