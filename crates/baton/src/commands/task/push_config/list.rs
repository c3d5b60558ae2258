//! `baton task push-config list`: shows all webhooks of a task.

use crate::client::agent::{self, Agent};
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
    let configs = Agent::connect(call).await?.push_configs(&task_id).await?;
    if call.output.is_text() {
        let shown = configs.iter().map(|config| PushConfig {
            id: config.id.as_ref().map(|id| id.as_str().to_owned()),
            url: config.url.clone(),
        });
        return call.output.text(&output::push_config::push_configs(&args.task, &shown.collect::<Vec<_>>()));
    }
    if call.output.is_lines() {
        return configs.into_iter().try_for_each(|config| call.output.json(&agent::push_config_json(config)));
    }
    call.output.json(&agent::push_configs_json(configs))
}
