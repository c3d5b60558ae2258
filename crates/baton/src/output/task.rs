//! Tasks and messages as text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::json;
use super::text::Section;
use super::view::{Content, Message, Part, Phase, Task};
use crate::client::error::command;

/// How much of a task is shown.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Shown {
    /// Artifacts, and the time of the last change; otherwise only ids and state.
    pub(crate) whole: bool,
    pub(crate) history: bool,
    pub(crate) verbose: bool,
    /// Leave out the agent's message about the state.
    pub(crate) no_message: bool,
}

pub(crate) fn task(task: &Task, shown: Shown, resume: Option<&str>) -> String {
    let mut section = Section::default();
    write_task(&mut section, task, shown, resume);
    section.end()
}

pub(super) fn write_task(section: &mut Section, task: &Task, shown: Shown, resume: Option<&str>) {
    section.field("Task", &task.id);
    section.field("Context", &task.context_id);
    section.field("State", task.status.state.as_str());
    if shown.whole {
        section.optional("Updated", task.status.timestamp.as_deref());
        section.field("Artifacts", task.artifacts.len().to_string());
    }
    if shown.history || shown.verbose {
        section.field("History", task.history.len().to_string());
    }
    section.optional("Resume", resume);
    if let Some(message) = task.status.message.as_ref().filter(|_| !shown.no_message) {
        section.block("Status message", &said(message, shown.verbose));
    }
    if shown.whole {
        for artifact in &task.artifacts {
            if shown.verbose {
                section.block("Artifact", &artifact_line(artifact));
            }
            for part in &artifact.parts {
                write_part(section, "Artifact ", part, Some(&artifact.artifact_id), shown.verbose);
            }
        }
    }
    if shown.history || shown.verbose {
        for message in &task.history {
            let text = match shown.verbose {
                true => said(message, true),
                false => format!("{} {}", message.role, content(&message.parts)),
            };
            section.block("History message", &text);
        }
    }
    if let Some(metadata) = task.metadata.as_ref().filter(|_| shown.verbose) {
        section.block("Metadata", &json::pretty(metadata.get()));
    }
}

pub(super) fn artifact_line(artifact: &super::view::Artifact) -> String {
    let mut line = format!("id={}", quoted(&artifact.artifact_id));
    for (name, value) in [("name", &artifact.name), ("description", &artifact.description)] {
        if let Some(value) = value {
            line += &format!(" {name}={}", quoted(value));
        }
    }
    if let Some(metadata) = &artifact.metadata {
        line += &format!("\nmetadata={}", json::compact(metadata.get()));
    }
    line
}

/// A message that answers a send, without a task.
pub(crate) fn message(message: &Message, verbose: bool, resume: Option<&str>) -> String {
    let mut section = Section::default();
    write_message(&mut section, message, verbose, resume);
    section.end()
}

pub(super) fn write_message(section: &mut Section, message: &Message, verbose: bool, resume: Option<&str>) {
    section.field("Message ID", &message.message_id);
    section.field("Role", &message.role);
    section.optional("Task", message.task_id.as_deref());
    section.optional("Context", message.context_id.as_deref());
    section.optional("Resume", resume);
    for part in &message.parts {
        write_part(section, "", part, None, verbose);
    }
    if let Some(metadata) = message.metadata.as_ref().filter(|_| verbose) {
        section.block("Metadata", &json::pretty(metadata.get()));
    }
}

/// One block: `Text`, `Data` or `File`, after what the part belongs to.
pub(super) fn write_part(
    section: &mut Section,
    of: &str,
    part: &Part,
    artifact: Option<&str>,
    verbose: bool,
) {
    let kind = kind_of(part);
    let label = match of {
        "" => kind[..1].to_ascii_uppercase() + &kind[1..],
        of => format!("{of}{kind}"),
    };
    let mut text = part_text(part);
    if let (Content::Raw(_) | Content::Url(_), Some(id)) = (&part.content, artifact) {
        text += &format!(" artifact={}", quoted(id));
    }
    section.block(&label, &text);
    let about = if verbose { part_details(part) } else { String::new() };
    if !about.is_empty() {
        section.block("Part", &about);
    }
}

fn kind_of(part: &Part) -> &'static str {
    match part.content {
        Content::Text(_) => "text",
        Content::Data(_) => "data",
        Content::Raw(_) | Content::Url(_) => "file",
    }
}

