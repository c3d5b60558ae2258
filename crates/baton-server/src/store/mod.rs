//! The store contract: where task logs live. One contract, several backends; `suite` runs on all of them.
//!
//! Stores compare and write; they never decide. The engine has already run `lifecycle` when it calls
//! [`Store::append`]; the store checks that the task is still at the version and fence the engine decided
//! on, and writes everything of one append in one atomic step, or nothing.
//!
//! Whatever a call has answered with success is durable (as far as the backend is: `memory` is not). A write
//! that was answered with an error may have been done all the same: an answer can be lost on the way. Whoever
//! must know reads again; version, fence and message record tell.

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
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
#[cfg(test)]
mod suite;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use baton_protocol::Generation;
use baton_protocol::domain::{ContextId, ListFilter, MessageId, Scope, TaskId, TaskState, Timestamp};
use bytes::Bytes;

pub use record::{EventBatch, StoredEvent, StoredSnapshot};

use crate::telemetry::histogram::Values;

/// The task's internal key: unique in the whole store, above 0, never given again after a purge, never shown to
/// peers. Hub, webhook ids and logs use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskKey(pub u64);

/// One running server process. Made at start, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReplicaId(pub u64);

/// Names a noted request within its task. Later requests have larger ones, also after earlier ones were settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// What is left to do for a task, so that a restart finds it without reading logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Work {
    /// Nothing: ended, or waiting for the other side.
    Idle,
    /// A message waits and no attempt is open.
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

/// The small row every append rewrites.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The task's internal key.
    pub key: TaskKey,
    /// The conversation it belongs to.
    pub context_id: ContextId,
    /// The generation of the client that brought it to life.
    pub generation: Generation,
    /// When that was.
    pub created_at: Timestamp,
    /// Number of the last event.
    pub version: u64,
    /// Events up to this number are gone from the log (folded into the snapshot).
    pub folded_through: u64,
    /// What every append rewrites.
    pub current: HeadState,
}

/// The part of the head an append writes as it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadState {
    /// The task's state.
    pub state: TaskState,
    /// Time of the last status: what lists are sorted by.
    pub status_at: Timestamp,
    /// What is left to do.
    pub work: Work,
    /// How many attempts were started.
    pub attempts: u32,
    /// The process that writes the task, while one does.
    pub holder: Option<ReplicaId>,
    /// Raised at every change of holder; a writer with an old one is refused.
    pub fence: u64,
}

/// What makes a task exist; goes with an append whose `expected` is 0.
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
    /// The task it is for.
    pub task: TaskId,
    /// `Some` exactly when `expected` is 0: the task must not exist in this scope.
    pub birth: Option<Birth>,
    /// The version the task must still have.
    pub expected: u64,
    /// The fence the task must still have (0 for a birth).
    pub fence: u64,
    /// Numbered `expected + 1`, `expected + 2`, … May be empty (a change of head alone, such as a claim).
    pub events: Vec<StoredEvent>,
    /// What the head becomes. Its version becomes `expected + events.len()`.
    pub head: HeadState,
    /// Replaces the kept snapshot.
    pub snapshot: Option<StoredSnapshot>,
    /// Recorded with the append; if the same message is on record already, nothing is written. That is told
    /// before any conflict, so that a repeat finds its first send whatever became of the task.
    pub message: Option<MessageRecord>,
    /// Requests this append answers; they are removed. Those that are not pending any more are passed over.
    pub settled: Vec<Settled>,
}

impl Append {
    /// Does it end its task? Then every message that waits for the task must be among `settled` with the number of its
    /// event: an acknowledged message is never lost. Otherwise the answer is [`Appended::Conflict`].
    pub fn ends_task(&self) -> bool {
        self.birth.is_none() && self.head.state.is_terminal() && !self.events.is_empty()
    }

    /// Does a request become one of its events?
    pub fn writes(&self, request: RequestId) -> bool {
        self.settled.iter().any(|settled| settled.request == request && settled.event.is_some())
    }
}

/// A request that has been turned into an event, or into nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settled {
    /// Which request.
    pub request: RequestId,
    /// The number its message got in the log; written into the message's record.
    pub event: Option<u64>,
}

/// How an append ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Appended {
    /// Done; the task has this key.
    Written(TaskKey),
    /// Version or fence moved on, or the id exists already, or does not exist, or the append ends the task and a
    /// message that waits for it is not one of its events: read again and decide again.
    Conflict,
    /// The same message came before; nothing was written.
    Duplicate(MessageRecord),
}

/// What a message is known by beside its id. Its last byte is the version of how it was made, and the rest the digest:
/// records that differ in the version alone are of the same message. (The first version has a byte of its digest there.)
pub type MessageHash = [u8; 32];

/// How many bytes of a [`MessageHash`] are its digest, and where its version is.
pub const HASH_DIGEST: usize = 31;

