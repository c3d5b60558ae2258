//! `baton chat`: talks to an agent turn by turn. The context is carried always, the task while it waits for an answer;
//! nothing is kept after the end.
//!
//! On a terminal the agent's text is shown as it comes. Otherwise each line of the standard input is one `send`.

#[cfg(unix)]
mod editor;
mod input;
mod live;

use std::io::IsTerminal as _;

use baton_protocol::domain::{ContextId, Part, TaskId};
use baton_protocol::operation::{CancelTask, HistoryLength, SendMessage};

use self::input::{Entry, Lines};
use self::live::Live;
use super::send::{Parts, show};
use crate::client::agent::{Agent, Received};
use crate::client::error::{CallError, command};
use crate::client::options::{Options, SETTINGS_HELP};
use crate::client::settings::Key;
use crate::client::wait::Follow;
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
    client::run_without_limit(&args.options, async |call| Box::pin(chat(call)).await).await
}

/// Where the conversation stands.
struct Conversation {
    context_id: Option<ContextId>,
    /// The task that waits for the user, or that was named.
    task_id: Option<TaskId>,
    /// Files for the next message.
    files: Vec<Part>,
}

async fn chat(call: &Call) -> Result<(), CallError> {
    call.warn_of_hidden(&[Key::ContextId, Key::TaskId]);
    let agent = call.within(Agent::connect(call)).await?;
    let mut conversation = Conversation::begin(call)?;
    let is_live = call.output.is_text() && std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if is_live {
        output::note(&format!("{}. /help lists the commands, Ctrl-D leaves.", agent.card().name));
    }
    // A Ctrl-C ends a turn, or at the prompt the chat.
    call.owns_interrupts.set(is_live);
    let mut lines =
        Lines::open(is_live).map_err(|error| CallError::internal(format!("the terminal: {error}")))?;
    loop {
        let entry = tokio::select! {
            entry = lines.next() => entry,
            _ = tokio::signal::ctrl_c(), if is_live => None,
        };
        let Some(entry) = entry else { break };
        let entry = entry.map_err(|error| CallError::usage(format!("the standard input: {error}")))?;
        let turn = match entry {
            Entry::Quit => break,
            Entry::Help => {
                // Only results go to stdout, if a program reads it.
                input::HELP.lines().for_each(if is_live { live::say } else { output::note });
                continue;
            }
            Entry::New => {
                conversation = Conversation { context_id: None, task_id: None, files: Vec::new() };
                if is_live {
                    live::remark("a new conversation");
                }
                continue;
            }
            Entry::File(path) => match Parts::of_file(&path).read() {
                Ok(file) => {
                    if is_live {
                        live::remark(&format!("{path} goes with the next message"));
                    }
                    conversation.files.extend(file);
                    continue;
                }
                Err(error) if is_live => {
                    output::note(error.message.trim_start_matches("--file "));
                    continue;
                }
                Err(error) => return Err(error),
            },
            Entry::Unknown(word) => {
                output::note(&format!("{word} is not known; /help lists the commands"));
                continue;
            }
            Entry::Look => match conversation.task_id.clone().filter(|_| is_live) {
                Some(id) => Turn::Look(id),
                None => continue,
            },
            Entry::Text(text) => Turn::Send(Box::new(conversation.message(call, &text)?)),
        };
        match take(call, &agent, turn, is_live).await {
            Ok(Some(last)) => {
                let before = conversation.context_id.clone();
                conversation.follow(&last);
                if let Some(context) =
                    conversation.context_id.as_ref().filter(|it| is_live && before.as_ref() != Some(*it))
                {
                    live::remark(&format!("context {}", context.as_str()));
                }
            }
            Ok(None) => {}
            // A person can say something else; a program must know.
            Err(error) if is_live => {
                let error = error.with_usual_hint();
                let message = call.secrets.hidden(error.message);
                output::note(&format!("{}: {message}", error.code.as_str()));
                error
                    .hint
                    .iter()
                    .for_each(|hint| output::note(&format!("Hint: {}", hint.text(&call.same_agent()))));
            }
            Err(error) => return Err(error),
        }
    }
    // The terminal is as it was from here on.
    drop(lines);
    if is_live && let Some(rest) = conversation.resume() {
        live::say("");
        output::note(&format!("Resume: {}", command("chat", &call.same_agent(), &rest)));
    }
    Ok(())
}

enum Turn {
    Send(Box<SendMessage>),
    Look(TaskId),
}

/// One turn; `None` if the user stopped it before there was a task. Ctrl-C cancels the task, and the chat goes on.
async fn take(call: &Call, agent: &Agent, turn: Turn, is_live: bool) -> Result<Option<Received>, CallError> {
    if !is_live {
        return call.within(finish(call, agent, turn, None)).await.map(Some);
    }
    let mut live = Live::new(matches!(&turn, Turn::Send(message) if message.message.task_id.is_some()));
    let ended = tokio::select! {
        ended = call.within(finish(call, agent, turn, Some(&mut live))) => Some(ended),
        _ = tokio::signal::ctrl_c() => None,
    };
    let task = live.end();
    if let Some(ended) = ended {
        return ended.map(Some);
    }
    // The terminal has shown `^C` on the line.
    live::say("");
    let Some(id) = task else { return Ok(None) };
    let canceled = agent.cancel(CancelTask { id: wait::task_id(&id)?, metadata: None }).await?;
    live::remark(&format!("task {id} {}", canceled.task.status.state.words().unwrap_or("goes on")));
    Ok(Some(canceled.into_event()))
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
    let mut events = agent.stream(message).await?;
    match live {
        Some(live) => {
            let show = |received: &Received| {
                live.show(&received.event);
                Ok(())
            };
            wait::follow(call, agent, &mut events, Follow { is_answer, is_shown: true }, show).await
        }
        None => {
            let follow = Follow { is_answer, is_shown: false };
            let last = wait::follow(call, agent, &mut events, follow, |_| Ok(())).await?;
            let whole = wait::whole(call, agent, &events, last).await?;
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
        let mut parts = Parts::of_text(text).read()?;
        parts.append(&mut self.files);
        let mut message = baton_client::message(parts);
        message.context_id = self.context_id.clone();
        message.task_id = self.task_id.clone();
        Ok(SendMessage { metadata: call.settings.metadata.clone(), ..SendMessage::new(message) })
    }

    /// The flags to go on with.
    fn resume(&self) -> Option<String> {
        let context = self.context_id.as_ref().map(|id| format!("--context-id={}", shell_word(id.as_str())));
        let task = self.task_id.as_ref().map(|id| format!("--task-id={}", shell_word(id.as_str())));
        let flags: Vec<String> = context.into_iter().chain(task).collect();
        (!flags.is_empty()).then(|| flags.join(" "))
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
