//! Turns an agent's output, and the end of its turn, into events of the log.

use std::sync::Arc;

use baton_protocol::domain::{Artifact, ArtifactUpdate, EventBody, Part, Role, StatusUpdate, TaskState};
use baton_protocol::lifecycle::Refused;

use super::super::commit::write_event;
use super::super::content_limits::{self, TooMuch};
use super::super::desk::{Offered, Output, Stop};
use super::super::size;
use super::super::turn::agent_message;
use super::{End, Run};
use crate::store::{EventBatch, Settled};

/// Longest reason of a failed task; the text of an agent's error may be of any length.
const MAX_REASON: usize = 64 * 1024;

impl Run {
    /// Writes one piece of output as events. An error says why the output is not allowed.
    pub(super) fn write_output(
        &mut self,
        output: Output,
        events: &mut EventBatch,
        settled: &mut Vec<Settled>,
    ) -> Result<(), String> {
        let most = self.options.max_event_bytes;
        match output {
            Output::Took(Offered { request, message, trace, details }) => {
                let body = EventBody::UserMessage { message, trace, details };
                let number = self.write(body, events).map_err(|refused| refused.to_string())?;
                settled.push(Settled { request, event: Some(number) });
            }
            Output::Text(chunk) => {
                // Text of a stream is joined into one part, unless the agent added another part in between. An empty piece
                // only marks the artifact as complete.
                let goes_on = chunk.joins || self.streamed.contains(&chunk.artifact);
                let joins = chunk.append && (chunk.text.is_empty() || goes_on);
                if chunk.last {
                    self.streamed.remove(&chunk.artifact);
                } else if !self.streamed.contains(&chunk.artifact) {
                    self.streamed.insert(chunk.artifact.clone());
                }
                let mut artifact = Artifact::new(chunk.artifact, vec![Part::text(chunk.text)]);
                artifact.name = chunk.name;
                let (append, last_chunk) = (chunk.append, chunk.last);
                let update =
                    ArtifactUpdate { artifact, append, joins, last_chunk, ordinal: 0, metadata: None };
                self.take_artifact(update, true, events)?;
            }
            Output::Event(EventBody::Artifact(update)) => {
                self.streamed.remove(&update.artifact.id);
                self.take_artifact(update, true, events)?;
            }
            // Not checked: it was within the limits when it was written, though perhaps in several pieces.
            Output::PutBack(update) => self.take_artifact(update, false, events)?,
            Output::Event(body) => {
                if let EventBody::Status(StatusUpdate { message: Some(message), .. }) = &body {
                    self.room_in_history()?;
                    content_limits::check_message(&self.options, message)
                        .map_err(|it| describe("a message", &it))?;
                    let bytes = size::of_message(message);
                    if bytes > most {
                        return Err(format!("a status message of {bytes} bytes; {most} are allowed"));
                    }
                }
                self.write(body, events).map_err(|refused| refused.to_string())?;
            }
        }
        Ok(())
    }

    fn take_artifact(
        &mut self,
        update: ArtifactUpdate,
        limited: bool,
        events: &mut EventBatch,
    ) -> Result<(), String> {
        let most = self.options.max_event_bytes;
        if size::of_artifact(&update.artifact) <= most {
            return self.write_artifact(update, limited, events);
        }
        let parts = size::split(update, most).map_err(|too_large| {
            let bytes = too_large.bytes;
            format!("a part of {bytes} bytes; an event holds {most}, and only text can be cut")
        })?;
        parts.into_iter().try_for_each(|update| self.write_artifact(update, limited, events))
    }

    fn write_artifact(
        &mut self,
        mut update: ArtifactUpdate,
        limited: bool,
        events: &mut EventBatch,
    ) -> Result<(), String> {
        update.ordinal = self.snapshot.ordinal(&update.artifact.id);
        if !limited {
            self.write(EventBody::Artifact(update), events).map_err(|refused| refused.to_string())?;
            return Ok(());
        }
        content_limits::check_artifact(&self.options, &update.artifact)
            .map_err(|it| describe("an artifact", &it))?;
        let most = self.options.max_artifacts;
        if update.ordinal as usize >= most {
            return Err(format!("more than {most} artifacts"));
        }
        self.write(EventBody::Artifact(update), events).map_err(|refused| refused.to_string())?;
        let most = self.options.max_artifact_bytes;
        if self.snapshot.artifact_bytes() > most {
            return Err(format!("more than {most} bytes in artifacts"));
        }
        Ok(())
    }

    /// Checks that the agent may add another message. One answer to the client's last message is always allowed.
    fn room_in_history(&self) -> Result<(), String> {
        let (most, task) = (self.options.max_history, &self.snapshot.task);
        let answers =
            task.status.message.is_none() && task.history.last().is_some_and(|last| last.role == Role::User);
        if self.snapshot.messages() >= most && !answers {
            return Err(format!("more than {most} messages in one task"));
        }
        Ok(())
    }

    /// Writes the status that ends the turn, unless the agent wrote it itself or the task stays open.
    pub(super) fn write_end(&mut self, end: &End, events: &mut EventBatch) {
        let state = self.snapshot.state();
        if state.is_terminal() {
            return;
        }
        let stop = self.desk.stop_reason();
        let (end_state, reason) = if self.cancel {
            (TaskState::Canceled, None)
        } else {
            match end {
                End::Invalid(fault) => {
                    (TaskState::Failed, Some(format!("The agent gave an invalid response: {fault}")))
                }
                End::OwnerFull(reason) => (TaskState::Failed, Some(reason.clone())),
                End::Panicked => (TaskState::Failed, Some("The agent stopped unexpectedly".to_owned())),
                End::Returned(Ok(())) if state.is_interrupted() => return,
                // The agent did not end the task, and messages wait: they begin the next turn.
                End::Returned(Ok(())) if self.desk.has_messages() => {
                    self.hands_over = true;
                    return;
                }
                End::Returned(Ok(())) => {
                    self.ended_by_return = true;
                    (TaskState::Completed, None)
                }
                // Stopped by a shutdown: the crash rule decides at the next start.
                End::Returned(Err(_)) | End::Stopped if stop == Some(Stop::Shutdown) => return,
                // The client did not answer in time: the turn ends, and the task keeps waiting for input.
                End::Returned(Err(_)) | End::Stopped
                    if stop == Some(Stop::Deadline) && state.is_interrupted() =>
                {
                    return;
                }
                End::Returned(Err(_)) if stop == Some(Stop::Deadline) => too_long(),
                End::Returned(Err(error)) => (TaskState::Failed, Some(error.message().to_owned())),
                End::Stopped => too_long(),
            }
        };
        let task = &self.snapshot.task;
        let message = reason.map(|text| {
            let text = size::pieces(&text, MAX_REASON)[0].to_owned();
            agent_message(&task.id, &task.context_id, text)
        });
        let status = EventBody::Status(StatusUpdate { state: end_state, message, metadata: None });
        if let Err(refused) = self.write(status, events) {
            tracing::error!(task.id = %self.registration.id(), %refused, "a turn could not be ended");
        }
    }

    fn write(&mut self, body: EventBody, events: &mut EventBatch) -> Result<u64, Refused> {
        let at = self.engine.time_for(&self.snapshot);
        write_event(Arc::make_mut(&mut self.snapshot), at, body, events)
    }
}

fn describe(what: &str, found: &TooMuch) -> String {
    format!("{what} whose {} {}", found.member.trim_start_matches('.'), found.fault)
}

fn too_long() -> (TaskState, Option<String>) {
    (TaskState::Failed, Some("The agent took too long".to_owned()))
}
