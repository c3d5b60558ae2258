//! SQLite's errors as store errors.

use rusqlite::ffi::{self, ErrorCode};

use crate::store::{Cause, StoreError};

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let kind = match error.sqlite_error() {
            // A failed sync may have lost pages that the next sync reports as written; it must not be retried.
            Some(failure) if is_failed_sync(failure.extended_code) => StoreError::Fatal,
            Some(failure) => match failure.code {
                ErrorCode::DiskFull => StoreError::Full,
                // A violated constraint means that log and head disagree, for example on an event's number.
                ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::ConstraintViolation
                | ErrorCode::TypeMismatch => StoreError::Damaged,
                _ => StoreError::Unavailable,
            },
            None => match error {
                rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::InvalidColumnType(..) => StoreError::Damaged,
                _ => StoreError::Unavailable,
            },
        };
        kind(Cause::of(error))
    }
}

/// The error of a failed commit. After an I/O error it is unknown whether the pages are on disk, unless writing them
/// already failed.
pub(super) fn of_commit(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error() {
        Some(failure)
            if failure.code == ErrorCode::SystemIoFailure && !is_failed_write(failure.extended_code) =>
        {
            StoreError::fatal(Cause::of(error))
        }
        _ => error.into(),
    }
}

/// The write-ahead log or its index could not grow. The next commit writes to the same position, so nothing is lost.
fn is_failed_write(extended_code: i32) -> bool {
    matches!(extended_code, ffi::SQLITE_IOERR_WRITE | ffi::SQLITE_IOERR_SHMSIZE)
}

fn is_failed_sync(extended_code: i32) -> bool {
    matches!(extended_code, ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_apart() {
        let failure = |code| rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        let kind = |error: &StoreError| match error {
            StoreError::Full(_) => "full",
            StoreError::Unavailable(_) => "unavailable",
            StoreError::Damaged(_) => "damaged",
            StoreError::Fatal(_) => "fatal",
        };
        for (code, in_statement, in_commit) in [
            (ffi::SQLITE_FULL, "full", "full"),
            (ffi::SQLITE_BUSY, "unavailable", "unavailable"),
            (ffi::SQLITE_IOERR_WRITE, "unavailable", "unavailable"),
            (ffi::SQLITE_IOERR_SHMSIZE, "unavailable", "unavailable"),
            (ffi::SQLITE_IOERR_READ, "unavailable", "fatal"),
            (ffi::SQLITE_IOERR_FSYNC, "fatal", "fatal"),
            (ffi::SQLITE_IOERR_DIR_FSYNC, "fatal", "fatal"),
            (ffi::SQLITE_CORRUPT, "damaged", "damaged"),
            (ffi::SQLITE_NOTADB, "damaged", "damaged"),
            (ffi::SQLITE_CONSTRAINT_PRIMARYKEY, "damaged", "damaged"),
        ] {
            assert_eq!(kind(&failure(code).into()), in_statement, "{code}");
            assert_eq!(kind(&of_commit(failure(code))), in_commit, "{code}");
        }
    }
}
