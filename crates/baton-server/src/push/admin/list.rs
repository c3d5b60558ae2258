//! Finds webhooks: first the open ones in the order of their tasks, then the failed ones, newest first.

use baton_protocol::domain::{PushConfigId, Scope, Timestamp};

use super::{WebhookError, WebhookName, WebhookStatus, Webhooks};
use crate::push::failed::FailedRecord;
use crate::push::registry::Job;
use crate::store::{
    FailedWebhook, Head, OpenWebhook, StoreResult, StoredWebhook, TaskKey, WebhookCursor, WebhookState,
};

/// How many are read at once. The record of a failed one may have 64 KiB.
const OPEN_AT_ONCE: u32 = 500;
const FAILED_AT_ONCE: u32 = 50;

/// Most reads for one page, so that a filter that fits nothing does not keep its caller waiting.
const READS: usize = 20;

/// How many webhooks the error about an ambiguous name shows.
const AMONG: usize = 8;

/// Which webhooks to list; by default all that are open or failed.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct WebhookFilter {
    /// Open ones, failed ones or both.
    pub group: WebhookGroup,
    /// Only those of this owner.
    pub owner: Option<String>,
    /// Only those of tasks with this id.
    pub task: Option<String>,
    /// Only those that call this host, as [`WebhookStatus::host`] shows it.
    pub host: Option<String>,
    /// Only open ones whose last call has failed.
    pub failing: bool,
}

/// Open webhooks, failed ones or both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WebhookGroup {
    /// Both.
    #[default]
    All,
    /// Those that have something to deliver, now or later.
    Open,
    /// Those that failed for good or were switched off.
    Failed,
}

/// Some webhooks.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct WebhookPage {
    /// The webhooks; with a filter there may be none although more pages follow.
    pub webhooks: Vec<WebhookStatus>,
    /// The position of the next page; `None` at the end.
    pub next: Option<String>,
}

/// After which webhook a page begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Position {
    Open(Option<(TaskKey, PushConfigId)>),
    Failed(Option<(Timestamp, TaskKey, PushConfigId)>),
}

/// A webhook that was found.
pub(super) struct Found {
    pub(super) status: WebhookStatus,
    /// As work for a delivery. The cursor of one whose task is gone means nothing.
    pub(super) job: Job,
    /// If it failed.
    pub(super) failed: Option<FailedRecord>,
    /// Its position, for the page after it.
    at: Position,
}