/// What is known of a part beside its content.
fn part_details(part: &Part) -> String {
    // The line of a file has these already.
    let is_file = matches!(part.content, Content::Raw(_) | Content::Url(_));
    let mut words: Vec<String> = if is_file { Vec::new() } else { names_of(part) };
    words
        .extend(part.metadata.as_ref().map(|metadata| format!("metadata={}", json::compact(metadata.get()))));
    words.join(" ")
}

fn names_of(part: &Part) -> Vec<String> {
    let names = [("name", &part.filename), ("media-type", &part.media_type)].into_iter();
    names.filter_map(|(name, value)| Some(format!("{name}={}", quoted(value.as_deref()?)))).collect()
}

/// What a message says. In full: who said it, and each part with its kind and what is known of it.
pub(super) fn said(message: &Message, in_full: bool) -> String {
    if !in_full {
        return content(&message.parts);
    }
    let mut text = format!("{} id={}", message.role, quoted(&message.message_id));
    for part in &message.parts {
        let kind = kind_of(part);
        let about = part_details(part);
        let about = if about.is_empty() { String::new() } else { format!(" ({about})") };
        text += &format!("\n{kind}{about}: {}", part_text(part));
    }
    if let Some(metadata) = &message.metadata {
        text += &format!("\nmetadata: {}", json::compact(metadata.get()));
    }
    text
}

/// All parts, each on lines of its own.
fn content(parts: &[Part]) -> String {
    parts.iter().map(part_text).collect::<Vec<_>>().join("\n")
}

pub(crate) fn part_text(part: &Part) -> String {
    match &part.content {
        Content::Text(text) => text.clone(),
        Content::Data(data) => json::pretty(data),
        Content::Raw(_) | Content::Url(_) => file_line(part),
    }
}

/// `name=map.png media-type=image/png size=48213`. The content of a file is not shown.
fn file_line(part: &Part) -> String {
    let mut words = names_of(part);
    match &part.content {
        Content::Raw(base64) => words.push(match decode(base64) {
            Some(bytes) => format!("size={}", bytes.len()),
            None => "size=unknown (not base64)".to_owned(),
        }),
        Content::Url(url) => words.push(format!("url={}", quoted(url))),
        Content::Text(_) | Content::Data(_) => {}
    }
    words.join(" ")
}

/// Bytes of a file. Some agents leave the padding out, or use the alphabet for URLs.
pub(crate) fn decode(base64: &str) -> Option<Vec<u8>> {
    let plain: String = base64
        .chars()
        .filter(|c| !c.is_ascii_whitespace() && *c != '=')
        .map(|c| match c {
            '-' => '+',
            '_' => '/',
            c => c,
        })
        .collect();
    let padded = format!("{plain}{}", "=".repeat((4 - plain.len() % 4) % 4));
    STANDARD.decode(padded).ok()
}

/// In quotes if it could be taken for more than one word.
fn quoted(value: &str) -> String {
    let plain = !value.is_empty() && !value.contains(|c: char| c.is_whitespace() || c == '"');
    if plain { value.to_owned() } else { format!("{value:?}") }
}

/// The command to go on with, ready to be copied. `same_agent` is what the user typed to reach the agent.
pub(crate) fn resume(task: &Task, same_agent: &str) -> String {
    match (task.status.state.phase(), task.status.state.as_str()) {
        // The authorization is given elsewhere; then the agent goes on by itself.
        (Phase::Going, _) | (_, "TASK_STATE_AUTH_REQUIRED") => {
            command("task get", same_agent, &format!("--wait {}", id_word(&task.id)))
        }
        (Phase::Paused, _) => {
            command("send", same_agent, &format!("--task-id={} \"<reply>\"", shell_word(&task.id)))
        }
        (Phase::Ended, _) => in_context(&task.context_id, same_agent),
    }
}

/// The command to go on with after a message.
pub(crate) fn resume_message(message: &Message, same_agent: &str) -> Option<String> {
    message.context_id.as_ref().map(|context| in_context(context, same_agent))
}

fn in_context(context: &str, same_agent: &str) -> String {
    command("send", same_agent, &format!("--context-id={} \"<message>\"", shell_word(context)))
}

