//! A store that fails or is slow where a test wants it to.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use baton_protocol::domain::{MessageId, PushConfigId, Scope, TaskId, Timestamp};
use baton_server::store::{
    Append, Appended, FailedWebhook, Head, ListPage, ListQuery, Loaded, MessageHash, MessageRecord,
    NewRequest, NewWebhook, OpenTask, OpenWebhook, OwnerUsage, PendingRequest, PutWebhook, ReplicaId,
    Requested, Store, StoreError, StoreResult, StoredCredential, StoredEvent, StoredWebhook, TaskKey,
    WebhookCursor,
};
use tokio::sync::watch;

use crate::fixtures::Gate;
use crate::harness::TEST_TIMEOUT;

type Rule = Box<dyn FnMut(&str, Option<&Append>) -> Option<StoreError> + Send>;

/// Wraps another store and adds faults.
pub(crate) struct FaultyStore {
    inner: Arc<dyn Store>,
    failing: Mutex<Option<Rule>>,
    /// Appends wait here before they are passed on.
    held_appends: Mutex<Option<Gate>>,
    /// Answers of appends wait here: the write is done, but its caller has no answer yet.
    slow_appends: Mutex<Option<Gate>>,
    /// Checks wait here before they are passed on.
    slow_checks: Mutex<Option<Gate>>,
    slow_webhooks: Mutex<Option<Gate>>,
    /// Replaces the hash of message records.
    hash: Mutex<Option<MessageHash>>,
    live: Mutex<Vec<ReplicaId>>,
    appends: watch::Sender<usize>,
    refusals: watch::Sender<usize>,
    checks: AtomicUsize,
}

impl fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyStore").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl FaultyStore {
    pub(crate) fn over(inner: Arc<dyn Store>) -> Arc<Self> {
        let ((appends, _), (refusals, _)) = (watch::channel(0), watch::channel(0));
        Arc::new(FaultyStore {
            inner,
            failing: Mutex::default(),
            held_appends: Mutex::default(),
            slow_appends: Mutex::default(),
            slow_checks: Mutex::default(),
            slow_webhooks: Mutex::default(),
            hash: Mutex::default(),
            live: Mutex::default(),
            appends,
            refusals,
            checks: AtomicUsize::new(0),
        })
    }

    /// From now on calls fail if the rule returns an error. It gets the name of the call, and the append if it is one.
    pub(crate) fn fail(
        &self,
        rule: impl FnMut(&str, Option<&Append>) -> Option<StoreError> + Send + 'static,
    ) {
        *self.failing.lock().unwrap() = Some(Box::new(rule));
    }

    /// From now on all writes fail; reads still work.
    pub(crate) fn fail_writes(&self, error: &StoreError) {
        const WRITES: [&str; 7] =
            ["append", "request", "put_reply", "check", "fold_ended", "purge_ended", "purge_records"];
        let error = error.clone();
        self.fail(move |call, _| WRITES.contains(&call).then(|| error.clone()));
    }

    pub(crate) fn recover(&self) {
        *self.failing.lock().unwrap() = None;
    }

    pub(crate) fn hold_appends(&self, gate: &Gate) {
        *self.held_appends.lock().unwrap() = Some(gate.clone());
    }

    /// Messages are recorded with this hash, as by an earlier version.
    pub(crate) fn record_under(&self, hash: Option<MessageHash>) {
        *self.hash.lock().unwrap() = hash;
    }

    /// Sets the answer of `live_processes`.
    pub(crate) fn set_live_processes(&self, live: Vec<ReplicaId>) {
        *self.live.lock().unwrap() = live;
    }

    pub(crate) fn slow_appends(&self, gate: Option<&Gate>) {
        *self.slow_appends.lock().unwrap() = gate.cloned();
    }

    /// Appends done so far.
    pub(crate) fn appends(&self) -> usize {
        *self.appends.borrow()
    }

    pub(crate) async fn appended(&self, count: usize) {
        reached(&self.appends, count).await;
    }

    /// Calls that failed so far.
    pub(crate) fn refusals(&self) -> usize {
        *self.refusals.borrow()
    }

    pub(crate) async fn refused(&self, count: usize) {
        reached(&self.refusals, count).await;
    }

    pub(crate) fn slow_webhooks(&self, gate: &Gate) {
        *self.slow_webhooks.lock().unwrap() = Some(gate.clone());
    }

    pub(crate) fn slow_checks(&self, gate: Option<&Gate>) {
        *self.slow_checks.lock().unwrap() = gate.cloned();
    }

    /// Number of calls of `check`.
    pub(crate) fn checks(&self) -> usize {
        self.checks.load(Ordering::SeqCst)
    }

    fn rule(&self, call: &str, append: Option<&Append>) -> StoreResult<()> {
        // A rule may panic.
        let mut rule = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        match rule.as_mut().and_then(|rule| rule(call, append)) {
            Some(error) => {
                self.refusals.send_modify(|refused| *refused += 1);
                Err(error)
            }
            None => Ok(()),
        }
    }
}

