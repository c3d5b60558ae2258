//! `baton task push-config …`: webhooks of a task.

mod create;
mod delete;
mod get;
mod list;

use baton_protocol::domain::{PushConfigId, TaskId};
use baton_protocol::operation::HistoryLength;

use crate::client::Call;
use crate::client::agent::Agent;
use crate::client::error::CallError;
use crate::client::options::{Options, SETTINGS_HELP};
use crate::client::{self, wait};
use crate::exit::Failure;
use crate::output;
use crate::output::push_config::Of;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum PushConfigVerb {
    /// Register a webhook.
    Create(Box<create::Create>),
    /// Show a webhook.
    Get(Box<OneConfig>),
    /// Show all webhooks.
    List(Box<list::List>),
    /// Remove a webhook.
    Delete(Box<OneConfig>),
}

/// The arguments of commands about one webhook.
#[derive(Debug, clap::Args)]
#[command(after_help = SETTINGS_HELP)]
pub(crate) struct OneConfig {
    /// The task's id.
    #[arg(value_name = "TASK_ID")]
    task: String,

    /// The webhook's id.
    #[arg(value_name = "CONFIG_ID")]
    id: String,

    #[command(flatten)]
    options: Options,
}

impl OneConfig {
    fn ids(&self) -> Result<(TaskId, PushConfigId), CallError> {
        Ok((wait::task_id(&self.task)?, config_id(&self.id)?))
    }
}

pub(crate) async fn run(verb: PushConfigVerb) -> Result<(), Failure> {
    match verb {
        PushConfigVerb::Create(args) => create::run(*args).await,
        PushConfigVerb::Get(args) => {
            client::run(&args.options, async |call| get::get(call, &args).await).await
        }
        PushConfigVerb::List(args) => list::run(*args).await,
        PushConfigVerb::Delete(args) => {
            client::run(&args.options, async |call| delete::delete(call, &args).await).await
        }
    }
}

/// The task of the webhooks, read once more for the text form, which shows context and state of every task it names. Replies
/// about webhooks have neither.
async fn task_of<'a>(call: &Call, agent: &Agent, id: &'a TaskId) -> Of<'a> {
    let mut of = Of { task_id: id.as_str(), task: None };
    if call.output.is_text() {
        match agent.get(id, HistoryLength::Last(0)).await {
            Ok(read) => of.task = Some(read.task),
            Err(error) => output::warn(&format!("the state of the task is not known: {}", error.message)),
        }
    }
    of
}

fn config_id(text: &str) -> Result<PushConfigId, CallError> {
    PushConfigId::parse(text).map_err(|error| CallError::usage(format!("the webhook's id {error}")))
}
