//! Message records. A record belongs to its task while that lives; without one it waits among the
//! orphans, oldest first, so that a sweep never walks past the records of living tasks.

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
    /// Boxed, so that the table's spare room is spare pointers.
    kept: Table<Box<Kept>>,
    hasher: RandomState,
    orphans: BTreeSet<Orphan>,
}

/// A [`MessageRecord`], small: there is one for every task.
pub(super) struct Kept {
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

/// Where in the table to look for a record.
#[derive(Clone, Copy)]
pub(super) struct RecordKey(u64);

type Orphan = (Timestamp, ScopeId, MessageId, MessageHash);

fn place(hasher: &impl BuildHasher, scope: ScopeId, id: &MessageId, hash: &MessageHash) -> RecordKey {
    RecordKey(hasher.hash_one((scope, id, &hash[..HASH_DIGEST])))
}

impl Kept {
    pub(super) fn scope(&self) -> ScopeId {
        self.scope
    }

    fn is(&self, scope: ScopeId, id: &MessageId, hash: &MessageHash) -> bool {
        self.hash[..HASH_DIGEST] == hash[..HASH_DIGEST] && self.scope == scope && self.id == *id
    }

    fn place(&self, hasher: &impl BuildHasher) -> RecordKey {
        place(hasher, self.scope, &self.id, &self.hash)
    }
}

impl Records {
    pub(super) fn find(&self, scope: ScopeId, id: &MessageId, hash: &MessageHash) -> Option<MessageRecord> {
        let place = place(&self.hasher, scope, id, hash);
        let kept = self.kept.find(place.0, |kept| kept.is(scope, id, hash))?;
        Some(MessageRecord {
            message_id: kept.id.clone(),
            hash: kept.hash,
            task: kept.task.clone(),
            event: kept.event.map(NonZeroU64::get),
            reply: kept.reply.as_deref().cloned(),
            at: kept.at,
        })
    }

    /// Keeps a record that is not there yet. `parent` will call [`Records::orphan`] when it goes.
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
        let kept = Box::new(Kept { scope, id, hash, task, event, reply, at });
        let place = kept.place(&self.hasher);
        self.kept.insert(place.0, kept);
        place
    }

    pub(super) fn set_event(&mut self, scope: ScopeId, (id, hash): (MessageId, MessageHash), event: u64) {
        let place = place(&self.hasher, scope, &id, &hash);
        if let Some(kept) = self.kept.find_mut(place.0, |kept| kept.is(scope, &id, &hash)) {
            kept.event = NonZeroU64::new(event);
        }
    }

    /// The task is gone: its record that was put here may be swept from now on.
    pub(super) fn orphan(&mut self, scope: ScopeId, place: RecordKey, task: &TaskId) {
        // Others are met here, too. Any of this task's may go: it has none that stays.
        let here = self.kept.near(place.0);
        let its_own = here.filter(|kept| kept.scope == scope && kept.task.as_ref() == Some(task));
        self.orphans.extend(its_own.map(|kept| (kept.at, scope, kept.id.clone(), kept.hash)));
    }

    /// Takes out up to `limit` records older than `before` whose task does not live, not even as a
    /// later namesake.
    pub(super) fn purge(
        &mut self,
        before: Timestamp,
        limit: u32,
        lives: impl Fn(ScopeId, &TaskId) -> bool,
    ) -> Vec<Kept> {
        let gone = |(_, scope, id, hash): &&Orphan| {
            let task = self.find(*scope, id, hash).and_then(|record| record.task);
            !task.is_some_and(|task| lives(*scope, &task))
        };
        let old = self.orphans.iter().take_while(|(at, ..)| *at < before);
        let chosen: Vec<Orphan> = old.filter(gone).take(limit as usize).cloned().collect();
        chosen.into_iter().filter_map(|orphan| self.remove(&orphan)).collect()
    }

    fn remove(&mut self, orphan: &Orphan) -> Option<Kept> {
        self.orphans.remove(orphan);
        let (_, scope, id, hash) = orphan;
        let place = place(&self.hasher, *scope, id, hash);
        self.kept.remove(place.0, |kept| kept.is(*scope, id, hash)).map(|kept| *kept)
    }
}
