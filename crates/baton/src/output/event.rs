//! The events of a stream as text, each on its arrival.

use super::task::{Shown, artifact_line, write_message, write_part, write_task};
use super::text::Section;
use super::view::{Event, Phase};

/// One event of a stream. The last one says the ids and the state again.
pub(crate) fn event(event: &Event, verbose: bool, resume: Option<&str>) -> String {
    shown(event, verbose, verbose, resume)
}

/// One event of those of several tasks: each says which task it is about.
pub(crate) fn event_of_any(event: &Event, verbose: bool) -> String {
    shown(event, verbose, true, None)
}

fn shown(event: &Event, verbose: bool, ids: bool, resume: Option<&str>) -> String {
    let mut section = Section::default();
    match event {
        Event::Task(task) => {
            section.field("Event", "task");
            let whole = !task.artifacts.is_empty() || verbose;
            write_task(&mut section, task, Shown { whole, verbose, ..Shown::default() }, resume);
        }
        Event::Message(message) => {
            section.field("Event", "message");
            write_message(&mut section, message, verbose, resume);
        }
        Event::StatusUpdate(update) => {
            section.field("Event", "status");
            let last = update.status.state.phase() != Phase::Going;
            if last || ids {
                section.field("Task", &update.task_id);
                section.optional("Context", Some(&update.context_id).filter(|id| !id.is_empty()));
            }
            section.field("State", update.status.state.as_str());
            if verbose {
                section.optional("Updated", update.status.timestamp.as_deref());
            }
            section.optional("Resume", resume);
            if let Some(message) = &update.status.message {
                section.block("Status message", &super::task::said(message, verbose));
            }
        }
        Event::ArtifactUpdate(update) => {
            section.field("Event", "artifact");
            if ids {
                section.field("Task", &update.task_id);
                section.optional("Context", Some(&update.context_id).filter(|id| !id.is_empty()));
                let place = format!("append={} last-chunk={} ", update.append, update.last_chunk);
                section.block("Artifact", &(place + &artifact_line(&update.artifact)));
            }
            for part in &update.artifact.parts {
                write_part(&mut section, "Artifact ", part, Some(&update.artifact.artifact_id), verbose);
            }
        }
    }
    section.end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::view::read;

    #[test]
    fn cli_send_003_events_as_they_come_and_the_last_one_with_ids() {
        let shown: String = [
            r#"{"task":{"id":"t-9","contextId":"c-9","status":{"state":"TASK_STATE_SUBMITTED"}}}"#,
            r#"{"statusUpdate":{"taskId":"t-9","contextId":"c-9","status":{"state":"TASK_STATE_WORKING"}}}"#,
            r#"{"artifactUpdate":{"taskId":"t-9","artifact":{"artifactId":"a1","parts":[{"text":"part one"}]}}}"#,
            r#"{"statusUpdate":{"taskId":"t-9","contextId":"c-9","status":{"state":"TASK_STATE_COMPLETED"}}}"#,
        ]
        .iter()
        .map(|json| event(&read(json).unwrap(), false, None))
        .collect();
        let expected = "\
Event: task
Task: t-9
Context: c-9
State: TASK_STATE_SUBMITTED
Event: status
State: TASK_STATE_WORKING
Event: artifact
Artifact text:
  part one

Event: status
Task: t-9
Context: c-9
State: TASK_STATE_COMPLETED
";
        assert_eq!(shown, expected);
    }
}
