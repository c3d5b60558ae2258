//! Redis' errors as store errors.

use redis::RedisError;

use crate::store::{Cause, StoreError};

impl From<RedisError> for StoreError {
    fn from(error: RedisError) -> Self {
        let kind = match error.code() {
            Some("OOM") => StoreError::Full,
            Some("WRONGTYPE") => StoreError::Damaged,
            // Lost connections, timeouts, a server that is loading, failing over or cannot write its log. After most of
            // these it is unknown whether a write was done.
            _ => StoreError::Unavailable,
        };
        kind(Cause::of(error))
    }
}
