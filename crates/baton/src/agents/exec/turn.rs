//! Runs a program for one turn of a task.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use baton_protocol::domain::{Artifact, Message, Role};
use baton_server::{AgentError, Stop, Stopped, Turn};
use tokio::io::AsyncReadExt as _;
use tokio::time::{Instant, sleep_until};

use super::artifacts::Artifacts;
use super::conversation::Conversation;
use super::feed::Feed;
use super::process::{Ended, Process};
use super::stderr::StderrLog;
use super::text_artifact::TextArtifact;
use super::{ExecOptions, Input, Output, Program, ending, input, shortage};

/// How long output is still read after all processes of the program are gone.
const LAST_OUTPUT: Duration = Duration::from_secs(1);
const READ_BYTES: usize = 16 * 1024;

/// Why a program is ended before it exits by itself.
#[derive(Debug)]
pub(super) enum Break {
    Stopped,
    /// The reason the task fails with.
    Failed(String),
}

impl Break {
    /// The program's output breaks the format.
    pub(super) fn invalid(what: &dyn fmt::Display) -> Self {
        Break::Failed(format!("The agent's program gave an invalid response: {what}"))
    }

    pub(super) fn at_line(self, number: usize) -> Self {
        match self {
            Break::Failed(reason) => Break::Failed(format!("{reason} (line {number})")),
            Break::Stopped => Break::Stopped,
        }
    }
}

impl From<AgentError> for Break {
    fn from(error: AgentError) -> Self {
        if error.is_stop() { Break::Stopped } else { Break::Failed(error.message().to_owned()) }
    }
}

pub(super) async fn run(program: &Program, turn: Turn) -> Result<(), AgentError> {
    let options = &program.options;
    // A re-run starts from the beginning, so the artifacts of the interrupted run are discarded.
    let artifacts = turn.start_over().await?;
    let mut output = OutputHandler::new(options, &turn, &artifacts)?;
    let mut first = match options.input {
        Input::Json => input::turn_line(&options.skill, &turn, &[]),
        Input::Text => match input::text(turn.message()) {
            Ok(text) => text,
            Err(refusal) => return turn.reject(refusal).await,
        },
    };
    while run_once(program, &turn, first, &mut output).await? == Next::Again {
        // The program is started again with the answer, as if the answer had started a new turn.
        tracing::debug!(target: "exec", { task.id = %turn.task_id() }, "the program exited before it read its answer; starting it again");
        first = input::turn_line(&options.skill, &turn, output.begin_again());
    }
    Ok(())
}

#[derive(PartialEq)]
enum Next {
    Done,
    /// An answer was left unread.
    Again,
}

async fn run_once(
    program: &Program,
    turn: &Turn,
    first: Vec<u8>,
    output: &mut OutputHandler,
) -> Result<Next, AgentError> {
    let options = &program.options;
    let environment = program.environment.for_turn(&options.skill, turn);
    let started = tokio::select! {
        biased;
        () = stop_requested(turn, options.rerunnable) => return Err(Stopped.into()),
        started = shortage::start(options, &environment, &program.shortage) => started,
    };
    let mut process = started.map_err(|error| {
        tracing::error!(target: "exec", { task.id = %turn.task_id(), %error }, "a guard could not be started");
        AgentError::new(format!("The agent's program could not be started: {error}"))
    })?;
    let mut complaints =
        StderrLog::keep(process.stderr.take(), Some(turn.task_id()), turn.context_id(), options.stderr_lines);
    let mut feed = Feed::new(process.stdin.take(), first, output.answers());
    let mut done = drive(options, turn, &mut process, &mut feed, output).await;
    if done.is_ok() && !output.is_over() {
        let ended = process.ended().await;
        done = output.finish(ended == Ended::Exited(0)).await;
        if done.is_ok() && !output.is_over() {
            let last_lines = complaints.last_lines().await;
            return match ending::judge(ended, options.show_stderr.then_some(&last_lines)) {
                Ok(()) if feed.answer_unread() => Ok(Next::Again),
                Ok(()) => Ok(Next::Done),
                Err(reason) => {
                    tracing::warn!(target: "exec", { task.id = %turn.task_id(), ?ended }, "the program failed");
                    Err(AgentError::new(reason))
                }
            };
        }
    }
    let ended = process.end().await;
    tracing::debug!(target: "exec", { task.id = %turn.task_id(), ?ended }, "the program's output is no longer read");
    match done {
        Ok(()) => Ok(Next::Done),
        Err(Break::Stopped) => Err(Stopped.into()),
        Err(Break::Failed(reason)) => {
            tracing::warn!(target: "exec", { task.id = %turn.task_id(), reason }, "the program was ended");
            Err(AgentError::new(reason))
        }
    }
}

