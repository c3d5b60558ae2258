//! The store contract: where task logs are kept. There are several backends; `suite` tests all of them.
//!
//! Stores compare and write; they never decide. The engine has already run `lifecycle` when it calls [`Store::append`];
//! the store checks that the task still has the version and fence that the engine's decision was based on, and writes the
//! whole append in one atomic step, or nothing.
//!
//! A write that was answered with success is durable (except in `memory`). A write that was answered with an error may
//! have been done all the same, since an answer can be lost. A caller that must know reads again: version, fence and
//! message record show whether the write was done.
//!
//! The records that a store keeps and gives back (heads, events, message records) are not `#[non_exhaustive]`: a member
//! that is added must break the build of every backend, since one that compiled without it would lose it.

mod error;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod listing;
pub mod memory;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod record;
#[cfg(feature = "redis")]
pub mod redis;
pub mod said;
#[cfg(feature = "sqlite")]
pub mod sqlite;
mod state_totals;
#[cfg(any(test, feature = "store-suite"))]
#[allow(clippy::unwrap_used, reason = "a case says by a panic that the contract is broken")]
pub mod suite;
pub mod webhook;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use baton_protocol::Generation;
use baton_protocol::domain::{ContextId, MessageId, PushConfigId, TaskId, TaskState, Timestamp};

pub use baton_protocol::domain::{Event, EventBody, EventKind, ListFilter, Scope};
pub use baton_protocol::lifecycle::Snapshot;
pub use bytes::Bytes;
pub use error::{Cause, StoreError};
pub use listing::{Brief, Detail, ListPage, ListPosition, ListQuery, Listed};
pub(crate) use record::EventBatch;
pub use record::{StoredCredential, StoredEvent, StoredSnapshot};
pub use webhook::{
    Claim, FailedWebhook, NewWebhook, OpenWebhook, PutWebhook, StoredWebhook, WebhookCursor, WebhookState,
};

use crate::telemetry::histogram::Values;

/// The task's internal key: unique in the whole store, above 0, never reused after a purge, never shown to peers. Used by
/// the hub, webhook ids and logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskKey(pub u64);

/// Identifies a running server process. Created at start, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReplicaId(pub u64);

/// Identifies a request within its task. Ids only grow and are not reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// What is left to do for a task. Part of the head, so that a restart finds open tasks without reading logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Work {
    /// Nothing: the task has ended, or waits for the client.
    Idle,
    /// A message is waiting, and no attempt has been started for it.
    Queued,
    /// An attempt was started and its turn has not ended.
    Running,
}

impl Work {
    /// Stable number used in stores.
    pub fn number(self) -> u8 {
        match self {
            Self::Idle => 0,
            Self::Queued => 1,
            Self::Running => 2,
        }
    }

    /// The work of a stored number.
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::Idle, Self::Queued, Self::Running].into_iter().find(|work| work.number() == number)
    }
}

/// What a store keeps of a task beside its log: a small row that every append updates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The task's internal key.
    pub key: TaskKey,
    /// The conversation the task belongs to.
    pub context_id: ContextId,
    /// The generation of the client that created the task.
    pub generation: Generation,
    /// When the task was created.
    pub created_at: Timestamp,
    /// Number of the last event.
    pub version: u64,
    /// Events up to this number were folded: only the snapshot has them, they are no longer in the log.
    pub folded_through: u64,
    /// The part that every append replaces.
    pub current: HeadState,
}

/// The part of the head that an append replaces with values of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadState {
    /// The task's state.
    pub state: TaskState,
    /// Time of the last status. Lists are sorted by it.
    pub status_at: Timestamp,
    /// What is left to do.
    pub work: Work,
    /// How many attempts were started.
    pub attempts: u32,
    /// The process that currently writes the task.
    pub holder: Option<ReplicaId>,
    /// Raised at every change of holder; an append with an old fence is refused.
    pub fence: u64,
}

/// The fixed data of a new task. Part of the append that creates it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Birth {
    /// The conversation the task belongs to.
    pub context_id: ContextId,
    /// The generation of the client that sent its first message.
    pub generation: Generation,
    /// The time of its first event.
    pub created_at: Timestamp,
}

