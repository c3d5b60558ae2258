//! Message records. A record belongs to its task while the task exists; a record without a task is in the set of orphans,
//! sorted by time, so that a sweep does not scan the records of existing tasks.

use std::collections::BTreeSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::num::NonZeroU64;

use baton_protocol::domain::{MessageId, TaskId, Timestamp};
use bytes::Bytes;

use super::scopes::ScopeId;
use super::table::Table;
use crate::store::{HASH_DIGEST, MessageHash, MessageRecord};

#[derive(Default)]
pub(super) struct Records {
    /// Boxed, so that unused slots of the table are only pointers.
    kept: Table<Box<CompactRecord>>,
    hasher: RandomState,
    orphans: BTreeSet<Orphan>,
}

/// A [`MessageRecord`] in less memory: there is one for every task.
pub(super) struct CompactRecord {
    scope: ScopeId,
    id: MessageId,
    /// The same id with another digest is another message.
    hash: MessageHash,
    task: Option<TaskId>,
    /// Events are numbered from 1.
    event: Option<NonZeroU64>,
    reply: Option<Box<Bytes>>,
    at: Timestamp,
}

/// A record's hash in the table.
#[derive(Clone, Copy)]
pub(super) struct RecordKey(u64);

type Orphan = (Timestamp, ScopeId, MessageId, MessageHash);

fn record_key(hasher: &impl BuildHasher, scope: ScopeId, id: &MessageId, hash: &MessageHash) -> RecordKey {
    RecordKey(hasher.hash_one((scope, id, &hash[..HASH_DIGEST])))
}

impl CompactRecord {
    pub(super) fn scope(&self) -> ScopeId {
        self.scope
    }

    pub(super) fn counted_bytes(&self) -> u64 {
        self.to_record().counted_bytes()
    }

    fn to_record(&self) -> MessageRecord {
        MessageRecord {
            message_id: self.id.clone(),
            hash: self.hash,
            task: self.task.clone(),
            event: self.event.map(NonZeroU64::get),
            reply: self.reply.as_deref().cloned(),
            at: self.at,
        }
    }

    fn is(&self, scope: ScopeId, id: &MessageId, hash: &MessageHash) -> bool {
        self.hash[..HASH_DIGEST] == hash[..HASH_DIGEST] && self.scope == scope && self.id == *id
    }

    fn record_key(&self, hasher: &impl BuildHasher) -> RecordKey {
        record_key(hasher, self.scope, &self.id, &self.hash)
    }
}

impl Records {
    /// Entries of the table and of the set of orphans.
    pub(super) fn entries(&self) -> usize {
        self.kept.len() + self.orphans.len()
    }

    pub(super) fn find(&self, scope: ScopeId, id: &MessageId, hash: &MessageHash) -> Option<MessageRecord> {
        let key = record_key(&self.hasher, scope, id, hash);
        Some(self.kept.find(key.0, |kept| kept.is(scope, id, hash))?.to_record())
    }

    /// Adds a new record. If it belongs to the task `parent`, [`Records::orphan`] must be called when that task is purged.
    pub(super) fn insert(
        &mut self,
        scope: ScopeId,
        record: MessageRecord,
        parent: Option<&TaskId>,
    ) -> RecordKey {
        if record.task.is_none() || record.task.as_ref() != parent {
            self.orphans.insert((record.at, scope, record.message_id.clone(), record.hash));
        }
        let MessageRecord { message_id: id, hash, task, event, reply, at } = record;
        let (event, reply) = (event.and_then(NonZeroU64::new), reply.map(Box::new));
        let kept = Box::new(CompactRecord { scope, id, hash, task, event, reply, at });
        let key = kept.record_key(&self.hasher);
        self.kept.insert(key.0, kept);
        key
    }

    pub(super) fn set_event(&mut self, scope: ScopeId, (id, hash): (MessageId, MessageHash), event: u64) {
        let key = record_key(&self.hasher, scope, &id, &hash);
        if let Some(kept) = self.kept.find_mut(key.0, |kept| kept.is(scope, &id, &hash)) {
            kept.event = NonZeroU64::new(event);
        }
    }

    /// To be called when a task is purged: its record with this key becomes an orphan.
    pub(super) fn orphan(&mut self, scope: ScopeId, key: RecordKey, task: &TaskId) {
        // Other records may have the same hash. All records of this task become orphans anyway.
        let here = self.kept.with_hash(key.0);
        let its_own = here.filter(|kept| kept.scope == scope && kept.task.as_ref() == Some(task));
        self.orphans.extend(its_own.map(|kept| (kept.at, scope, kept.id.clone(), kept.hash)));
    }

    /// Removes up to `limit` records older than `before` whose task does not exist (a later task with the same id counts).
    pub(super) fn purge(
        &mut self,
        before: Timestamp,
        limit: u32,
        lives: impl Fn(ScopeId, &TaskId) -> bool,
    ) -> Vec<CompactRecord> {
        let gone = |(_, scope, id, hash): &&Orphan| {
            let task = self.find(*scope, id, hash).and_then(|record| record.task);
            !task.is_some_and(|task| lives(*scope, &task))
        };
        let old = self.orphans.iter().take_while(|(at, ..)| *at < before);
        let chosen: Vec<Orphan> = old.filter(gone).take(limit as usize).cloned().collect();
        chosen.into_iter().filter_map(|orphan| self.remove(&orphan)).collect()
    }

    fn remove(&mut self, orphan: &Orphan) -> Option<CompactRecord> {
        self.orphans.remove(orphan);
        let (_, scope, id, hash) = orphan;
        let key = record_key(&self.hasher, *scope, id, hash);
        self.kept.remove(key.0, |kept| kept.is(*scope, id, hash)).map(|kept| *kept)
    }
}
