//! Webhooks as a store keeps them: each reads the log of one task, and the store keeps how far it has got.
//!
//! An append writes nothing for webhooks: a webhook has something to send if the task's version is above its cursor. So a
//! crash between an event and its delivery loses nothing, and an event costs the same with webhooks and without.

use std::fmt;

use baton_protocol::domain::{PushConfigId, Scope, TaskId, Timestamp};
use bytes::Bytes;

use super::{ReplicaId, TaskKey};

/// A webhook of a task. Its id is unique within the task.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredWebhook {
    /// Chosen by the client, or by the server.
    pub id: PushConfigId,
    /// Address, credentials and generation: what `record::Webhook::to_stored` wrote. Counts for the task's owner.
    pub record: Bytes,
    /// How far it has got.
    pub cursor: WebhookCursor,
}

/// How far a webhook has got in the log of its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebhookCursor {
    /// Raised by every change. [`Store::move_webhook`](super::Store::move_webhook) compares it, so that of two processes that
    /// want to deliver the same event only one may.
    pub revision: u64,
    /// Events up to this number need no delivery any more.
    pub done: u64,
    /// If set, the next delivery is the task as of this event, instead of the event after `done`. Stored before the first
    /// try, so that every try sends the same bytes.
    pub task_as_of: Option<u64>,
    /// How often the next delivery has failed.
    pub failures: u32,
    /// When the next delivery was first tried; `Some` if it has failed.
    pub failing_since: Option<Timestamp>,
    /// The next delivery is not tried before.
    pub due: Timestamp,
    /// The process that delivers now, and until when nobody else may.
    pub claim: Option<Claim>,
    /// Whether it may have something to deliver, now or later.
    pub state: WebhookState,
}

/// The right to deliver, for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// Who has it.
    pub by: ReplicaId,
    /// How long.
    pub until: Timestamp,
}

/// Whether a webhook may have something to deliver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WebhookState {
    /// It may.
    Open,
    /// No: the task has ended and everything was delivered.
    Finished,
    /// No: a delivery failed for good.
    Failed,
    /// No: the receiver or the operator has switched it off.
    Disabled,
}

impl WebhookState {
    /// Stable number used in stores.
    pub fn number(self) -> u8 {
        match self {
            Self::Open => 0,
            Self::Finished => 1,
            Self::Failed => 2,
            Self::Disabled => 3,
        }
    }

    /// The state of a stored number.
    pub fn from_number(number: u8) -> Option<Self> {
        let all = [Self::Open, Self::Finished, Self::Failed, Self::Disabled];
        all.into_iter().find(|state| state.number() == number)
    }
}

impl WebhookCursor {
    /// Of a webhook that gets the events after this number.
    pub fn after(number: u64) -> Self {
        WebhookCursor {
            revision: 1,
            done: number,
            task_as_of: None,
            failures: 0,
            failing_since: None,
            due: Timestamp::from_millis(0),
            claim: None,
            state: WebhookState::Open,
        }
    }
}

/// A webhook to store. It begins after the task's last event; one that comes with a birth begins before the first.
#[derive(Clone, PartialEq, Eq)]
pub struct NewWebhook {
    /// A webhook with the same id is replaced: the record is the new one, `done` stays, and everything else begins anew.
    pub id: PushConfigId,
    /// See [`StoredWebhook::record`].
    pub record: Bytes,
    /// Refuse with [`PutWebhook::Full`] if the task has this many already and none with this id.
    pub most: u32,
}

/// The outcome of storing a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PutWebhook {
    /// Stored. It is finished at once if the task has ended and nothing is left to deliver.
    Stored {
        /// The task's internal key.
        key: TaskKey,
        /// The webhook as it is stored.
        webhook: StoredWebhook,
    },
    /// The task has too many; nothing was stored.
    Full,
    /// There is no such task in this scope.
    NotFound,
}

/// A webhook that is [`WebhookState::Open`], with what a delivery needs to know about its task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenWebhook {
    /// The task's internal key.
    pub key: TaskKey,
    /// The scope it belongs to.
    pub scope: Scope,
    /// The task's id.
    pub task: TaskId,
    /// Number of the task's last event.
    pub version: u64,
    /// The webhook.
    pub webhook: StoredWebhook,
}

/// A webhook that is not open any more because a delivery failed for good, or that was switched off. Kept when its task is
/// removed, so that an operator can read what was not delivered and send it again.
#[derive(Clone, PartialEq, Eq)]
pub struct FailedWebhook {
    /// Unique in the store: the task's internal key and the webhook's id.
    pub key: TaskKey,
    /// The webhook's id.
    pub id: PushConfigId,
    /// When it failed. Lists are sorted by it.
    pub at: Timestamp,
    /// Scope, task, address, the reason and the last task: what `record::FailedWebhook` wrote.
    pub record: Bytes,
}

// Without a master key, records hold tokens and credentials as they are: they are shown by their size.

impl fmt::Debug for StoredWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StoredWebhook { id, record, cursor } = self;
        let record = format_args!("{} bytes", record.len());
        f.debug_struct("StoredWebhook")
            .field("id", id)
            .field("record", &record)
            .field("cursor", cursor)
            .finish()
    }
}

impl fmt::Debug for NewWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NewWebhook { id, record, most } = self;
        let record = format_args!("{} bytes", record.len());
        f.debug_struct("NewWebhook").field("id", id).field("record", &record).field("most", most).finish()
    }
}

impl fmt::Debug for FailedWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FailedWebhook { key, id, at, record } = self;
        let record = format_args!("{} bytes", record.len());
        let mut shown = f.debug_struct("FailedWebhook");
        shown.field("key", key).field("id", id).field("at", at).field("record", &record).finish()
    }
}