/// One atomic write to one task.
#[derive(Debug, Clone)]
pub struct Append {
    /// The task to write to.
    pub task: TaskId,
    /// `Some` exactly when `expected` is 0: creates the task, which must not exist in this scope.
    pub birth: Option<Birth>,
    /// The version the task must still have.
    pub expected: u64,
    /// The fence the task must still have (0 for a birth).
    pub fence: u64,
    /// Numbered `expected + 1`, `expected + 2`, … Empty if only the head changes, for example when a replica claims a task.
    pub events: Vec<StoredEvent>,
    /// The new head. Its version becomes `expected + events.len()`.
    pub head: HeadState,
    /// Replaces the stored snapshot.
    pub snapshot: Option<StoredSnapshot>,
    /// Recorded with the append; if the same message is already recorded, nothing is written. A duplicate is answered
    /// even if there is also a conflict, so that a repeated send finds the first one whatever became of the task.
    pub message: Option<MessageRecord>,
    /// Requests that this append answers; they are removed. Those that are no longer pending are ignored.
    pub settled: Vec<Settled>,
    /// With a birth: a webhook that gets every event of the task from the first on. Boxed, since
    /// most have none and an append is moved often.
    pub webhook: Option<Box<NewWebhook>>,
}

impl Append {
    /// Bytes of its records: events and snapshot.
    pub fn record_bytes(&self) -> u64 {
        let events: usize = self.events.iter().map(|event| event.record().len()).sum();
        (events + self.snapshot.as_ref().map_or(0, |snapshot| snapshot.record().len())) as u64
    }

    /// Does it end its task? Then every pending message must be in `settled` with the number of its event, so that no
    /// acknowledged message is lost. Otherwise the store answers [`Appended::Conflict`].
    pub fn ends_task(&self) -> bool {
        self.birth.is_none() && self.head.state.is_terminal() && !self.events.is_empty()
    }

    /// Does this request become one of the append's events?
    pub fn writes(&self, request: RequestId) -> bool {
        self.settled.iter().any(|settled| settled.request == request && settled.event.is_some())
    }
}

/// A request that has been answered, by an event or without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settled {
    /// The request's id.
    pub request: RequestId,
    /// Number of the event it became; written into the record of its message.
    pub event: Option<u64>,
}

/// The outcome of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Appended {
    /// Written; the task has this key.
    Written(TaskKey),
    /// Nothing was written; the caller must read again and decide again. Version or fence have changed, or a task to
    /// create exists, or a task to change does not, or the append ends the task without writing a pending message.
    Conflict,
    /// The same message was recorded before; nothing was written.
    Duplicate(MessageRecord),
}

/// Hash of a message and its target; identifies the message together with its id. The last byte is the version of the hash
/// algorithm, the rest is the digest. Records whose hashes differ only in the version are of the same message. (The first
/// version has a byte of its digest in place of the version.)
pub type MessageHash = [u8; 32];

/// Length of the digest in a [`MessageHash`], and index of its version byte.
pub const HASH_DIGEST: usize = 31;

/// The idempotency record of one message. It outlives the message's task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRecord {
    /// The message's id, chosen by its sender.
    pub message_id: MessageId,
    /// Hash of the message and its target. The same id with another digest is another message. In a record that a store
    /// answers, the version byte may be that of the hash it was looked for with.
    pub hash: MessageHash,
    /// `None` for the reply of a message skill.
    pub task: Option<TaskId>,
    /// Number of the message's event, once it is in the log.
    pub event: Option<u64>,
    /// A message skill's reply, for [`record::read_reply`].
    pub reply: Option<Bytes>,
    /// When the message arrived.
    pub at: Timestamp,
}

impl MessageRecord {
    /// What it counts for its owner: see [`OwnerUsage::bytes`].
    pub fn counted_bytes(&self) -> u64 {
        let task = self.task.as_ref().map_or(0, |task| task.as_str().len());
        let reply = self.reply.as_ref().map_or(0, Bytes::len);
        RECORD_BYTES + (self.message_id.as_str().len() + task + reply) as u64
    }
}

/// What a message record counts beside its texts: about what a row and its index entries take. So messages with short
/// replies, which have no task, are limited in number, too.
pub const RECORD_BYTES: u64 = 256;

/// What one owner has stored, in all its scopes: at all agents and under all tenants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnerUsage {
    /// How many tasks.
    pub tasks: u64,
    /// The records of events that are not folded, of snapshots, pending requests and webhooks, and for each message record
    /// [`MessageRecord::counted_bytes`]. A status event that is kept for lists after its log was folded is not counted. How
    /// a store compresses or indexes does not matter, so all stores count the same.
    pub bytes: u64,
}

