//! What an agent says when it calls a webhook.

use std::time::SystemTime;

use baton_protocol::Generation;
use baton_protocol::domain::TaskId;
use baton_protocol::wire::{ReadNotification, StreamItem, read_notification};

use super::WebhookError;

/// What an agent says about a task.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notification {
    /// The id of the event, if the agent sends one: the same at every attempt.
    pub id: Option<String>,
    /// When this attempt was sent, if it is signed or has a JWT.
    pub sent: Option<SystemTime>,
    /// The generation of the protocol that the body is written in.
    pub generation: Generation,
    /// What happened. The task of a notification in 0.3 is the whole task.
    pub event: StreamItem,
    /// The name of the task's state if it is none that this library knows; [`event`](Self::event) then says working.
    pub unknown_state: Option<String>,
}

impl Notification {
    /// The task that it is about; `None` for a message of no task.
    pub fn task_id(&self) -> Option<&TaskId> {
        match &self.event {
            StreamItem::Task(task) => Some(&task.id),
            StreamItem::Message(message) => message.task_id.as_ref(),
            StreamItem::Status { task_id, .. } | StreamItem::Artifact { task_id, .. } => Some(task_id),
        }
    }

    /// Reads the body of a call without checking who sent it.
    pub fn read_unverified(body: &[u8]) -> Result<Self, WebhookError> {
        let text = std::str::from_utf8(body).map_err(|_| WebhookError::Body("it is not UTF-8".to_owned()))?;
        let read = read_notification(text).map_err(|error| WebhookError::Body(error.to_string()))?;
        let ReadNotification { generation, item } = read;
        let unknown_state = item.unknown_state().map(str::to_owned);
        Ok(Notification { id: None, sent: None, generation, event: item.value, unknown_state })
    }
}
