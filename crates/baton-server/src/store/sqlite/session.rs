//! One thread's connection and its caches.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use baton_protocol::domain::{Scope, TaskId, TaskState};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};

use super::known_heads::{KnownHead, KnownHeads};
use super::scopes::{Emptied, Removals, ScopeNumbers};
use super::tally::{TallyChanges, TaskContext};
use super::task_counts::CountChanges;
use super::usage::UsageChanges;
use super::{Synchronous, schema, statements};
use crate::store::{StoreError, StoreResult};

/// Capacity for prepared statements: more than there are.
const STATEMENTS_KEPT: usize = 96;

/// How long to wait for SQLite's locks. Baton has one writer, so only another program (a shell, a backup) can hold them.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Session {
    pub(super) connection: Connection,
    /// How the current transaction changes the counts in memory.
    pub(super) count_changes: CountChanges,
    /// How the current transaction changes the stored counts.
    pub(super) tally_changes: TallyChanges,
    /// How the current transaction changes what owners have stored.
    pub(super) usage_changes: UsageChanges,
    /// Includes what the current transaction has written.
    pub(super) heads: KnownHeads,
    scopes: ScopeNumbers,
    /// Scopes that the current transaction may leave empty.
    pub(super) emptied: Emptied,
    /// The current transaction replaces a secret, which may be in the write-ahead log, too.
    pub(super) empties_log: bool,
    /// Pages in the write-ahead log as of the last commit; 0 after a complete checkpoint.
    wal_pages: Arc<AtomicUsize>,
    /// The last key given to a task; `None` until it is first read. A rollback does not lower it.
    last_key: Option<i64>,
    /// The same for the last number given to a scope since the store was opened.
    last_scope: Option<i64>,
}

/// How a checkpoint copies the write-ahead log into the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Checkpoint {
    /// As far as current readers allow, without waiting for them.
    Passive,
    /// Completely; then the log file is truncated.
    Truncate,
}

