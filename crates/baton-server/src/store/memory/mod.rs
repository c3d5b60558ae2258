//! A store in memory, lost when the process ends: for tests, demos and agents that may lose tasks.
//!
//! One lock protects everything. Each call is a few hash and B-tree steps (about a microsecond), so the lock is never held
//! across an await, and an append is atomic without any order of locks. Sharding would help little: the tasks of one agent
//! are listed, counted and swept together anyway. What a sweep removes is dropped after the lock is released.

mod contexts;
mod entry;
mod lists;
mod log;
mod phrases;
mod records;
mod scopes;
mod state;
mod table;
mod task_ids;
mod tasks;
mod webhooks;

use std::fmt;
use std::sync::{Mutex, MutexGuard};

use async_trait::async_trait;
use baton_protocol::domain::{MessageId, PushConfigId, Scope, TaskId, Timestamp};

use tokio::sync::Semaphore;

use self::state::State;
use super::{
    Append, Appended, FailedWebhook, Head, ListPage, ListQuery, Loaded, Measures, MessageHash, MessageRecord,
    NewRequest, NewWebhook, OpenTask, OpenWebhook, OwnerUsage, PendingRequest, PutWebhook, ReplicaId,
    Requested, Store, StoreError, StoreResult, StoredCredential, StoredEvent, StoredWebhook, TaskKey,
    WebhookCursor,
};

/// Keeps tasks as long as the process runs.
pub struct MemoryStore {
    state: Mutex<State>,
    /// Held by calls that scan many tasks.
    scans: Semaphore,
}

