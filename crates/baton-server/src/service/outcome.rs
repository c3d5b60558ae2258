//! The outcomes of calls, as values. Bindings encode them.

use std::sync::Arc;

use baton_protocol::Error;
use baton_protocol::domain::{AgentCard, Message, PushConfig, Task, TaskPage};
use baton_protocol::operation::{HistoryLength, ListTasks};
use baton_protocol::wire::stored;
use bytes::Bytes;

use crate::engine::{EventStream, View, from_store};
use crate::net::Share;
use crate::store::{Listed, record, said};

/// The outcome of a call, and what else its answer needs.
#[derive(Debug)]
pub(crate) struct Answered {
    /// What the caller gets.
    pub outcome: Outcome,
    /// The same message had been accepted before; this is its first answer again.
    pub replayed: bool,
    /// The answer's share of the room for answers, if it is already reserved.
    pub share: Option<Share>,
}

/// What the caller gets.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "moved once, into the box of the stream's writer")]
pub(crate) enum Outcome {
    /// A task.
    Task(ShownTask),
    /// A page of tasks.
    Page(Page),
    /// A message skill's reply.
    Message(Message),
    /// Events as they happen.
    Stream(EventStream),
    /// The extended card, without addresses.
    Card(Box<AgentCard>),
    /// A webhook.
    PushConfig(PushConfig),
    /// The webhooks of a task.
    PushConfigs { configs: Vec<PushConfig>, next_page_token: String },
    /// There is no such webhook any more.
    PushConfigDeleted,
}

/// A task, and how much of it is shown.
#[derive(Debug)]
pub(crate) struct ShownTask {
    /// The task.
    pub view: View,
    /// How many messages of its history are shown.
    pub history_length: HistoryLength,
    /// True if it answers SendMessage, false for GetTask and CancelTask.
    pub answers_send: bool,
}

impl ShownTask {
    /// The stored JSON with its history cut to the length. `None` if that is not possible without parsing it.
    pub(crate) fn stored_json(&self) -> Option<Bytes> {
        let json = self.view.stored_json()?;
        match self.history_length {
            HistoryLength::All => Some(json),
            less => stored::cut_history(&json, less).map(Bytes::from),
        }
    }

    /// The task with its history cut to the length.
    pub(crate) fn task(self) -> Result<Task, Error> {
        let mut task = Arc::unwrap_or_clone(self.view.snapshot()?).task;
        self.history_length.trim(&mut task.history);
        Ok(task)
    }
}

/// A page of tasks as they were read from the store.
#[derive(Debug)]
pub(crate) struct Page {
    /// The call that it answers.
    pub call: ListTasks,
    /// The tasks.
    pub tasks: Vec<Listed>,
    /// Empty on the last page.
    pub next_page_token: String,
    /// The largest number of tasks that this page could have.
    pub page_size: u32,
    /// How many tasks the whole list has.
    pub total: u64,
}

impl Page {
    /// Stored bytes of its tasks.
    pub(crate) fn bytes(&self) -> usize {
        self.tasks.iter().map(Listed::bytes).sum()
    }

    /// The page as values.
    pub(crate) fn read(&self) -> Result<TaskPage, Error> {
        let mut tasks = Vec::with_capacity(self.tasks.len());
        for listed in &self.tasks {
            let mut task = read(listed)?;
            self.call.history_length.trim(&mut task.history);
            tasks.push(task);
        }
        Ok(TaskPage {
            tasks,
            next_page_token: self.next_page_token.clone(),
            page_size: self.page_size,
            total_size: self.total,
            with_artifacts: self.call.include_artifacts,
        })
    }
}

impl Outcome {
    /// An answer that is not a replay.
    pub(crate) fn fresh(self, share: Option<Share>) -> Answered {
        Answered { outcome: self, replayed: false, share }
    }
}

/// The task, or its status alone if only that was read from the store.
pub(crate) fn read(listed: &Listed) -> Result<Task, Error> {
    match listed {
        Listed::Status(brief) => said::task(brief),
        Listed::Whole(loaded) => record::fold(loaded).map(|snapshot| snapshot.task),
    }
    .map_err(from_store)
}