/// The idempotency record of one message. Outlives its task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRecord {
    /// The id its author gave it.
    pub message_id: MessageId,
    /// Of the message and its target. The same id with another digest is another message. A record that was found may
    /// have the version of the hash it was looked for with.
    pub hash: MessageHash,
    /// `None` for the reply of a message skill.
    pub task: Option<TaskId>,
    /// Number of the message's event, once it is in the log.
    pub event: Option<u64>,
    /// A message skill's reply, as [`record::write_reply`] made it.
    pub reply: Option<Bytes>,
    /// When it came.
    pub at: Timestamp,
}

/// A wish for a task that somebody else may hold.
#[derive(Debug, Clone)]
pub struct NewRequest {
    /// The event-to-be: a user message or a cancel request. Its number means nothing yet.
    pub event: StoredEvent,
    /// For messages: their idempotency record (`event` is `None` until settled). With one, the task cannot end
    /// before the message is in its log.
    pub message: Option<MessageRecord>,
    /// Refuse with [`Requested::Full`] when this many requests are pending already.
    pub most_pending: u32,
}

/// How a request was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Requested {
    /// It waits for whoever holds the task.
    Noted {
        /// Its id.
        request: RequestId,
        /// The task's head at that moment.
        head: Head,
    },
    /// The same message came before; nothing was noted.
    Duplicate(MessageRecord),
    /// As many wait as may.
    Full,
    /// The task is in a terminal state; nothing was noted.
    Ended(Head),
    /// There is no such task in this scope.
    NotFound,
}

/// A request nobody has answered yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingRequest {
    /// Its id.
    pub request: RequestId,
    /// The event-to-be.
    pub event: StoredEvent,
}

/// A task as stored: the kept snapshot and the events after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The task's id.
    pub id: TaskId,
    /// Its head.
    pub head: Head,
    /// The snapshot that is kept, if one is.
    pub snapshot: Option<StoredSnapshot>,
    /// Numbers `snapshot.version() + 1 ..= head.version` (from 1 without a snapshot).
    pub tail: Vec<StoredEvent>,
}

impl Loaded {
    /// Bytes of its records.
    pub fn bytes(&self) -> usize {
        let tail: usize = self.tail.iter().map(|event| event.record().len()).sum();
        tail + self.snapshot.as_ref().map_or(0, |snapshot| snapshot.record().len())
    }
}

/// A task, if it is not too large to be read unasked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Weighed {
    /// The task.
    Light(Loaded),
    /// So many bytes are stored of it.
    Heavy(usize),
}

/// Where a listing goes on: strictly older than this, ties broken by id, both descending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPosition {
    /// Time of the last task's status.
    pub status_at: Timestamp,
    /// Its id.
    pub id: TaskId,
}

/// One page of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListQuery {
    /// Which tasks.
    pub filter: ListFilter,
    /// Where it goes on; `None` for the first page.
    pub after: Option<ListPosition>,
    /// Nothing newer than this (the first page's bound); what is as new belongs to the page.
    pub not_after: Timestamp,
    /// Most rows.
    pub limit: u32,
    /// How much of each task is read.
    pub detail: Detail,
    /// About so many bytes of tasks are read; the page ends before the task that would be too much, but not before the
    /// first.
    pub most_bytes: usize,
    /// Is the total wanted, too?
    pub counted: bool,
}

/// How much of each task a listing reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// The head and what the status says: neither history nor artifacts, however large they are.
    Status,
    /// All of it.
    Whole,
}

/// A page of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPage {
    /// Newest status first, then id descending by its bytes.
    pub tasks: Vec<Listed>,
    /// Are there others behind the last?
    pub more: bool,
    /// How many tasks the filter matches, however new, at the moment the page was read; `Some` when it was asked for.
    pub total: Option<u64>,
}

/// A task on a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listed {
    /// Only for [`Detail::Status`].
    Status(Brief),
    /// For [`Detail::Whole`]; and for a task that a Baton stored that did not keep apart what a status says.
    Whole(Loaded),
}

impl Listed {
    /// The task's id.
    pub fn id(&self) -> &TaskId {
        match self {
            Self::Status(brief) => &brief.id,
            Self::Whole(loaded) => &loaded.id,
        }
    }

    /// Its head.
    pub fn head(&self) -> &Head {
        match self {
            Self::Status(brief) => &brief.head,
            Self::Whole(loaded) => &loaded.head,
        }
    }

    /// Bytes of records that were read for it.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Status(brief) => brief.said.as_ref().map_or(0, |said| said.record().len()),
            Self::Whole(loaded) => loaded.bytes(),
        }
    }
}

/// A task without its history and artifacts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brief {
    /// The task's id.
    pub id: TaskId,
    /// Its head.
    pub head: Head,
    /// The event with what the status says, by the rule of [`said::after`]; also once the log is folded.
    pub said: Option<StoredEvent>,
}

/// A task that a restart must look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenTask {
    /// The task's internal key.
    pub key: TaskKey,
    /// Whose it is.
    pub scope: Scope,
    /// Its id.
    pub id: TaskId,
}

/// Why a store did not do what it was told. The texts are for logs, not for peers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// No room: writes are refused, reads go on.
    #[error("the store is full: {0}")]
    Full(String),
    /// May work later.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// What is stored cannot be read.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// Durability can no longer be promised; the process must end.
    #[error("the store failed for good: {0}")]
    Fatal(String),
}

