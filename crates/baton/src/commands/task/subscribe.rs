//! `baton task subscribe`: follows the events of a task until it ends or asks for something.

use crate::client::agent::Agent;
use crate::client::error::CallError;
use crate::client::options::{Options, SETTINGS_HELP};
use crate::client::wait::Follow;
use crate::client::{self, Call, wait};
use crate::commands::send::{show_event, warn};
use crate::exit::Failure;

#[derive(Debug, clap::Args)]
#[command(after_help = SETTINGS_HELP)]
pub(crate) struct TaskSubscribe {
    /// The task's id.
    #[arg(value_name = "TASK_ID")]
    id: String,

    #[command(flatten)]
    options: Options,
}

pub(crate) async fn run(args: TaskSubscribe) -> Result<(), Failure> {
    client::run(&args.options, async |call| subscribe(call, &args.id).await).await
}

async fn subscribe(call: &Call, id: &str) -> Result<(), CallError> {
    let id = wait::task_id(id)?;
    let agent = Agent::connect(call).await?;
    call.saw(id.as_str());
    let mut events = agent.subscribe(&id).await?;
    // Without `--stream` a program gets one document: the task at its end.
    let each = call.output.is_text() || call.output.is_lines();
    let last =
        wait::follow(call, &agent, &mut events, Follow { is_answer: false, is_shown: each }, |event| {
            if each { show_event(call, event) } else { Ok(()) }
        })
        .await?;
    if !each {
        let read = agent.get(&id, baton_protocol::operation::HistoryLength::All).await?;
        call.output.json(&read.json)?;
    }
    warn(&last);
    Ok(())
}
