//! The engine's access to its store. It checks every result for failures that concern the whole server, not only the one
//! request: a store that has failed for good, and a full store. It also counts errors.
//!
//! Methods that read are visible in the crate, methods that write in the engine, and `append` in [`super`] only.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baton_protocol::domain::{MessageId, PushConfigId, Scope, TaskId, Timestamp};
use tokio::sync::watch;
use tracing::Instrument as _;

use crate::store::{
    Append, Appended, FailedWebhook, Head, ListPage, ListQuery, Loaded, Measures, MessageHash, MessageRecord,
    NewRequest, NewWebhook, OpenTask, OpenWebhook, OwnerUsage, PendingRequest, PutWebhook, ReplicaId,
    Requested, Store, StoreError, StoreResult, StoredEvent, StoredWebhook, TaskKey, WebhookCursor, Weighed,
};
use crate::telemetry::{Telemetry, Written};

/// How often a full store is logged: near its limit, a store may refuse one write and take the next.
const FULL_LOG_PAUSE: Duration = Duration::from_secs(60);

/// Wraps a store and has the methods of [`Store`]. It does not implement the trait, because that would cost another
/// allocation for each call.
#[derive(Clone, Debug)]
pub(crate) struct WatchedStore {
    store: Arc<dyn Store>,
    status: Arc<StoreStatus>,
    telemetry: Telemetry,
}

#[derive(Debug)]
struct StoreStatus {
    fatal: watch::Sender<Option<StoreError>>,
    /// The last write found no room.
    full: AtomicBool,
    full_logged: Mutex<FullLogged>,
    written_bytes: AtomicU64,
}

/// What has been logged about a full store.
#[derive(Debug, Default)]
struct FullLogged {
    last: Option<Instant>,
    /// It was logged that the store is full, and not yet that it has space again.
    open: bool,
}

#[allow(missing_docs, reason = "each method does what the method of `Store` does")]
impl WatchedStore {
    pub(crate) fn new(store: Arc<dyn Store>, telemetry: Telemetry) -> Self {
        let (fatal, _) = watch::channel(None);
        let status = Arc::new(StoreStatus {
            fatal,
            full: false.into(),
            full_logged: Mutex::default(),
            written_bytes: 0.into(),
        });
        WatchedStore { store, status, telemetry }
    }

    /// Waits until the store has failed for good; returns the error.
    pub(in crate::engine) fn fatal(&self) -> impl Future<Output = StoreError> + Send + use<> {
        let status = Arc::clone(&self.status);
        async move {
            let mut fatal = status.fatal.subscribe();
            let failed = fatal.wait_for(Option::is_some).await;
            failed.ok().and_then(|error| error.clone()).expect("the sender is held, and it was waited for")
        }
    }

    pub(in crate::engine) fn failure(&self) -> Option<StoreError> {
        self.status.fatal.borrow().clone()
    }

    pub(super) async fn append(&self, scope: &Scope, append: Append) -> StoreResult<Appended> {
        let (start, written) = (Instant::now(), Written::of(&append));
        let bytes = append.record_bytes() + counted_bytes(append.message.as_ref());
        let span = tracing::debug_span!(
            target: "baton_server::store",
            "append",
            task.id = %append.task,
            events = append.events.len() as i64,
        );
        let result = self.store.append(scope, append).instrument(span).await;
        self.telemetry.appending(start.elapsed());
        self.add_written(bytes);
        if matches!(result, Ok(Appended::Written(_))) {
            self.telemetry.written(&written);
        }
        self.checked_write(result)
    }

    pub(in crate::engine) async fn request(
        &self,
        scope: &Scope,
        task: &TaskId,
        request: NewRequest,
    ) -> StoreResult<Requested> {
        let bytes = request.event.record().len() as u64 + counted_bytes(request.message.as_ref());
        let result = self.store.request(scope, task, request).await;
        self.add_written(bytes);
        self.checked_write(result)
    }

    pub(in crate::engine) async fn live_processes(&self) -> StoreResult<Vec<ReplicaId>> {
        self.checked(self.store.live_processes().await)
    }

