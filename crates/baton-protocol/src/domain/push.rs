//! Webhook configurations.

use super::{PushConfigId, TaskId};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushConfig {
    pub id: Option<PushConfigId>,
    pub task_id: Option<TaskId>,
    pub url: String,
    pub token: Option<String>,
    pub authentication: Option<PushAuthentication>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushAuthentication {
    pub scheme: String,
    pub credentials: Option<String>,
}
