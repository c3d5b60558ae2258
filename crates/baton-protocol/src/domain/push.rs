//! Webhook configurations.

use super::{PushConfigId, TaskId};

/// A webhook that is told about a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushConfig {
    /// Chosen by the client, or made for it.
    pub id: Option<PushConfigId>,
    /// The task it is about.
    pub task_id: Option<TaskId>,
    /// Where it is told.
    pub url: String,
    /// Sent along, so that the receiver knows whom it is from.
    pub token: Option<String>,
    /// How the server proves itself there.
    pub authentication: Option<PushAuthentication>,
}

/// Credentials for a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushAuthentication {
    /// Such as `Bearer`.
    pub scheme: String,
    /// What the scheme takes.
    pub credentials: Option<String>,
}
