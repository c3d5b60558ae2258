//! `baton serve --exec …`: the flags, and the agent made from them.

use std::env::VarError;
use std::sync::Arc;
use std::time::Duration;

use baton_protocol::domain::{AgentCard, AgentSkill};
use baton_server::{Logic, Skill};

use super::{Chunk, ExecAgent, ExecOptions, ExecReplies, Input, Output, Replies, command};
use crate::agents::DEFAULT_VERSION;

#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "A program as the agent")]
pub(crate) struct ExecFlags {
    /// Run this command for every task: the message on stdin, the answer on stdout. A command with spaces or shell
    /// characters runs through `/bin/sh -c`. See docs/exec.md.
    #[arg(long, value_name = "CMD", conflicts_with = "profile")]
    pub(crate) exec: Option<String>,

    /// What the program reads on stdin.
    #[arg(long, value_enum, value_name = "FORM", default_value_t = Input::Text, requires = "exec")]
    exec_input: Input,

    /// What the program writes on stdout.
    #[arg(long, value_enum, value_name = "FORM", default_value_t = Output::Text, requires = "exec")]
    exec_output: Output,

    /// What a client gets.
    #[arg(long, value_enum, value_name = "KIND", default_value_t = Replies::Task, requires = "exec")]
    exec_replies: Replies,

    /// A variable for the program: `NAME` copies it from the server's environment, `NAME=VALUE` sets it. Without this
    /// the program gets only PATH, HOME and a few others. Repeatable.
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = variable, requires = "exec")]
    exec_env: Vec<Variable>,

    /// Longest time a program may work on one turn; `limits.turn_deadline` applies as well.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, requires = "exec")]
    exec_timeout: Option<Duration>,

    /// Most bytes a program may write in one turn; more fails the task.
    #[arg(long, value_name = "BYTES", default_value_t = ExecOptions::default().max_output_bytes, requires = "exec")]
    exec_max_output: usize,

    /// Run the program again if the server crashed while it worked; without this its task fails.
    #[arg(long, requires = "exec")]
    exec_rerunnable: bool,

    /// Show clients the program's last lines on stderr when it fails. They may contain keys and paths; without this
    /// flag they are only in the server's log.
    #[arg(long, requires = "exec")]
    exec_show_stderr: bool,

    /// Split the output at this delimiter and send each piece when it is complete, instead of sending output as it is
    /// printed. The delimiter itself is not sent. `\n`, `\t` and `\0` are understood.
    #[arg(long, value_name = "DELIMITER", value_parser = delimiter, requires = "exec", conflicts_with = "exec_replies")]
    chunk: Option<String>,

    /// The agent's name on its card; default: the program's name.
    #[arg(long, value_name = "NAME", requires = "exec", conflicts_with = "card")]
    name: Option<String>,

    /// The agent's description on its card.
    #[arg(long, value_name = "TEXT", requires = "exec", conflicts_with = "card")]
    description: Option<String>,

    /// An example message for the card; `baton test` sends it. Repeatable.
    #[arg(long, value_name = "TEXT", requires = "exec", conflicts_with = "card")]
    example: Vec<String>,
}

/// A variable of the program's environment.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Variable {
    name: String,
    /// `None`: copied from the server's environment.
    value: Option<String>,
}

impl ExecFlags {
    /// The agent for `--exec CMD`: its card (the given one or a generated one) and its skill. An error if the command
    /// cannot be run.
    pub(crate) fn agent(&self, typed: &str, card: Option<AgentCard>) -> Result<(AgentCard, Skill), String> {
        let name = self.name.clone().unwrap_or_else(|| command::name(typed));
        let card = card.unwrap_or_else(|| self.card(&name));
        // The card file's only skill is the program, whatever its name is.
        let skill = match card.skills.as_slice() {
            [] => self.skill(&name, &card.description),
            [skill] => skill.clone(),
            skills => {
                let count = skills.len();
                return Err(format!("the card lists {count} skills, and the program is one; list one"));
            }
        };
        let options = self.options(typed, &skill.id)?;
        let logic = match self.exec_replies {
            Replies::Task => Logic::Task(Arc::new(ExecAgent::new(options)?)),
            Replies::Message => Logic::Message(Arc::new(ExecReplies::new(options)?)),
        };
        Ok((card, Skill::new(skill, logic)))
    }