async fn reached(counter: &watch::Sender<usize>, count: usize) {
    let mut counted = counter.subscribe();
    let done = counted.wait_for(|done| *done >= count);
    tokio::time::timeout(TEST_TIMEOUT, done).await.expect("calls go on").expect("the store is there");
}

#[async_trait]
impl Store for FaultyStore {
    async fn append(&self, scope: &Scope, mut append: Append) -> StoreResult<Appended> {
        self.rule("append", Some(&append))?;
        if let (Some(record), Some(hash)) = (&mut append.message, *self.hash.lock().unwrap()) {
            record.hash = hash;
        }
        let held = self.held_appends.lock().unwrap().clone();
        if let Some(gate) = held {
            gate.pass().await;
        }
        let done = self.inner.append(scope, append).await;
        self.appends.send_modify(|done| *done += 1);
        let gate = self.slow_appends.lock().unwrap().clone();
        if let Some(gate) = gate {
            gate.pass().await;
        }
        done
    }

    async fn request(&self, scope: &Scope, task: &TaskId, request: NewRequest) -> StoreResult<Requested> {
        self.rule("request", None)?;
        self.inner.request(scope, task, request).await
    }

    async fn live_processes(&self) -> StoreResult<Vec<ReplicaId>> {
        Ok(self.live.lock().unwrap().clone())
    }

    async fn requests(&self, scope: &Scope, task: &TaskId) -> StoreResult<Vec<PendingRequest>> {
        self.rule("requests", None)?;
        self.inner.requests(scope, task).await
    }

    async fn head(&self, scope: &Scope, task: &TaskId) -> StoreResult<Option<Head>> {
        self.rule("head", None)?;
        self.inner.head(scope, task).await
    }

    async fn load(&self, scope: &Scope, task: &TaskId) -> StoreResult<Option<Loaded>> {
        self.rule("load", None)?;
        self.inner.load(scope, task).await
    }

    async fn events(
        &self,
        scope: &Scope,
        task: &TaskId,
        after: u64,
        limit: u32,
    ) -> StoreResult<Vec<StoredEvent>> {
        self.rule("events", None)?;
        self.inner.events(scope, task, after, limit).await
    }

    async fn list(&self, scope: &Scope, query: &ListQuery) -> StoreResult<ListPage> {
        self.rule("list", None)?;
        self.inner.list(scope, query).await
    }

    async fn message(
        &self,
        scope: &Scope,
        id: &MessageId,
        hash: &MessageHash,
    ) -> StoreResult<Option<MessageRecord>> {
        self.rule("message", None)?;
        self.inner.message(scope, id, hash).await
    }

    async fn put_reply(&self, scope: &Scope, record: MessageRecord) -> StoreResult<Option<MessageRecord>> {
        self.rule("put_reply", None)?;
        self.inner.put_reply(scope, record).await
    }

    async fn open_tasks(&self, after: TaskKey, limit: u32) -> StoreResult<Vec<OpenTask>> {
        self.rule("open_tasks", None)?;
        self.inner.open_tasks(after, limit).await
    }

    async fn check(&self) -> StoreResult<()> {
        self.checks.fetch_add(1, Ordering::SeqCst);
        let gate = self.slow_checks.lock().unwrap().clone();
        if let Some(gate) = gate {
            gate.pass().await;
        }
        self.rule("check", None)?;
        self.inner.check().await
    }

    async fn find_secret(&self, name: &str) -> StoreResult<Option<Vec<u8>>> {
        self.inner.find_secret(name).await
    }

    async fn secret(&self, name: &str, fresh: Vec<u8>) -> StoreResult<Vec<u8>> {
        self.inner.secret(name, fresh).await
    }

    async fn replace_secret(&self, name: &str, old: &[u8], new: Vec<u8>) -> StoreResult<bool> {
        self.inner.replace_secret(name, old, new).await
    }

