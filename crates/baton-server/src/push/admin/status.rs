//! What operators see of a webhook: nothing secret.

use baton_protocol::Generation;
use baton_protocol::domain::{PushConfigId, Scope, TaskId, Timestamp};
use bytes::Bytes;

use crate::push::failed::SwitchedOff;
use crate::store::WebhookState;
use crate::store::record::WebhookRecord;

/// A webhook as its operator sees it, without token, credentials, and the secret parts of its address.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebhookStatus {
    /// The agent's id.
    pub agent: String,
    /// Empty if there is none.
    pub tenant: String,
    /// Whose task it is.
    pub owner: String,
    /// The task.
    pub task: TaskId,
    /// The webhook's id, unique within the task.
    pub id: PushConfigId,
    /// Its address; user, password and query are masked.
    pub url: String,
    /// The host that is called, with the port if it is not the scheme's.
    pub host: String,
    /// In which generation it was made; `None` if its record cannot be read, like `created_at`.
    pub generation: Option<Generation>,
    /// When it was made.
    pub created_at: Option<Timestamp>,
    /// Open, failed or disabled.
    pub state: WebhookState,
    /// A delivery is under way, or waits for its host.
    pub is_busy: bool,
    /// Number of the task's last event; `None` if the task is gone.
    pub version: Option<u64>,
    /// Number of the first event that was not delivered, or of the next one if all were.
    pub next: u64,
    /// How often the next delivery has failed.
    pub attempts: u32,
    /// When it was first tried, if it failed.
    pub failing_since: Option<Timestamp>,
    /// When it is tried again, if it failed and is open.
    pub due: Option<Timestamp>,
    /// When the webhook failed for good or was switched off.
    pub failed_at: Option<Timestamp>,
    /// Why, or why the last call of an open one has failed. That is kept in memory: after a restart it is `None` until the
    /// next call.
    pub reason: Option<String>,
    /// Who has switched it off, if it was.
    pub off: Option<SwitchedOff>,
    /// The task was kept when the webhook failed, so that it can be sent although the task is gone.
    pub has_last_task: bool,
}

/// Names a webhook.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebhookName {
    /// `TASK/ID`, or `TASK` if the task has one webhook.
    pub name: String,
    /// The agent's id; needed if tasks of several agents have the same id.
    pub agent: Option<String>,
    /// The same for tenants.
    pub tenant: Option<String>,
    /// The same for owners.
    pub owner: Option<String>,
}

impl WebhookStatus {
    /// The name that is no other webhook's.
    pub fn name(&self) -> WebhookName {
        WebhookName {
            name: format!("{}/{}", self.task, self.id),
            agent: Some(self.agent.clone()),
            tenant: Some(self.tenant.clone()),
            owner: Some(self.owner.clone()),
        }
    }

    /// Of a webhook about which nothing more is known than whose it is.
    pub(super) fn new(scope: &Scope, task: &TaskId, id: &PushConfigId, record: &Bytes) -> Self {
        let record = WebhookRecord::from_stored(record).ok();
        let (url, host) = record.as_ref().map(|record| shown(&record.url)).unwrap_or_default();
        WebhookStatus {
            agent: scope.agent.to_string(),
            tenant: scope.tenant.to_string(),
            owner: scope.owner.to_string(),
            task: task.clone(),
            id: id.clone(),
            url,
            host,
            generation: record.as_ref().map(|record| record.generation),
            created_at: record.as_ref().map(|record| record.created_at),
            state: WebhookState::Open,
            is_busy: false,
            version: None,
            next: 0,
            attempts: 0,
            failing_since: None,
            due: None,
            failed_at: None,
            reason: None,
            off: None,
            has_last_task: false,
        }
    }
}

impl WebhookName {
    /// Of this name, at whichever agent and of whichever owner.
    pub fn new(name: &str) -> Self {
        WebhookName { name: name.to_owned(), ..WebhookName::default() }
    }

    pub(super) fn fits(&self, scope: &Scope, task: &TaskId, id: &PushConfigId) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        let is_named = match self.name.strip_prefix(task.as_str()) {
            Some("") => true,
            Some(rest) => rest.strip_prefix('/') == Some(id.as_str()),
            None => false,
        };
        is_named
            && is(&self.agent, &scope.agent)
            && is(&self.tenant, &scope.tenant)
            && is(&self.owner, &scope.owner)
    }
}

/// An address as it is shown, and its host.
fn shown(url: &str) -> (String, String) {
    let Some((scheme, rest)) = url.split_once("://") else { return ("***".to_owned(), String::new()) };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (user, host) = match authority.rsplit_once('@') {
        Some((_, host)) => ("***@", host),
        None => ("", authority),
    };
    let (path, query) = match path.find(['?', '#']) {
        Some(at) => (&path[..at], "?***"),
        None => (path, ""),
    };
    (format!("{scheme}://{user}{host}{path}{query}"), host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s14_what_may_be_secret_in_an_address_is_not_shown() {
        for (url, expected) in [
            ("https://example.org/hook", "https://example.org/hook"),
            ("https://example.org:8443", "https://example.org:8443"),
            ("https://example.org/hook?key=s3cret&a=b", "https://example.org/hook?***"),
            ("https://example.org?s3cret", "https://example.org?***"),
            ("https://ann:s3cret@example.org/a", "https://***@example.org/a"),
            ("https://ann:s3@cret@example.org/", "https://***@example.org/"),
            ("https://example.org/a#s3cret?b", "https://example.org/a?***"),
            ("s3cret", "***"),
        ] {
            assert_eq!(shown(url).0, expected);
        }
        assert_eq!(shown("https://ann:s3cret@example.org:8443/a?b").1, "example.org:8443");
    }

    #[test]
    fn a_name_may_be_short_and_ids_may_hold_slashes() {
        let (task, id) = (TaskId::parse("a/b").unwrap(), PushConfigId::parse("c/d").unwrap());
        let scope = Scope::new("agent", "", "alice");
        let fits = |name: &WebhookName| name.fits(&scope, &task, &id);
        for (name, expected) in
            [("a/b", true), ("a/b/c/d", true), ("a", false), ("a/b/c", false), ("a/b/", false), ("", false)]
        {
            assert_eq!(fits(&WebhookName::new(name)), expected, "{name}");
        }
        for (owner, expected) in [("alice", true), ("bob", false)] {
            assert_eq!(
                fits(&WebhookName { owner: Some(owner.to_owned()), ..WebhookName::new("a/b") }),
                expected
            );
        }
    }
}