impl Default for MemoryStore {
    fn default() -> Self {
        MemoryStore { state: Mutex::default(), scans: Semaphore::new(1) }
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> StoreResult<MutexGuard<'_, State>> {
        // A panic under the lock may have left an append half written, so the store must not be used any more.
        self.state.lock().map_err(|_| StoreError::fatal("an earlier call panicked"))
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn append(&self, scope: &Scope, append: Append) -> StoreResult<Appended> {
        Ok(self.state()?.append(scope, append))
    }

    async fn request(&self, scope: &Scope, task: &TaskId, request: NewRequest) -> StoreResult<Requested> {
        Ok(self.state()?.request(scope, task, request))
    }

    async fn requests(&self, scope: &Scope, task: &TaskId) -> StoreResult<Vec<PendingRequest>> {
        Ok(self.state()?.entry(scope, task).map(|entry| entry.requests()).unwrap_or_default())
    }

    async fn head(&self, scope: &Scope, task: &TaskId) -> StoreResult<Option<Head>> {
        Ok(self.state()?.entry(scope, task).map(|entry| entry.head.clone()))
    }

    async fn load(&self, scope: &Scope, task: &TaskId) -> StoreResult<Option<Loaded>> {
        Ok(self.state()?.entry(scope, task).map(|entry| entry.load()))
    }

    async fn events(
        &self,
        scope: &Scope,
        task: &TaskId,
        after: u64,
        limit: u32,
    ) -> StoreResult<Vec<StoredEvent>> {
        let state = self.state()?;
        Ok(state.entry(scope, task).map(|entry| entry.events_after(after, limit)).unwrap_or_default())
    }

    async fn list(&self, scope: &Scope, query: &ListQuery) -> StoreResult<ListPage> {
        // Counting by time scans tasks under the lock: one such call at a time, so that other calls get the lock in between.
        let _permit = match query.counted && query.filter.updated_since.is_some() {
            true => self.scans.acquire().await.ok(),
            false => None,
        };
        Ok(self.state()?.list(scope, query))
    }

    async fn message(
        &self,
        scope: &Scope,
        id: &MessageId,
        hash: &MessageHash,
    ) -> StoreResult<Option<MessageRecord>> {
        Ok(self.state()?.message(scope, id, hash))
    }

    async fn put_reply(&self, scope: &Scope, record: MessageRecord) -> StoreResult<Option<MessageRecord>> {
        Ok(self.state()?.put_reply(scope, record))
    }

    async fn live_processes(&self) -> StoreResult<Vec<ReplicaId>> {
        // Nobody else has it.
        Ok(Vec::new())
    }

    async fn open_tasks(&self, after: TaskKey, limit: u32) -> StoreResult<Vec<OpenTask>> {
        Ok(self.state()?.open_tasks(after, limit))
    }

    async fn find_secret(&self, name: &str) -> StoreResult<Option<Vec<u8>>> {
        Ok(self.state()?.find_secret(name))
    }

    async fn secret(&self, name: &str, fresh: Vec<u8>) -> StoreResult<Vec<u8>> {
        Ok(self.state()?.secret(name, fresh))
    }

    async fn replace_secret(&self, name: &str, old: &[u8], new: Vec<u8>) -> StoreResult<bool> {
        Ok(self.state()?.replace_secret(name, old, new))
    }

    async fn note(&self, name: &str, put: Option<String>) -> StoreResult<Option<String>> {
        Ok(self.state()?.note(name, put))
    }

    async fn credentials(&self) -> StoreResult<Vec<StoredCredential>> {
        Ok(self.state()?.credentials())
    }

    async fn put_credential(&self, credential: StoredCredential) -> StoreResult<()> {
        self.state()?.put_credential(credential);
        Ok(())
    }

    async fn remove_credential(&self, id: &str) -> StoreResult<()> {
        self.state()?.remove_credential(id);
        Ok(())
    }

    async fn check(&self) -> StoreResult<()> {
        self.state().map(drop)
    }

    async fn task_count(&self) -> StoreResult<u64> {
        Ok(self.state()?.task_count())
    }

    async fn owner_usage(&self, owner: &str) -> StoreResult<OwnerUsage> {
        Ok(self.state()?.owner_usage(owner))
    }

    async fn row_count(&self) -> StoreResult<Option<u64>> {
        Ok(Some(self.state()?.entries()))
    }

    fn measures(&self) -> Measures {
        Measures { tasks: self.state().ok().map(|state| state.by_state()), batches: None }
    }

    async fn put_webhook(&self, scope: &Scope, task: &TaskId, new: NewWebhook) -> StoreResult<PutWebhook> {
        Ok(self.state()?.put_webhook(scope, task, new))
    }

    async fn webhooks(&self, scope: &Scope, task: &TaskId) -> StoreResult<Vec<StoredWebhook>> {
        Ok(self.state()?.webhooks(scope, task))
    }

    async fn remove_webhook(
        &self,
        scope: &Scope,
        task: &TaskId,
        id: &PushConfigId,
        revision: Option<u64>,
    ) -> StoreResult<bool> {
        Ok(self.state()?.remove_webhook(scope, task, id, revision))
    }

    async fn move_webhook(
        &self,
        task: TaskKey,
        id: &PushConfigId,
        revision: u64,
        cursor: WebhookCursor,
    ) -> StoreResult<bool> {
        Ok(self.state()?.move_webhook(task, id, revision, cursor))
    }

    async fn open_webhooks(
        &self,
        after: Option<(TaskKey, PushConfigId)>,
        limit: u32,
    ) -> StoreResult<Vec<OpenWebhook>> {
        Ok(self.state()?.open_webhooks(after, limit))
    }

    async fn open_webhooks_of(&self, task: TaskKey) -> StoreResult<Vec<OpenWebhook>> {
        Ok(self.state()?.open_webhooks_of(task))
    }

    async fn overdue_webhooks(&self, before: Timestamp, limit: u32) -> StoreResult<Vec<OpenWebhook>> {
        Ok(self.state()?.overdue_webhooks(before, limit))
    }

    async fn set_aside_webhook(
        &self,
        revision: u64,
        cursor: WebhookCursor,
        failed: FailedWebhook,
        most: u32,
    ) -> StoreResult<bool> {
        Ok(self.state()?.set_aside_webhook(revision, cursor, failed, most))
    }

    async fn failed_webhooks(
        &self,
        after: Option<(Timestamp, TaskKey, PushConfigId)>,
        limit: u32,
    ) -> StoreResult<Vec<FailedWebhook>> {
        Ok(self.state()?.failed_webhooks(after, limit))
    }

    async fn remove_failed_webhook(&self, task: TaskKey, id: &PushConfigId) -> StoreResult<bool> {
        Ok(self.state()?.remove_failed_webhook(task, id))
    }

    async fn fold_ended(
        &self,
        before: Timestamp,
        despite_webhooks: Timestamp,
        limit: u32,
    ) -> StoreResult<u64> {
        let folded = self.state()?.fold_ended(before, despite_webhooks, limit);
        Ok(folded.len() as u64)
    }

    async fn purge_ended(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        let purged = self.state()?.purge_ended(before, limit);
        Ok(purged.len() as u64)
    }

    async fn purge_records(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        let purged = self.state()?.purge_records(before, limit);
        Ok(purged.len() as u64)
    }
}
