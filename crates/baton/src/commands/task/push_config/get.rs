//! `baton task push-config get`: shows a webhook.

use super::config_id;
use crate::client::agent::Agent;
use crate::client::error::CallError;
use crate::client::options::{Options, SETTINGS_HELP};
use crate::client::{self, Call, wait};
use crate::exit::Failure;
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_help = SETTINGS_HELP)]
pub(crate) struct Get {
    /// The task's id.
    #[arg(value_name = "TASK_ID")]
    task: String,

    /// The webhook's id.
    #[arg(value_name = "CONFIG_ID")]
    id: String,

    #[command(flatten)]
    options: Options,
}

pub(crate) async fn run(args: Get) -> Result<(), Failure> {
    client::run(&args.options, async |call| get(call, &args).await).await
}

async fn get(call: &Call, args: &Get) -> Result<(), CallError> {
    let (task_id, id) = (wait::task_id(&args.task)?, config_id(&args.id)?);
    let found = Agent::connect(call).await?.push_config(&task_id, &id).await?;
    call.output
        .result(&found, || Ok(output::push_config::push_configs(&args.task, &[output::view::read(&found)?])))
}
