//! What a person sees of a turn while it happens: the agent's text, piece by piece, and notes in between.

use std::io::{self, Write as _};

use baton_lab::report::text::Paint;

use crate::commands::test::terminal::stdout_has_colours;
use crate::output::safe;
use crate::output::view::{Content, Event, Message, Part, Phase, State};

/// Shows the events of one turn.
#[derive(Debug, Default)]
pub(super) struct Live {
    /// The events begin with the task as it was before the user's answer.
    is_answer: bool,
    task_id: Option<String>,
    /// The artifact whose text is on the line that is not ended yet.
    open: Option<String>,
}

/// Lines of our own.
pub(super) fn say(text: &str) {
    put(&format!("{text}\n"));
}

/// A remark of ours between what the two sides say. It is faint, which no text of an agent can be.
pub(super) fn remark(text: &str) {
    let text = format!("({})", safe::line(text));
    say(&format!("  {}", Paint(stdout_has_colours()).dim(&text)));
}

/// A terminal that is gone is noticed when the next line is read.
pub(super) fn put(text: &str) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

impl Live {
    pub(super) fn new(is_answer: bool) -> Self {
        Live { is_answer, ..Live::default() }
    }

    pub(super) fn show(&mut self, event: &Event) {
        match event {
            Event::Message(message) => self.message(message),
            Event::StatusUpdate(update) => {
                self.task_id = Some(update.task_id.clone());
                self.status(&update.status.state, update.status.message.as_ref());
            }
            Event::ArtifactUpdate(update) => {
                self.task_id = Some(update.task_id.clone());
                for part in &update.artifact.parts {
                    self.piece(&update.artifact.artifact_id, part);
                }
            }
            Event::Task(task) => {
                let is_first = self.task_id.replace(task.id.clone()).is_none();
                if is_first && self.is_answer && task.status.state.phase() == Phase::Paused {
                    return;
                }
                for artifact in &task.artifacts {
                    artifact.parts.iter().for_each(|part| self.piece(&artifact.artifact_id, part));
                }
                self.status(&task.status.state, task.status.message.as_ref());
            }
        }
    }

    /// Ends the line, and returns the task of the turn.
    pub(super) fn end(mut self) -> Option<String> {
        self.close();
        self.task_id.take()
    }

    fn status(&mut self, state: &State, message: Option<&Message>) {
        if let Some(message) = message {
            self.message(message);
        }
        if let (Some(words), Some(id)) = (state.words(), self.task_id.clone()) {
            self.close();
            remark(&format!("task {id} {words}"));
        }
    }

    fn message(&mut self, message: &Message) {
        for part in &message.parts {
            let text = crate::output::task::part_text(part);
            self.line(&safe::lines(&text));
        }
    }

    /// Texts of one artifact follow each other on the same line.
    fn piece(&mut self, artifact: &str, part: &Part) {
        if self.open.as_deref().is_some_and(|open| open != artifact) {
            self.close();
        }
        match &part.content {
            Content::Text(text) => {
                put(&safe::lines(text));
                self.open = Some(artifact.to_owned());
            }
            Content::Data(_) | Content::Raw(_) | Content::Url(_) => {
                self.line(&safe::lines(&crate::output::task::part_text(part)));
            }
        }
    }

    fn line(&mut self, text: &str) {
        self.close();
        say(text);
    }

    fn close(&mut self) {
        if self.open.take().is_some() {
            put("\n");
        }
    }
}
