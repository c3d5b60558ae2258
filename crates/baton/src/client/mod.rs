//! What the client commands share: options and settings, the agent that is called, waiting for its tasks, and errors.

pub(crate) mod agent;
pub(crate) mod error;
pub(crate) mod options;
pub(crate) mod secrets;
pub(crate) mod settings;
pub(crate) mod tokens;
pub(crate) mod wait;

mod catalog;
mod debug;

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::io::IsTerminal as _;

use self::error::{CallError, Code, PROGRAM, command};
use self::options::Options;
use self::secrets::Secrets;
use self::settings::{Format, Key, Layers, Settings, Source, Surroundings};
use crate::exit::Failure;
use crate::output::task::shell_word;
use crate::output::view::{Event, Phase, Task};
use crate::output::{self, Output};

/// One run of a client command.
pub(crate) struct Call {
    pub(crate) settings: Settings,
    pub(crate) output: Output,
    pub(crate) secrets: Secrets,
    /// The task that was seen last, and the command to go on with if the user stops waiting.
    resume: RefCell<Option<(String, String)>>,
    /// The command itself knows what Ctrl-C means.
    pub(crate) owns_interrupts: Cell<bool>,
}

/// Runs a client command: reads the settings, warns, and reports an error in the form that was asked for. `--timeout` is for
/// everything that it does.
pub(crate) async fn run(
    options: &Options,
    command: impl AsyncFnOnce(&Call) -> Result<(), CallError>,
) -> Result<(), Failure> {
    run_without_limit(options, async |call| call.within(command(call)).await).await
}

/// The same, for a command that knows itself what the time limit is for.
pub(crate) async fn run_without_limit(
    options: &Options,
    command: impl AsyncFnOnce(&Call) -> Result<(), CallError>,
) -> Result<(), Failure> {
    let around = Surroundings::of_process();
    let failed = |error: &CallError, format, same_agent: &str| {
        output::error::report(error, format, options.stream, same_agent);
        Failure::reported(error.code.exit_status())
    };
    let settings = Settings::read(options.flags(), options.stream, &around)
        .map_err(|error| failed(&error, wanted_format(options.output.as_deref(), &around), ""))?;
    for warning in &settings.warnings {
        output::warn(warning);
    }
    let call = Call {
        output: Output::new(&settings),
        secrets: Secrets::of(&settings),
        settings,
        resume: RefCell::default(),
        owns_interrupts: Cell::new(false),
    };
    if call.settings.debug {
        call.settings.layers.unknown().iter().for_each(|unknown| output::warn(unknown));
    }
    let ended = tokio::select! {
        ended = Box::pin(command(&call)) => Some(ended),
        () = interrupted(&call) => None,
    };
    if ended.is_none() {
        // The terminal has shown `^C` on the line.
        if std::io::stderr().is_terminal() {
            output::note("");
        }
        match &*call.resume.borrow() {
            Some((_, resume)) => {
                output::note("Stopped waiting; the task goes on");
                output::note(&format!("Resume: {resume}"));
            }
            None => output::note("Stopped"),
        }
    }
    tokio::select! {
        () = tokens::settle() => {}
        () = interrupted(&call) => {}
    }
    let Some(ended) = ended else { return Err(Failure::stopped()) };
    ended.map_err(|error| {
        let error = error.with_usual_hint();
        let message = call.secrets.hidden(error.message);
        failed(&CallError { message, ..error }, call.settings.format, &call.same_agent())
    })
}

/// Waits for a Ctrl-C that ends the command.
async fn interrupted(call: &Call) {
    loop {
        match tokio::signal::ctrl_c().await {
            Ok(()) if call.owns_interrupts.get() => {}
            Ok(()) => return,
            // Without a handler the system's own ends the process.
            Err(_) => return std::future::pending().await,
        }
    }
}

impl Call {
    /// What was typed to say who the agent is and how it is reached: commands to go on with need it, too. Credentials are
    /// not in it.
    pub(crate) fn same_agent(&self) -> String {
        let mut words = Vec::new();
        for key in REACH {
            let Some((values, Source::Flag)) = self.settings.layers.list(*key) else { continue };
            for value in values {
                match key {
                    Key::AgentCard => words.push(format!("-a {}", shell_word(value))),
                    Key::Insecure if self.settings.insecure => words.push("--insecure".to_owned()),
                    Key::GrpcPlaintext if self.settings.grpc_plaintext => {
                        words.push("--grpc-plaintext".to_owned());
                    }
                    Key::Insecure | Key::GrpcPlaintext => {}
                    key => words.push(format!("--{} {}", key.flag(), shell_word(value))),
                }
            }
        }
        words.join(" ")
    }

    /// The command to go on with.
    pub(crate) fn resume(&self, task: &Task) -> String {
        output::task::resume(task, &self.same_agent())
    }

