//! Any program as an agent: `baton serve --exec CMD`. `docs/exec.md` is the manual.
//!
//! | file | holds |
//! |---|---|
//! | `flags` | the command line, and the card made from it |
//! | `command` | the typed command as an argument vector, and whether it can be run |
//! | `environment` | the program's environment variables |
//! | `input` | what it reads on stdin; `feed` writes it |
//! | `text`, `text_artifact` | plain text on stdout, and the artifact it becomes |
//! | `lines`, `says`, `conversation`, `artifacts` | lines of JSON on stdout, their meaning, and their effect on the task |
//! | `turn`, `reply` | runs a program for a turn of a task; for a reply without a task |
//! | `stderr`, `ending` | its stderr, and the reason that clients get when it fails |
//! | `process` | the running program, seen from the server |
//! | `shortage` | waiting when there is no file descriptor or process to spare |
//! | `guard`, `report`, `children`, `orphans` | end all processes of a program, even if the server is killed |
//! | `one_run` | prevents two runs of a task at once, even after a crash |

mod command;
mod environment;
pub(crate) mod flags;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod input;
mod lines;
mod says;
mod text;

#[cfg(unix)]
mod artifacts;
#[cfg(unix)]
mod children;
#[cfg(unix)]
mod conversation;
#[cfg(unix)]
mod ending;
#[cfg(unix)]
mod feed;
#[cfg(unix)]
pub(crate) mod guard;
#[cfg(unix)]
mod one_run;
#[cfg(unix)]
mod orphans;
#[cfg(unix)]
mod process;
#[cfg(unix)]
mod reply;
#[cfg(unix)]
mod report;
#[cfg(unix)]
mod shortage;
#[cfg(unix)]
mod stderr;
#[cfg(unix)]
mod text_artifact;
#[cfg(unix)]
mod turn;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use baton_server::{Agent, AgentError, Asked, Content, MessageAgent, Turn};

pub(crate) use command::{missing_script, name, parse};
use environment::Environment;

/// How a program is run. Every bound has a default.
#[derive(Debug, Clone)]
pub(crate) struct ExecOptions {
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    /// The skill's id, for the program's environment and input.
    pub(crate) skill: String,
    pub(crate) input: Input,
    pub(crate) output: Output,
    pub(crate) chunk: Chunk,
    /// The program's working folder; default: the server's.
    pub(crate) directory: Option<PathBuf>,
    /// Variables in addition to the few that are copied from the server's environment.
    pub(crate) environment: Vec<(String, String)>,
    /// Longest time it may work on one turn, not counting the time it waits for answers. The engine has its own limit.
    pub(crate) timeout: Option<Duration>,
    /// Time between SIGTERM and SIGKILL. Shorter than the time that the engine gives a canceled turn.
    pub(crate) kill_grace: Duration,
    /// Most it may write in one turn.
    pub(crate) max_output_bytes: usize,
    /// Longest line of JSON, or piece between two delimiters.
    pub(crate) max_line_bytes: usize,
    /// Whether clients see the last lines of its stderr when it fails.
    pub(crate) show_stderr: bool,
    /// How many lines they see.
    pub(crate) stderr_lines: usize,
    /// Whether it may be run again after a crash of the server.
    pub(crate) rerunnable: bool,
}

/// What the program reads on stdin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Input {
    /// The message's text, then end of file.
    #[default]
    Text,
    /// One line of JSON: the message with its task, context and history.
    Json,
}

/// What the program writes on stdout.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Output {
    /// Text, which becomes one artifact.
    #[default]
    Text,
    /// Lines of JSON, one statement per line.
    Jsonl,
}

/// What a message is answered with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Replies {
    /// A task to follow, cancel and read again.
    #[default]
    Task,
    /// A message, once the program has ended.
    Message,
}

/// How text is split into chunks of its artifact.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Chunk {
    /// As it is printed.
    #[default]
    Any,
    /// After every delimiter, which is left out.
    Delimiter(String),
}

impl Input {
    /// For the card: media types of messages.
    pub(crate) fn modes(self) -> Vec<String> {
        let modes: &[&str] = match self {
            Input::Text => &["text/plain", "application/json"],
            Input::Json => &["*/*"],
        };
        modes.iter().map(|mode| (*mode).to_owned()).collect()
    }
}

impl Output {
    /// For the card: media types of answers.
    pub(crate) fn modes(self) -> Vec<String> {
        match self {
            Output::Text => vec!["text/plain".to_owned()],
            Output::Jsonl => vec!["*/*".to_owned()],
        }
    }
}

impl Default for ExecOptions {
    fn default() -> Self {
        ExecOptions {
            command: Vec::new(),
            skill: String::new(),
            input: Input::default(),
            output: Output::default(),
            chunk: Chunk::default(),
            directory: None,
            environment: Vec::new(),
            timeout: None,
            kill_grace: Duration::from_secs(2),
            max_output_bytes: 16 * 1024 * 1024,
            max_line_bytes: 2 * 1024 * 1024,
            show_stderr: false,
            stderr_lines: 3,
            rerunnable: false,
        }
    }
}

/// Default limit on running programs per agent. It is below `max_running`, since a process costs far more than a
/// future.
pub(crate) const MOST_PROGRAMS: usize = 64;

/// A program that works on tasks.
pub(crate) struct ExecAgent(Arc<Program>);

/// A program that answers messages.
pub(crate) struct ExecReplies(Arc<Program>);

struct Program {
    options: ExecOptions,
    environment: Environment,
    #[cfg(unix)]
    shortage: shortage::LogTimer,
}

impl Program {
    fn new(options: ExecOptions) -> Result<Arc<Self>, String> {
        if cfg!(not(unix)) {
            return Err(
                "programs as agents need a Unix system: on this one their processes could not be ended"
                    .to_owned(),
            );
        }
        let environment = Environment::of_server(&options.environment);
        command::check(&options, environment.path())?;
        #[cfg(unix)]
        children::adopt_orphans().map_err(|error| format!("processes cannot be adopted: {error}"))?;
        Ok(Arc::new(Program {
            options,
            environment,
            #[cfg(unix)]
            shortage: shortage::LogTimer::default(),
        }))
    }
}

impl ExecAgent {
    /// Refuses, with the reason, a program that cannot be run.
    pub(crate) fn new(options: ExecOptions) -> Result<Self, String> {
        Program::new(options).map(ExecAgent)
    }
}

impl ExecReplies {
    /// Refuses, with the reason, a program that cannot be run.
    pub(crate) fn new(options: ExecOptions) -> Result<Self, String> {
        Program::new(options).map(ExecReplies)
    }
}

#[async_trait]
impl Agent for ExecAgent {
    #[cfg(unix)]
    async fn run(&self, turn: Turn) -> Result<(), AgentError> {
        turn::run(&self.0, turn).await
    }

    #[cfg(not(unix))]
    async fn run(&self, _: Turn) -> Result<(), AgentError> {
        unreachable!("no agent is made here")
    }

    fn rerunnable(&self) -> bool {
        self.0.options.rerunnable
    }
}

#[async_trait]
impl MessageAgent for ExecReplies {
    #[cfg(unix)]
    async fn reply(&self, asked: Asked) -> Result<Content, AgentError> {
        reply::reply(&self.0, asked).await.map(Content::from)
    }

    #[cfg(not(unix))]
    async fn reply(&self, _: Asked) -> Result<Content, AgentError> {
        unreachable!("no agent is made here")
    }
}
