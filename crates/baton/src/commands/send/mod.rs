//! `baton send`: sends a message and delivers what becomes of it.

pub(crate) mod media_type;
mod parts;

use baton_protocol::domain::{ContextId, Message, PushConfig, TaskId};
use baton_protocol::operation::SendMessage;
use clap::builder::NonEmptyStringValueParser;

pub(crate) use self::parts::Parts;
use crate::client::agent::{Agent, Received};
use crate::client::error::{CallError, Hint};
use crate::client::options::{Options, SETTINGS_HELP};
use crate::client::settings::{Delivery, Key, Source};
use crate::client::wait::Follow;
use crate::client::{self, Call, wait};
use crate::exit::Failure;
use crate::output;
use crate::output::task::{Shown, resume_message};
use crate::output::view::Event;

const EXAMPLES: &str = "\
Examples:
  baton send -a agents.example.net \"Bus from A to B\"
  baton send http://127.0.0.1:3000 \"hello\" --stream
  baton send --task-id T \"tomorrow\"                       answer a question of the agent
  baton send --reference-task T \"the same, shorter\"       begin a task that refers to another
  baton send --file report.pdf --text \"Summarise this\"
  baton send --async \"take your time\" -o json
  baton send --async \"take your time\" --push-url https://hooks.example.net/in
";

#[derive(Debug, clap::Args)]
#[command(after_help = format!("{EXAMPLES}\n{SETTINGS_HELP}"))]
pub(crate) struct SendArgs {
    #[command(flatten)]
    parts: Parts,

    /// A task that the message refers to, without going on with it. Repeatable.
    #[arg(long, value_name = "ID", help_heading = "Agent")]
    reference_task: Vec<String>,

    #[command(flatten)]
    webhook: Webhook,

    #[command(flatten)]
    options: Options,
}

/// A webhook that comes with the message.
#[derive(Debug, clap::Args)]
struct Webhook {
    /// The address that the agent calls whenever the task changes; `baton listen` shows such calls.
    #[arg(long, value_name = "URL", help_heading = "Webhook")]
    push_url: Option<String>,

    /// Sent with every call, so that the receiver can check the sender.
    #[arg(long, value_name = "TOKEN", requires = "push_url", help_heading = "Webhook", value_parser = NonEmptyStringValueParser::new())]
    push_token: Option<String>,
}

pub(crate) async fn run(args: SendArgs, leading: Option<String>) -> Result<(), Failure> {
    let SendArgs { mut parts, reference_task, webhook, mut options } = args;
    // An address alone, with an agent that is configured, is the message.
    if let Some(address) = leading.filter(|_| parts.is_empty())
        && configured_agent()
    {
        options.agent_card = None;
        parts = Parts::of_text(&address);
    }
    client::run(&options, async |call| send(call, parts, reference_task, webhook).await).await
}

/// Whether a variable or a file names an agent.
fn configured_agent() -> bool {
    use crate::client::settings::{Layers, Surroundings};
    let layers = Layers::read(Vec::new(), &Surroundings::of_process());
    layers.is_ok_and(|layers| layers.get(Key::AgentCard).is_some_and(|(_, source)| source != Source::BuiltIn))
}

async fn send(call: &Call, parts: Parts, references: Vec<String>, webhook: Webhook) -> Result<(), CallError> {
    let mut message = message(call, parts)?;
    let references = references.iter().map(|id| TaskId::parse(id)).collect::<Result<_, _>>();
    message.message.reference_task_ids =
        references.map_err(|error| CallError::usage(format!("--reference-task {error}")))?;
    let agent = Agent::connect(call).await?;
    if let Some(url) = webhook.push_url {
        agent.needs_push()?;
        message.push_config = Some(PushConfig { token: webhook.push_token, ..PushConfig::new(url) });
    }
    let named = call.settings.task_id.clone();
    let pointed = |error: CallError| match &named {
        // The task is not there, has ended, or is of another context: nothing else is begun in its place.
        Some(id) => {
            error.or_hint(|| Hint::Command("task get", format!("--debug {}", output::task::id_word(id))))
        }
        None => error,
    };
    deliver(call, &agent, message).await.map_err(pointed)
}

async fn deliver(call: &Call, agent: &Agent, message: SendMessage) -> Result<(), CallError> {
    let is_answer = message.message.task_id.is_some();
    match call.settings.delivery() {
        Delivery::Return => {
            let reply = agent.send(SendMessage { return_immediately: true, ..message }).await?;
            show(call, &reply, Shown { verbose: call.output.is_verbose(), ..Shown::default() })
        }
        Delivery::Stream => {
            let mut events = agent.stream(message).await?;
            let follow = Follow { is_answer, is_shown: true };
            let last =
                wait::follow(call, agent, &mut events, follow, |event| show_event(call, event)).await?;
            warn(&last);
            Ok(())
        }
        Delivery::Wait => {
            let mut events = agent.stream(message).await?;
            let follow = Follow { is_answer, is_shown: false };
            let last = wait::follow(call, agent, &mut events, follow, |_| Ok(())).await?;
            let whole = wait::whole(call, agent, &events, last).await?;
            show(call, &whole, Shown { whole: true, verbose: call.output.is_verbose(), ..Shown::default() })
        }
    }
}

/// The message with everything that the settings say about it.
pub(crate) fn message(call: &Call, parts: Parts) -> Result<SendMessage, CallError> {
    let settings = &call.settings;
    call.warn_of_hidden(&[Key::ContextId, Key::TaskId]);
    let wrong = |flag: &str, error: &dyn std::fmt::Display| CallError::usage(format!("--{flag} {error}"));
    let mut message: Message = baton_client::message(parts.read()?);
    let context_id = settings.context_id.as_deref().map(ContextId::parse).transpose();
    message.context_id = context_id.map_err(|error| wrong("context-id", &error))?;
    let task_id = settings.task_id.as_deref().map(TaskId::parse).transpose();
    message.task_id = task_id.map_err(|error| wrong("task-id", &error))?;
    Ok(SendMessage { metadata: settings.metadata.clone(), ..SendMessage::new(message) })
}

/// The reply: a task or a message.
pub(crate) fn show(call: &Call, reply: &Received, shown: Shown) -> Result<(), CallError> {
    call.output.result(&reply.json, || {
        Ok(match &reply.event {
            Event::Task(task) => output::task::task(task, shown, Some(&call.resume(task))),
            Event::Message(message) => {
                let resume = resume_message(message, &call.same_agent());
                output::task::message(message, shown.verbose, resume.as_deref())
            }
            other => output::event::event(other, shown.verbose, None),
        })
    })?;
    warn(reply);
    Ok(())
}

/// Writes one event of a stream as it comes.
pub(crate) fn show_event(call: &Call, received: &Received) -> Result<(), CallError> {
    call.output.result(&received.json, || {
        let resume = call.resume_of(&received.event);
        Ok(output::event::event(&received.event, call.output.is_verbose(), resume.as_deref()))
    })
}

/// Warns on stderr if the outcome is not plain success.
pub(crate) fn warn(last: &Received) {
    let state = match &last.event {
        Event::Task(task) => &task.status.state,
        Event::StatusUpdate(update) => &update.status.state,
        Event::Message(_) | Event::ArtifactUpdate(_) => return,
    };
    if let Some(warning) = state.warning() {
        output::warn(warning);
    }
}