    /// The command to go on with after the last event of a stream.
    pub(crate) fn resume_of(&self, event: &Event) -> Option<String> {
        let task = match event {
            Event::Task(task) if task.status.state.phase() != Phase::Going => task.clone(),
            // A context that was not said cannot be gone on with: the task that follows knows it.
            Event::StatusUpdate(update) if update.context_id.is_empty() => return None,
            Event::StatusUpdate(update) if update.status.state.phase() != Phase::Going => Task {
                id: update.task_id.clone(),
                context_id: update.context_id.clone(),
                status: update.status.clone(),
                ..Task::default()
            },
            Event::Message(message) => {
                return output::task::resume_message(message, &self.same_agent());
            }
            Event::Task(_) | Event::StatusUpdate(_) | Event::ArtifactUpdate(_) => return None,
        };
        Some(self.resume(&task))
    }

    /// Remembered for the case that the user stops waiting.
    pub(crate) fn saw(&self, task_id: &str) {
        let rest = format!("--wait {}", output::task::id_word(task_id));
        let command = command("task get", &self.same_agent(), &rest);
        *self.resume.borrow_mut() = Some((task_id.to_owned(), command));
    }

    /// Gives up when `--timeout` has run out.
    pub(crate) async fn within<T>(
        &self,
        work: impl Future<Output = Result<T, CallError>>,
    ) -> Result<T, CallError> {
        let Some(limit) = self.settings.timeout else { return work.await };
        tokio::time::timeout(limit, work).await.unwrap_or_else(|_| Err(self.too_late()))
    }

    fn too_late(&self) -> CallError {
        self.with_task(match self.resume.borrow().is_some() {
            true => CallError::new(Code::Timeout, "the task has not ended in time; it goes on"),
            false => CallError::new(Code::Timeout, "the agent has not answered in time"),
        })
    }

    /// The same error, and the task that it was about: its id on stderr, since the envelope has no place for it, and the
    /// command to go on with as the hint.
    fn with_task(&self, error: CallError) -> CallError {
        match &*self.resume.borrow() {
            Some((id, resume)) => {
                output::note(&format!("Task: {id}"));
                error.with_hint(resume)
            }
            None => error,
        }
    }

    /// An id that was not typed acts like hidden state, so it is said.
    pub(crate) fn warn_of_hidden(&self, keys: &[Key]) {
        for key in keys {
            match self.settings.layers.get(*key) {
                Some((value, source)) if source != Source::Flag => {
                    output::warn(&format!("{}={value} comes from {source}", key.flag()));
                }
                _ => {}
            }
        }
    }
}

/// The settings that decide which agent is called, and how.
const REACH: &[Key] = &[
    Key::AgentCard,
    Key::Config,
    Key::Transport,
    Key::GrpcPlaintext,
    Key::A2aVersion,
    Key::Ca,
    Key::ClientCert,
    Key::ClientKey,
    Key::TrustOrigin,
    Key::Insecure,
];

/// The form for errors about the settings themselves.
fn wanted_format(typed: Option<&str>, around: &Surroundings) -> Format {
    let configured =
        || Layers::read(Vec::new(), around).ok()?.get(Key::Output).map(|(form, _)| form.to_owned());
    match typed.map(str::to_owned).or_else(configured).as_deref() {
        Some("json") => Format::Json,
        _ => Format::Text,
    }
}

/// Commands whose mistakes are reported as the CLI specification says.
const COMMANDS: &[&str] = &["send", "task", "card", "auth", "config", "conformance", "chat", "bench"];

pub(crate) fn is_client_command(args: &[OsString]) -> bool {
    args.get(1).and_then(|name| name.to_str()).is_some_and(|name| COMMANDS.contains(&name))
}

/// Reports a mistake on the command line, and returns the exit status.
pub(crate) fn report_usage(error: &clap::Error, args: &[OsString]) -> u8 {
    let text = error.to_string();
    let message = text.trim_start_matches("error: ").split("\n\nUsage:").next().unwrap_or_default();
    let sentences = message.split("\n\n").map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    let message = sentences.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ");
    let error =
        CallError::usage(message).with_hint(format!("{PROGRAM} help {}", command_words(args).join(" ")));
    let typed = args.iter().enumerate().find_map(|(at, arg)| match arg.to_str()? {
        "-o" | "--output" => args.get(at + 1)?.to_str(),
        arg => arg
            .strip_prefix("--output=")
            .or_else(|| arg.strip_prefix("-o="))
            .or_else(|| arg.strip_prefix("-o")),
    });
    let lines = args.iter().any(|arg| arg == "--stream");
    output::error::report(&error, wanted_format(typed, &Surroundings::of_process()), lines, "");
    error.code.exit_status()
}

