//! PostgreSQL's errors as store errors.

use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;

use crate::store::{Cause, StoreError};

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        // The error's own text is only "db error"; the server's message is in its source.
        let text = error.as_db_error().map_or_else(|| error.to_string(), |error| error.to_string());
        let kind = match error.code() {
            Some(&SqlState::DISK_FULL) => StoreError::Full,
            Some(&SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED) => StoreError::Damaged,
            // A violated constraint means that log and head disagree, for example on an event's number.
            Some(code) if code.code().starts_with("23") => StoreError::Damaged,
            Some(_) => StoreError::Unavailable,
            // Not from the server: either the connection is lost (and it is unknown whether the statement was done), or
            // a column has another type than expected.
            None if error.is_closed() || std::error::Error::source(&error).is_some_and(is_io) => {
                StoreError::Unavailable
            }
            None => StoreError::Damaged,
        };
        kind(Cause::new(text).with_source(error))
    }
}

impl From<PoolError> for StoreError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => error.into(),
            other => StoreError::unavailable(Cause::of(other)),
        }
    }
}

fn is_io(source: &(dyn std::error::Error + 'static)) -> bool {
    source.is::<std::io::Error>()
}