impl Webhooks {
    /// One page, from its beginning or after [`WebhookPage::next`] of the one before.
    pub async fn list(
        &self,
        filter: &WebhookFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<WebhookPage, WebhookError> {
        let fits = |status: &WebhookStatus| filter.fits(status);
        let (found, next) = self.page(filter.begin(after)?, filter.group, limit, &fits).await?;
        let webhooks = found.into_iter().map(|found| found.status).collect();
        Ok(WebhookPage { webhooks, next: next.map(|next| next.to_text()) })
    }

    /// The webhook with this name.
    pub async fn find(&self, name: &WebhookName) -> Result<WebhookStatus, WebhookError> {
        Ok(self.find_one(name).await?.status)
    }

    pub(super) async fn find_one(&self, name: &WebhookName) -> Result<Found, WebhookError> {
        let fits = |status: &WebhookStatus| {
            name.fits(&Scope::new(&status.agent, &status.tenant, &status.owner), &status.task, &status.id)
        };
        let (mut found, mut position) = (Vec::new(), Some(Position::Open(None)));
        while let Some(from) = position
            && found.len() < AMONG
        {
            let (more, next) = self.page(from, WebhookGroup::All, AMONG, &fits).await?;
            found.extend(more);
            position = next;
        }
        match found.pop() {
            Some(only) if found.is_empty() => Ok(only),
            Some(last) => {
                found.push(last);
                let whole = |found: &Found| {
                    let WebhookStatus { agent, tenant, owner, task, id, .. } = &found.status;
                    let tenant = if tenant.is_empty() { String::new() } else { format!(", tenant {tenant}") };
                    format!("{task}/{id} (owner {owner}, agent {agent}{tenant})")
                };
                let among = found.iter().map(whole).collect();
                Err(WebhookError::Ambiguous { name: name.name.clone(), among })
            }
            None => Err(WebhookError::Unknown(name.name.clone())),
        }
    }

    /// Up to `limit` webhooks that fit, and where the next page begins.
    pub(super) async fn page(
        &self,
        from: Position,
        group: WebhookGroup,
        limit: usize,
        fits: &(dyn Fn(&WebhookStatus) -> bool + Sync),
    ) -> StoreResult<(Vec<Found>, Option<Position>)> {
        let (mut page, mut position) = (Vec::new(), from);
        for _ in 0..READS {
            let (batch, next) = match &position {
                Position::Open(after) => self.read_open(after.clone(), fits).await?,
                Position::Failed(after) => self.read_failed(after.clone(), fits).await?,
            };
            for found in batch {
                let at = found.at.clone();
                page.push(found);
                if page.len() >= limit {
                    return Ok((page, Some(at)));
                }
            }
            match next {
                Some(Position::Failed(_)) if group == WebhookGroup::Open => return Ok((page, None)),
                Some(next) => position = next,
                None => return Ok((page, None)),
            }
        }
        Ok((page, Some(position)))
    }

    async fn read_open(
        &self,
        after: Option<(TaskKey, PushConfigId)>,
        fits: &(dyn Fn(&WebhookStatus) -> bool + Sync),
    ) -> StoreResult<(Vec<Found>, Option<Position>)> {
        let read = self.store.open_webhooks(after, OPEN_AT_ONCE).await?;
        let last = read.last().map(|last| (last.key, last.webhook.id.clone()));
        let next = last.map_or(Position::Failed(None), |last| Position::Open(Some(last)));
        let found = read.into_iter().map(|open| self.open(open)).filter(|found| fits(&found.status));
        Ok((found.collect(), Some(next)))
    }

    fn open(&self, open: OpenWebhook) -> Found {
        let OpenWebhook { key, scope, task, version, webhook } = open;
        let mut status = WebhookStatus::new(&scope, &task, &webhook.id, &webhook.record);
        status.read_cursor(&webhook.cursor);
        status.version = Some(version);
        if let Some(shared) = self.running() {
            status.is_busy = shared.registry.is_busy(key, &webhook.id);
            status.reason = shared.registry.failure(key, &webhook.id).filter(|_| status.attempts > 0);
        }
        let at = Position::Open(Some((key, webhook.id.clone())));
        Found { status, job: Job { key, scope, task, webhook }, failed: None, at }
    }

    async fn read_failed(
        &self,
        after: Option<(Timestamp, TaskKey, PushConfigId)>,
        fits: &(dyn Fn(&WebhookStatus) -> bool + Sync),
    ) -> StoreResult<(Vec<Found>, Option<Position>)> {
        let read = self.store.failed_webhooks(after, FAILED_AT_ONCE).await?;
        let next = read.last().map(|last| Position::Failed(Some((last.at, last.key, last.id.clone()))));
        let mut found = Vec::new();
        for failed in read {
            found.extend(self.failed(failed, fits).await?);
        }
        Ok((found, next))
    }

    /// `None` also if the webhook is not failed any more, or its owner has removed it.
    async fn failed(
        &self,
        failed: FailedWebhook,
        fits: &(dyn Fn(&WebhookStatus) -> bool + Sync),
    ) -> StoreResult<Option<Found>> {
        let FailedWebhook { key, id, at, record } = failed;
        let record = match FailedRecord::from_stored(&record) {
            Ok(record) => record,
            Err(error) => {
                tracing::error!(task.key = key.0, webhook.id = %id, %error, "a failed webhook cannot be read");
                return Ok(None);
            }
        };
        let (scope, task) = (record.scope.clone(), record.task.clone());
        let mut status = WebhookStatus::new(&scope, &task, &id, &record.webhook);
        status.state = if record.off.is_some() { WebhookState::Disabled } else { WebhookState::Failed };
        (status.next, status.attempts) = (record.number, record.attempts);
        (status.failed_at, status.reason) = (Some(at), Some(record.reason.clone()));
        (status.off, status.has_last_task) = (record.off, record.last.is_some());
        if !fits(&status) {
            return Ok(None);
        }
        let cursor = WebhookCursor::after(record.number.saturating_sub(1));
        let kept = StoredWebhook { id: id.clone(), record: record.webhook.clone(), cursor };
        let mut job = Job { key, scope, task, webhook: kept };
        if let Some((head, webhook)) = self.stored(&job).await? {
            let is_over = |cursor: &WebhookCursor| {
                matches!(cursor.state, WebhookState::Failed | WebhookState::Disabled)
            };
            let Some(webhook) = webhook.filter(|webhook| is_over(&webhook.cursor)) else { return Ok(None) };
            status.read_cursor(&webhook.cursor);
            (status.version, status.due) = (Some(head.version), None);
            job.webhook = webhook;
        }
        let at = Position::Failed(Some((at, key, id)));
        Ok(Some(Found { status, job, failed: Some(record), at }))
    }

    /// The task and the webhook as they are now; `None` if the task is gone.
    pub(super) async fn stored(&self, job: &Job) -> StoreResult<Option<(Head, Option<StoredWebhook>)>> {
        // Another task may have the id by now.
        let head = self.store.head(&job.scope, &job.task).await?.filter(|head| head.key == job.key);
        let Some(head) = head else { return Ok(None) };
        let webhooks = self.store.webhooks(&job.scope, &job.task).await?;
        Ok(Some((head, webhooks.into_iter().find(|webhook| webhook.id == job.webhook.id))))
    }
}

impl WebhookStatus {
    fn read_cursor(&mut self, cursor: &WebhookCursor) {
        self.state = cursor.state;
        self.next = cursor.task_as_of.unwrap_or(cursor.done + 1);
        (self.attempts, self.failing_since) = (cursor.failures, cursor.failing_since);
        self.due = Some(cursor.due).filter(|due| cursor.failures > 0 && due.as_millis() > 0);
    }
}

impl WebhookFilter {
    pub(super) fn begin(&self, after: Option<&str>) -> Result<Position, WebhookError> {
        match after {
            Some(text) => Position::parse(text).ok_or(WebhookError::BadPosition),
            None if self.group == WebhookGroup::Failed => Ok(Position::Failed(None)),
            None => Ok(Position::Open(None)),
        }
    }

