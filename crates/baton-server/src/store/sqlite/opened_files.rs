//! Notices when the store's files are deleted or replaced while they are open.
//!
//! A server whose folder is deleted or replaced can still read and write its open files, but no path leads to them, and
//! everything it acknowledges is lost when it stops. So the files at the paths are compared with the open ones: by the
//! writer before it acknowledges a commit, and by a thread once a second, so that readiness checks notice without a write.
//! While they differ, writes are refused; once the files are put back, writes are accepted again.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::lock::Lock;
use super::with_suffix;
use crate::store::{StoreError, StoreResult};

/// How often the thread checks.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The store's files, by path and identity.
#[derive(Debug)]
pub(super) struct OpenedFiles {
    database: PathBuf,
    files: Vec<OpenedFile>,
    gone: AtomicBool,
}

#[cfg(unix)]
#[derive(Debug)]
struct OpenedFile {
    path: PathBuf,
    identity: super::lock::identity::Identity,
    /// The path may be a symbolic link to the file.
    linked: bool,
}

#[cfg(unix)]
impl OpenedFile {
    fn new(path: PathBuf, file: io::Result<std::fs::Metadata>, linked: bool) -> Option<Self> {
        let identity = super::lock::identity::Identity::of(&file.ok()?);
        Some(OpenedFile { path, identity, linked })
    }

    /// A file whose metadata cannot be read (permissions of the folder changed) does not count as gone.
    fn is_gone(&self) -> bool {
        let look = if self.linked { std::fs::metadata } else { std::fs::symlink_metadata };
        match look(self.path.as_path()) {
            Ok(file) => super::lock::identity::Identity::of(&file) != self.identity,
            Err(error) => matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
        }
    }
}

/// On other systems an open file cannot be deleted.
#[cfg(not(unix))]
#[derive(Debug)]
struct OpenedFile;

#[cfg(not(unix))]
impl OpenedFile {
    fn new(_: PathBuf, _: io::Result<std::fs::Metadata>, _: bool) -> Option<Self> {
        None
    }

    fn is_gone(&self) -> bool {
        false
    }
}

impl OpenedFiles {
    /// To be called once SQLite has opened its write-ahead log. `path` is what the next start would open. SQLite follows
    /// links and looks for the log beside the real file, so if that file becomes a link, the next start finds another log.
    pub(super) fn of(path: &Path, lock: &Lock) -> Arc<Self> {
        let (real, log) = (lock.real_path(), with_suffix(lock.real_path(), "-wal"));
        let opened = || lock.database().metadata();
        let found = std::fs::symlink_metadata(&log);
        let by_link = if path == real { None } else { OpenedFile::new(path.to_owned(), opened(), true) };
        let files =
            [by_link, OpenedFile::new(real.to_owned(), opened(), false), OpenedFile::new(log, found, false)];
        Arc::new(OpenedFiles {
            database: path.to_owned(),
            files: files.into_iter().flatten().collect(),
            gone: AtomicBool::new(false),
        })
    }

    /// The error for writes, if the files were gone at the last check.
    pub(super) fn refusal(&self) -> Option<StoreError> {
        self.gone.load(Ordering::Relaxed).then(|| {
            let database = self.database.display();
            StoreError::unavailable(format!("{database} was deleted or replaced under the running server"))
        })
    }

    /// Checks now. Answers whether any file is gone.
    pub(super) fn check(&self) -> bool {
        let missing = self.files.iter().find(|file| file.is_gone());
        let gone = missing.is_some();
        if self.gone.swap(gone, Ordering::Relaxed) != gone {
            self.log_change(missing);
        }
        gone
    }

    fn log_change(&self, missing: Option<&OpenedFile>) {
        match missing {
            #[cfg(unix)]
            Some(file) => tracing::error!(
                file = %file.path.display(),
                "the store's file was deleted or replaced under the running server: writes are refused. Put it back, \
                 or start the server anew"
            ),
            #[cfg(not(unix))]
            Some(_) => {}
            None => {
                tracing::info!(file = %self.database.display(), "the store's files are back: writes are accepted")
            }
        }
    }
}

/// The thread that checks the files. Stopped when this is dropped.
#[derive(Debug)]
pub(super) struct FilesWatch {
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FilesWatch {
    pub(super) fn start(files: Arc<OpenedFiles>) -> StoreResult<Self> {
        let (stop, stopped) = sync_channel::<()>(0);
        let thread = thread::Builder::new()
            .name("store-files".to_owned())
            .spawn(move || {
                while stopped.recv_timeout(CHECK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                    files.check();
                }
            })
            .map_err(|error| {
                StoreError::unavailable(format!("could not start the thread that checks the files: {error}"))
            })?;
        Ok(FilesWatch { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for FilesWatch {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}