/// An id as an argument. One that looks like an option must stand behind `--`.
pub(crate) fn id_word(id: &str) -> String {
    let end_of_options = if id.starts_with('-') { "-- " } else { "" };
    format!("{end_of_options}{}", shell_word(id))
}

/// A word that no shell takes for anything else: ids are the agent's choice, and people copy the line. `[a]` is a pattern, and
/// `=a` a path in zsh.
pub(crate) fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.:/@%+,".contains(c);
    let plain = !text.is_empty() && text.chars().all(plain);
    if plain { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::view::read;

    const TASK: &str = r#"{"id":"t-9","contextId":"c-9","status":{"state":"TASK_STATE_COMPLETED",
        "timestamp":"2026-08-20T09:20:00.000Z","message":{"parts":[{"text":"done\n\nState: TASK_STATE_FAILED"}]}},
        "artifacts":[{"artifactId":"a1","parts":[{"text":"Take line 7."},{"data":{"stops":4.0}}]},
                     {"artifactId":"a 2","parts":[{"raw":"AAEC","filename":"map.png","mediaType":"image/png"},
                                                 {"url":"https://x.example/f","mediaType":"text/plain"}]}],
        "history":[{"role":"ROLE_USER","parts":[{"text":"Bus from A to B"}]}]}"#;

    #[test]
    fn cli_task_get_001_state_artifacts_and_history_are_shown() {
        let read: Task = read(TASK).unwrap();
        let shown = Shown { whole: true, history: true, ..Shown::default() };
        let resume = resume(&read, "");
        let expected = "\
Task: t-9
Context: c-9
State: TASK_STATE_COMPLETED
Updated: 2026-08-20T09:20:00.000Z
Artifacts: 2
History: 1
Resume: baton send --context-id=c-9 \"<message>\"
Status message:
  done
  
  State: TASK_STATE_FAILED

Artifact text:
  Take line 7.

Artifact data:
  {
    \"stops\": 4.0
  }

Artifact file:
  name=map.png media-type=image/png size=3 artifact=\"a 2\"

Artifact file:
  media-type=text/plain url=https://x.example/f artifact=\"a 2\"

History message:
  ROLE_USER Bus from A to B

";
        assert_eq!(task(&read, shown, Some(&resume)), expected);
    }

    /// Agents need not keep messages in it.
    #[test]
    fn p09_what_a_task_came_to_is_not_taken_from_its_history() {
        let mut read: Task = read(TASK).unwrap();
        let tell =
            |task_: &Task| task(task_, Shown { whole: true, ..Shown::default() }, Some(&resume(task_, "")));
        let told = tell(&read);
        assert!(told.contains("Take line 7.") && !told.contains("Bus from A to B"), "{told}");
        read.history.clear();
        assert_eq!(tell(&read), told);
    }

    #[test]
    fn cli_interact_004_the_command_to_go_on_cannot_do_anything_else() {
        for (state, id, expected) in [
            ("TASK_STATE_WORKING", "t-1", "baton task get -a h.example --wait t-1"),
            ("TASK_STATE_AUTH_REQUIRED", "t-1", "baton task get -a h.example --wait t-1"),
            ("TASK_STATE_INPUT_REQUIRED", "t-1", "baton send -a h.example --task-id=t-1 \"<reply>\""),
            (
                "TASK_STATE_INPUT_REQUIRED",
                "$(rm -rf ~)'",
                "baton send -a h.example --task-id='$(rm -rf ~)'\\''' \"<reply>\"",
            ),
            ("TASK_STATE_WORKING", "t[1]", "baton task get -a h.example --wait 't[1]'"),
            ("TASK_STATE_WORKING", "=ls", "baton task get -a h.example --wait '=ls'"),
            ("TASK_STATE_WORKING", "--help", "baton task get -a h.example --wait -- --help"),
        ] {
            let json = serde_json::json!({"id": id, "status": {"state": state}}).to_string();
            assert_eq!(resume(&read(&json).unwrap(), "-a h.example"), expected);
        }
    }

    #[test]
    fn base64_of_all_kinds_is_read() {
        for text in ["+/8=", "+/8", "-_8", "-_\n8="] {
            assert_eq!(decode(text), Some(vec![0xfb, 0xff]), "{text}");
        }
        assert_eq!(decode("?"), None);
    }
}
