//! One thread's connection with what it remembers.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use baton_protocol::domain::{Scope, TaskId, TaskState};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};

use super::census::Moves;
use super::known_heads::{KnownHeads, Stored};
use super::tally::{Of, Tally};
use super::{Synchronous, schema, statements};
use crate::store::{StoreError, StoreResult};

/// Scopes remembered per connection. Owners are many; forgetting one costs an index lookup.
const SCOPES_REMEMBERED: usize = 4096;

/// Statements kept prepared; there are fewer.
const STATEMENTS_KEPT: usize = 64;

/// Only a foreign process (a shell, a backup) can make us wait: Baton has one writer.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Session {
    pub(super) connection: Connection,
    /// What the transaction under way does to the numbers of tasks.
    pub(super) moves: Moves,
    /// The same, for the counters that are stored.
    pub(super) tally: Tally,
    /// As of the transaction under way.
    pub(super) heads: KnownHeads,
    scopes: HashMap<Scope, i64>,
    /// Pages in the write-ahead log as of the last commit; 0 once all of them are in the database.
    log_pages: Arc<AtomicUsize>,
    /// The last key that was given to a task, once one was asked for. It stays when a transaction is undone.
    last_key: Option<i64>,
}

/// How far the log is folded into the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fold {
    /// As far as readers allow, waiting for nobody.
    Passive,
    /// All of it, and the file gives back its room.
    Truncate,
}

