//! Are the store's files still where they were opened?
//!
//! A folder that is deleted or replaced under a running server takes nothing from it: it goes on reading and writing files
//! that no path leads to, and whatever it acknowledges is gone when it ends. So what stands at the paths is compared with
//! what was opened: by the writer before it acknowledges a commit, and by a thread once a second, for those who ask whether
//! the store is ready. While they differ, writes are refused. Put back where they were, the files are written again.

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

/// Between two looks of the thread.
const LOOK: Duration = Duration::from_secs(1);

/// The files as they were opened.
#[derive(Debug)]
pub(super) struct OpenedFiles {
    database: PathBuf,
    files: Vec<Placed>,
    gone: AtomicBool,
}

#[cfg(unix)]
#[derive(Debug)]
struct Placed {
    path: PathBuf,
    identity: super::lock::identity::Identity,
    /// The path may be a link to it.
    linked: bool,
}

#[cfg(unix)]
impl Placed {
    fn new(path: PathBuf, file: io::Result<std::fs::Metadata>, linked: bool) -> Option<Self> {
        let identity = super::lock::identity::Identity::of(&file.ok()?);
        Some(Placed { path, identity, linked })
    }

    /// What cannot be asked for (a folder that may not be entered any more) is not taken for gone.
    fn is_gone(&self) -> bool {
        let look = if self.linked { std::fs::metadata } else { std::fs::symlink_metadata };
        match look(self.path.as_path()) {
            Ok(file) => super::lock::identity::Identity::of(&file) != self.identity,
            Err(error) => matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
        }
    }
}

/// A file that is open cannot be deleted there.
#[cfg(not(unix))]
#[derive(Debug)]
struct Placed;

#[cfg(not(unix))]
impl Placed {
    fn new(_: PathBuf, _: io::Result<std::fs::Metadata>, _: bool) -> Option<Self> {
        None
    }

    fn is_gone(&self) -> bool {
        false
    }
}

impl OpenedFiles {
    /// To be called once SQLite has its log open. `path` is what the next start would open. SQLite follows links and looks
    /// for the log beside the file itself: where that becomes a link to elsewhere, the next start finds another log.
    pub(super) fn of(path: &Path, lock: &Lock) -> Arc<Self> {
        let (real, log) = (lock.real_path(), with_suffix(lock.real_path(), "-wal"));
        let opened = || lock.database().metadata();
        let found = std::fs::symlink_metadata(&log);
        let by_link = if path == real { None } else { Placed::new(path.to_owned(), opened(), true) };
        let files = [by_link, Placed::new(real.to_owned(), opened(), false), Placed::new(log, found, false)];
        Arc::new(OpenedFiles {
            database: path.to_owned(),
            files: files.into_iter().flatten().collect(),
            gone: AtomicBool::new(false),
        })
    }

    /// Why nothing may be written, if the files were gone at the last look.
    pub(super) fn refusal(&self) -> Option<StoreError> {
        self.gone.load(Ordering::Relaxed).then(|| {
            let database = self.database.display();
            StoreError::Unavailable(format!("{database} was deleted or replaced under the running server"))
        })
    }

    /// Are the files gone?
    pub(super) fn look(&self) -> bool {
        let missing = self.files.iter().find(|file| file.is_gone());
        let gone = missing.is_some();
        if self.gone.swap(gone, Ordering::Relaxed) != gone {
            self.tell(missing);
        }
        gone
    }

    fn tell(&self, missing: Option<&Placed>) {
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
                tracing::info!(file = %self.database.display(), "the store's files are back: it takes writes")
            }
        }
    }
}

/// The thread that looks, until this is dropped.
#[derive(Debug)]
pub(super) struct FilesWatch {
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FilesWatch {
    pub(super) fn start(place: Arc<OpenedFiles>) -> StoreResult<Self> {
        let (stop, stopped) = sync_channel::<()>(0);
        let thread = thread::Builder::new()
            .name("store-place".to_owned())
            .spawn(move || {
                while stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                    place.look();
                }
            })
            .map_err(|error| {
                StoreError::Unavailable(format!("no thread to look after the files: {error}"))
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
