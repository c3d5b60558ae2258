//! The place a store is in: is there room on its file system?
//!
//! SQLite tells "disk full" for one cause alone (ENOSPC). A quota that is used up, a limit on the size of files
//! and a file that cannot be made come as plain I/O errors, like those of a disk that breaks. The engine must
//! tell these apart: one goes away when somebody clears up. So where SQLite only says that something failed, the
//! file system is asked by writing to it.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use super::lock::owner_only;
use super::with_suffix;
use crate::store::StoreError;

/// More than the log's index takes at once (32 KiB), which SQLite may need before it can do anything.
const PROBE_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct Room {
    database: PathBuf,
}

impl Room {
    pub(super) fn beside(database: &Path) -> Self {
        Room { database: database.to_owned() }
    }

    /// The same failure, called full if there is no room.
    pub(super) fn judge(&self, error: StoreError) -> StoreError {
        let StoreError::Unavailable(text) = error else { return error };
        match self.probe() {
            Err(cause) if is_full(&cause) => StoreError::Full(format!("{text} ({cause})")),
            _ => StoreError::Unavailable(text),
        }
    }

    pub(super) fn name_file(&self, error: StoreError) -> StoreError {
        let named = |text: String| format!("{}: {text}", self.database.display());
        match error {
            StoreError::Full(text) => StoreError::Full(named(text)),
            StoreError::Unavailable(text) => StoreError::Unavailable(named(text)),
            StoreError::Damaged(text) => StoreError::Damaged(named(text)),
            StoreError::Fatal(text) => StoreError::Fatal(named(text)),
        }
    }

    /// Writes where the longest of the store's files ends (a limit on the size of files shows only there), in a
    /// file of its own.
    fn probe(&self) -> io::Result<()> {
        let length = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
        let end = length(&self.database).max(length(&with_suffix(&self.database, "-wal")));
        let path = with_suffix(&self.database, ".room");
        let mut file =
            owner_only(&mut OpenOptions::new()).write(true).create(true).truncate(true).open(&path)?;
        let written = file.seek(SeekFrom::Start(end)).and_then(|_| file.write_all(&[0; PROBE_BYTES]));
        let removed = fs::remove_file(&path);
        written.and(removed)
    }
}

/// Nothing is broken; somebody has to make room.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}
