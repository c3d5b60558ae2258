//! `baton chat`: talks to an agent turn by turn. The context is carried always, the task while it waits for an answer;
//! nothing is kept after the end.
//!
//! On a terminal the agent's text is shown as it comes. Otherwise each line of the standard input is one `send`.

mod input;
mod live;

use std::io::IsTerminal as _;

use baton_protocol::domain::{ContextId, TaskId};
use baton_protocol::operation::{CancelTask, HistoryLength, SendMessage};

use self::input::Entry;
use self::live::Live;
use super::send::{Parts, show};
use crate::client::agent::{Agent, Received};
use crate::client::error::{CallError, PROGRAM};
use crate::client::options::{Options, SETTINGS_HELP};
use crate::client::settings::Key;
use crate::client::{self, Call, wait};
use crate::exit::Failure;
use crate::output;
use crate::output::task::{Shown, shell_word};
use crate::output::view::{Event, Phase};

#[derive(Debug, clap::Args)]
#[command(after_help = format!("While talking:\n{}\n\n{SETTINGS_HELP}", input::HELP))]
pub(crate) struct Chat {
    #[command(flatten)]
    options: Options,
}

pub(crate) async fn run(args: Chat) -> Result<(), Failure> {
    client::run(&args.options, async |call| chat(call).await).await
}

/// Where the conversation stands.
struct Conversation {
    context_id: Option<ContextId>,
    /// The task that waits for the user, or that was named.
    task_id: Option<TaskId>,
    /// Files for the next message.
    files: Vec<String>,
}

async fn chat(call: &Call) -> Result<(), CallError> {
    call.warn_of_hidden(&[Key::ContextId, Key::TaskId]);
    let agent = Agent::connect(call).await?;
    let mut conversation = Conversation::begin(call)?;
    let is_live = call.output.is_text() && std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if is_live {
        output::note(&format!("{} (/help tells more)", agent.card().name));
    }
    // A Ctrl-C ends a turn, or at the prompt the chat.
    call.owns_interrupts.set(is_live);
    let mut lines = input::lines();
    let prompt = |first: bool| {
        if is_live {
            live::prompt(first)
        }
    };
    loop {
        let entry = tokio::select! {
            entry = input::next(&mut lines, prompt) => entry,
            _ = tokio::signal::ctrl_c(), if is_live => None,
        };
        let Some(entry) = entry else { break };
        let entry = entry.map_err(|error| CallError::usage(format!("the standard input: {error}")))?;
        let turn = match entry {
            Entry::Quit => break,
            Entry::Help => {
                live::say(input::HELP);
                continue;
            }
            Entry::New => {
                conversation = Conversation { context_id: None, task_id: None, files: Vec::new() };
                continue;
            }
            Entry::File(path) => {
                conversation.files.push(path);
                continue;
            }
            Entry::Unknown(word) => {
                output::note(&format!("{word} is not known; /help lists the commands"));
                continue;
            }
            Entry::Look => match conversation.task_id.clone().filter(|_| is_live) {
                Some(id) => Turn::Look(id),
                None => continue,
            },
            Entry::Text(text) => match conversation.message(call, &text) {
                Ok(message) => Turn::Send(Box::new(message)),
                Err(error) if is_live => {
                    output::note(&error.message);
                    continue;
                }
                Err(error) => return Err(error),
            },
        };
        match take(call, &agent, turn, is_live).await {
            Ok(Some(last)) => conversation.follow(&last),
            Ok(None) => {}
            // A person can say something else; a program must know.
            Err(error) if is_live => output::note(&format!("{}: {}", error.code.as_str(), error.message)),
            Err(error) => return Err(error),
        }
    }
    if is_live && let Some(context) = &conversation.context_id {
        let agent = call.typed_agent().map(|agent| format!("-a {} ", shell_word(agent))).unwrap_or_default();
        live::say("");
        output::note(&format!("Resume: {PROGRAM} chat {agent}--context-id={}", shell_word(context.as_str())));
    }
    Ok(())
}

