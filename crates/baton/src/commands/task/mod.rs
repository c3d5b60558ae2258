//! `baton task …`: tasks that exist.

mod cancel;
mod download;
mod get;
mod list;
mod push_config;
mod subscribe;

use crate::exit::Failure;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum TaskVerb {
    /// Show a task; with `--wait` once it ends or asks for something.
    Get(Box<get::TaskGet>),
    /// List tasks.
    List(Box<list::TaskList>),
    /// Ask the agent to stop working on a task.
    Cancel(Box<cancel::TaskCancel>),
    /// Follow the events of a task.
    Subscribe(Box<subscribe::TaskSubscribe>),
    /// Save the artifacts of a task as files.
    Download(Box<download::TaskDownload>),
    /// Register, show and remove webhooks of a task.
    #[command(subcommand)]
    PushConfig(push_config::PushConfigVerb),
}

pub(crate) async fn run(verb: TaskVerb) -> Result<(), Failure> {
    match verb {
        TaskVerb::Get(args) => get::run(*args).await,
        TaskVerb::List(args) => list::run(*args).await,
        TaskVerb::Cancel(args) => cancel::run(*args).await,
        TaskVerb::Subscribe(args) => subscribe::run(*args).await,
        TaskVerb::Download(args) => download::run(*args).await,
        TaskVerb::PushConfig(verb) => push_config::run(verb).await,
    }
}
