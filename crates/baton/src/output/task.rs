//! Tasks and messages as text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::json;
use super::text::Section;
use super::view::{Content, Message, Part, Phase, Task};

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
        section.block("Status message", &content(&message.parts));
    }
    if shown.whole {
        for artifact in &task.artifacts {
            if shown.verbose {
                section.block("Artifact", &artifact_line(artifact));
            }
            for part in &artifact.parts {
                write_part(section, "Artifact ", part, Some(&artifact.artifact_id));
            }
        }
    }
    if shown.history || shown.verbose {
        for message in &task.history {
            section.block("History message", &format!("{} {}", message.role, content(&message.parts)));
        }
    }
    if let Some(metadata) = task.metadata.as_ref().filter(|_| shown.verbose) {
        section.block("Metadata", &json::pretty(metadata.get()));
    }
}

fn artifact_line(artifact: &super::view::Artifact) -> String {
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
        write_part(section, "", part, None);
    }
    if let Some(metadata) = message.metadata.as_ref().filter(|_| verbose) {
        section.block("Metadata", &json::pretty(metadata.get()));
    }
}

/// One block: `Text`, `Data` or `File`, after what the part belongs to.
pub(super) fn write_part(section: &mut Section, of: &str, part: &Part, artifact: Option<&str>) {
    let kind = match part.content {
        Content::Text(_) => "text",
        Content::Data(_) => "data",
        Content::Raw(_) | Content::Url(_) => "file",
    };
    let label = match of {
        "" => kind[..1].to_ascii_uppercase() + &kind[1..],
        of => format!("{of}{kind}"),
    };
    let mut text = part_text(part);
    if let (Content::Raw(_) | Content::Url(_), Some(id)) = (&part.content, artifact) {
        text += &format!(" artifact={}", quoted(id));
    }
    section.block(&label, &text);
}

/// All parts, each on lines of its own.
pub(super) fn content(parts: &[Part]) -> String {
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
    let mut words = Vec::new();
    for (name, value) in [("name", &part.filename), ("media-type", &part.media_type)] {
        words.extend(value.as_ref().map(|value| format!("{name}={}", quoted(value))));
    }
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

/// The command to go on with, ready to be copied. `agent` is what the user typed for it.
pub(crate) fn resume(task: &Task, program: &str, agent: Option<&str>) -> String {
    let agent = agent.map(|agent| format!("-a {} ", shell_word(agent))).unwrap_or_default();
    let id = shell_word(&task.id);
    match (task.status.state.phase(), task.status.state.as_str()) {
        // The authorization is given elsewhere; then the agent goes on by itself.
        (Phase::Going, _) | (_, "TASK_STATE_AUTH_REQUIRED") => {
            format!("{program} task get {agent}--wait {}{id}", end_of_options(&task.id))
        }
        (Phase::Paused, _) => format!("{program} send {agent}--task-id={id} \"<reply>\""),
        (Phase::Ended, _) => in_context(&task.context_id, program, agent),
    }
}

/// The command to go on with after a message.
pub(crate) fn resume_message(message: &Message, program: &str, agent: Option<&str>) -> Option<String> {
    let agent = agent.map(|agent| format!("-a {} ", shell_word(agent))).unwrap_or_default();
    message.context_id.as_ref().map(|context| in_context(context, program, agent))
}

fn in_context(context: &str, program: &str, agent: String) -> String {
    format!("{program} send {agent}--context-id={} \"<message>\"", shell_word(context))
}

/// An id that looks like an option must stand behind `--`.
pub(crate) fn end_of_options(id: &str) -> &'static str {
    if id.starts_with('-') { "-- " } else { "" }
}

/// A word that no shell takes for anything else: ids are the agent's choice, and people copy the line.
pub(crate) fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.:/@%+,=[]".contains(c);
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
        let resume = resume(&read, "baton", None);
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
            ("TASK_STATE_WORKING", "--help", "baton task get -a h.example --wait -- --help"),
        ] {
            let json = serde_json::json!({"id": id, "status": {"state": state}}).to_string();
            assert_eq!(resume(&read(&json).unwrap(), "baton", Some("h.example")), expected);
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
