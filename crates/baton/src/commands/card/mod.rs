//! `baton card …`: what an agent says about itself, and cards as files: made, checked, signed, verified and compared.

mod compare;
mod diff;
mod get;
mod keys;
mod lint;
mod new;
mod sign;
mod verify;

use crate::client::options::Options;
use crate::exit::Failure;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum CardVerb {
    /// Show an agent's card.
    Get(Box<get::CardGet>),
    /// Make a card to start with.
    New(new::CardNew),
    /// Say what is wrong with a card.
    Lint(Box<lint::CardLint>),
    /// Sign a card, so that others can verify who made it.
    Sign(sign::CardSign),
    /// Verify the signatures of a card.
    Verify(Box<verify::CardVerify>),
    /// Compare two cards by what they mean.
    Diff(Box<diff::CardDiff>),
}

pub(crate) async fn run(verb: CardVerb) -> Result<(), Failure> {
    match verb {
        CardVerb::Get(args) => get::run(*args).await,
        CardVerb::New(args) => new::run(args).await,
        CardVerb::Lint(args) => lint::run(*args).await,
        CardVerb::Sign(args) => sign::run(args).await,
        CardVerb::Verify(args) => verify::run(*args).await,
        CardVerb::Diff(args) => diff::run(*args).await,
    }
}

/// A card may be named without a flag, too.
fn with_card(mut options: Options, card: Option<String>) -> Options {
    options.agent_card = card.or(options.agent_card);
    options
}
