//! The engine's options: all its limits, with their defaults.

use std::time::Duration;

use baton_protocol::domain::JsonText;

use super::Caps;
use crate::token_buckets::Rate;

/// The limits of the engine.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Most turns that run at the same time.
    pub max_running: usize,
    /// Most tasks in the queue; when it is full, new tasks are refused as resource exhausted.
    pub max_queued: usize,
    /// Most messages that wait for one busy task.
    pub max_pending_messages: u32,
    /// How long a blocking send waits before it answers with the task as it is.
    pub send_wait: Duration,
    /// How long an agent that was told to stop has to end by itself.
    pub cancel_grace: Duration,
    /// Longest time a turn may take.
    pub turn_deadline: Duration,
    /// Longest time an agent may produce no output. Does not apply while the turn waits for an answer.
    pub turn_idle: Duration,
    /// If the store fails, a turn tries to store its events again until its deadline, and at least this long.
    pub store_patience: Duration,
    /// How long an agent may wait for an answer within its turn; after that, the answer starts a new turn.
    pub answer_wait: Duration,
    /// Streamed text is collected for at most this long and stored as one event.
    pub text_merge: Duration,
    /// Largest single event; longer text is split, anything else is an agent error.
    pub max_event_bytes: usize,
    /// Most parts in one message, or in one piece of an artifact.
    pub max_parts: usize,
    /// Most bytes of metadata in one message or artifact, that of its parts included.
    pub max_metadata_bytes: usize,
    /// Most members of one object in metadata and data.
    pub max_object_keys: usize,
    /// Deepest nesting of arrays and objects in metadata and data; never more than [`JsonText::MAX_DEPTH`].
    pub max_json_depth: usize,
    /// Most artifacts of one task; more of them fail the task.
    pub max_artifacts: usize,
    /// Most bytes in the artifacts of one task; more fail the task.
    pub max_artifact_bytes: u64,
    /// Most messages in a task's history. When it has that many, counting those that wait for the task, a client's message
    /// is refused; a message that was acknowledged is always taken. More messages from the agent fail the task, except that
    /// one answer to each message of the client is always allowed.
    pub max_history: usize,
    /// Accepts messages with addresses of files on this machine or in its network, such as `http://10.0.0.1/a`. An agent that
    /// fetches them would read there for its caller.
    pub internal_file_urls: bool,
    /// Most referenced tasks that are passed to an agent.
    pub max_references: usize,
    /// During a turn, a snapshot is stored after this many events or `snapshot_bytes` of events. For a larger task, only
    /// after as many bytes of events as the task itself has.
    pub snapshot_events: u64,
    /// See `snapshot_events`.
    pub snapshot_bytes: usize,
    /// Most events that are kept in memory of each task that has a run or readers, so that readers need not ask the store.
    /// Read when the server is built.
    pub tail_events: usize,
    /// The same, in bytes.
    pub tail_bytes: usize,
    /// What each owner may have and do.
    pub owners: OwnerLimits,
    /// How long tasks and records are kept.
    pub retention: Retention,
}

/// What each owner may have and do, so that one at its limits costs another nothing. Beyond a limit its calls are refused as
/// its own quota (429) with `Retry-After`. Anonymous callers are counted by address: that of the peer or, behind a trusted
/// proxy or one on this machine, the forwarded one. Anonymous callers without such an address are not limited here. 0 means:
/// no limit.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OwnerLimits {
    /// Most turns of one owner that run at the same time; further tasks are queued. If there is such a limit, the last eighth
    /// of the slots of the server, and of each agent, is left to owners that run fewer turns than that.
    pub max_running: usize,
    /// Most tasks of one owner in the queue.
    pub max_queued: usize,
    /// Most tasks of one owner in the store, at all agents and under all tenants together. Does not hold for anonymous
    /// callers, who share one owner.
    pub max_tasks: u64,
    /// Most bytes of one owner in the store: messages, events, snapshots and replies of message skills
    /// ([`OwnerUsage::bytes`](crate::store::OwnerUsage::bytes)). Beyond it, its messages are refused, those to tasks that
    /// exist too; reads and cancels go on. Turns that have begun go on as well, and fail when the owner has twice as much
    /// stored. Does not hold for anonymous callers, who share one owner.
    pub max_bytes: u64,
    /// Messages, cancels and other changes per second.
    pub rate_send: u32,
    /// Reads per second.
    pub rate_read: u32,
    /// Subscriptions to tasks per second.
    pub rate_subscribe: u32,
    /// After a pause, the calls of this many seconds may come at once.
    pub rate_burst: u32,
    /// About how many callers the rates are counted for at a time; beyond it, those that called longest ago are forgotten.
    /// Read when the server is built.
    pub max_counted: usize,
}

impl OwnerLimits {
    pub(crate) fn caps(&self) -> Caps {
        let or_none = |limit: usize| if limit == 0 { usize::MAX } else { limit };
        Caps { max_running: or_none(self.max_running), max_queued: or_none(self.max_queued) }
    }

    /// `None`: no limit.
    pub(crate) fn rate(&self, per_second: u32) -> Option<Rate> {
        let interval = Duration::from_secs(1).checked_div(per_second)?;
        Some(Rate::new(interval, per_second.saturating_mul(self.rate_burst)))
    }
}

impl Default for OwnerLimits {
    fn default() -> Self {
        OwnerLimits {
            max_running: 64,
            max_queued: 1000,
            max_tasks: 100_000,
            // Ten tasks as large as a task may be, or 100 KiB for each of `max_tasks`.
            max_bytes: 10 * 1024 * 1024 * 1024,
            rate_send: 0,
            rate_read: 0,
            rate_subscribe: 0,
            rate_burst: 10,
            max_counted: 65_536,
        }
    }
}

/// How long tasks, their logs and message records are kept.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Retention {
    /// Ended tasks are removed after this time.
    pub ended: Duration,
    /// The log of an ended task is folded into its snapshot after this time. A large task whose log is not much larger than
    /// a snapshot has no snapshot and keeps its log.
    pub fold: Duration,
    /// Most tasks that are kept. If there are more, the oldest ended tasks are removed, but see `min_age`.
    pub max_tasks: u64,
    /// `max_tasks` removes only tasks that ended at least this long ago.
    pub min_age: Duration,
    /// Message records are kept at least this long, and as long as their task. Should be longer than `ended`, so that a
    /// sweep need not skip the records of existing tasks. What was kept of failed webhooks goes at the same age, counted from
    /// their failure, once their task is gone.
    pub records: Duration,
    /// An ended task whose webhooks have not got everything is kept this long, whatever `ended`, `fold` and `max_tasks` say:
    /// a little longer than deliveries are tried.
    pub webhooks: Duration,
    /// How often the sweeper runs.
    pub every: Duration,
}

impl Options {
    /// The caps of the whole server.
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
            internal_file_urls: false,
            max_references: 16,
            snapshot_events: 64,
            snapshot_bytes: 64 * 1024,
            tail_events: 1024,
            tail_bytes: 256 * 1024,
            owners: OwnerLimits::default(),
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
            webhooks: Duration::from_secs(80 * HOUR),
            every: Duration::from_secs(60),
        }
    }
}