/// What a store knows about itself without asking anybody.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Measures {
    /// Tasks by state, in the order of [`TaskState::ALL`].
    pub tasks: Option<[u64; TaskState::ALL.len()]>,
    /// Writes per commit.
    pub(crate) batches: Option<Values>,
}

/// What a store answers.
pub type StoreResult<T> = Result<T, StoreError>;

/// What one page of a log may weigh. Every reader of a stream that is behind holds one, and there may be thousands.
pub const EVENTS_BYTES: usize = 32 * 1024;

/// What [`Builder::store`](crate::Builder::store) takes: a store, or an `Arc` of one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no store",
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

/// Every call but the sweeps and secrets is bound to a [`Scope`]: what another scope holds does not exist.
#[async_trait]
pub trait Store: Send + Sync + fmt::Debug + 'static {
    /// Writes one task's events, head, snapshot, message record and settled requests in one step.
    async fn append(&self, scope: &Scope, append: Append) -> StoreResult<Appended>;

    /// Notes a request for whoever holds the task. Changes no state. A duplicate is told before anything else,
    /// then that the task is not there, has ended, is full.
    async fn request(&self, scope: &Scope, task: &TaskId, request: NewRequest) -> StoreResult<Requested>;

    /// The pending requests of a task, oldest first.
    async fn requests(&self, scope: &Scope, task: &TaskId) -> StoreResult<Vec<PendingRequest>>;

    /// The task's head.
    async fn head(&self, scope: &Scope, task: &TaskId) -> StoreResult<Option<Head>>;

    /// The task as of one moment.
    async fn load(&self, scope: &Scope, task: &TaskId) -> StoreResult<Option<Loaded>>;

    /// The same, if at most `most` bytes are stored of it; otherwise how many they are. A backend that must read to know
    /// may keep nothing of what it read.
    async fn load_within(&self, scope: &Scope, task: &TaskId, most: usize) -> StoreResult<Option<Weighed>> {
        let loaded = self.load(scope, task).await?;
        Ok(loaded.map(|loaded| match loaded.bytes() {
            bytes if bytes > most => Weighed::Heavy(bytes),
            _ => Weighed::Light(loaded),
        }))
    }

    /// Up to `limit` events numbered above `after`, in order. Stops early at about
    /// [`EVENTS_BYTES`], never before the first.
    async fn events(
        &self,
        scope: &Scope,
        task: &TaskId,
        after: u64,
        limit: u32,
    ) -> StoreResult<Vec<StoredEvent>>;

    /// One page of tasks. Each was read as of one moment, and the total as of the same.
    ///
    /// Cheap reads (`head`, `load`, `events`) must not wait behind lists, and a total without a time in its filter must
    /// not cost more with more tasks.
    async fn list(&self, scope: &Scope, query: &ListQuery) -> StoreResult<ListPage>;

    /// The record of a message, by its id and the digest of its hash, whatever the version.
    async fn message(
        &self,
        scope: &Scope,
        id: &MessageId,
        hash: &MessageHash,
    ) -> StoreResult<Option<MessageRecord>>;

    /// Records a message skill's reply, unless the message is on record already: then that record is answered.
    async fn put_reply(&self, scope: &Scope, record: MessageRecord) -> StoreResult<Option<MessageRecord>>;

    /// Tasks whose work is not [`Work::Idle`] or that have pending requests, by key, above `after`.
    async fn open_tasks(&self, after: TaskKey, limit: u32) -> StoreResult<Vec<OpenTask>>;

    /// The secret of that name; `fresh` is kept when there is none yet.
    async fn secret(&self, name: &str, fresh: Vec<u8>) -> StoreResult<Vec<u8>>;

    /// A small text that the engine keeps for itself, under a short name. With `put` it is replaced. Answers what is
    /// kept then.
    async fn note(&self, name: &str, put: Option<String>) -> StoreResult<Option<String>>;

    /// Can it be written right now? Costs one small write where that is the only way to know, so whoever asks on
    /// behalf of others keeps the answer for a moment. Changes nothing that another verb shows.
    async fn check(&self) -> StoreResult<()>;

    /// How many tasks are stored, in all scopes.
    async fn task_count(&self) -> StoreResult<u64>;

    /// Drops the events that the kept snapshot tells, of up to `limit` tasks that ended before `before`. The events
    /// after the snapshot stay. Answers how many tasks were folded; looks at no others.
    async fn fold_ended(&self, before: Timestamp, limit: u32) -> StoreResult<u64>;

    /// Removes up to `limit` tasks that ended before `before`, oldest first, with their events and requests.
    /// Message records stay. Answers how many were removed.
    async fn purge_ended(&self, before: Timestamp, limit: u32) -> StoreResult<u64>;

    /// Removes up to `limit` message records older than `before` whose task is gone (or never was).
    async fn purge_records(&self, before: Timestamp, limit: u32) -> StoreResult<u64>;

    /// For `/metrics`: answered at once, from numbers at hand.
    fn measures(&self) -> Measures {
        Measures::default()
    }
}
