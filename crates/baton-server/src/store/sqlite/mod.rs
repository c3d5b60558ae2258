//! The embedded store: one SQLite file, one process.
//!
//! | file | holds |
//! |---|---|
//! | `schema` | tables and migrations |
//! | `statements` | SQL and row mapping |
//! | `session` | a connection with its settings and caches |
//! | `event_rows` | events as rows |
//! | `known_heads` | the writer's cache of open tasks' heads |
//! | `checksum` | the checksum stored with each row |
//! | `task_counts` | tasks by state in the whole file, in memory |
//! | `credentials` | the table of credentials |
//! | `tally` | tasks by state for each scope, in a table |
//! | `scopes` | the numbers of scopes, and their removal |
//! | `usage` | what each owner has stored, in a table |
//! | `webhooks` | webhooks and how far each has got |
//! | `lock` | keeps other processes out |
//! | `opened_files` | notices files deleted or replaced while they are open |
//! | `disk_space` | tells a full disk from other I/O errors |
//! | `old_log` | checks the write-ahead log that an earlier process left |
//! | `writer`, `write` | the writing thread with group commit, and the operations it runs |
//! | `reader`, `read`, `lists` | the reading threads, and the operations they run; lists have threads of their own |
//!
//! A write is answered after it is on disk: SQLite's write-ahead log is synced at every commit. Killing the process loses
//! no answered write; neither does a power cut, if the disk honours syncs.

mod checksum;
mod credentials;
mod disk_space;
mod error;
mod event_rows;
mod known_heads;
mod lists;
mod lock;
mod old_log;
mod opened_files;
mod read;
mod reader;
mod schema;
mod scopes;
mod session;
mod statements;
mod tally;
mod task_counts;
#[cfg(test)]
mod tests;
mod usage;
mod webhooks;
mod write;
mod writer;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use baton_protocol::domain::{MessageId, PushConfigId, Scope, TaskId, Timestamp};

use self::disk_space::DiskSpace;
use self::lock::Lock;
use self::opened_files::{FilesWatch, OpenedFiles};
use self::reader::Readers;
use self::scopes::Removals;
use self::session::{Checkpoint, Session};
use self::task_counts::TaskCounts;
use self::writer::Writer;
use super::{
    Append, Appended, FailedWebhook, Head, ListPage, ListQuery, Loaded, Measures, MessageHash, MessageRecord,
    NewRequest, NewWebhook, OpenTask, OpenWebhook, OwnerUsage, PendingRequest, PutWebhook, ReplicaId,
    Requested, Store, StoreError, StoreResult, StoredCredential, StoredEvent, StoredWebhook, TaskKey,
    WebhookCursor, Weighed,
};
use crate::points::{Point, reached};

/// Before 3.51.3 two connections that write and checkpoint at once could corrupt a database.
const OLDEST_SQLITE: i32 = 3_051_003;

/// How the file is used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// When a commit reaches the disk.
    pub synchronous: Synchronous,
    /// Threads that read.
    pub readers: usize,
    /// Threads that read lists, so that other reads do not wait behind them. The same number of further threads serves
    /// lists whose total must be counted by scanning an index (those with `updated_since`).
    pub list_readers: usize,
    /// Length of the write queue; further callers wait until there is space in it.
    pub write_queue: usize,
    /// Length of each read queue.
    pub read_queue: usize,
    /// Most writes in one commit.
    pub batch: usize,
    /// How long to wait for a lock that another process holds: a killed process may take a moment to exit.
    pub lock_wait: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            synchronous: Synchronous::Full,
            readers: 2,
            list_readers: 1,
            write_queue: 1024,
            read_queue: 1024,
            batch: 256,
            lock_wait: Duration::from_secs(2),
        }
    }
}

/// SQLite's `synchronous` setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Synchronous {
    /// A commit is synced before it is answered.
    Full,
    /// Commits are not synced, so a power cut loses answered writes. Exists to show that the fault tests detect this.
    Off,
}

impl Synchronous {
    fn pragma(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::Off => "OFF",
        }
    }
}

