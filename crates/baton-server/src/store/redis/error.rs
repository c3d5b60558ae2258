//! What Redis' refusals mean to the engine.

use redis::RedisError;

use crate::store::StoreError;

impl From<RedisError> for StoreError {
    fn from(error: RedisError) -> Self {
        let text = error.to_string();
        match error.code() {
            Some("OOM") => StoreError::Full(text),
            Some("WRONGTYPE") => StoreError::Damaged(text),
            // Connections, timeouts, a server that loads, fails over or cannot write its log. After most of
            // these nobody knows whether a write was done.
            _ => StoreError::Unavailable(text),
        }
    }
}
