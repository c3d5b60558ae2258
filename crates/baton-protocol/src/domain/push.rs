//! Webhook configurations.

use super::{PushConfigId, TaskId};

/// A webhook that gets the events of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushConfig {
    /// Chosen by the client, or by the server if the client did not.
    pub id: Option<PushConfigId>,
    /// The task whose events are sent.
    pub task_id: Option<TaskId>,
    /// The webhook's address.
    pub url: String,
    /// Sent with each call, so that the receiver can check the sender.
    pub token: Option<String>,
    /// How the server authenticates to the webhook.
    pub authentication: Option<PushAuthentication>,
    /// Which events are sent. Only 0.1 has a word for it.
    pub events: PushEvents,
}

impl PushConfig {
    /// A webhook at this address that gets all events, without credentials.
    pub fn new(url: impl Into<String>) -> Self {
        PushConfig {
            id: None,
            task_id: None,
            url: url.into(),
            token: None,
            authentication: None,
            events: PushEvents::default(),
        }
    }
}

/// The kinds of events that a webhook gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PushEvents {
    /// Changes of the task's status.
    pub status: bool,
    /// Artifacts, or pieces of them.
    pub artifact: bool,
}

/// All.
impl Default for PushEvents {
    fn default() -> Self {
        PushEvents { status: true, artifact: true }
    }
}

/// Credentials for a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushAuthentication {
    /// Such as `Bearer`.
    pub scheme: String,
    /// The credentials for the scheme.
    pub credentials: Option<String>,
}
