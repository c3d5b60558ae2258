//! A store that is watched: how long appends take, what they did, which calls failed. It changes nothing else.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use baton_protocol::domain::{ListFilter, MessageId, Scope, TaskId, Timestamp};
use tracing::Instrument as _;

use super::{
    Append, Appended, Head, ListQuery, Loaded, Measures, MessageRecord, NewRequest, OpenTask, PendingRequest,
    Requested, Store, StoreResult, StoredEvent, TaskKey,
};
use crate::telemetry::{Telemetry, Written};

#[derive(Debug)]
pub(crate) struct Measured {
    inner: Arc<dyn Store>,
    telemetry: Telemetry,
}

impl Measured {
    pub(crate) fn over(inner: Arc<dyn Store>, telemetry: &Telemetry) -> Arc<dyn Store> {
        Arc::new(Measured { inner, telemetry: telemetry.clone() })
    }

    fn seen<T>(&self, result: StoreResult<T>) -> StoreResult<T> {
        if let Err(error) = &result {
            self.telemetry.store_failed(error);
        }
        result
    }
}

#[async_trait]
impl Store for Measured {
    async fn append(&self, scope: &Scope, append: Append) -> StoreResult<Appended> {
        let (start, written) = (Instant::now(), Written::of(&append));
        let span =
            tracing::debug_span!("append", task.id = %append.task, events = append.events.len() as i64);
        let result = self.inner.append(scope, append).instrument(span).await;
        self.telemetry.appending(start.elapsed());
        if matches!(result, Ok(Appended::Written(_))) {
            self.telemetry.written(&written);
        }
        self.seen(result)
    }

    async fn request(&self, scope: &Scope, task: &TaskId, request: NewRequest) -> StoreResult<Requested> {
        self.seen(self.inner.request(scope, task, request).await)
    }

    async fn requests(&self, scope: &Scope, task: &TaskId) -> StoreResult<Vec<PendingRequest>> {
        self.seen(self.inner.requests(scope, task).await)
    }

    async fn head(&self, scope: &Scope, task: &TaskId) -> StoreResult<Option<Head>> {
        self.seen(self.inner.head(scope, task).await)
    }

    async fn load(&self, scope: &Scope, task: &TaskId) -> StoreResult<Option<Loaded>> {
        self.seen(self.inner.load(scope, task).await)
    }

    async fn events(
        &self,
        scope: &Scope,
        task: &TaskId,
        after: u64,
        limit: u32,
    ) -> StoreResult<Vec<StoredEvent>> {
        self.seen(self.inner.events(scope, task, after, limit).await)
    }

    async fn list(&self, scope: &Scope, query: &ListQuery) -> StoreResult<Vec<Loaded>> {
        self.seen(self.inner.list(scope, query).await)
    }

    async fn count(&self, scope: &Scope, filter: &ListFilter, not_after: Timestamp) -> StoreResult<u64> {
        self.seen(self.inner.count(scope, filter, not_after).await)
    }

    async fn message(
        &self,
        scope: &Scope,
        id: &MessageId,
        hash: &[u8; 32],
    ) -> StoreResult<Option<MessageRecord>> {
        self.seen(self.inner.message(scope, id, hash).await)
    }

    async fn put_reply(&self, scope: &Scope, record: MessageRecord) -> StoreResult<Option<MessageRecord>> {
        self.seen(self.inner.put_reply(scope, record).await)
    }

    async fn open_tasks(&self, after: TaskKey, limit: u32) -> StoreResult<Vec<OpenTask>> {
        self.seen(self.inner.open_tasks(after, limit).await)
    }

    async fn secret(&self, name: &str, fresh: Vec<u8>) -> StoreResult<Vec<u8>> {
        self.seen(self.inner.secret(name, fresh).await)
    }

    async fn task_count(&self) -> StoreResult<u64> {
        self.seen(self.inner.task_count().await)
    }

    async fn fold_ended(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        self.seen(self.inner.fold_ended(before, limit).await)
    }

    async fn purge_ended(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        self.seen(self.inner.purge_ended(before, limit).await)
    }

    async fn purge_records(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        self.seen(self.inner.purge_records(before, limit).await)
    }

    fn measures(&self) -> Measures {
        self.inner.measures()
    }
}