    async fn note(&self, name: &str, put: Option<String>) -> StoreResult<Option<String>> {
        self.rule("note", None)?;
        self.inner.note(name, put).await
    }

    async fn credentials(&self) -> StoreResult<Vec<StoredCredential>> {
        self.inner.credentials().await
    }

    async fn put_credential(&self, credential: StoredCredential) -> StoreResult<()> {
        self.rule("put_credential", None)?;
        self.inner.put_credential(credential).await
    }

    async fn remove_credential(&self, id: &str) -> StoreResult<()> {
        self.rule("remove_credential", None)?;
        self.inner.remove_credential(id).await
    }

    async fn task_count(&self) -> StoreResult<u64> {
        self.inner.task_count().await
    }

    async fn owner_usage(&self, owner: &str) -> StoreResult<OwnerUsage> {
        self.rule("owner_usage", None)?;
        self.inner.owner_usage(owner).await
    }

    async fn put_webhook(&self, scope: &Scope, task: &TaskId, new: NewWebhook) -> StoreResult<PutWebhook> {
        self.rule("put_webhook", None)?;
        let done = self.inner.put_webhook(scope, task, new).await;
        let gate = self.slow_webhooks.lock().unwrap().clone();
        if let Some(gate) = gate {
            gate.pass().await;
        }
        done
    }

    async fn webhooks(&self, scope: &Scope, task: &TaskId) -> StoreResult<Vec<StoredWebhook>> {
        self.rule("webhooks", None)?;
        self.inner.webhooks(scope, task).await
    }

    async fn remove_webhook(
        &self,
        scope: &Scope,
        task: &TaskId,
        id: &PushConfigId,
        revision: Option<u64>,
    ) -> StoreResult<bool> {
        self.rule("remove_webhook", None)?;
        self.inner.remove_webhook(scope, task, id, revision).await
    }

    async fn move_webhook(
        &self,
        task: TaskKey,
        id: &PushConfigId,
        revision: u64,
        cursor: WebhookCursor,
    ) -> StoreResult<bool> {
        self.rule("move_webhook", None)?;
        self.inner.move_webhook(task, id, revision, cursor).await
    }

    async fn open_webhooks(
        &self,
        after: Option<(TaskKey, PushConfigId)>,
        limit: u32,
    ) -> StoreResult<Vec<OpenWebhook>> {
        self.rule("open_webhooks", None)?;
        self.inner.open_webhooks(after, limit).await
    }

    async fn open_webhooks_of(&self, task: TaskKey) -> StoreResult<Vec<OpenWebhook>> {
        self.rule("open_webhooks_of", None)?;
        self.inner.open_webhooks_of(task).await
    }

    async fn overdue_webhooks(&self, before: Timestamp, limit: u32) -> StoreResult<Vec<OpenWebhook>> {
        self.rule("overdue_webhooks", None)?;
        self.inner.overdue_webhooks(before, limit).await
    }

    async fn set_aside_webhook(
        &self,
        revision: u64,
        cursor: WebhookCursor,
        failed: FailedWebhook,
        most: u32,
    ) -> StoreResult<bool> {
        self.rule("set_aside_webhook", None)?;
        self.inner.set_aside_webhook(revision, cursor, failed, most).await
    }

    async fn failed_webhooks(
        &self,
        after: Option<(Timestamp, TaskKey, PushConfigId)>,
        limit: u32,
    ) -> StoreResult<Vec<FailedWebhook>> {
        self.rule("failed_webhooks", None)?;
        self.inner.failed_webhooks(after, limit).await
    }

    async fn remove_failed_webhook(&self, task: TaskKey, id: &PushConfigId) -> StoreResult<bool> {
        self.rule("remove_failed_webhook", None)?;
        self.inner.remove_failed_webhook(task, id).await
    }

    async fn fold_ended(
        &self,
        before: Timestamp,
        despite_webhooks: Timestamp,
        limit: u32,
    ) -> StoreResult<u64> {
        self.rule("fold_ended", None)?;
        self.inner.fold_ended(before, despite_webhooks, limit).await
    }

    async fn purge_ended(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        self.rule("purge_ended", None)?;
        self.inner.purge_ended(before, limit).await
    }

    async fn purge_records(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        self.rule("purge_records", None)?;
        self.inner.purge_records(before, limit).await
    }
}
