//! `baton task list`: tasks, page by page.

use baton_protocol::domain::{ContextId, ListFilter, TaskState};
use baton_protocol::operation::{HistoryLength, ListTasks};
use baton_protocol::wire::v1;

use crate::client::agent::{Agent, Page};
use crate::client::error::CallError;
use crate::client::options::{Options, SETTINGS_HELP};
use crate::client::settings::Key;
use crate::client::{self, Call};
use crate::exit::Failure;
use crate::output;
use crate::output::task::Shown;
use crate::output::text::Section;

#[derive(Debug, clap::Args)]
#[command(after_help = SETTINGS_HELP)]
pub(crate) struct TaskList {
    /// Only tasks in this state: TASK_STATE_WORKING, or working for short.
    #[arg(long, value_name = "STATE")]
    status: Option<String>,

    /// Tasks per page [default: the agent's].
    #[arg(long, value_name = "N")]
    page_size: Option<i32>,

    /// The page behind another one: its `Next page`.
    // A token may begin with a hyphen.
    #[arg(long, value_name = "TOKEN", allow_hyphen_values = true)]
    page_token: Option<String>,

    /// Only tasks whose status changed at this time or later: 2026-08-20T09:20:00Z.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,

    /// Include this many of the latest messages of each task.
    #[arg(long, value_name = "N")]
    history: Option<u32>,

    /// Include the artifacts.
    #[arg(long)]
    include_artifacts: bool,

    /// All pages.
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    options: Options,
}

pub(crate) async fn run(args: TaskList) -> Result<(), Failure> {
    client::run(&args.options, async |call| list(call, &args).await).await
}

async fn list(call: &Call, args: &TaskList) -> Result<(), CallError> {
    call.warn_of_hidden(&[Key::ContextId]);
    let wanted = wanted(call, args)?;
    let agent = Agent::connect(call).await?;
    let mut pages = agent.tasks(wanted);
    if call.output.is_lines() {
        while let Some(page) = pages.next().await? {
            page.items.iter().try_for_each(|task| call.output.json(task.get()))?;
            if !args.all {
                break;
            }
        }
        return Ok(());
    }
    let page = match args.all {
        true => pages.all().await?,
        false => pages.next().await?.ok_or_else(|| CallError::internal("the agent sent no page"))?,
    };
    match call.output.is_text() {
        true => call.output.text(&text(call, args, &page)?),
        false => call.output.json(&page.json()),
    }
}

fn wanted(call: &Call, args: &TaskList) -> Result<ListTasks, CallError> {
    let states = args.status.as_deref().map(state).transpose()?;
    let context_id = call.settings.context_id.as_deref().map(ContextId::parse).transpose();
    let updated_since = args.since.as_deref().map(|since| {
        v1::parse_timestamp(since).ok_or_else(|| {
            CallError::usage(format!("--since {since}: write a time such as 2026-08-20T09:20:00Z"))
        })
    });
    let filter = ListFilter {
        context_id: context_id.map_err(|error| CallError::usage(format!("--context-id {error}")))?,
        states: states.into_iter().collect(),
        updated_since: updated_since.transpose()?,
    };
    Ok(ListTasks {
        filter,
        page_size: args.page_size,
        page_token: args.page_token.clone(),
        history_length: HistoryLength::Last(args.history.unwrap_or(0)),
        include_artifacts: args.include_artifacts,
    })
}

/// The wire name, or the same without its prefix in any case.
fn state(text: &str) -> Result<TaskState, CallError> {
    let name = text.to_ascii_uppercase().replace('-', "_");
    let name = if name.starts_with("TASK_STATE_") { name } else { format!("TASK_STATE_{name}") };
    v1::parse_state(&name).ok_or_else(|| {
        let names: Vec<&str> = TaskState::ALL.into_iter().map(v1::state_name).collect();
        CallError::usage(format!("--status {text}: no such state; write one of {}", names.join(", ")))
    })
}

fn text(call: &Call, args: &TaskList, page: &Page) -> Result<String, CallError> {
    let mut section = Section::default();
    section.field("Tasks", page.items.len().to_string());
    section.field("Total", page.total().unwrap_or_default().to_string());
    let next = Some(&page.next).filter(|token| !token.is_empty());
    section.optional("Next page", next);
    let mut text = section.end();
    let verbose = call.output.is_verbose();
    let shown = Shown {
        whole: args.include_artifacts || verbose,
        history: args.history.is_some(),
        verbose,
        no_message: !verbose,
    };
    for task in &page.items {
        text += &output::task::task(&output::view::read(task.get())?, shown, None);
    }
    Ok(text)
}
