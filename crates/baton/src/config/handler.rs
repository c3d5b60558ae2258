//! Makes the logic of a skill from its configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use baton_server::Logic;

use super::schema::Skill;
use super::value::{Builtin, CommandLine, ExecInput, ExecOutput, Replies};
use crate::agents::exec::{self, Chunk, ExecAgent, ExecOptions, ExecReplies};
use crate::agents::{demo, echo};

/// The logic for `exec` or `builtin`, with tasks or messages as replies; an error if it cannot be made.
pub(crate) fn handler_of(skill: &Skill) -> Result<Logic, String> {
    let Some(builtin) = *skill.builtin else { return program(skill) };
    Ok(match (builtin, *skill.replies) {
        (Builtin::Demo, Replies::Task) => Logic::Task(Arc::new(demo::Demo)),
        (Builtin::Demo, Replies::Message) => Logic::Message(Arc::new(demo::Answer)),
        (Builtin::Echo, Replies::Task) => Logic::Task(Arc::new(echo::Echo)),
        (Builtin::Echo, Replies::Message) => Logic::Message(Arc::new(echo::Echo)),
    })
}

/// A warning if the script of a skill with `exec` does not exist.
pub(crate) fn missing_script(skill: &Skill) -> Option<String> {
    exec::missing_script(&command_of(skill)?, directory_of(skill).as_deref())
}

fn command_of(skill: &Skill) -> Option<Vec<String>> {
    Some(match skill.exec.as_ref()? {
        CommandLine::Shell(line) => exec::parse(line),
        CommandLine::Program(words) => words.clone(),
    })
}

fn directory_of(skill: &Skill) -> Option<PathBuf> {
    skill.directory.as_ref().cloned().or_else(|| folder_of(skill))
}

/// Relative paths start at the file's folder, and so do programs.
fn folder_of(skill: &Skill) -> Option<PathBuf> {
    let file = Path::new(&*skill.written.place.as_ref()?.file);
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).map(Path::to_owned)
}

/// The logic for `exec`.
fn program(skill: &Skill) -> Result<Logic, String> {
    let command = command_of(skill).ok_or_else(|| "there is neither `exec` nor `builtin`".to_owned())?;
    let usual = ExecOptions::default();
    let options = ExecOptions {
        command,
        skill: skill.id.as_deref().unwrap_or_default().to_owned(),
        input: match skill.exec_input.unwrap_or(ExecInput::Text) {
            ExecInput::Text => exec::Input::Text,
            ExecInput::Json => exec::Input::Json,
        },
        output: match skill.exec_output.unwrap_or(ExecOutput::Text) {
            ExecOutput::Text => exec::Output::Text,
            ExecOutput::JsonLines => exec::Output::Jsonl,
        },
        directory: directory_of(skill),
        environment: skill
            .environment
            .variables()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        chunk: skill.chunk.as_ref().map_or(usual.chunk, |chunk| Chunk::Delimiter(chunk.clone())),
        timeout: *skill.timeout,
        kill_grace: skill.kill_grace.unwrap_or(usual.kill_grace),
        max_output_bytes: skill.max_output.map_or(usual.max_output_bytes, |size| size.bytes()),
        rerunnable: skill.rerunnable.unwrap_or(usual.rerunnable),
        show_stderr: skill.show_stderr.unwrap_or(usual.show_stderr),
        ..ExecOptions::default()
    };
    Ok(match *skill.replies {
        Replies::Task => Logic::Task(Arc::new(ExecAgent::new(options)?)),
        Replies::Message => Logic::Message(Arc::new(ExecReplies::new(options)?)),
    })
}