/// A message or cancellation for a task that another process may hold.
#[derive(Debug, Clone)]
pub struct NewRequest {
    /// The future event: a user message or a cancel request. Its number has no meaning yet.
    pub event: StoredEvent,
    /// The idempotency record of a message (its `event` is `None` until settled). With one, the task cannot end before the
    /// message is in its log.
    pub message: Option<MessageRecord>,
    /// Refuse with [`Requested::Full`] when this many requests are pending already.
    pub most_pending: u32,
}

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Requested {
    /// Stored; it is pending until the task's holder answers it.
    Noted {
        /// The request's id.
        request: RequestId,
        /// The task's head at that time.
        head: Head,
    },
    /// The same message was recorded before; nothing was stored.
    Duplicate(MessageRecord),
    /// Too many requests are pending; nothing was stored.
    Full,
    /// The task is in a terminal state; nothing was stored.
    Ended(Head),
    /// There is no such task in this scope.
    NotFound,
}

/// A request that has not been answered yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingRequest {
    /// The request's id.
    pub request: RequestId,
    /// The future event.
    pub event: StoredEvent,
}

/// A task as stored: the snapshot and the events after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The task's id.
    pub id: TaskId,
    /// Its head.
    pub head: Head,
    /// The stored snapshot, if there is one.
    pub snapshot: Option<StoredSnapshot>,
    /// Numbers `snapshot.version() + 1 ..= head.version` (from 1 without a snapshot).
    pub tail: Vec<StoredEvent>,
}

impl Loaded {
    /// Total size of its records in bytes.
    pub fn bytes(&self) -> usize {
        let tail: usize = self.tail.iter().map(|event| event.record().len()).sum();
        tail + self.snapshot.as_ref().map_or(0, |snapshot| snapshot.record().len())
    }
}

/// The answer of [`Store::load_within`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Weighed {
    /// The task; it is within the limit.
    Light(Loaded),
    /// The task is too large: it has this many bytes.
    Heavy(usize),
}

/// A task that a restart must look at: it has work or pending requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenTask {
    /// The task's internal key.
    pub key: TaskKey,
    /// The scope it belongs to.
    pub scope: Scope,
    /// Its id.
    pub id: TaskId,
}

/// Numbers for `/metrics` that a store has in memory.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Measures {
    /// Tasks by state, in the order of [`TaskState::ALL`].
    pub tasks: Option<[u64; TaskState::ALL.len()]>,
    /// Writes per commit.
    pub(crate) batches: Option<Values>,
}

/// The result of a store operation.
pub type StoreResult<T> = Result<T, StoreError>;

/// About how many bytes one page of [`Store::events`] may have. Each stream that lags behind holds one page, and there may
/// be thousands.
pub const EVENTS_BYTES: usize = 32 * 1024;

/// The argument of [`Builder::store`](crate::Builder::store): a store, or an `Arc` of one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a store",
    note = "open one with `SqliteStore::open(\"tasks.db\", Options::default())?`, or use `MemoryStore::new()`"
)]
pub trait IntoStore {
    /// The store, to be shared.
    fn into_store(self) -> Arc<dyn Store>;
}

impl<S: Store> IntoStore for S {
    fn into_store(self) -> Arc<dyn Store> {
        Arc::new(self)
    }
}

impl<S: Store> IntoStore for Arc<S> {
    fn into_store(self) -> Arc<dyn Store> {
        self
    }
}

impl IntoStore for Arc<dyn Store> {
    fn into_store(self) -> Arc<dyn Store> {
        self
    }
}

