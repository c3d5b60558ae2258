//! Message records. A record belongs to its task while that lives; without one it waits among the
//! orphans, oldest first, so that a sweep never walks past the records of living tasks.

use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroU64;

use baton_protocol::domain::{MessageId, TaskId, Timestamp};
use bytes::Bytes;

use super::scopes::ScopeId;
use crate::store::MessageRecord;

#[derive(Default)]
pub(super) struct Records {
    /// Nearly always one per id; the same id with another hash is another message.
    kept: HashMap<(ScopeId, MessageId), Vec<Kept>>,
    orphans: BTreeSet<Orphan>,
}

/// A [`MessageRecord`] without the id it is found by, and small: there is one for every task.
pub(super) struct Kept {
    hash: [u8; 32],
    task: Option<TaskId>,
    /// Events are numbered from 1.
    event: Option<NonZeroU64>,
    reply: Option<Box<Bytes>>,
    at: Timestamp,
}

type Orphan = (Timestamp, ScopeId, MessageId, [u8; 32]);

impl Records {
    pub(super) fn find(&self, scope: ScopeId, id: &MessageId, hash: &[u8; 32]) -> Option<MessageRecord> {
        let (key, same_id) = self.kept.get_key_value(&(scope, id.clone()))?;
        let kept = same_id.iter().find(|kept| kept.hash == *hash)?;
        Some(MessageRecord {
            message_id: key.1.clone(),
            hash: kept.hash,
            task: kept.task.clone(),
            event: kept.event.map(NonZeroU64::get),
            reply: kept.reply.as_deref().cloned(),
            at: kept.at,
        })
    }

    /// Keeps a record that is not there yet. `parent` will call [`Records::orphan`] when it goes.
    pub(super) fn insert(&mut self, scope: ScopeId, record: MessageRecord, parent: Option<&TaskId>) {
        if record.task.is_none() || record.task.as_ref() != parent {
            self.orphans.insert((record.at, scope, record.message_id.clone(), record.hash));
        }
        let MessageRecord { message_id, hash, task, event, reply, at } = record;
        let same_id = self.kept.entry((scope, message_id)).or_default();
        same_id.reserve_exact(1);
        let (event, reply) = (event.and_then(NonZeroU64::new), reply.map(Box::new));
        same_id.push(Kept { hash, task, event, reply, at });
    }

    pub(super) fn set_event(&mut self, scope: ScopeId, (id, hash): (MessageId, [u8; 32]), event: u64) {
        let same_id = self.kept.get_mut(&(scope, id)).into_iter().flatten();
        for record in same_id.filter(|record| record.hash == hash) {
            record.event = NonZeroU64::new(event);
        }
    }

    /// The task is gone: its records of this message may be swept from now on.
    pub(super) fn orphan(&mut self, scope: ScopeId, id: &MessageId, task: &TaskId) {
        let same_id = self.kept.get(&(scope, id.clone())).into_iter().flatten();
        let its_own = same_id.filter(|record| record.task.as_ref() == Some(task));
        self.orphans.extend(its_own.map(|record| (record.at, scope, id.clone(), record.hash)));
    }

    /// Takes out up to `limit` records older than `before` whose task does not live, not even as a
    /// later namesake.
    pub(super) fn purge(
        &mut self,
        before: Timestamp,
        limit: u32,
        lives: impl Fn(ScopeId, &TaskId) -> bool,
    ) -> Vec<(ScopeId, Kept)> {
        let gone = |(_, scope, id, hash): &&Orphan| {
            let task = self.find(*scope, id, hash).and_then(|record| record.task);
            !task.is_some_and(|task| lives(*scope, &task))
        };
        let old = self.orphans.iter().take_while(|(at, ..)| *at < before);
        let chosen: Vec<Orphan> = old.filter(gone).take(limit as usize).cloned().collect();
        chosen.into_iter().filter_map(|orphan| self.remove(orphan)).collect()
    }

    fn remove(&mut self, orphan: Orphan) -> Option<(ScopeId, Kept)> {
        self.orphans.remove(&orphan);
        let (_, scope, id, hash) = orphan;
        let key = (scope, id);
        let same_id = self.kept.get_mut(&key)?;
        let at = same_id.iter().position(|record| record.hash == hash)?;
        let record = same_id.swap_remove(at);
        if same_id.is_empty() {
            self.kept.remove(&key);
        }
        Some((scope, record))
    }
}
