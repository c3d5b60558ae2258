//! The operations of the protocol, one method each.

use std::sync::Arc;

use baton_protocol::domain::{AgentCard, Message, PushConfig, PushConfigId, Task, TaskId};
use baton_protocol::operation::{Call, CancelTask, GetTask, HistoryLength, ListTasks, Reply};

use crate::client::Client;
use crate::error::Error;
use crate::outgoing::Outgoing;
use crate::pages::TaskPages;
use crate::stream::EventStream;

/// What a message was answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answered {
    /// A task, ended, interrupted or (if that was asked for) still at work.
    Task(Box<Task>),
    /// A message; there is no task.
    Message(Box<Message>),
}

impl Answered {
    /// The task, if it is one.
    pub fn task(&self) -> Option<&Task> {
        match self {
            Self::Task(task) => Some(task),
            Self::Message(_) => None,
        }
    }

    /// The message, if it is one.
    pub fn message(&self) -> Option<&Message> {
        match self {
            Self::Task(_) => None,
            Self::Message(message) => Some(message),
        }
    }
}

/// A page of webhooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushConfigPage {
    /// The webhooks.
    pub configs: Vec<PushConfig>,
    /// Empty on the last page.
    pub next_page_token: String,
}

/// Nothing happens to the task without its user.
fn is_settled(task: &Task) -> bool {
    task.status.state.is_terminal() || task.status.state.is_interrupted()
}

/// An answer of a kind that the operation does not have: the codecs rule it out.
macro_rules! expect_reply {
    ($reply:expr, $($pattern:pat => $value:expr),+) => {
        match $reply {
            $($pattern => $value,)+
            _ => unreachable!("the codec reads the reply of the operation"),
        }
    };
}

impl Client {
    /// Sends a message and waits until the agent has answered: the task has ended or waits for something.
    /// [`SendMessage::return_immediately`](baton_protocol::operation::SendMessage) does not wait.
    pub async fn send(&self, message: impl Into<Outgoing>) -> Result<Answered, Error> {
        let Outgoing(send) = message.into();
        let waits = !send.return_immediately;
        let reply = self.call(Call::SendMessage(send)).await?;
        let task = expect_reply!(reply,
            Reply::SentTask(task) => task,
            Reply::SentMessage(message) => return Ok(Answered::Message(Box::new(message))));
        // In 0.1 a send does not wait, and neither do some agents of later versions.
        let task = if waits { self.wait(task).await? } else { task };
        Ok(Answered::Task(Box::new(task)))
    }

    /// Waits until a task has ended or waits for something: by its events, or by reading it again and again.
    pub async fn wait(&self, task: Task) -> Result<Task, Error> {
        if is_settled(&task) {
            return Ok(task);
        }
        let settled = self.follow(task.clone()).until_settled().await?;
        Ok(settled.unwrap_or(task))
    }

    /// The events of a task that is still at work, up to its end or its next question. Unlike
    /// [`subscribe`](Self::subscribe) it does not mind if the task has ended meanwhile, or if the agent does not stream.
    pub fn follow(&self, task: Task) -> EventStream {
        EventStream::follow(self.clone(), task)
    }

    /// Sends a message and returns its events as they happen. With an agent that does not stream, the task is read again
    /// and again.
    pub async fn stream(&self, message: impl Into<Outgoing>) -> Result<EventStream, Error> {
        EventStream::send(self.clone(), message.into().0).await
    }

    /// The events of a task from now on, beginning with the task itself.
    pub async fn subscribe(&self, id: &TaskId) -> Result<EventStream, Error> {
        EventStream::subscribe(self.clone(), id.clone(), None).await
    }

    /// The events of a task behind the one with this id, if the agent numbers its events; otherwise as
    /// [`subscribe`](Self::subscribe).
    pub async fn resume(&self, id: &TaskId, last_event_id: &str) -> Result<EventStream, Error> {
        EventStream::subscribe(self.clone(), id.clone(), Some(last_event_id.to_owned())).await
    }

    /// A task as it is now.
    pub async fn get(&self, id: &TaskId) -> Result<Task, Error> {
        self.get_with_history(id, HistoryLength::All).await
    }

    /// A task with a part of its history.
    pub async fn get_with_history(&self, id: &TaskId, history_length: HistoryLength) -> Result<Task, Error> {
        let reply = self.call(Call::GetTask(GetTask { id: id.clone(), history_length })).await?;
        Ok(expect_reply!(reply, Reply::Task(task) => task))
    }

    /// The caller's tasks.
    pub fn tasks(&self, list: ListTasks) -> TaskPages {
        TaskPages::new(self.clone(), list)
    }

    /// Asks the agent to stop working on a task; the reply is the task afterwards.
    pub async fn cancel(&self, id: &TaskId) -> Result<Task, Error> {
        self.cancel_with(CancelTask { id: id.clone(), metadata: None }).await
    }

    /// The same with metadata.
    pub async fn cancel_with(&self, cancel: CancelTask) -> Result<Task, Error> {
        let reply = self.call(Call::CancelTask(cancel)).await?;
        Ok(expect_reply!(reply, Reply::Task(task) => task))
    }

    /// Registers a webhook for the events of a task. The config must name its task.
    pub async fn create_push_config(&self, config: PushConfig) -> Result<PushConfig, Error> {
        if config.task_id.is_none() {
            return Err(Error::Invalid("a webhook needs the id of its task".to_owned()));
        }
        let reply = self.call(Call::CreatePushConfig(config)).await?;
        Ok(expect_reply!(reply, Reply::PushConfig(config) => config))
    }

    /// A webhook of a task.
    pub async fn push_config(&self, task_id: &TaskId, id: &PushConfigId) -> Result<PushConfig, Error> {
        let call = Call::GetPushConfig { task_id: task_id.clone(), id: Some(id.clone()) };
        Ok(expect_reply!(self.call(call).await?, Reply::PushConfig(config) => config))
    }

    /// A page of the webhooks of a task.
    pub async fn push_configs(
        &self,
        task_id: &TaskId,
        page_token: Option<String>,
    ) -> Result<PushConfigPage, Error> {
        let call = Call::ListPushConfigs { task_id: task_id.clone(), page_size: None, page_token };
        Ok(expect_reply!(self.call(call).await?,
            Reply::PushConfigs { configs, next_page_token } => PushConfigPage { configs, next_page_token }))
    }

    /// Removes a webhook of a task.
    pub async fn delete_push_config(&self, task_id: &TaskId, id: &PushConfigId) -> Result<(), Error> {
        let call = Call::DeletePushConfig { task_id: task_id.clone(), id: id.clone() };
        expect_reply!(self.call(call).await?, Reply::PushConfigDeleted => {});
        Ok(())
    }

    /// The card that authenticated callers get. It takes the place of the one that was found, for this client and its clones:
    /// [`card`](Self::card) returns it from now on. Interfaces and credentials stay as they were chosen.
    pub async fn extended_card(&self) -> Result<Arc<AgentCard>, Error> {
        let card =
            expect_reply!(self.call(Call::GetExtendedCard).await?, Reply::Card(card) => Arc::from(card));
        self.replace_card(Arc::clone(&card));
        Ok(card)
    }
}
