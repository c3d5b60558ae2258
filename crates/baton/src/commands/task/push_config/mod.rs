//! `baton task push-config …`: webhooks of a task.

mod create;
mod delete;
mod get;
mod list;

use baton_protocol::domain::PushConfigId;

use crate::client::error::CallError;
use crate::exit::Failure;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum PushConfigVerb {
    /// Register a webhook.
    Create(Box<create::Create>),
    /// Show a webhook.
    Get(Box<get::Get>),
    /// Show all webhooks.
    List(Box<list::List>),
    /// Remove a webhook.
    Delete(Box<delete::Delete>),
}

pub(crate) async fn run(verb: PushConfigVerb) -> Result<(), Failure> {
    match verb {
        PushConfigVerb::Create(args) => create::run(*args).await,
        PushConfigVerb::Get(args) => get::run(*args).await,
        PushConfigVerb::List(args) => list::run(*args).await,
        PushConfigVerb::Delete(args) => delete::run(*args).await,
    }
}

fn config_id(text: &str) -> Result<PushConfigId, CallError> {
    PushConfigId::parse(text).map_err(|error| CallError::usage(format!("the webhook's id {error}")))
}
