//! The engine's way to its store. Every answer is seen here, so that no failure that concerns the whole server is
//! known to one request alone: a store that has failed for good, and a store without room. What is seen is counted.
//!
//! Everybody may read. Writing is the engine's, and appending to a task's log is [`super`]'s alone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baton_protocol::domain::{MessageId, Scope, TaskId, Timestamp};
use tokio::sync::watch;
use tracing::Instrument as _;

use crate::store::{
    Append, Appended, Head, ListPage, ListQuery, Loaded, Measures, MessageHash, MessageRecord, NewRequest,
    OpenTask, PendingRequest, Requested, Store, StoreError, StoreResult, StoredEvent, TaskKey, Weighed,
};
use crate::telemetry::{Telemetry, Written};

/// A store near its limit refuses one write and takes the next: it is not news every time.
const NEWS: Duration = Duration::from_secs(60);

/// A store with the verbs of [`Store`]. Its methods are its own, not the trait's, since those would cost another
/// allocation for each call.
#[derive(Clone, Debug)]
pub struct WatchedStore {
    store: Arc<dyn Store>,
    seen: Arc<Seen>,
    telemetry: Telemetry,
}

#[derive(Debug)]
struct Seen {
    fatal: watch::Sender<Option<StoreError>>,
    /// The last write found no room.
    full: AtomicBool,
    news: Mutex<News>,
}

/// What the log was told about a full store.
#[derive(Debug, Default)]
struct News {
    last: Option<Instant>,
    /// It was told that there is no room, and not yet that there is.
    open: bool,
}

#[allow(missing_docs, reason = "each is what the method of `Store` is")]
impl WatchedStore {
    pub(in crate::engine) fn new(store: Arc<dyn Store>, telemetry: Telemetry) -> Self {
        let (fatal, _) = watch::channel(None);
        let seen = Arc::new(Seen { fatal, full: false.into(), news: Mutex::default() });
        WatchedStore { store, seen, telemetry }
    }

    /// Waits until the store has failed for good, and says how.
    pub(in crate::engine) fn fatal(&self) -> impl Future<Output = StoreError> + Send + use<> {
        let seen = Arc::clone(&self.seen);
        async move {
            let mut fatal = seen.fatal.subscribe();
            let failed = fatal.wait_for(Option::is_some).await;
            failed.ok().and_then(|error| error.clone()).expect("the sender is held, and it was waited for")
        }
    }

    pub(in crate::engine) fn failure(&self) -> Option<StoreError> {
        self.seen.fatal.borrow().clone()
    }

    pub(super) async fn append(&self, scope: &Scope, append: Append) -> StoreResult<Appended> {
        let (start, written) = (Instant::now(), Written::of(&append));
        let span = tracing::debug_span!(
            target: "baton_server::store",
            "append",
            task.id = %append.task,
            events = append.events.len() as i64,
        );
        let appending = self.store.append(scope, append);
        let result = if span.is_disabled() { appending.await } else { appending.instrument(span).await };
        self.telemetry.appending(start.elapsed());
        if matches!(result, Ok(Appended::Written(_))) {
            self.telemetry.written(&written);
        }
        self.wrote(result)
    }

    pub(in crate::engine) async fn request(
        &self,
        scope: &Scope,
        task: &TaskId,
        request: NewRequest,
    ) -> StoreResult<Requested> {
        self.wrote(self.store.request(scope, task, request).await)
    }

    pub async fn requests(&self, scope: &Scope, task: &TaskId) -> StoreResult<Vec<PendingRequest>> {
        self.saw(self.store.requests(scope, task).await)
    }

    pub async fn head(&self, scope: &Scope, task: &TaskId) -> StoreResult<Option<Head>> {
        self.saw(self.store.head(scope, task).await)
    }

    pub async fn load(&self, scope: &Scope, task: &TaskId) -> StoreResult<Option<Loaded>> {
        self.saw(self.store.load(scope, task).await)
    }

    pub async fn load_within(
        &self,
        scope: &Scope,
        task: &TaskId,
        most: usize,
    ) -> StoreResult<Option<Weighed>> {
        self.saw(self.store.load_within(scope, task, most).await)
    }

    pub async fn events(
        &self,
        scope: &Scope,
        task: &TaskId,
        after: u64,
        limit: u32,
    ) -> StoreResult<Vec<StoredEvent>> {
        self.saw(self.store.events(scope, task, after, limit).await)
    }

    pub async fn list(&self, scope: &Scope, query: &ListQuery) -> StoreResult<ListPage> {
        self.saw(self.store.list(scope, query).await)
    }

    pub async fn message(
        &self,
        scope: &Scope,
        id: &MessageId,
        hash: &MessageHash,
    ) -> StoreResult<Option<MessageRecord>> {
        self.saw(self.store.message(scope, id, hash).await)
    }

    pub(in crate::engine) async fn put_reply(
        &self,
        scope: &Scope,
        record: MessageRecord,
    ) -> StoreResult<Option<MessageRecord>> {
        self.wrote(self.store.put_reply(scope, record).await)
    }

    pub async fn open_tasks(&self, after: TaskKey, limit: u32) -> StoreResult<Vec<OpenTask>> {
        self.saw(self.store.open_tasks(after, limit).await)
    }

    pub(in crate::engine) async fn note(
        &self,
        name: &str,
        put: Option<String>,
    ) -> StoreResult<Option<String>> {
        self.saw(self.store.note(name, put).await)
    }

    pub(in crate::engine) async fn check(&self) -> StoreResult<()> {
        self.wrote(self.store.check().await)
    }

    pub async fn task_count(&self) -> StoreResult<u64> {
        self.saw(self.store.task_count().await)
    }

    pub(in crate::engine) async fn fold_ended(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        self.saw(self.store.fold_ended(before, limit).await)
    }

    pub(in crate::engine) async fn purge_ended(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        self.saw(self.store.purge_ended(before, limit).await)
    }

    pub(in crate::engine) async fn purge_records(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        self.saw(self.store.purge_records(before, limit).await)
    }

    /// What the store knows about itself.
    pub fn measures(&self) -> Measures {
        self.store.measures()
    }

    fn saw<T>(&self, result: StoreResult<T>) -> StoreResult<T> {
        if let Err(error) = &result {
            self.telemetry.store_failed(error);
        }
        if let Err(error @ StoreError::Fatal(_)) = &result {
            self.seen.fatal.send_if_modified(|first| {
                let is_first = first.is_none();
                first.get_or_insert_with(|| error.clone());
                is_first
            });
        }
        result
    }

    fn wrote<T>(&self, result: StoreResult<T>) -> StoreResult<T> {
        match &result {
            Err(error @ StoreError::Full(_)) => self.no_room(error),
            Ok(_) if self.seen.full.load(Ordering::Relaxed) => self.room_again(),
            _ => {}
        }
        self.saw(result)
    }

    /// Said once, rather than with each write: the log may be on the same disk.
    fn no_room(&self, error: &StoreError) {
        self.seen.full.store(true, Ordering::Relaxed);
        let mut news = self.seen.news();
        if news.last.is_none_or(|last| last.elapsed() >= NEWS) {
            *news = News { last: Some(Instant::now()), open: true };
            tracing::error!(%error, "writes are refused until there is room; reading goes on");
        }
    }

    fn room_again(&self) {
        self.seen.full.store(false, Ordering::Relaxed);
        if std::mem::take(&mut self.seen.news().open) {
            tracing::info!("there is room again: the store takes writes");
        }
    }
}

impl Seen {
    fn news(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
