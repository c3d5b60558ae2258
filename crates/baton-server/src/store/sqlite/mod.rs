//! The embedded store: one SQLite file, one process.
//!
//! | file | holds |
//! |---|---|
//! | `schema` | tables and migrations |
//! | `statements` | SQL and row mapping |
//! | `session` | a connection with its settings and its known scopes |
//! | `event_rows` | events as rows |
//! | `known_heads` | what the writer remembers of open tasks |
//! | `checksum` | a sum beside what is stored |
//! | `census` | how many tasks stand in which state |
//! | `tally` | the same for each scope, stored |
//! | `lock` | one process at a time |
//! | `place` | whether the files are still where they were opened |
//! | `room` | whether a failure is one of a full disk |
//! | `old_log` | whether the log that an earlier process left is damaged |
//! | `writer`, `write` | the writing thread with group commit, and the verbs it runs |
//! | `reader`, `read`, `lists` | the reading threads, and the verbs they run; lists have threads of their own |
//!
//! An answered write is on disk: write-ahead log, synced at every commit. A kill loses nothing that was
//! answered, and neither does a power cut on a disk that honours syncs.

mod census;
mod checksum;
mod error;
mod event_rows;
mod known_heads;
mod lists;
mod lock;
mod old_log;
mod place;
mod read;
mod reader;
mod room;
mod schema;
mod session;
mod statements;
mod tally;
#[cfg(test)]
mod tests;
mod write;
mod writer;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use baton_protocol::domain::{MessageId, Scope, TaskId, Timestamp};

use self::census::Census;
use self::lock::Lock;
use self::place::{FilesWatch, OpenedFiles};
use self::reader::Readers;
use self::room::Room;
use self::session::{Fold, Session};
use self::writer::{Ground, Writer};
use super::{
    Append, Appended, Head, ListPage, ListQuery, Loaded, Measures, MessageHash, MessageRecord, NewRequest,
    OpenTask, PendingRequest, Requested, Store, StoreError, StoreResult, StoredEvent, TaskKey, Weighed,
};
use crate::points::{Point, reached};

/// Before 3.51.3 two connections that write and checkpoint at once could corrupt a database.
const OLDEST_SQLITE: i32 = 3_051_003;

/// How the file is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How much a commit survives.
    pub synchronous: Synchronous,
    /// Threads that read.
    pub readers: usize,
    /// Threads that read lists, so that no other read waits behind one. As many again count what only walking counts:
    /// totals of lists since a time.
    pub list_readers: usize,
    /// Writes that may wait; more callers wait outside the queue.
    pub write_queue: usize,
    /// Reads that may wait.
    pub read_queue: usize,
    /// Writes that may share one commit.
    pub batch: usize,
    /// How long a lock that another process holds is waited for: one that was killed may take a moment to die.
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

/// When a commit reaches the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Synchronous {
    /// Before it is answered.
    Full,
    /// Whenever the system likes. A power cut loses answered writes: only for showing that a fault test
    /// can tell the difference.
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
    // Dropped in this order: the last writer can only fold the log when no reader holds it, and the
    // file is free for others after that.
    _watch: FilesWatch,
    readers: Readers,
    lists: Readers,
    walks: Readers,
    writer: Writer,
    #[cfg(test)]
    place: Arc<OpenedFiles>,
    _lock: Lock,
}