/// The words of the command: `task push-config create`.
fn command_words(args: &[OsString]) -> Vec<String> {
    let words = args.iter().skip(1).map(|word| word.to_string_lossy().into_owned());
    let mut found: Vec<String> = Vec::new();
    for word in words.take(3) {
        let fits = match found.last().map(String::as_str) {
            None => COMMANDS.contains(&word.as_str()),
            Some("card" | "task" | "auth" | "config" | "push-config") => !word.starts_with('-'),
            Some(_) => false,
        };
        if !fits {
            break;
        }
        found.push(word);
    }
    found
}

/// An http(s) address that comes first behind the command, flags aside, stands for `--agent-card`, unless that is given, too.
pub(crate) fn leading_address(
    mut args: Vec<OsString>,
    whole: &clap::Command,
) -> (Vec<OsString>, Option<String>) {
    let words = command_words(&args);
    if words.is_empty() {
        return (args, None);
    }
    let command =
        words.iter().try_fold(whole, |command, word| command.find_subcommand(word)).unwrap_or(whole);
    let mut found = None;
    let mut at = 1 + words.len();
    while let Some(arg) = args.get(at).map(|arg| arg.to_string_lossy()) {
        match &*arg {
            "--" => break,
            flag if flag.starts_with("--agent-card") || flag.starts_with("-a") => return (args, None),
            flag if flag.starts_with('-') && flag != "-" => at += usize::from(takes_next(command, flag)),
            // Only the first word counts; flags may still follow it.
            word if found.is_none() => found = Some((at, is_address(word).then(|| word.to_owned()))),
            _ => {}
        }
        at += 1;
    }
    match found {
        Some((at, Some(address))) => {
            args[at] = format!("--agent-card={address}").into();
            (args, Some(address))
        }
        _ => (args, None),
    }
}

/// Whether a flag has its value in the next argument.
fn takes_next(command: &clap::Command, flag: &str) -> bool {
    let is_meant = |arg: &&clap::Arg| match flag.strip_prefix("--") {
        Some(long) => {
            arg.get_long() == Some(long) || arg.get_all_aliases().unwrap_or_default().contains(&long)
        }
        // `-ojson` has it already.
        None => flag.len() == 2 && arg.get_short() == flag.chars().nth(1),
    };
    let found = command.get_arguments().find(is_meant);
    found.is_some_and(|arg| arg.get_action().takes_values() && !arg.is_require_equals_set())
}

fn is_address(text: &str) -> bool {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(char::is_whitespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_comes_first_is_the_agent() {
        for (typed, meant) in [
            ("baton|send|http://h:1|hi", "baton|send|--agent-card=http://h:1|hi"),
            ("baton|task|get|https://h/x|t-1", "baton|task|get|--agent-card=https://h/x|t-1"),
            ("baton|task|push-config|list|http://h|t", "baton|task|push-config|list|--agent-card=http://h|t"),
            ("baton|card|get|http://h", "baton|card|get|--agent-card=http://h"),
            ("baton|send|hi|http://h", "baton|send|hi|http://h"),
            ("baton|send|http://h is down", "baton|send|http://h is down"),
            ("baton|send|http://h|-a|x", "baton|send|http://h|-a|x"),
            ("baton|send|http://h|--agent-card=x", "baton|send|http://h|--agent-card=x"),
            ("baton|test|http://h", "baton|test|http://h"),
            ("baton|send|http://h|--|-a", "baton|send|--agent-card=http://h|--|-a"),
            ("baton|send|--stream|http://h|hi", "baton|send|--stream|--agent-card=http://h|hi"),
            ("baton|send|-o|json|http://h|hi", "baton|send|-o|json|--agent-card=http://h|hi"),
            ("baton|send|-ojson|http://h|hi", "baton|send|-ojson|--agent-card=http://h|hi"),
            ("baton|send|--verbose|http://h|hi", "baton|send|--verbose|--agent-card=http://h|hi"),
            ("baton|send|--timeout|2s|http://h|hi", "baton|send|--timeout|2s|--agent-card=http://h|hi"),
            ("baton|send|--text|http://h", "baton|send|--text|http://h"),
            (
                "baton|send|--file|http://h/f|http://g|hi",
                "baton|send|--file|http://h/f|--agent-card=http://g|hi",
            ),
            ("baton|send|-|http://h", "baton|send|-|http://h"),
            ("baton|send|--|http://h", "baton|send|--|http://h"),
            ("baton|task|list|--all|http://h", "baton|task|list|--all|--agent-card=http://h"),
        ] {
            let args = |line: &str| line.split('|').map(OsString::from).collect::<Vec<_>>();
            assert_eq!(leading_address(args(typed), &crate::args::command()).0, args(meant));
        }
    }
}