    pub(crate) async fn requests(&self, scope: &Scope, task: &TaskId) -> StoreResult<Vec<PendingRequest>> {
        self.checked(self.store.requests(scope, task).await)
    }

    pub(crate) async fn head(&self, scope: &Scope, task: &TaskId) -> StoreResult<Option<Head>> {
        self.checked(self.store.head(scope, task).await)
    }

    pub(crate) async fn load(&self, scope: &Scope, task: &TaskId) -> StoreResult<Option<Loaded>> {
        self.checked(self.store.load(scope, task).await)
    }

    pub(crate) async fn load_within(
        &self,
        scope: &Scope,
        task: &TaskId,
        most: usize,
    ) -> StoreResult<Option<Weighed>> {
        self.checked(self.store.load_within(scope, task, most).await)
    }

    pub(crate) async fn events(
        &self,
        scope: &Scope,
        task: &TaskId,
        after: u64,
        limit: u32,
    ) -> StoreResult<Vec<StoredEvent>> {
        self.checked(self.store.events(scope, task, after, limit).await)
    }

    pub(crate) async fn list(&self, scope: &Scope, query: &ListQuery) -> StoreResult<ListPage> {
        self.checked(self.store.list(scope, query).await)
    }

    pub(crate) async fn message(
        &self,
        scope: &Scope,
        id: &MessageId,
        hash: &MessageHash,
    ) -> StoreResult<Option<MessageRecord>> {
        self.checked(self.store.message(scope, id, hash).await)
    }

    pub(in crate::engine) async fn put_reply(
        &self,
        scope: &Scope,
        record: MessageRecord,
    ) -> StoreResult<Option<MessageRecord>> {
        let bytes = record.counted_bytes();
        let result = self.store.put_reply(scope, record).await;
        self.add_written(bytes);
        self.checked_write(result)
    }

    pub(crate) async fn open_tasks(&self, after: TaskKey, limit: u32) -> StoreResult<Vec<OpenTask>> {
        self.checked(self.store.open_tasks(after, limit).await)
    }

    pub(in crate::engine) async fn note(
        &self,
        name: &str,
        put: Option<String>,
    ) -> StoreResult<Option<String>> {
        self.checked(self.store.note(name, put).await)
    }

    pub(in crate::engine) async fn check(&self) -> StoreResult<()> {
        self.checked_write(self.store.check().await)
    }

    pub(crate) async fn task_count(&self) -> StoreResult<u64> {
        self.checked(self.store.task_count().await)
    }

    pub(in crate::engine) async fn owner_usage(&self, owner: &str) -> StoreResult<OwnerUsage> {
        self.checked(self.store.owner_usage(owner).await)
    }

    /// About how many bytes this process has written, for all owners. A write is counted after it is done.
    pub(in crate::engine) fn written_bytes(&self) -> u64 {
        self.status.written_bytes.load(Ordering::Relaxed)
    }

    pub(in crate::engine) async fn fold_ended(
        &self,
        before: Timestamp,
        despite_webhooks: Timestamp,
        limit: u32,
    ) -> StoreResult<u64> {
        self.checked(self.store.fold_ended(before, despite_webhooks, limit).await)
    }

    pub(in crate::engine) async fn purge_ended(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        self.checked(self.store.purge_ended(before, limit).await)
    }

    pub(crate) async fn put_webhook(
        &self,
        scope: &Scope,
        task: &TaskId,
        new: NewWebhook,
    ) -> StoreResult<PutWebhook> {
        let bytes = new.record.len() as u64;
        let result = self.store.put_webhook(scope, task, new).await;
        self.add_written(bytes);
        self.checked_write(result)
    }

    pub(crate) async fn webhooks(&self, scope: &Scope, task: &TaskId) -> StoreResult<Vec<StoredWebhook>> {
        self.checked(self.store.webhooks(scope, task).await)
    }

