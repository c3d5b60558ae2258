//! What can be set about the engine. Every bound is here, with its default.

use std::time::Duration;

use baton_protocol::domain::JsonText;

use super::Caps;

/// The bounds of the engine.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Turns that may run at once.
    pub max_running: usize,
    /// Tasks that may wait for a free place; beyond it, sends are refused as resource exhausted.
    pub max_queued: usize,
    /// Messages that may wait for a busy task.
    pub max_pending_messages: u32,
    /// How long a blocking send waits before it answers with the task as it is.
    pub send_wait: Duration,
    /// How long a canceled or stopped agent has to end by itself.
    pub cancel_grace: Duration,
    /// Longest a turn may take.
    pub turn_deadline: Duration,
    /// Longest a turn may go without saying anything. Paused while the turn waits for an answer.
    pub turn_idle: Duration,
    /// A turn whose events cannot be stored tries again as long as it has time, and at least this long.
    pub store_patience: Duration,
    /// How long an agent may sit and wait for an answer; afterwards the answer starts a new turn.
    pub answer_wait: Duration,
    /// Text that streams in faster than this is merged into one event.
    pub text_merge: Duration,
    /// Largest single event; longer text is split, anything else is an agent error.
    pub max_event_bytes: usize,
    /// Most parts in one message, or in one piece of an artifact.
    pub max_parts: usize,
    /// Most bytes of metadata in one message or artifact, that of its parts included.
    pub max_metadata_bytes: usize,
    /// Most members of one object in metadata and data.
    pub max_object_keys: usize,
    /// Arrays and objects open at once in metadata and data; more than [`JsonText::MAX_DEPTH`] are never taken.
    pub max_json_depth: usize,
    /// Most artifacts of one task; an agent that makes more has failed it.
    pub max_artifacts: usize,
    /// Most bytes in the artifacts of one task, with the same end.
    pub max_artifact_bytes: u64,
    /// Most messages in a task's history. A client's message is refused when there are so many, those that wait for the
    /// task included; one that was acknowledged is always taken. An agent that says more has failed the task, but one
    /// message right after a client's always has room: the answer to it.
    pub max_history: usize,
    /// Most referenced tasks handed to an agent.
    pub max_references: usize,
    /// During a turn a snapshot is kept every so many events, or bytes of events; of a longer task only where as much
    /// is new as the task has.
    pub snapshot_events: u64,
    /// See `snapshot_events`.
    pub snapshot_bytes: usize,
    /// How long what is stored stays.
    pub retention: Retention,
}

/// How long tasks, their logs and message records are kept.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Retention {
    /// Ended tasks are removed after this time.
    pub ended: Duration,
    /// The log of an ended task is folded into its snapshot after this time. A large task whose log is hardly longer
    /// than a snapshot would be has none, and keeps its log.
    pub fold: Duration,
    /// Most tasks kept; beyond it the oldest ended ones go first…
    pub max_tasks: u64,
    /// …if they ended at least this long ago.
    pub min_age: Duration,
    /// Message records are kept at least this long, and as long as their task. Longer than `ended`, so that a sweep
    /// does not walk past the records of living tasks.
    pub records: Duration,
    /// How often the sweeper looks.
    pub every: Duration,
}

impl Options {
    /// How much may go on at once on the whole server.
    pub(crate) fn caps(&self) -> Caps {
        Caps { max_running: self.max_running, max_queued: self.max_queued }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            max_running: 1024,
            max_queued: 10_000,
            max_pending_messages: 16,
            send_wait: Duration::from_secs(120),
            cancel_grace: Duration::from_secs(5),
            turn_deadline: Duration::from_secs(60 * 60),
            turn_idle: Duration::from_secs(10 * 60),
            answer_wait: Duration::from_secs(10 * 60),
            store_patience: Duration::from_secs(60),
            text_merge: Duration::from_millis(25),
            max_event_bytes: 1024 * 1024,
            max_parts: 10_000,
            max_metadata_bytes: 1024 * 1024,
            max_object_keys: 1000,
            max_json_depth: JsonText::MAX_DEPTH,
            max_artifacts: 100_000,
            max_artifact_bytes: 1024 * 1024 * 1024,
            max_history: 10_000,
            max_references: 16,
            snapshot_events: 64,
            snapshot_bytes: 64 * 1024,
            retention: Retention::default(),
        }
    }
}

impl Default for Retention {
    fn default() -> Self {
        const HOUR: u64 = 60 * 60;
        Retention {
            ended: Duration::from_secs(30 * 24 * HOUR),
            fold: Duration::from_secs(24 * HOUR),
            max_tasks: 1_000_000,
            min_age: Duration::from_secs(HOUR),
            records: Duration::from_secs(37 * 24 * HOUR),
            every: Duration::from_secs(60),
        }
    }
}