/// A task store in one file. Closing (dropping) it blocks until queued writes are done.
#[derive(Debug)]
pub struct SqliteStore {
    // Dropped in this order: the writer can checkpoint the whole write-ahead log only when no reader uses it, and the
    // lock is released last.
    _watch: FilesWatch,
    readers: Readers,
    list_readers: Readers,
    count_readers: Readers,
    writer: Writer,
    #[cfg(test)]
    files: Arc<OpenedFiles>,
    _lock: Lock,
}

impl SqliteStore {
    /// Opens the file and locks it against other processes. Creates the file and its folder if they do not exist.
    pub fn open(path: impl AsRef<Path>, options: Options) -> StoreResult<Self> {
        let path = path.as_ref();
        if rusqlite::version_number() < OLDEST_SQLITE {
            let version = rusqlite::version();
            return Err(StoreError::unavailable(format!(
                "SQLite {version} is linked; 3.51.3 is the oldest safe one"
            )));
        }
        // Taken before SQLite opens the file and dropped after SQLite closes it: see `lock`.
        let lock = Lock::take(path, options.lock_wait)?;
        reached(Point::OpenLocked);
        let (as_given, path) = (path, lock.real_path());
        let disk = DiskSpace::beside(path);
        let at_path = |error: StoreError| disk.name_file(disk.classify(error));
        old_log::warn_if_damaged(path);
        let refused = |error| {
            lock.remove_created_lock_files();
            at_path(error)
        };
        let removals = Removals::default();
        let mut session =
            Session::writer(path, options.synchronous, Arc::clone(&removals)).map_err(refused)?;
        lock::warn_if_others_may_read(as_given);
        schema::migrate(&mut session.connection).map_err(at_path)?;
        reached(Point::MigrateAfter);
        checkpoint_leftover_wal(&session).map_err(at_path)?;
        reached(Point::OpenCheckpointed);
        let tasks = TaskCounts::read(&session.connection).map_err(at_path)?;
        let start = |name, threads| {
            Readers::start(path, name, threads, options.read_queue.max(1), &removals).map_err(at_path)
        };
        let readers = start("read", options.readers)?;
        let list_readers = start("list", options.list_readers)?;
        let count_readers = start("count", options.list_readers)?;
        let files = OpenedFiles::of(as_given, &lock);
        let watch = FilesWatch::start(Arc::clone(&files))?;
        let queue = options.write_queue.max(1);
        let writer = Writer::start(session, disk, Arc::clone(&files), tasks, queue, options.batch)?;
        Ok(SqliteStore {
            _watch: watch,
            readers,
            list_readers,
            count_readers,
            writer,
            #[cfg(test)]
            files,
            _lock: lock,
        })
    }

    /// Commits since the store was opened. Fewer than the writes, since writes share commits.
    pub fn commits(&self) -> u64 {
        self.writer.commits()
    }
}