    pub(super) fn fits(&self, status: &WebhookStatus) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        is(&self.owner, &status.owner)
            && is(&self.task, status.task.as_str())
            && self.host.as_ref().is_none_or(|host| host.eq_ignore_ascii_case(&status.host))
            && !(self.failing && (status.state != WebhookState::Open || status.attempts == 0))
    }
}

impl Position {
    /// `o`, `o.KEY.ID`, `f` or `f.TIME.KEY.ID`.
    pub(super) fn to_text(&self) -> String {
        match self {
            Position::Open(None) => "o".to_owned(),
            Position::Open(Some((key, id))) => format!("o.{}.{id}", key.0),
            Position::Failed(None) => "f".to_owned(),
            Position::Failed(Some((at, key, id))) => format!("f.{}.{}.{id}", at.as_millis(), key.0),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let key = |text: &str| {
            let (key, id) = text.split_once('.')?;
            Some((TaskKey(key.parse().ok()?), PushConfigId::parse(id).ok()?))
        };
        match text.split_once('.') {
            None => match text {
                "o" => Some(Position::Open(None)),
                "f" => Some(Position::Failed(None)),
                _ => None,
            },
            Some(("o", rest)) => Some(Position::Open(Some(key(rest)?))),
            Some(("f", rest)) => {
                let (at, rest) = rest.split_once('.')?;
                let (key, id) = key(rest)?;
                Some(Position::Failed(Some((Timestamp::from_millis(at.parse().ok()?), key, id))))
            }
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_position_of_a_page_is_text() {
        let (key, id) = (TaskKey(7), PushConfigId::parse("a.b/c").unwrap());
        let failed_at = Timestamp::from_millis(-5);
        for position in [
            Position::Open(None),
            Position::Open(Some((key, id.clone()))),
            Position::Failed(None),
            Position::Failed(Some((failed_at, key, id))),
        ] {
            assert_eq!(Position::parse(&position.to_text()), Some(position));
        }
        for bad in ["", "x", "o.", "o.x.a", "o.1", "o.1.", "f.1.2", "f.x.2.a", "x.1.a"] {
            assert_eq!(Position::parse(bad), None, "{bad}");
        }
    }
}
