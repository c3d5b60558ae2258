//! The engine's only sources of time and identity.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use baton_protocol::domain::{ArtifactId, ContextId, MessageId, TaskId, Timestamp};
use uuid::{NoContext, Uuid};

/// Wall time. Tests bring their own.
pub trait Clock: Send + Sync + fmt::Debug + 'static {
    /// The time for the next event.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let millis = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
            Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
        };
        Timestamp::from_millis(millis)
    }
}

/// Fresh ids are UUIDv7: no system call, and stores keep near ids together. Those of tasks rise even within a
/// millisecond, so that a list has them in the order they came in; for that the threads share a lock.
macro_rules! fresh {
    ($($name:ident -> $id:ident: $uuid:expr),*) => {$(
        /// An id that nothing else has.
        pub fn $name() -> $id {
            let mut buffer = Uuid::encode_buffer();
            let text: &str = $uuid.hyphenated().encode_lower(&mut buffer);
            $id::parse(text).expect("a UUID is a valid id")
        }
    )*};
}

fresh!(
    fresh_task_id -> TaskId: Uuid::now_v7(),
    fresh_context_id -> ContextId: unordered(),
    fresh_message_id -> MessageId: unordered(),
    fresh_artifact_id -> ArtifactId: unordered()
);

fn unordered() -> Uuid {
    Uuid::new_v7(uuid::Timestamp::now(NoContext))
}