/// Checkpoints the write-ahead log of a process that did not stop cleanly. If that process's last sync failed, the log may be
/// in the system's cache only, and another sync would not write it; copying it into the database does.
fn checkpoint_leftover_wal(session: &Session) -> StoreResult<()> {
    match session.checkpoint(Checkpoint::Truncate) {
        Err(error @ StoreError::Fatal(_)) => Err(error),
        Err(error) => {
            // Most likely the disk is full; reads still work.
            tracing::warn!(%error, "could not checkpoint the write-ahead log");
            Ok(())
        }
        Ok(_) => Ok(()),
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

#[async_trait]
impl Store for SqliteStore {
    async fn append(&self, scope: &Scope, append: Append) -> StoreResult<Appended> {
        let scope = scope.clone();
        self.writer.run(move |session| write::append(session, &scope, &append)).await
    }

    async fn request(&self, scope: &Scope, task: &TaskId, request: NewRequest) -> StoreResult<Requested> {
        let (scope, task) = (scope.clone(), task.clone());
        self.writer.run(move |session| write::request(session, &scope, &task, &request)).await
    }

    async fn requests(&self, scope: &Scope, task: &TaskId) -> StoreResult<Vec<PendingRequest>> {
        let (scope, task) = (scope.clone(), task.clone());
        self.readers.run(move |session| read::requests(session, &scope, &task)).await
    }

    async fn head(&self, scope: &Scope, task: &TaskId) -> StoreResult<Option<Head>> {
        let (scope, task) = (scope.clone(), task.clone());
        self.readers.run(move |session| read::head(session, &scope, &task)).await
    }

    async fn load(&self, scope: &Scope, task: &TaskId) -> StoreResult<Option<Loaded>> {
        let (scope, task) = (scope.clone(), task.clone());
        self.readers.run(move |session| read::load(session, &scope, &task)).await
    }

    async fn load_within(&self, scope: &Scope, task: &TaskId, most: usize) -> StoreResult<Option<Weighed>> {
        let (scope, task) = (scope.clone(), task.clone());
        self.readers.run(move |session| read::load_within(session, &scope, &task, most)).await
    }

    async fn events(
        &self,
        scope: &Scope,
        task: &TaskId,
        after: u64,
        limit: u32,
    ) -> StoreResult<Vec<StoredEvent>> {
        let (scope, task) = (scope.clone(), task.clone());
        self.readers.run(move |session| read::events(session, &scope, &task, after, limit)).await
    }

    async fn list(&self, scope: &Scope, query: &ListQuery) -> StoreResult<ListPage> {
        let scans = query.counted && query.filter.updated_since.is_some();
        let readers = if scans { &self.count_readers } else { &self.list_readers };
        let found = {
            let (scope, query) = (scope.clone(), query.clone());
            readers.run(move |session| lists::list(session, &scope, &query)).await?
        };
        if let (true, Some(context)) = (found.wants_counters, query.filter.context_id.clone()) {
            let scope = scope.clone();
            let counted = self.writer.run(move |session| write::count_context(session, &scope, &context));
            if let Err(error) = counted.await {
                tracing::debug!(%error, "could not create the counters of a large context");
            }
        }
        Ok(found.page)
    }

    async fn message(
        &self,
        scope: &Scope,
        id: &MessageId,
        hash: &MessageHash,
    ) -> StoreResult<Option<MessageRecord>> {
        let (scope, id, hash) = (scope.clone(), id.clone(), *hash);
        self.readers.run(move |session| read::message(session, &scope, &id, &hash)).await
    }

    async fn put_reply(&self, scope: &Scope, record: MessageRecord) -> StoreResult<Option<MessageRecord>> {
        let scope = scope.clone();
        self.writer.run(move |session| write::put_reply(session, &scope, &record)).await
    }

    async fn live_processes(&self) -> StoreResult<Vec<ReplicaId>> {
        // A lock keeps other processes from the file.
        Ok(Vec::new())
    }

    async fn open_tasks(&self, after: TaskKey, limit: u32) -> StoreResult<Vec<OpenTask>> {
        self.readers.run(move |session| read::open_tasks(session, after, limit)).await
    }

    async fn find_secret(&self, name: &str) -> StoreResult<Option<Vec<u8>>> {
        let name = name.to_owned();
        self.readers.run(move |session| read::find_secret(session, &name)).await
    }

    async fn secret(&self, name: &str, fresh: Vec<u8>) -> StoreResult<Vec<u8>> {
        let name = name.to_owned();
        self.writer.run(move |session| write::secret(session, &name, &fresh)).await
    }

    async fn replace_secret(&self, name: &str, old: &[u8], new: Vec<u8>) -> StoreResult<bool> {
        let (name, old) = (name.to_owned(), old.to_vec());
        self.writer.run(move |session| write::replace_secret(session, &name, &old, &new)).await
    }

    async fn note(&self, name: &str, put: Option<String>) -> StoreResult<Option<String>> {
        let name = name.to_owned();
        self.writer.run(move |session| write::note(session, &name, put.as_deref())).await
    }

    async fn credentials(&self) -> StoreResult<Vec<StoredCredential>> {
        self.readers.run(credentials::all).await
    }

    async fn put_credential(&self, credential: StoredCredential) -> StoreResult<()> {
        self.writer.run(move |session| credentials::put(session, &credential)).await
    }

    async fn remove_credential(&self, id: &str) -> StoreResult<()> {
        let id = id.to_owned();
        self.writer.run(move |session| credentials::remove(session, &id)).await
    }

    async fn owner_usage(&self, owner: &str) -> StoreResult<OwnerUsage> {
        let owner = owner.to_owned();
        self.readers.run(move |session| usage::of_owner(session, &owner)).await
    }

    async fn check(&self) -> StoreResult<()> {
        self.writer.run(write::check).await
    }

    async fn task_count(&self) -> StoreResult<u64> {
        Ok(self.writer.tasks())
    }

    async fn row_count(&self) -> StoreResult<Option<u64>> {
        self.readers.run(read::row_count).await.map(Some)
    }

    fn measures(&self) -> Measures {
        self.writer.measures()
    }

    async fn put_webhook(&self, scope: &Scope, task: &TaskId, new: NewWebhook) -> StoreResult<PutWebhook> {
        let (scope, task) = (scope.clone(), task.clone());
        self.writer.run(move |session| webhooks::put(session, &scope, &task, &new)).await
    }

    async fn webhooks(&self, scope: &Scope, task: &TaskId) -> StoreResult<Vec<StoredWebhook>> {
        let (scope, task) = (scope.clone(), task.clone());
        self.readers.run(move |session| webhooks::of_task(session, &scope, &task)).await
    }

    async fn remove_webhook(
        &self,
        scope: &Scope,
        task: &TaskId,
        id: &PushConfigId,
        revision: Option<u64>,
    ) -> StoreResult<bool> {
        let (scope, task, id) = (scope.clone(), task.clone(), id.clone());
        self.writer.run(move |session| webhooks::remove(session, &scope, &task, &id, revision)).await
    }

    async fn move_webhook(
        &self,
        task: TaskKey,
        id: &PushConfigId,
        revision: u64,
        cursor: WebhookCursor,
    ) -> StoreResult<bool> {
        let id = id.clone();
        self.writer.run(move |session| webhooks::move_to(session, task, &id, revision, cursor)).await
    }

    async fn open_webhooks(
        &self,
        after: Option<(TaskKey, PushConfigId)>,
        limit: u32,
    ) -> StoreResult<Vec<OpenWebhook>> {
        self.readers.run(move |session| webhooks::open(session, after, limit)).await
    }

    async fn open_webhooks_of(&self, task: TaskKey) -> StoreResult<Vec<OpenWebhook>> {
        self.readers.run(move |session| webhooks::open_of(session, task)).await
    }

    async fn overdue_webhooks(&self, before: Timestamp, limit: u32) -> StoreResult<Vec<OpenWebhook>> {
        self.readers.run(move |session| webhooks::overdue(session, before, limit)).await
    }

    async fn set_aside_webhook(
        &self,
        revision: u64,
        cursor: WebhookCursor,
        failed: FailedWebhook,
        most: u32,
    ) -> StoreResult<bool> {
        self.writer.run(move |session| webhooks::set_aside(session, revision, cursor, &failed, most)).await
    }

    async fn failed_webhooks(
        &self,
        after: Option<(Timestamp, TaskKey, PushConfigId)>,
        limit: u32,
    ) -> StoreResult<Vec<FailedWebhook>> {
        self.readers.run(move |session| webhooks::failed(session, after, limit)).await
    }

    async fn remove_failed_webhook(&self, task: TaskKey, id: &PushConfigId) -> StoreResult<bool> {
        let id = id.clone();
        self.writer.run(move |session| webhooks::remove_failed(session, task, &id)).await
    }

    async fn fold_ended(
        &self,
        before: Timestamp,
        despite_webhooks: Timestamp,
        limit: u32,
    ) -> StoreResult<u64> {
        self.writer.run(move |session| write::fold_ended(session, before, despite_webhooks, limit)).await
    }

    async fn purge_ended(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        self.writer.run(move |session| write::purge_ended(session, before, limit)).await
    }

    async fn purge_records(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        self.writer.run(move |session| write::purge_records(session, before, limit)).await
    }
}
