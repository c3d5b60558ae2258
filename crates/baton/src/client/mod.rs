//! What the client commands share: options and settings, the agent that is called, waiting for its tasks, and errors.

pub(crate) mod agent;
pub(crate) mod error;
pub(crate) mod options;
pub(crate) mod settings;
pub(crate) mod tokens;
pub(crate) mod wait;

mod catalog;
mod debug;

use std::cell::{Cell, RefCell};
use std::ffi::OsString;

use self::error::{CallError, PROGRAM};
use self::options::Options;
use self::settings::{Format, Key, Layers, Settings, Source, Surroundings};
use crate::exit::Failure;
use crate::output::view::{Event, Phase, Task};
use crate::output::{self, Output};

/// One run of a client command.
pub(crate) struct Call {
    pub(crate) settings: Settings,
    pub(crate) output: Output,
    /// The command to go on with if the user stops waiting.
    resume: RefCell<Option<String>>,
    /// The command itself knows what Ctrl-C means.
    pub(crate) owns_interrupts: Cell<bool>,
}

/// Runs a client command: reads the settings, warns, and reports an error in the form that was asked for.
pub(crate) async fn run(
    options: &Options,
    command: impl AsyncFnOnce(&Call) -> Result<(), CallError>,
) -> Result<(), Failure> {
    let around = Surroundings::of_process();
    let failed = |error: &CallError, format| {
        output::error::report(error, format, options.stream);
        Failure::reported(error.code.exit_status())
    };
    let settings = Settings::read(options.flags(), options.stream, &around)
        .map_err(|error| failed(&error, wanted_format(options.output.as_deref(), &around)))?;
    for warning in &settings.warnings {
        output::warn(warning);
    }
    let call = Call {
        output: Output::new(&settings),
        settings,
        resume: RefCell::default(),
        owns_interrupts: Cell::new(false),
    };
    if call.settings.debug {
        call.settings.layers.unknown().iter().for_each(|unknown| output::warn(unknown));
    }
    let ended = tokio::select! {
        ended = Box::pin(command(&call)) => ended,
        () = interrupted(&call) => {
            match &*call.resume.borrow() {
                Some(resume) => output::note(&format!("Stopped waiting; the task goes on. Resume: {resume}")),
                None => output::note("Stopped"),
            }
            return Err(Failure::stopped());
        }
    };
    ended.map_err(|error| failed(&error.with_usual_hint(), call.settings.format))
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
    /// The agent's reference, if it was typed: then commands to go on with must have it, too.
    pub(crate) fn typed_agent(&self) -> Option<&str> {
        match self.settings.layers.get(Key::AgentCard) {
            Some((agent, Source::Flag)) => Some(agent),
            _ => None,
        }
    }

    /// The command to go on with.
    pub(crate) fn resume(&self, task: &Task) -> String {
        output::task::resume(task, PROGRAM, self.typed_agent())
    }

    /// The command to go on with after the last event of a stream.
    pub(crate) fn resume_of(&self, event: &Event) -> Option<String> {
        let task = match event {
            Event::Task(task) if task.status.state.phase() != Phase::Going => task.clone(),
            Event::StatusUpdate(update) if update.status.state.phase() != Phase::Going => Task {
                id: update.task_id.clone(),
                context_id: update.context_id.clone(),
                status: update.status.clone(),
                ..Task::default()
            },
            Event::Message(message) => {
                return output::task::resume_message(message, PROGRAM, self.typed_agent());
            }
            Event::Task(_) | Event::StatusUpdate(_) | Event::ArtifactUpdate(_) => return None,
        };
        Some(self.resume(&task))
    }

    /// Remembered for the case that the user stops waiting.
    fn saw(&self, task_id: &str) {
        let agent = self.typed_agent().map(|agent| format!("-a {} ", output::task::shell_word(agent)));
        let (agent, id) = (agent.unwrap_or_default(), output::task::shell_word(task_id));
        *self.resume.borrow_mut() =
            Some(format!("{PROGRAM} task get {agent}--wait {}{id}", output::task::end_of_options(task_id)));
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
const COMMANDS: &[&str] = &["send", "task", "card", "auth", "config", "conformance", "chat"];

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
    output::error::report(&error, wanted_format(typed, &Surroundings::of_process()), lines);
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

/// An http(s) address right behind the command stands for `--agent-card`, unless that is given, too.
pub(crate) fn leading_address(mut args: Vec<OsString>) -> (Vec<OsString>, Option<String>) {
    let is_agent = |arg: &OsString| {
        let arg = arg.to_string_lossy();
        (arg.starts_with("-a") && !arg.starts_with("--"))
            || arg == "--agent-card"
            || arg.starts_with("--agent-card=")
    };
    let at = 1 + command_words(&args).len();
    let found = args.get(at).and_then(|arg| arg.to_str()).filter(|arg| is_address(arg)).map(str::to_owned);
    let typed = args.iter().skip(at).take_while(|arg| *arg != "--").any(is_agent);
    if at == 1 || typed {
        return (args, None);
    }
    if let Some(address) = &found {
        args[at] = format!("--agent-card={address}").into();
    }
    (args, found)
}

fn is_address(text: &str) -> bool {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(char::is_whitespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_right_behind_the_command_is_the_agent() {
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
        ] {
            let args = |line: &str| line.split('|').map(OsString::from).collect::<Vec<_>>();
            assert_eq!(leading_address(args(typed)).0, args(meant));
        }
    }
}
