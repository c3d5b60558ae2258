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
}

/// Credentials for a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushAuthentication {
    /// Such as `Bearer`.
    pub scheme: String,
    /// The credentials for the scheme.
    pub credentials: Option<String>,
}