enum Turn {
    Send(Box<SendMessage>),
    Look(TaskId),
}

/// One turn; `None` if the user stopped it. Ctrl-C cancels the task, and the chat goes on.
async fn take(call: &Call, agent: &Agent, turn: Turn, is_live: bool) -> Result<Option<Received>, CallError> {
    if !is_live {
        return finish(call, agent, turn, None).await.map(Some);
    }
    let mut live = Live::new(matches!(&turn, Turn::Send(message) if message.message.task_id.is_some()));
    let ended = tokio::select! {
        ended = finish(call, agent, turn, Some(&mut live)) => ended.map(Some),
        _ = tokio::signal::ctrl_c() => Ok(None),
    };
    let stopped = matches!(ended, Ok(None));
    if let Some(id) = live.end().filter(|_| stopped) {
        output::note(&format!("Canceling {id}"));
        agent.cancel(CancelTask { id: wait::task_id(&id)?, metadata: None }).await?;
    }
    ended
}

async fn finish(
    call: &Call,
    agent: &Agent,
    turn: Turn,
    live: Option<&mut Live>,
) -> Result<Received, CallError> {
    let (message, is_answer) = match turn {
        Turn::Look(id) => {
            let last = wait::poll(call, agent, &id, HistoryLength::Last(0)).await?.into_event();
            live.into_iter().for_each(|live| live.show(&last.event));
            return Ok(last);
        }
        Turn::Send(message) => {
            let is_answer = message.message.task_id.is_some();
            (*message, is_answer)
        }
    };
    let events = agent.stream(message).await?;
    match live {
        Some(live) => {
            let show = |received: &Received| {
                live.show(&received.event);
                Ok(())
            };
            wait::follow(call, agent, events, is_answer, show).await
        }
        None => {
            let last = wait::follow(call, agent, events, is_answer, |_| Ok(())).await?;
            let whole = wait::whole(call, agent, last).await?;
            show(call, &whole, Shown { whole: true, verbose: call.output.is_verbose(), ..Shown::default() })?;
            Ok(whole)
        }
    }
}

impl Conversation {
    fn begin(call: &Call) -> Result<Self, CallError> {
        let wrong = |flag: &str, error: &dyn std::fmt::Display| CallError::usage(format!("--{flag} {error}"));
        let context_id = call.settings.context_id.as_deref().map(ContextId::parse).transpose();
        let task_id = call.settings.task_id.as_deref().map(TaskId::parse).transpose();
        Ok(Conversation {
            context_id: context_id.map_err(|error| wrong("context-id", &error))?,
            task_id: task_id.map_err(|error| wrong("task-id", &error))?,
            files: Vec::new(),
        })
    }

    fn message(&mut self, call: &Call, text: &str) -> Result<SendMessage, CallError> {
        let parts = Parts::of_text(text).with_files(std::mem::take(&mut self.files));
        let mut message = baton_client::message(parts.read()?);
        message.context_id = self.context_id.clone();
        message.task_id = self.task_id.clone();
        Ok(SendMessage { metadata: call.settings.metadata.clone(), ..SendMessage::new(message) })
    }

    /// The context stays; the task only while it waits for the user.
    fn follow(&mut self, last: &Received) {
        let (context, phase) = match &last.event {
            Event::Task(task) => (Some(task.context_id.as_str()), task.status.state.phase()),
            Event::StatusUpdate(update) => (Some(update.context_id.as_str()), update.status.state.phase()),
            Event::Message(message) => (message.context_id.as_deref(), Phase::Ended),
            Event::ArtifactUpdate(_) => return,
        };
        let context =
            context.filter(|context| !context.is_empty()).and_then(|context| ContextId::parse(context).ok());
        self.context_id = context.or(self.context_id.take());
        self.task_id = match phase {
            Phase::Ended => None,
            Phase::Paused | Phase::Going => last.task_id().and_then(|id| TaskId::parse(id).ok()),
        };
    }
}
