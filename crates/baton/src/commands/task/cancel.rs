//! `baton task cancel`: asks the agent to stop, and shows the resulting state.

use baton_protocol::operation::CancelTask;

use crate::client::agent::Agent;
use crate::client::error::{CallError, Hint};
use crate::client::options::{Options, SETTINGS_HELP};
use crate::client::{self, Call, wait};
use crate::exit::Failure;
use crate::output;
use crate::output::task::{Shown, id_word};

#[derive(Debug, clap::Args)]
#[command(after_help = SETTINGS_HELP)]
pub(crate) struct TaskCancel {
    /// The task's id.
    #[arg(value_name = "TASK_ID")]
    id: String,

    #[command(flatten)]
    options: Options,
}

pub(crate) async fn run(args: TaskCancel) -> Result<(), Failure> {
    client::run(&args.options, async |call| cancel(call, &args.id).await).await
}

async fn cancel(call: &Call, id: &str) -> Result<(), CallError> {
    let id = wait::task_id(id)?;
    let agent = Agent::connect(call).await?;
    let state = Hint::Command("task get", id_word(id.as_str()));
    let read = agent.cancel(CancelTask { id, metadata: call.settings.metadata.clone() }).await;
    let read = read.map_err(|error| match error.code.as_str() {
        "TaskNotCancelableError" => error.or_hint(|| state),
        _ => error,
    })?;
    call.output.result(&read.json, || {
        let shown = Shown { verbose: call.output.is_verbose(), ..Shown::default() };
        Ok(output::task::task(&read.task, shown, None))
    })
}