impl Session {
    /// The connection that writes. Opens or creates the file, and refuses another program's.
    pub(super) fn writer(path: &Path, synchronous: Synchronous, removals: Removals) -> StoreResult<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut session = Self::open(path, flags, removals)?;
        // Replaces SQLite's automatic checkpoints, which do not report a failed sync.
        let pages = Arc::clone(&session.wal_pages);
        session.connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, in_log: i32| {
            pages.store(in_log.max(0) as usize, Ordering::Relaxed);
            Ok(())
        }))?;
        let connection = &session.connection;
        // Until the check below has passed: another program's log must not be checkpointed.
        session.skip_checkpoint_on_close();
        schema::check(connection)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
        // Must be set before the first table exists. Purged pages are reused by later tasks, so a file with retention
        // stops growing; returning pages to the system would cost a pointer map update on every allocation.
        connection.pragma_update(None, "auto_vacuum", "NONE")?;
        let mode: String =
            connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
        if mode != "wal" {
            return Err(StoreError::unavailable(format!(
                "cannot use a write-ahead log here (journal mode stays {mode}); is the file on a network drive?"
            )));
        }
        connection.pragma_update(None, "synchronous", synchronous.pragma())?;
        // On macOS fsync alone does not make the drive write its cache. No effect on other systems.
        connection.pragma_update(None, "fullfsync", synchronous == Synchronous::Full)?;
        connection.pragma_update(None, "checkpoint_fullfsync", synchronous == Synchronous::Full)?;
        connection.pragma_update(None, "cache_size", -16 * 1024)?;
        // Otherwise the log file would keep the size of the largest batch for ever.
        connection.pragma_update_and_check(None, "journal_size_limit", 64 << 20, |_| Ok(()))?;
        Ok(session)
    }

    /// A connection that only reads. The writer's connection must be open already.
    pub(super) fn reader(path: &Path, removals: Removals) -> StoreResult<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let session = Self::open(path, flags, removals)?;
        session.connection.pragma_update(None, "cache_size", -4 * 1024)?;
        Ok(session)
    }

    fn open(path: &Path, flags: OpenFlags, removals: Removals) -> StoreResult<Self> {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
        // Otherwise SQLite plans most of the prepared statements again whenever their parameters change.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        connection.pragma_update(None, "trusted_schema", false)?;
        // A memory-mapped page that cannot be read raises SIGBUS; without mapping, a failed read is an error.
        connection.pragma_update_and_check(None, "mmap_size", 0, |_| Ok(()))?;
        // SQLite's temporary data is small here, and a full /tmp must not make the store fail.
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        Ok(Session {
            connection,
            count_changes: CountChanges::default(),
            tally_changes: TallyChanges::default(),
            usage_changes: UsageChanges::default(),
            heads: KnownHeads::default(),
            scopes: ScopeNumbers::new(removals),
            emptied: Emptied::default(),
            empties_log: false,
            wal_pages: Arc::default(),
            last_key: None,
            last_scope: None,
        })
    }

    /// Pages in the write-ahead log that are not checkpointed yet.
    pub(super) fn wal_pages(&self) -> usize {
        self.wal_pages.load(Ordering::Relaxed)
    }

    /// Copies the write-ahead log into the database and syncs it. Answers whether all of it was copied.
    pub(super) fn checkpoint(&self, fold: Checkpoint) -> StoreResult<bool> {
        let pragma = match fold {
            Checkpoint::Passive => "PRAGMA wal_checkpoint(PASSIVE)",
            Checkpoint::Truncate => "PRAGMA wal_checkpoint(TRUNCATE)",
        };
        let numbers = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let (busy, in_log, folded): (i64, i64, i64) = self.connection.query_row(pragma, [], numbers)?;
        let whole = busy == 0 && in_log == folded;
        if whole {
            self.wal_pages.store(0, Ordering::Relaxed);
        }
        Ok(whole)
    }

    /// Closing leaves the files as they are. After a failed sync the system's cache may differ from the disk; the next
    /// start reads what is really on the disk.
    pub(super) fn skip_checkpoint_on_close(&self) {
        if let Err(error) = self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true) {
            tracing::warn!(%error, "closing the failed store may still checkpoint the write-ahead log");
        }
    }

    /// The scope's number, if anything is stored in it.
    pub(super) fn scope(&mut self, scope: &Scope) -> StoreResult<Option<i64>> {
        if let Some(number) = self.scopes.get(scope) {
            return Ok(Some(number));
        }
        let found: Option<i64> = self
            .connection
            .prepare_cached(statements::FIND_SCOPE)?
            .query_row(params![scope.agent, scope.tenant, scope.owner], |row| row.get(0))
            .optional()?;
        if let Some(number) = found {
            self.scopes.remember(scope, number);
        }
        Ok(found)
    }

    /// The scope's number; inserts the scope if it is new.
    pub(super) fn intern(&mut self, scope: &Scope) -> StoreResult<i64> {
        if let Some(number) = self.scope(scope)? {
            return Ok(number);
        }
        let number = self.last_scope()? + 1;
        self.last_scope = Some(number);
        let mut insert = self.connection.prepare_cached(statements::INSERT_SCOPE)?;
        insert.execute(params![number, scope.agent, scope.tenant, scope.owner])?;
        drop(insert);
        self.scopes.remember(scope, number);
        Ok(number)
    }

    /// The last number given to a scope, even if that scope has been removed. After a restart a number may come back: no
    /// connection knows it then.
    fn last_scope(&mut self) -> StoreResult<i64> {
        match self.last_scope {
            Some(number) => Ok(number),
            None => {
                let number = self.connection.query_row(statements::LAST_SCOPE, [], |row| row.get(0))?;
                self.last_scope = Some(number);
                Ok(number)
            }
        }
    }

    /// The key of the next task.
    pub(super) fn next_key(&mut self) -> StoreResult<i64> {
        let key = self.last_key()? + 1;
        self.last_key = Some(key);
        Ok(key)
    }

    /// The last key given to a task, even if that task has been purged.
    pub(super) fn last_key(&mut self) -> StoreResult<i64> {
        match self.last_key {
            Some(key) => Ok(key),
            None => {
                let key = self.connection.query_row(statements::LAST_KEY, [], |row| row.get(0))?;
                self.last_key = Some(key);
                Ok(key)
            }
        }
    }

    /// The head that an append to the task is compared with, from the cache or the database.
    pub(super) fn known_head(&self, scope: i64, task: &TaskId) -> StoreResult<Option<KnownHead>> {
        if let Some(stored) = self.heads.get(&(scope, task.clone())) {
            return Ok(Some(stored));
        }
        let mut compare = self.connection.prepare_cached(statements::COMPARE)?;
        let stored = compare.query_row(params![scope, task.as_str()], |row| {
            Ok(KnownHead {
                key: row.get(0)?,
                version: statements::unsigned(row, 1)?,
                fence: statements::unsigned(row, 2)?,
                state: row.get(3)?,
                status_at: row.get(4)?,
                work: row.get(5)?,
                requests: row.get(6)?,
                said: row.get::<_, Option<i64>>(7)?.map(i64::cast_unsigned),
                bytes: row.get(8)?,
                uncounted: row.get(9)?,
                uncounted_task: row.get(10)?,
                snapshot_bytes: row.get::<_, Option<i64>>(11)?.unwrap_or(0),
            })
        });
        Ok(stored.optional()?)
    }

    pub(super) fn begin(&mut self) -> StoreResult<()> {
        self.count_changes = CountChanges::default();
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(())
    }

    /// A task of the scope goes from one state (its stored number) to another. `from` is `None` for a new task, `to` for a
    /// removed one.
    pub(super) fn state_changed(
        &mut self,
        scope: i64,
        of: TaskContext<'_>,
        from: Option<u8>,
        to: Option<TaskState>,
    ) -> StoreResult<()> {
        self.count_changes.state_changed(from, to);
        self.tally_changes.state_changed(&self.connection, scope, of, from, to)
    }

    /// Writes what is written once per transaction. To be called before the commit.
    pub(super) fn finish(&mut self) -> StoreResult<()> {
        self.tally_changes.write(&self.connection)?;
        if !self.emptied.is_empty() {
            // Read before the scope that has it is removed.
            self.last_scope()?;
            // After the tally is written: its rows are removed, too.
            self.emptied.remove(&self.connection, &mut self.scopes)?;
        }
        self.usage_changes.write(&self.connection)
    }

    pub(super) fn commit(&mut self) -> Result<(), rusqlite::Error> {
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        self.emptied.tell(&mut self.scopes);
        Ok(())
    }

    /// Rolls back the current transaction, if SQLite has not done so already.
    pub(super) fn roll_back(&mut self) -> StoreResult<()> {
        self.count_changes = CountChanges::default();
        // The caches may hold what the transaction wrote.
        self.scopes.clear();
        self.emptied.forget();
        self.heads.clear();
        self.tally_changes.forget();
        self.usage_changes.forget();
        if !self.connection.is_autocommit() {
            self.connection.execute_batch("ROLLBACK")?;
        }
        Ok(())
    }
}
