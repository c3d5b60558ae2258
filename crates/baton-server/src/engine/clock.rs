//! The engine's only sources of time and of new ids.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use baton_protocol::domain::{ArtifactId, ContextId, MessageId, TaskId, Timestamp};
use uuid::{NoContext, Uuid};

/// The wall clock; tests use their own implementation.
pub trait Clock: Send + Sync + fmt::Debug + 'static {
    /// The current time.
    fn now(&self) -> Timestamp;
}

/// The system clock.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let millis = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
            Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
        };
        Timestamp::from_millis(millis)
    }
}

/// New ids are UUIDv7: they need no system call, and stores keep ids of the same time close together. Task ids rise even
/// within a millisecond, so that lists show tasks in the order of their creation; for that, threads share a lock.
macro_rules! fresh {
    ($($name:ident -> $id:ident: $uuid:expr),*) => {$(
        /// A new unique id.
        pub(crate) fn $name() -> $id {
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
