//! What PostgreSQL's refusals mean to the engine.

use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;

use crate::store::StoreError;

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        // The error's own text says only "db error"; the server's words are in its source.
        let text = error.as_db_error().map_or_else(|| error.to_string(), |refusal| refusal.to_string());
        let Some(code) = error.code() else {
            // Not from the server: either the connection is gone (and nobody knows whether the statement
            // was done), or a column is not of the type it should be.
            return if error.is_closed() || std::error::Error::source(&error).is_some_and(is_io) {
                StoreError::Unavailable(text)
            } else {
                StoreError::Damaged(text)
            };
        };
        match code {
            &SqlState::DISK_FULL => StoreError::Full(text),
            &SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED => StoreError::Damaged(text),
            // A broken constraint means that a log holds what its head denies.
            code if code.code().starts_with("23") => StoreError::Damaged(text),
            _ => StoreError::Unavailable(text),
        }
    }
}

impl From<PoolError> for StoreError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => error.into(),
            other => StoreError::Unavailable(other.to_string()),
        }
    }
}

fn is_io(source: &(dyn std::error::Error + 'static)) -> bool {
    source.is::<std::io::Error>()
}
