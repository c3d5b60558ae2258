//! `baton task push-config list`: shows all webhooks of a task.

use super::task_of;
use crate::client::agent::Agent;
use crate::client::error::CallError;
use crate::client::options::{Options, SETTINGS_HELP};
use crate::client::{self, Call, wait};
use crate::exit::Failure;
use crate::output;
use crate::output::view::PushConfig;

#[derive(Debug, clap::Args)]
#[command(after_help = SETTINGS_HELP)]
pub(crate) struct List {
    /// The task's id.
    #[arg(value_name = "TASK_ID")]
    task: String,

    #[command(flatten)]
    options: Options,
}

pub(crate) async fn run(args: List) -> Result<(), Failure> {
    client::run(&args.options, async |call| list(call, &args).await).await
}

async fn list(call: &Call, args: &List) -> Result<(), CallError> {
    let task_id = wait::task_id(&args.task)?;
    let agent = Agent::connect(call).await?;
    let configs = agent.push_configs(&task_id)?.all().await?;
    if call.output.is_text() {
        let shown: Vec<PushConfig> =
            configs.items.iter().map(|config| output::view::read(config.get())).collect::<Result<_, _>>()?;
        let of = task_of(call, &agent, &task_id).await;
        return call.output.text(&output::push_config::push_configs(&of, &shown));
    }
    if call.output.is_lines() {
        return configs.items.iter().try_for_each(|config| call.output.json(config.get()));
    }
    call.output.json(&configs.json())
}