impl Session {
    /// The connection that writes. Opens or creates the file, and refuses one that is not ours.
    pub(super) fn writer(path: &Path, synchronous: Synchronous) -> StoreResult<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut session = Self::open(path, flags)?;
        // Instead of SQLite's own folding, which tells nobody when its sync fails.
        let pages = Arc::clone(&session.log_pages);
        session.connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, in_log: i32| {
            pages.store(in_log.max(0) as usize, Ordering::Relaxed);
            Ok(())
        }))?;
        let connection = &session.connection;
        // Another program's log is not ours to fold.
        session.leave_log_alone();
        schema::check(connection)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
        // Said before the first table exists. Purged pages are reused by the next tasks, so a file under
        // retention stops growing; giving pages back would cost a pointer map update on every allocation.
        connection.pragma_update(None, "auto_vacuum", "NONE")?;
        let mode: String =
            connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
        if mode != "wal" {
            return Err(StoreError::Unavailable(format!(
                "no write-ahead log here (journal mode stays {mode}); is it on a network drive?"
            )));
        }
        connection.pragma_update(None, "synchronous", synchronous.pragma())?;
        // Where fsync alone does not reach the platter (macOS); nothing elsewhere.
        connection.pragma_update(None, "fullfsync", synchronous == Synchronous::Full)?;
        connection.pragma_update(None, "checkpoint_fullfsync", synchronous == Synchronous::Full)?;
        connection.pragma_update(None, "cache_size", -16 * 1024)?;
        // One huge batch must not leave a huge log behind for ever.
        connection.pragma_update_and_check(None, "journal_size_limit", 64 << 20, |_| Ok(()))?;
        Ok(session)
    }

    /// A connection that only reads. The writer's must be open already.
    pub(super) fn reader(path: &Path) -> StoreResult<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let session = Self::open(path, flags)?;
        session.connection.pragma_update(None, "cache_size", -4 * 1024)?;
        Ok(session)
    }

    fn open(path: &Path, flags: OpenFlags) -> StoreResult<Self> {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
        // Otherwise SQLite plans most of the prepared statements anew whenever they are asked with other values.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        connection.pragma_update(None, "trusted_schema", false)?;
        // A mapped page that cannot be read is a SIGBUS; a read that fails is an error.
        connection.pragma_update_and_check(None, "mmap_size", 0, |_| Ok(()))?;
        // What SQLite would put into temporary files is small; a full /tmp is no reason to fail.
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        Ok(Session {
            connection,
            moves: Moves::default(),
            tally: Tally::default(),
            heads: KnownHeads::default(),
            scopes: HashMap::new(),
            log_pages: Arc::default(),
            last_key: None,
        })
    }

    /// Pages that wait in the log.
    pub(super) fn log_pages(&self) -> usize {
        self.log_pages.load(Ordering::Relaxed)
    }

    /// Copies the log into the database and syncs it. Answers whether all of it is there.
    pub(super) fn fold_log(&self, fold: Fold) -> StoreResult<bool> {
        let pragma = match fold {
            Fold::Passive => "PRAGMA wal_checkpoint(PASSIVE)",
            Fold::Truncate => "PRAGMA wal_checkpoint(TRUNCATE)",
        };
        let numbers = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let (busy, in_log, folded): (i64, i64, i64) = self.connection.query_row(pragma, [], numbers)?;
        let whole = busy == 0 && in_log == folded;
        if whole {
            self.log_pages.store(0, Ordering::Relaxed);
        }
        Ok(whole)
    }

    /// Closing must leave the files as they are. What the disk did not take may be gone from the system's cache
    /// as well; the next start reads what is really there.
    pub(super) fn leave_log_alone(&self) {
        if let Err(error) = self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true) {
            tracing::warn!(%error, "the write-ahead log may be folded by a store that has failed");
        }
    }

    /// The scope's number, if anything was ever stored in it.
    pub(super) fn scope(&mut self, scope: &Scope) -> StoreResult<Option<i64>> {
        if let Some(number) = self.scopes.get(scope) {
            return Ok(Some(*number));
        }
        let found: Option<i64> = self
            .connection
            .prepare_cached(statements::FIND_SCOPE)?
            .query_row(params![scope.agent, scope.tenant, scope.owner], |row| row.get(0))
            .optional()?;
        if let Some(number) = found {
            self.remember(scope, number);
        }
        Ok(found)
    }

    /// The scope's number, made if need be.
    pub(super) fn intern(&mut self, scope: &Scope) -> StoreResult<i64> {
        if let Some(number) = self.scope(scope)? {
            return Ok(number);
        }
        let mut insert = self.connection.prepare_cached(statements::INSERT_SCOPE)?;
        let number = insert.insert(params![scope.agent, scope.tenant, scope.owner])?;
        drop(insert);
        self.remember(scope, number);
        Ok(number)
    }

    /// The key of the next task.
    pub(super) fn next_key(&mut self) -> StoreResult<i64> {
        let key = self.last_key()? + 1;
        self.last_key = Some(key);
        Ok(key)
    }

    /// The last key that a task was given, purged or not.
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

    /// The head that an append to the task is compared with.
    pub(super) fn stored(&self, scope: i64, task: &TaskId) -> StoreResult<Option<Stored>> {
        if let Some(stored) = self.heads.get(&(scope, task.clone())) {
            return Ok(Some(stored));
        }
        let mut compare = self.connection.prepare_cached(statements::COMPARE)?;
        let stored = compare.query_row(params![scope, task.as_str()], |row| {
            Ok(Stored {
                key: row.get(0)?,
                version: statements::unsigned(row, 1)?,
                fence: statements::unsigned(row, 2)?,
                state: row.get(3)?,
                status_at: row.get(4)?,
                work: row.get(5)?,
                requests: row.get(6)?,
                said: row.get::<_, Option<i64>>(7)?.map(i64::cast_unsigned),
            })
        });
        Ok(stored.optional()?)
    }

    pub(super) fn begin(&mut self) -> StoreResult<()> {
        self.moves = Moves::default();
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(())
    }

    /// A task of the scope goes from one state (by its stored number) to another, is born or is removed.
    pub(super) fn moved(
        &mut self,
        scope: i64,
        of: Of<'_>,
        from: Option<u8>,
        to: Option<TaskState>,
    ) -> StoreResult<()> {
        self.moves.moved(from, to);
        self.tally.moved(&self.connection, scope, of, from, to)
    }

    /// What is written once for all writes of the transaction, before its commit.
    pub(super) fn finish(&mut self) -> StoreResult<()> {
        self.tally.write(&self.connection)
    }

    pub(super) fn commit(&mut self) -> Result<(), rusqlite::Error> {
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }

    /// Undoes the transaction under way, if SQLite has not done so by itself.
    pub(super) fn roll_back(&mut self) -> StoreResult<()> {
        self.moves = Moves::default();
        // What the transaction made and changed is gone with it.
        self.scopes.clear();
        self.heads.forget();
        self.tally.forget();
        if !self.connection.is_autocommit() {
            self.connection.execute_batch("ROLLBACK")?;
        }
        Ok(())
    }

    fn remember(&mut self, scope: &Scope, number: i64) {
        if self.scopes.len() >= SCOPES_REMEMBERED {
            self.scopes.clear();
        }
        self.scopes.insert(scope.clone(), number);
    }
}
