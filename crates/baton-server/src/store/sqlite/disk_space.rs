//! Tells a full file system from other I/O errors.
//!
//! SQLite reports "disk full" for one cause only (ENOSPC). An exhausted quota, a limit on the size of files and a file
//! that cannot be created are reported as plain I/O errors, like those of a broken disk. The engine must tell these
//! apart, since a full disk recovers once space is freed. So when SQLite reports a plain failure, a probe file is written
//! to find out.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use super::lock::owner_only;
use super::with_suffix;
use crate::store::{Cause, StoreError};

/// More than the step by which the write-ahead log's index grows (32 KiB), which SQLite may need for any write.
const PROBE_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct DiskSpace {
    database: PathBuf,
}

impl DiskSpace {
    pub(super) fn beside(database: &Path) -> Self {
        DiskSpace { database: database.to_owned() }
    }

    /// Turns `Unavailable` into `Full` if the file system is full.
    pub(super) fn classify(&self, error: StoreError) -> StoreError {
        let StoreError::Unavailable(cause) = error else { return error };
        match self.probe() {
            Err(refused) if is_full(&refused) => {
                let text = format!("{cause} ({refused})");
                StoreError::full(cause.with_text(text))
            }
            _ => StoreError::unavailable(cause),
        }
    }

    pub(super) fn name_file(&self, error: StoreError) -> StoreError {
        let named = |cause: Cause| {
            let text = format!("{}: {cause}", self.database.display());
            cause.with_text(text)
        };
        match error {
            StoreError::Full(cause) => StoreError::full(named(cause)),
            StoreError::Unavailable(cause) => StoreError::unavailable(named(cause)),
            StoreError::Damaged(cause) => StoreError::damaged(named(cause)),
            StoreError::Fatal(cause) => StoreError::fatal(named(cause)),
        }
    }

    /// Writes to a file of its own, at the offset where the longest of the store's files ends: a limit on the size of
    /// files only applies there.
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

/// The error goes away once space is freed or a limit is raised.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}
