//! Webhook configurations.

use std::fmt;

use super::{PushConfigId, TaskId};

/// A webhook that gets the events of a task. Shown without its token.
#[derive(Clone, PartialEq, Eq)]
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

/// Credentials for a webhook. Shown without them.
#[derive(Clone, PartialEq, Eq)]
pub struct PushAuthentication {
    /// Such as `Bearer`.
    pub scheme: String,
    /// The credentials for the scheme.
    pub credentials: Option<String>,
}

/// Whether there is a secret, and nothing more.
fn masked(secret: Option<&String>) -> Option<fmt::Arguments<'static>> {
    secret.map(|_| format_args!("***"))
}

impl fmt::Debug for PushConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PushConfig { id, task_id, url, token, authentication, events } = self;
        f.debug_struct("PushConfig")
            .field("id", id)
            .field("task_id", task_id)
            .field("url", url)
            .field("token", &masked(token.as_ref()))
            .field("authentication", authentication)
            .field("events", events)
            .finish()
    }
}

impl fmt::Debug for PushAuthentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PushAuthentication { scheme, credentials } = self;
        f.debug_struct("PushAuthentication")
            .field("scheme", scheme)
            .field("credentials", &masked(credentials.as_ref()))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s16_secrets_are_not_shown() {
        let credentials = Some("canary".to_owned());
        let authentication = Some(PushAuthentication { scheme: "Bearer".to_owned(), credentials });
        let config =
            PushConfig { token: Some("canary".to_owned()), authentication, ..PushConfig::new("https://a/b") };
        let shown = format!("{config:?}");
        assert!(!shown.contains("canary") && shown.contains("https://a/b"), "{shown}");
        assert!(shown.contains("token: Some(***)") && shown.contains("credentials: Some(***)"), "{shown}");
    }
}
