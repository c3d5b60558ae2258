//! `baton card …`: what an agent says about itself.

mod get;

use crate::exit::Failure;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum CardVerb {
    /// Show an agent's card.
    Get(Box<get::CardGet>),
}

pub(crate) async fn run(verb: CardVerb) -> Result<(), Failure> {
    match verb {
        CardVerb::Get(args) => get::run(*args).await,
    }
}