impl SqliteStore {
    /// Opens the file, made with its folder if it is not there, and keeps other processes out of it.
    pub fn open(path: impl AsRef<Path>, options: Options) -> StoreResult<Self> {
        let path = path.as_ref();
        if rusqlite::version_number() < OLDEST_SQLITE {
            let version = rusqlite::version();
            return Err(StoreError::Unavailable(format!(
                "SQLite {version} is linked; 3.51.3 is the oldest safe one"
            )));
        }
        // First in, last out: see `lock`.
        let lock = Lock::take(path, options.lock_wait)?;
        reached(Point::OpenLocked);
        let (as_given, path) = (path, lock.real_path());
        let room = Room::beside(path);
        let at_path = |error: StoreError| room.name_file(room.judge(error));
        old_log::look(path);
        let refused = |error| {
            lock.leave_no_file();
            at_path(error)
        };
        let mut session = Session::writer(path, options.synchronous).map_err(refused)?;
        lock::warn_if_others_may_read(as_given);
        schema::migrate(&mut session.connection).map_err(at_path)?;
        reached(Point::MigrateAfter);
        fold_what_is_left(&session).map_err(at_path)?;
        reached(Point::OpenFolded);
        let tasks = Census::take(&session.connection).map_err(at_path)?;
        let start =
            |name, threads| Readers::start(path, name, threads, options.read_queue.max(1)).map_err(at_path);
        let readers = start("read", options.readers)?;
        let lists = start("list", options.list_readers)?;
        let walks = start("walk", options.list_readers)?;
        let place = OpenedFiles::of(as_given, &lock);
        let watch = FilesWatch::start(Arc::clone(&place))?;
        #[cfg(test)]
        let kept = Arc::clone(&place);
        let ground = Ground { room, place };
        let writer = Writer::start(session, ground, tasks, options.write_queue.max(1), options.batch)?;
        Ok(SqliteStore {
            _watch: watch,
            readers,
            lists,
            walks,
            writer,
            #[cfg(test)]
            place: kept,
            _lock: lock,
        })
    }

    /// Commits since opening: with the number of writes it tells how many share one.
    pub fn commits(&self) -> u64 {
        self.writer.commits()
    }
}

/// Folds in the log of a process that did not end well. If its last sync failed, the log may be in the system's
/// cache and not on disk, and syncing it again would not help; copied into the database it is written anew.
fn fold_what_is_left(session: &Session) -> StoreResult<()> {
    match session.fold_log(Fold::Truncate) {
        Err(error @ StoreError::Fatal(_)) => Err(error),
        Err(error) => {
            // A full disk, most likely: what is there can be read all the same.
            tracing::warn!(%error, "could not fold the write-ahead log into the database");
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
        let walks = query.counted && query.filter.updated_since.is_some();
        let readers = if walks { &self.walks } else { &self.lists };
        let found = {
            let (scope, query) = (scope.clone(), query.clone());
            readers.run(move |session| lists::list(session, &scope, &query)).await?
        };
        if let (true, Some(context)) = (found.wants_counters, query.filter.context_id.clone()) {
            let scope = scope.clone();
            let counted = self.writer.run(move |session| write::count_context(session, &scope, &context));
            if let Err(error) = counted.await {
                tracing::debug!(%error, "a context of many tasks has no counters yet");
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

    async fn open_tasks(&self, after: TaskKey, limit: u32) -> StoreResult<Vec<OpenTask>> {
        self.readers.run(move |session| read::open_tasks(session, after, limit)).await
    }

    async fn secret(&self, name: &str, fresh: Vec<u8>) -> StoreResult<Vec<u8>> {
        let name = name.to_owned();
        self.writer.run(move |session| write::secret(session, &name, &fresh)).await
    }

    async fn note(&self, name: &str, put: Option<String>) -> StoreResult<Option<String>> {
        let name = name.to_owned();
        self.writer.run(move |session| write::note(session, &name, put.as_deref())).await
    }

    async fn check(&self) -> StoreResult<()> {
        self.writer.run(write::check).await
    }

    async fn task_count(&self) -> StoreResult<u64> {
        Ok(self.writer.tasks())
    }

    fn measures(&self) -> Measures {
        self.writer.measures()
    }

    async fn fold_ended(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        self.writer.run(move |session| write::fold_ended(session, before, limit)).await
    }

    async fn purge_ended(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        self.writer.run(move |session| write::purge_ended(session, before, limit)).await
    }

    async fn purge_records(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        self.writer.run(move |session| write::purge_records(session, before, limit)).await
    }
}
