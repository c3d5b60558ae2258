//! What SQLite's refusals mean to the engine.

use rusqlite::ffi::{self, ErrorCode};

use crate::store::StoreError;

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let text = error.to_string();
        match error.sqlite_error() {
            // A failed sync may have lost pages that the next sync reports as written; it must not be retried.
            Some(failure) if is_failed_sync(failure.extended_code) => StoreError::Fatal(text),
            Some(failure) => match failure.code {
                ErrorCode::DiskFull => StoreError::Full(text),
                // A broken constraint means that a log holds what its head denies.
                ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::ConstraintViolation
                | ErrorCode::TypeMismatch => StoreError::Damaged(text),
                _ => StoreError::Unavailable(text),
            },
            None => match error {
                rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::InvalidColumnType(..) => StoreError::Damaged(text),
                _ => StoreError::Unavailable(text),
            },
        }
    }
}

/// A commit that met an I/O error: whether its pages are on disk can't be known any more, unless it got no
/// further than writing them.
pub(super) fn of_commit(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error() {
        Some(failure)
            if failure.code == ErrorCode::SystemIoFailure && !is_failed_write(failure.extended_code) =>
        {
            StoreError::Fatal(error.to_string())
        }
        _ => error.into(),
    }
}

/// The log, or its index, could not grow. The next commit starts from the same place.
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
        let refusal = |code| rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
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
            assert_eq!(kind(&refusal(code).into()), in_statement, "{code}");
            assert_eq!(kind(&of_commit(refusal(code))), in_commit, "{code}");
        }
    }
}
