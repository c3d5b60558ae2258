//! The webhooks of all tasks, and those that failed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use baton_protocol::domain::{PushConfigId, Timestamp};

use crate::store::{FailedWebhook, Head, NewWebhook, StoredWebhook, TaskKey, WebhookCursor, WebhookState};

/// Where an open webhook stands in their order.
type Position = (TaskKey, PushConfigId);

#[derive(Default)]
pub(super) struct Webhooks {
    /// Sorted by id.
    by_task: HashMap<TaskKey, Vec<StoredWebhook>>,
    open: BTreeSet<Position>,
    failed: BTreeMap<Position, FailedWebhook>,
    failed_by_time: BTreeSet<(Timestamp, TaskKey, PushConfigId)>,
}

/// The change of what webhooks count for their owner.
pub(super) struct Put {
    pub(super) webhook: StoredWebhook,
    pub(super) added: u64,
    pub(super) removed: u64,
}

impl Webhooks {
    pub(super) fn of(&self, task: TaskKey) -> &[StoredWebhook] {
        self.by_task.get(&task).map(Vec::as_slice).unwrap_or_default()
    }

    /// `None`: the task has too many.
    pub(super) fn put(&mut self, head: &Head, new: NewWebhook, begin: u64) -> Option<Put> {
        let list = self.by_task.entry(head.key).or_default();
        let at = list.binary_search_by(|known| known.id.cmp(&new.id));
        let (mut cursor, removed) = match at {
            Ok(at) => {
                let WebhookCursor { revision, done, .. } = list[at].cursor;
                (
                    WebhookCursor { revision: revision + 1, ..WebhookCursor::after(done) },
                    list[at].record.len() as u64,
                )
            }
            Err(_) if list.len() >= new.most as usize => return None,
            Err(_) => (WebhookCursor::after(begin), 0),
        };
        if head.current.state.is_terminal() && cursor.done >= head.version {
            cursor.state = WebhookState::Finished;
        }
        let webhook = StoredWebhook { id: new.id, record: new.record, cursor };
        match at {
            Ok(at) => list[at] = webhook.clone(),
            Err(at) => list.insert(at, webhook.clone()),
        }
        self.index(head.key, &webhook);
        Some(Put { added: webhook.record.len() as u64, webhook, removed })
    }

    /// Answers how many bytes its record has.
    pub(super) fn remove(&mut self, task: TaskKey, id: &PushConfigId, revision: Option<u64>) -> Option<u64> {
        let list = self.by_task.get_mut(&task)?;
        let at = list.binary_search_by(|known| known.id.cmp(id)).ok()?;
        if revision.is_some_and(|revision| list[at].cursor.revision != revision) {
            return None;
        }
        let removed = list.remove(at);
        if list.is_empty() {
            self.by_task.remove(&task);
        }
        self.open.remove(&(task, removed.id));
        Some(removed.record.len() as u64)
    }

    /// Answers how many bytes their records have.
    pub(super) fn remove_all(&mut self, task: TaskKey) -> u64 {
        let removed = self.by_task.remove(&task).unwrap_or_default();
        let bytes = removed.iter().map(|webhook| webhook.record.len() as u64).sum();
        for webhook in removed {
            self.open.remove(&(task, webhook.id));
        }
        bytes
    }

    pub(super) fn move_to(
        &mut self,
        task: TaskKey,
        id: &PushConfigId,
        revision: u64,
        cursor: WebhookCursor,
    ) -> bool {
        let known = self.by_task.get_mut(&task).and_then(|list| {
            let at = list.binary_search_by(|known| known.id.cmp(id)).ok()?;
            Some(&mut list[at])
        });
        let Some(webhook) = known.filter(|webhook| webhook.cursor.revision == revision) else { return false };
        webhook.cursor = WebhookCursor { revision: revision + 1, ..cursor };
        let webhook = webhook.clone();
        self.index(task, &webhook);
        true
    }

    fn index(&mut self, task: TaskKey, webhook: &StoredWebhook) {
        let position = (task, webhook.id.clone());
        match webhook.cursor.state {
            WebhookState::Open => self.open.insert(position),
            _ => self.open.remove(&position),
        };
    }

    pub(super) fn has_open(&self, task: TaskKey) -> bool {
        self.of(task).iter().any(|webhook| webhook.cursor.state == WebhookState::Open)
    }

    /// The open ones above a position.
    pub(super) fn open(
        &self,
        after: Option<Position>,
        limit: u32,
    ) -> impl Iterator<Item = (TaskKey, &StoredWebhook)> {
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        let webhook = |(task, id): &Position| self.of(*task).iter().find(|known| known.id == *id);
        self.open
            .range((after, Bound::Unbounded))
            .take(limit as usize)
            .filter_map(move |position| Some((position.0, webhook(position)?)))
    }

    pub(super) fn put_failed(&mut self, failed: FailedWebhook, most: u32) {
        self.remove_failed(failed.key, &failed.id);
        self.failed_by_time.insert((failed.at, failed.key, failed.id.clone()));
        self.failed.insert((failed.key, failed.id.clone()), failed);
        while self.failed.len() > most as usize {
            let Some((_, key, id)) = self.failed_by_time.pop_first() else { return };
            self.failed.remove(&(key, id));
        }
    }

    pub(super) fn failed(
        &self,
        after: Option<(Timestamp, TaskKey, PushConfigId)>,
        limit: u32,
    ) -> Vec<FailedWebhook> {
        let before = after.map_or(Bound::Unbounded, Bound::Excluded);
        let newest_first = self.failed_by_time.range((Bound::Unbounded, before)).rev();
        let failed =
            |(_, key, id): &(_, TaskKey, PushConfigId)| self.failed.get(&(*key, id.clone())).cloned();
        newest_first.take(limit as usize).filter_map(failed).collect()
    }

    pub(super) fn remove_failed(&mut self, task: TaskKey, id: &PushConfigId) -> bool {
        let Some(removed) = self.failed.remove(&(task, id.clone())) else { return false };
        self.failed_by_time.remove(&(removed.at, removed.key, removed.id))
    }
}
