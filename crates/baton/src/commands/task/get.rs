//! `baton task get`: shows a task, at once or when it has come to rest.

use baton_protocol::operation::HistoryLength;

use crate::client::agent::Agent;
use crate::client::error::CallError;
use crate::client::options::{Options, SETTINGS_HELP};
use crate::client::{self, Call, wait};
use crate::exit::Failure;
use crate::output;
use crate::output::task::Shown;
use crate::output::view::Phase;

#[derive(Debug, clap::Args)]
#[command(after_help = SETTINGS_HELP)]
pub(crate) struct TaskGet {
    /// The task's id.
    #[arg(value_name = "TASK_ID")]
    id: String,

    /// Ask for this many of the latest messages, and show them [default: all, and they are not shown].
    #[arg(long, value_name = "N")]
    history: Option<u32>,

    #[command(flatten)]
    options: Options,
}

pub(crate) async fn run(args: TaskGet) -> Result<(), Failure> {
    let TaskGet { id, history, options } = args;
    client::run(&options, async |call| get(call, &id, history).await).await
}

async fn get(call: &Call, id: &str, history: Option<u32>) -> Result<(), CallError> {
    let id = wait::task_id(id)?;
    let length = history.map_or(HistoryLength::All, HistoryLength::Last);
    let agent = Agent::connect(call).await?;
    let read = match call.settings.wait {
        Some(true) => wait::poll(call, &agent, &id, length).await?,
        _ => agent.get(&id, length).await?,
    };
    call.output.result(&read.json, || {
        let shown = Shown {
            whole: true,
            history: history.is_some(),
            verbose: call.output.is_verbose(),
            ..Shown::default()
        };
        let resume = (read.task.status.state.phase() != Phase::Ended).then(|| call.resume(&read.task));
        Ok(output::task::task(&read.task, shown, resume.as_deref()))
    })?;
    if let Some(warning) = read.task.status.state.warning() {
        output::warn(warning);
    }
    Ok(())
}