    /// The agent's id in stores, logs and metrics. It does not depend on the program's arguments.
    pub(crate) fn agent_id(&self, typed: &str) -> String {
        let name = self.name.clone().unwrap_or_else(|| command::name(typed));
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() || "._-".contains(c) { c.to_ascii_lowercase() } else { '-' }
        };
        format!("exec-{}", name.chars().take(48).map(plain).collect::<String>())
    }

    fn options(&self, typed: &str, skill: &str) -> Result<ExecOptions, String> {
        Ok(ExecOptions {
            command: command::parse(typed),
            skill: skill.to_owned(),
            input: self.exec_input,
            output: self.exec_output,
            chunk: self.chunk.clone().map_or(Chunk::Any, Chunk::Delimiter),
            environment: self.exec_env.iter().map(Variable::resolve).collect::<Result<_, _>>()?,
            timeout: self.exec_timeout,
            max_output_bytes: self.exec_max_output,
            rerunnable: self.exec_rerunnable,
            show_stderr: self.exec_show_stderr,
            ..ExecOptions::default()
        })
    }

    fn card(&self, name: &str) -> AgentCard {
        let description =
            self.description.clone().unwrap_or_else(|| format!("Runs `{name}` on what it is sent."));
        let mut card = AgentCard::new(name, &description, DEFAULT_VERSION);
        card.default_input_modes = self.exec_input.modes();
        card.default_output_modes = self.exec_output.modes();
        card
    }

    fn skill(&self, name: &str, description: &str) -> AgentSkill {
        let mut skill = AgentSkill::new(&id(name), name, description);
        skill.tags = vec!["exec".to_owned()];
        skill.examples = self.example.clone();
        skill
    }
}

/// A name as an id, without characters that a shell would need quotes for.
fn id(name: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || "._-".contains(c) { c.to_ascii_lowercase() } else { '-' };
    name.chars().map(plain).collect()
}

impl Variable {
    fn resolve(&self) -> Result<(String, String), String> {
        let Variable { name, value } = self;
        let value = match value {
            Some(value) => value.clone(),
            // The value may be a secret and is not shown.
            None => std::env::var(name).map_err(|error| match error {
                VarError::NotPresent => format!("--exec-env {name}: the server's environment has no {name}"),
                VarError::NotUnicode(_) => format!("--exec-env {name}: its value is not UTF-8"),
            })?,
        };
        Ok((name.clone(), value))
    }
}

fn variable(text: &str) -> Result<Variable, String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (text, None),
    };
    match name {
        "" => Err("the name is missing".to_owned()),
        name if name.starts_with("BATON_") => {
            Err("names that start with BATON_ are the server's own".to_owned())
        }
        name => Ok(Variable { name: name.to_owned(), value }),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "it must be a number of seconds".to_owned())?;
    let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero());
    time.ok_or_else(|| "it must be more than 0".to_owned())
}

fn delimiter(text: &str) -> Result<String, String> {
    let delimiter = text.replace("\\n", "\n").replace("\\t", "\t").replace("\\0", "\0");
    if delimiter.is_empty() { Err("it must not be empty".to_owned()) } else { Ok(delimiter) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_read_or_refused() {
        let read = |text: &str| variable(text).map(|Variable { name, value }| (name, value));
        assert_eq!(read("A=b=c"), Ok(("A".to_owned(), Some("b=c".to_owned()))));
        assert_eq!(read("A="), Ok(("A".to_owned(), Some(String::new()))));
        assert_eq!(read("A"), Ok(("A".to_owned(), None)));
        for bad in ["", "=b", "BATON_TASK_ID=x"] {
            variable(bad).unwrap_err();
        }
        let missing = Variable { name: "SURELY_NOT_SET_ANYWHERE".to_owned(), value: None };
        assert!(missing.resolve().unwrap_err().contains("--exec-env SURELY_NOT_SET_ANYWHERE"));
    }

    #[test]
    fn times_and_delimiters_are_checked() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for bad in ["0", "-1", "soon", "inf", "NaN", ""] {
            seconds(bad).unwrap_err();
        }
        assert_eq!(delimiter("\\n--\\t").as_deref(), Ok("\n--\t"));
        delimiter("").unwrap_err();
    }

    #[test]
    fn names_become_ids() {
        assert_eq!(id("My Agent v1.2"), "my-agent-v1.2");
    }
}
