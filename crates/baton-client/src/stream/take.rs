//! Takes an event into a stream: whether it is new, what the task is now, and whether the stream ends with it.

use std::time::Duration;

use baton_protocol::Generation;
use baton_protocol::domain::{ContextId, TaskId, TaskState};
use baton_protocol::lifecycle::{Refused, say_the_same};
use baton_protocol::wire::StreamItem;

use super::events::Frame;
use super::{Begin, Ending, EventStream, StreamEvent};
use crate::error::{Error, TransportKind};

/// What an event meant.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// `None` if it was seen before.
    pub(super) event: Option<StreamEvent>,
    pub(super) ending: Option<Ending>,
}

impl EventStream {
    /// Folds an event, and decides whether it is the last one.
    pub(super) fn take(&mut self, frame: Frame) -> Result<Taken, Error> {
        let Frame { id, retry, mut item, unknown_state, json } = frame;
        self.asked_wait = retry.map(Duration::from_millis).or(self.asked_wait);
        self.is_quiet = false;
        self.check_task(&item)?;
        self.name_context(&mut item);
        let is_task = matches!(item, StreamItem::Task(_));
        let is_first = self.fold.task().is_none();
        let is_repeat = self.position.is_repeat(id.as_deref()) && !(is_first && is_task) && !is_end(&item);
        if is_repeat {
            return Ok(Taken::default());
        }
        if self.is_unchanged(&item, unknown_state.as_deref()) {
            self.position.showed(id.as_deref(), true);
            return Ok(Taken::default());
        }
        match self.fold.take(&item) {
            Ok(()) => {}
            // Late news of a task that has ended change nothing.
            Err(Refused::Ended(_)) => return Ok(Taken::default()),
            Err(refused) => return Err(self.fail(TransportKind::Malformed, refused.to_string())),
        }
        let limit = self.client.size_limits().task;
        if !self.held.take(&item, json.len(), self.fold.task(), limit) {
            return Err(self.fail(TransportKind::TooLarge, format!("a task of more than {limit} bytes")));
        }
        self.fruitless = 0;
        // The stream of an answer begins with the task as it was before, still waiting.
        self.is_opening = is_first && is_task && matches!(self.begun_with, Begin::Send(_));
        if is_task || matches!(item, StreamItem::Status { .. }) {
            self.unknown_state.clone_from(&unknown_state);
        }
        self.position.showed(id.as_deref(), is_task);
        let ending = match &item {
            StreamItem::Message(_) => Some(Ending::Message),
            StreamItem::Artifact { .. } => None,
            StreamItem::Task(_) | StreamItem::Status { .. } => self.ending_of_state(),
        };
        let event = Some(StreamEvent { id, item, unknown_state, json });
        Ok(Taken { event, ending })
    }

    /// The ending that the task's state means.
    pub(super) fn ending_of_state(&self) -> Option<Ending> {
        let state = self.fold.task()?.status.state;
        // For input the agent's turn is over. An authorization comes by another way, and the turn goes on; in the older
        // versions it comes with the next message.
        let ends_turn = match state {
            TaskState::InputRequired => true,
            TaskState::AuthRequired => self.client.interface().version() != Generation::V1,
            _ => false,
        };
        match state {
            state if state.is_terminal() => Some(Ending::Terminal),
            _ if ends_turn && self.begun_with.is_turn() && !self.is_opening => Some(Ending::Interrupted),
            _ => None,
        }
    }

    /// Whether it is the task that is known, as it is known.
    pub(super) fn is_unchanged(&self, item: &StreamItem, unknown_state: Option<&str>) -> bool {
        let is_same_state = unknown_state == self.unknown_state.as_deref();
        match (item, self.fold.task()) {
            (StreamItem::Task(new), Some(known)) => is_same_state && say_the_same(new, known),
            _ => false,
        }
    }

    /// Refuses events of another task than the one that the stream was opened for. Later ones are compared by the fold.
    fn check_task(&self, item: &StreamItem) -> Result<(), Error> {
        let expected = match &self.begun_with {
            Begin::Subscribe(id) => Some(id),
            Begin::Send(send) => send.message.task_id.as_ref(),
            Begin::Follow => None,
        };
        match (expected, task_of(item)) {
            (Some(expected), Some(got)) if expected != got => {
                let refused = Refused::OtherTask { expected: expected.clone(), got: got.clone() };
                Err(self.fail(TransportKind::Malformed, refused.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// An event that names no context has that of its task. (The codecs put the task's id in its place.)
    fn name_context(&self, item: &mut StreamItem) {
        let sent = match &self.begun_with {
            Begin::Send(send) => send.message.context_id.as_ref(),
            Begin::Subscribe(_) | Begin::Follow => None,
        };
        let Some(known) = self.fold.task().map(|task| &task.context_id).or(sent) else { return };
        let is_unnamed = |context: &ContextId, task: &TaskId| context.as_str() == task.as_str();
        match item {
            StreamItem::Task(task) if is_unnamed(&task.context_id, &task.id) => {
                task.context_id.clone_from(known);
            }
            StreamItem::Status { task_id, context_id, .. }
            | StreamItem::Artifact { task_id, context_id, .. }
                if is_unnamed(context_id, task_id) =>
            {
                context_id.clone_from(known);
            }
            _ => {}
        }
    }
}

fn task_of(item: &StreamItem) -> Option<&TaskId> {
    match item {
        StreamItem::Task(task) => Some(&task.id),
        StreamItem::Status { task_id, .. } | StreamItem::Artifact { task_id, .. } => Some(task_id),
        StreamItem::Message(_) => None,
    }
}

/// The end of a task is no repeat: the stream would have ended with the first one.
fn is_end(item: &StreamItem) -> bool {
    match item {
        StreamItem::Task(task) => task.status.state.is_terminal(),
        StreamItem::Status { update, .. } => update.state.is_terminal(),
        StreamItem::Artifact { .. } | StreamItem::Message(_) => false,
    }
}