    pub(crate) async fn remove_webhook(
        &self,
        scope: &Scope,
        task: &TaskId,
        id: &PushConfigId,
        revision: Option<u64>,
    ) -> StoreResult<bool> {
        self.checked(self.store.remove_webhook(scope, task, id, revision).await)
    }

    pub(crate) async fn move_webhook(
        &self,
        task: TaskKey,
        id: &PushConfigId,
        revision: u64,
        cursor: WebhookCursor,
    ) -> StoreResult<bool> {
        self.checked_write(self.store.move_webhook(task, id, revision, cursor).await)
    }

    pub(crate) async fn open_webhooks(
        &self,
        after: Option<(TaskKey, PushConfigId)>,
        limit: u32,
    ) -> StoreResult<Vec<OpenWebhook>> {
        self.checked(self.store.open_webhooks(after, limit).await)
    }

    pub(crate) async fn open_webhooks_of(&self, task: TaskKey) -> StoreResult<Vec<OpenWebhook>> {
        self.checked(self.store.open_webhooks_of(task).await)
    }

    pub(crate) async fn overdue_webhooks(
        &self,
        before: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<OpenWebhook>> {
        self.checked(self.store.overdue_webhooks(before, limit).await)
    }

    pub(crate) async fn set_aside_webhook(
        &self,
        revision: u64,
        cursor: WebhookCursor,
        failed: FailedWebhook,
        most: u32,
    ) -> StoreResult<bool> {
        self.checked_write(self.store.set_aside_webhook(revision, cursor, failed, most).await)
    }

    pub(crate) async fn failed_webhooks(
        &self,
        after: Option<(Timestamp, TaskKey, PushConfigId)>,
        limit: u32,
    ) -> StoreResult<Vec<FailedWebhook>> {
        self.checked(self.store.failed_webhooks(after, limit).await)
    }

    pub(crate) async fn remove_failed_webhook(&self, task: TaskKey, id: &PushConfigId) -> StoreResult<bool> {
        self.checked_write(self.store.remove_failed_webhook(task, id).await)
    }

    pub(in crate::engine) async fn purge_records(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        self.checked(self.store.purge_records(before, limit).await)
    }

    /// The store's own metrics.
    pub(crate) fn measures(&self) -> Measures {
        self.store.measures()
    }

    /// Also counts a write that failed: it may have been done.
    fn add_written(&self, bytes: u64) {
        self.status.written_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn checked<T>(&self, result: StoreResult<T>) -> StoreResult<T> {
        if let Err(error) = &result {
            self.telemetry.store_failed(error);
        }
        if let Err(error @ StoreError::Fatal(_)) = &result {
            self.status.fatal.send_if_modified(|first| {
                let is_first = first.is_none();
                first.get_or_insert_with(|| error.clone());
                is_first
            });
        }
        result
    }

    fn checked_write<T>(&self, result: StoreResult<T>) -> StoreResult<T> {
        match &result {
            Err(error @ StoreError::Full(_)) => self.mark_full(error),
            Ok(_) if self.status.full.load(Ordering::Relaxed) => self.mark_writable(),
            _ => {}
        }
        self.checked(result)
    }

    /// Logged once, and not with each write: the log file may be on the same disk.
    fn mark_full(&self, error: &StoreError) {
        self.status.full.store(true, Ordering::Relaxed);
        let mut full_logged = self.status.full_logged();
        if full_logged.last.is_none_or(|last| last.elapsed() >= FULL_LOG_PAUSE) {
            *full_logged = FullLogged { last: Some(Instant::now()), open: true };
            tracing::error!(%error, "writes are refused until there is room; reading goes on");
        }
    }

    fn mark_writable(&self) {
        self.status.full.store(false, Ordering::Relaxed);
        if std::mem::take(&mut self.status.full_logged().open) {
            tracing::info!("there is room again: the store takes writes");
        }
    }
}

fn counted_bytes(record: Option<&MessageRecord>) -> u64 {
    record.map_or(0, MessageRecord::counted_bytes)
}

impl StoreStatus {
    fn full_logged(&self) -> MutexGuard<'_, FullLogged> {
        self.full_logged.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