/// A backend. Most methods take a [`Scope`] and see nothing of other scopes; those without one (sweeps, secrets, notes,
/// credentials, counts) cover the whole store. Whatever a store keeps for a scope goes with the scope's last task and
/// message record.
#[async_trait]
pub trait Store: Send + Sync + fmt::Debug + 'static {
    /// Writes one task's events, head, snapshot, message record and settled requests in one step.
    async fn append(&self, scope: &Scope, append: Append) -> StoreResult<Appended>;

    /// Stores a request for the task's holder. Does not change the task. Outcomes are checked in this order: duplicate, not
    /// found, ended, full.
    async fn request(&self, scope: &Scope, task: &TaskId, request: NewRequest) -> StoreResult<Requested>;

    /// The pending requests of a task, oldest first.
    async fn requests(&self, scope: &Scope, task: &TaskId) -> StoreResult<Vec<PendingRequest>>;

    /// The task's head.
    async fn head(&self, scope: &Scope, task: &TaskId) -> StoreResult<Option<Head>>;

    /// The task; head, snapshot and events are of the same version.
    async fn load(&self, scope: &Scope, task: &TaskId) -> StoreResult<Option<Loaded>>;

    /// The task, if it has at most `most` bytes; otherwise its size. The default loads the task and drops it if it is too
    /// large.
    async fn load_within(&self, scope: &Scope, task: &TaskId, most: usize) -> StoreResult<Option<Weighed>> {
        let loaded = self.load(scope, task).await?;
        Ok(loaded.map(|loaded| match loaded.bytes() {
            bytes if bytes > most => Weighed::Heavy(bytes),
            _ => Weighed::Light(loaded),
        }))
    }

    /// Up to `limit` events numbered above `after`, in order. Stops early at about [`EVENTS_BYTES`], but answers at least
    /// one event if there is one.
    async fn events(
        &self,
        scope: &Scope,
        task: &TaskId,
        after: u64,
        limit: u32,
    ) -> StoreResult<Vec<StoredEvent>>;

    /// One page of tasks. Tasks and total are of the same moment.
    ///
    /// Cheap reads (`head`, `load`, `events`) must not wait behind lists, and the cost of a total must not grow with the
    /// number of tasks unless the filter has `updated_since`.
    async fn list(&self, scope: &Scope, query: &ListQuery) -> StoreResult<ListPage>;

    /// The record of a message, found by its id and the digest of its hash; the hash's version is ignored.
    async fn message(
        &self,
        scope: &Scope,
        id: &MessageId,
        hash: &MessageHash,
    ) -> StoreResult<Option<MessageRecord>>;

    /// Records a message skill's reply. If the message is already recorded, answers that record and writes nothing.
    async fn put_reply(&self, scope: &Scope, record: MessageRecord) -> StoreResult<Option<MessageRecord>>;

    /// Tasks whose work is not [`Work::Idle`] or that have pending requests: those with keys above `after`, sorted by key.
    async fn open_tasks(&self, after: TaskKey, limit: u32) -> StoreResult<Vec<OpenTask>>;

    /// The live processes that write to this store; whether the calling one is included does not matter. Their tasks are
    /// left to them; tasks of all other processes are taken over. Empty for a store that only one process can open.
    async fn live_processes(&self) -> StoreResult<Vec<ReplicaId>>;

    /// The secret with this name, if there is one.
    async fn find_secret(&self, name: &str) -> StoreResult<Option<Vec<u8>>>;

    /// The secret with this name; if there is none yet, stores `fresh`.
    async fn secret(&self, name: &str, fresh: Vec<u8>) -> StoreResult<Vec<u8>>;

    /// Stores `new` if the secret with this name is `old`; answers whether it was. As far as the store can see to it, `old`
    /// is then in none of its files: it may be a secret that was not encrypted before.
    async fn replace_secret(&self, name: &str, old: &[u8], new: Vec<u8>) -> StoreResult<bool>;

    /// A small text that the engine stores under a short name. `put` replaces it. Answers the text that is now stored.
    async fn note(&self, name: &str, put: Option<String>) -> StoreResult<Option<String>>;

    /// All credentials, in any order. They are read whole at start and kept in memory, so there are thousands at most.
    async fn credentials(&self) -> StoreResult<Vec<StoredCredential>>;

    /// Stores a credential; replaces the one with the same id.
    async fn put_credential(&self, credential: StoredCredential) -> StoreResult<()>;

    /// Removes the credential with this id, if there is one.
    async fn remove_credential(&self, id: &str) -> StoreResult<()>;

    /// Can the store be written now? May cost a small write, so callers should cache the answer for a moment. Changes
    /// nothing that other methods show.
    async fn check(&self) -> StoreResult<()>;

    /// How many tasks are stored, in all scopes.
    async fn task_count(&self) -> StoreResult<u64>;

    /// What the owner has stored, in all scopes. Its cost must not grow with the number of its ended tasks, records or tenants, so
    /// it is counted with each write. The limits on what an owner stores depend on it
    /// ([`OwnerLimits::max_tasks`](crate::OwnerLimits::max_tasks), [`OwnerLimits::max_bytes`](crate::OwnerLimits::max_bytes)).
    async fn owner_usage(&self, owner: &str) -> StoreResult<OwnerUsage>;

    /// Stores a webhook of a task.
    async fn put_webhook(&self, scope: &Scope, task: &TaskId, new: NewWebhook) -> StoreResult<PutWebhook>;

    /// The webhooks of a task, whatever their state, sorted by the bytes of their ids. Their number is limited
    /// ([`NewWebhook::most`]). Empty if there is no such task.
    async fn webhooks(&self, scope: &Scope, task: &TaskId) -> StoreResult<Vec<StoredWebhook>>;

    /// Removes a webhook of a task if it has the revision `revision`, or with `None` whatever revision it has. Answers whether
    /// it did.
    async fn remove_webhook(
        &self,
        scope: &Scope,
        task: &TaskId,
        id: &PushConfigId,
        revision: Option<u64>,
    ) -> StoreResult<bool>;

    /// Replaces the cursor of a webhook if it has the revision `revision`; the store raises the new cursor's revision by one
    /// above that. Answers whether it did: not if the webhook was removed, replaced or moved by another process. Appends of
    /// other tasks must not wait for it, and many calls at once may share one commit.
    async fn move_webhook(
        &self,
        task: TaskKey,
        id: &PushConfigId,
        revision: u64,
        cursor: WebhookCursor,
    ) -> StoreResult<bool>;

    /// Open webhooks with a position (task key, webhook id) above `after`, sorted by it. Must not scan tasks or webhooks that
    /// are not open.
    async fn open_webhooks(
        &self,
        after: Option<(TaskKey, PushConfigId)>,
        limit: u32,
    ) -> StoreResult<Vec<OpenWebhook>>;

    /// The open webhooks of one task.
    async fn open_webhooks_of(&self, task: TaskKey) -> StoreResult<Vec<OpenWebhook>>;

    /// Open webhooks of tasks that ended before `before`, those of the oldest tasks first. A store with many webhooks should
    /// find them with one query.
    async fn overdue_webhooks(&self, before: Timestamp, limit: u32) -> StoreResult<Vec<OpenWebhook>> {
        let (mut overdue, mut after) = (Vec::new(), None);
        loop {
            let page = self.open_webhooks(after, 500).await?;
            let Some(last) = page.last() else { break };
            after = Some((last.key, last.webhook.id.clone()));
            for open in page {
                let head = self.head(&open.scope, &open.task).await?.filter(|head| head.key == open.key);
                let Some(HeadState { state, status_at, .. }) = head.map(|head| head.current) else {
                    continue;
                };
                if state.is_terminal() && status_at < before {
                    overdue.push((status_at, open));
                }
            }
        }
        overdue.sort_by_key(|(ended_at, _)| *ended_at);
        Ok(overdue.into_iter().take(limit as usize).map(|(_, open)| open).collect())
    }

    /// Moves the webhook that `failed` names as [`move_webhook`](Self::move_webhook) does, and if that moved it, stores it as
    /// failed, in the same step. It replaces a failed one with the same key and id; if there are more than `most`, the oldest
    /// go.
    async fn set_aside_webhook(
        &self,
        revision: u64,
        cursor: WebhookCursor,
        failed: FailedWebhook,
        most: u32,
    ) -> StoreResult<bool>;

    /// Failed webhooks, newest first (then by key and id, descending), after that position.
    async fn failed_webhooks(
        &self,
        after: Option<(Timestamp, TaskKey, PushConfigId)>,
        limit: u32,
    ) -> StoreResult<Vec<FailedWebhook>>;

    /// Removes a failed webhook; answers whether it was there.
    async fn remove_failed_webhook(&self, task: TaskKey, id: &PushConfigId) -> StoreResult<bool>;

    /// Folds up to `limit` tasks that ended before `before`: drops the events that the stored snapshot covers; later events
    /// stay. Answers how many tasks were folded. Must not scan tasks that have nothing to fold.
    ///
    /// A task with an open webhook is left as it is, unless it ended before `despite_webhooks`.
    async fn fold_ended(
        &self,
        before: Timestamp,
        despite_webhooks: Timestamp,
        limit: u32,
    ) -> StoreResult<u64>;

    /// Removes up to `limit` tasks that ended before `before`, oldest first, with their events, requests and webhooks.
    /// Message records and failed webhooks stay. Answers how many were removed.
    ///
    /// A task with an open webhook is left as it is: it has to be [set aside](Self::set_aside_webhook) first.
    async fn purge_ended(&self, before: Timestamp, limit: u32) -> StoreResult<u64>;

    /// Removes up to `limit` message records older than `before` whose task does not exist.
    async fn purge_records(&self, before: Timestamp, limit: u32) -> StoreResult<u64>;

    /// How many rows, keys or entries the store holds in all; `None` if it cannot tell. For the suite, which checks that nothing
    /// is left of a scope after its last task and message record: callers choose tenants, and one who invents a tenant for
    /// every message must not grow the store for ever. May be slow.
    async fn row_count(&self) -> StoreResult<Option<u64>> {
        Ok(None)
    }

    /// For `/metrics`: must not block or do I/O.
    fn measures(&self) -> Measures {
        Measures::default()
    }
}