/// Writes the program's input and reads its output; returns at the end of the output, or when the task has ended.
async fn drive(
    options: &ExecOptions,
    turn: &Turn,
    process: &mut Process,
    feed: &mut Feed,
    output: &mut OutputHandler,
) -> Result<(), Break> {
    let mut ending = process.ending();
    let mut buffer = vec![0; READ_BYTES];
    let mut room = options.max_output_bytes;
    let mut time = WorkingTime::new(options.timeout);
    // Set when the program has ended the task, or has exited.
    let mut leave_at: Option<Instant> = None;
    let mut gone = false;
    loop {
        time.pause(output.waits());
        if output.is_over() && leave_at.is_none() {
            feed.close();
            leave_at = Some(Instant::now() + options.kill_grace);
        }
        let (over, waits) = (output.is_over(), output.waits());
        tokio::select! {
            biased;
            () = stop_requested(turn, options.rerunnable), if !over => return Err(Break::Stopped),
            () = at(leave_at) => return Ok(()),
            () = at(time.end()), if !over => {
                let most = options.timeout.unwrap_or_default().as_secs_f64();
                return Err(Break::Failed(format!("The agent's program took longer than {most} s")));
            }
            () = at(output.flush_at()) => output.flush().await?,
            answer = output.answer(), if waits => {
                let answer = answer?;
                feed.answer(&input::answer_line(&answer, &turn.sent_with(&answer)));
            }
            () = feed.write(), if feed.has_work() => {}
            read = process.stdout.read(&mut buffer) => match read {
                Ok(0) | Err(_) => return Ok(()),
                Ok(count) => {
                    room = room.checked_sub(count).ok_or_else(|| {
                        let most = options.max_output_bytes;
                        Break::Failed(format!("The agent's program wrote more than {most} bytes"))
                    })?;
                    output.take(&buffer[..count]).await?;
                }
            },
            _ = ending.wait(), if !gone => {
                gone = true;
                leave_at = Some(Instant::now() + LAST_OUTPUT);
            }
        }
    }
}

/// A rerunnable program is stopped at once when the server shuts down; others may use the server's drain time.
async fn stop_requested(turn: &Turn, rerunnable: bool) {
    turn.cancellation().cancelled().await;
    if turn.stop_reason() == Some(Stop::Shutdown) && !rerunnable {
        std::future::pending::<()>().await;
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// The limit on a program's working time. The clock stops while the program waits for an answer.
struct WorkingTime {
    end: Option<Instant>,
    paused: Option<Instant>,
}

impl WorkingTime {
    fn new(most: Option<Duration>) -> Self {
        WorkingTime { end: most.map(|most| Instant::now() + most), paused: None }
    }

    fn pause(&mut self, paused: bool) {
        match (paused, self.paused) {
            (true, None) => self.paused = Some(Instant::now()),
            (false, Some(since)) => {
                self.end = self.end.map(|end| end + since.elapsed());
                self.paused = None;
            }
            _ => {}
        }
    }

    fn end(&self) -> Option<Instant> {
        self.end.filter(|_| self.paused.is_none())
    }
}

/// Interprets stdout.
enum OutputHandler {
    Text(Box<TextArtifact>),
    Lines(Box<Conversation>),
}

impl OutputHandler {
    fn new(options: &ExecOptions, turn: &Turn, artifacts: &[Arc<Artifact>]) -> Result<Self, AgentError> {
        // A re-run of the turn has the same number.
        let said = turn.task().history.iter().filter(|message| message.role == Role::User);
        let number = said.count();
        Ok(match options.output {
            Output::Text => OutputHandler::Text(Box::new(TextArtifact::new(options, turn, number)?)),
            Output::Jsonl => {
                let answers = options.input == Input::Json;
                let artifacts = Artifacts::new(artifacts, number);
                OutputHandler::Lines(Box::new(Conversation::new(
                    turn,
                    artifacts,
                    options.max_line_bytes,
                    answers,
                )))
            }
        })
    }

    /// True if answers may be written to the program after the first message.
    fn answers(&self) -> bool {
        match self {
            OutputHandler::Text(_) => false,
            OutputHandler::Lines(conversation) => conversation.answers(),
        }
    }

    fn is_over(&self) -> bool {
        matches!(self, OutputHandler::Lines(conversation) if conversation.is_over())
    }

    fn waits(&self) -> bool {
        matches!(self, OutputHandler::Lines(conversation) if conversation.waits())
    }

    async fn answer(&mut self) -> Result<Message, AgentError> {
        match self {
            OutputHandler::Text(_) => std::future::pending().await,
            OutputHandler::Lines(conversation) => conversation.answer().await,
        }
    }

    async fn take(&mut self, bytes: &[u8]) -> Result<(), Break> {
        match self {
            OutputHandler::Text(artifact) => Ok(artifact.take(bytes).await?),
            OutputHandler::Lines(conversation) => conversation.take(bytes).await,
        }
    }

    fn flush_at(&self) -> Option<Instant> {
        match self {
            OutputHandler::Text(artifact) => artifact.flush_at(),
            OutputHandler::Lines(_) => None,
        }
    }

    async fn flush(&mut self) -> Result<(), AgentError> {
        match self {
            OutputHandler::Text(artifact) => artifact.flush().await,
            OutputHandler::Lines(_) => Ok(()),
        }
    }

    /// See [`Conversation::begin_again`].
    fn begin_again(&mut self) -> &[Message] {
        match self {
            OutputHandler::Text(_) => &[],
            OutputHandler::Lines(conversation) => conversation.begin_again(),
        }
    }

    async fn finish(&mut self, whole: bool) -> Result<(), Break> {
        match self {
            OutputHandler::Text(artifact) => Ok(artifact.finish(whole).await?),
            OutputHandler::Lines(conversation) => conversation.finish().await,
        }
    }
}
