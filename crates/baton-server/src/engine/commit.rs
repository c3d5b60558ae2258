//! The only code that appends to a task's log.
//!
//! `send`, `cancel`, `crash` and `run` decide how a task changes and pass a [`Decision`]. This module makes the task's head
//! and, if one is due, its snapshot, appends all of it in one write, and wakes the task's readers. `WatchedStore::append`
//! is visible in this module only, so nothing else can write to a task.

mod ending;
mod snapshot_policy;
mod watched_store;

use std::sync::Arc;

use baton_protocol::domain::{Event, EventBody, EventKind, Scope, TaskState, Timestamp};
use baton_protocol::lifecycle::{Refused, Snapshot};

pub use ending::NOT_TAKEN;
use snapshot_policy::Next;
pub(super) use snapshot_policy::SinceSnapshot;
pub(crate) use watched_store::WatchedStore;

use super::Inner;
use super::hub::Bell;
use super::large;
use super::options::Options;
use super::view::View;
use crate::points::{Point, reached};
use crate::store::{
    Append, Appended, Birth, EventBatch, Head, HeadState, Loaded, MessageRecord, NewWebhook, Settled,
    StoreResult, StoredEvent, TaskKey, Work,
};

/// A change to one task while it is being put together: events are added, encoded and folded in one by one.
#[derive(Debug)]
pub(super) struct Draft {
    /// The task with every event of the draft.
    pub(super) snapshot: Snapshot,
    /// Requests that are settled with the change.
    pub(super) settled: Vec<Settled>,
    since_snapshot: SinceSnapshot,
    birth: Option<Birth>,
    expected: u64,
    fence: u64,
    events: EventBatch,
    /// The time of all its events.
    at: Timestamp,
    message: Option<MessageRecord>,
    webhook: Option<Box<NewWebhook>>,
}

impl Draft {
    /// For a new task.
    pub(super) fn of_new(snapshot: Snapshot, birth: Birth) -> Self {
        let at = birth.created_at;
        Draft { birth: Some(birth), ..Draft::begin(snapshot, SinceSnapshot::default(), 0, at) }
    }

    /// For a task that was read and folded.
    pub(super) fn of(loaded: &Loaded, snapshot: Snapshot, at: Timestamp) -> Self {
        Draft::begin(snapshot, SinceSnapshot::of(loaded), loaded.head.current.fence, at)
    }

    fn begin(snapshot: Snapshot, since_snapshot: SinceSnapshot, fence: u64, at: Timestamp) -> Self {
        Draft {
            expected: snapshot.version,
            fence,
            snapshot,
            since_snapshot,
            settled: Vec::new(),
            birth: None,
            events: EventBatch::with_room_for(3),
            at,
            message: None,
            webhook: None,
        }
    }

    /// Adds an event; returns its number.
    pub(super) fn write(&mut self, body: EventBody) -> Result<u64, Refused> {
        write_event(&mut self.snapshot, self.at, body, &mut self.events)
    }

    /// Stores a record of the message with the change, so that a repeat of the message is recognized.
    pub(super) fn record(&mut self, message: MessageRecord) {
        self.message = Some(message);
    }

    /// Stores a webhook with a new task, so that it misses none of its events.
    pub(super) fn add_webhook(&mut self, webhook: NewWebhook) {
        self.webhook = Some(Box::new(webhook));
    }

    /// The fence that the task had when it was read.
    pub(super) fn fence(&self) -> u64 {
        self.fence
    }

    /// The finished decision. `work` and `next_fence` go into the task's head; `stored` is the fault-test point after the
    /// write.
    pub(super) fn decide(self, work: Work, next_fence: u64, stored: Option<Point>) -> Decision {
        Decision {
            snapshot: Arc::new(self.snapshot),
            since_snapshot: self.since_snapshot,
            birth: self.birth,
            expected: self.expected,
            fence: self.fence,
            events: self.events.finish(),
            work,
            next_fence,
            message: self.message,
            webhook: self.webhook,
            settled: self.settled,
            unless_message_waits: false,
            bell: None,
            stored,
        }
    }
}

/// A change to a task, for one atomic write.
#[derive(Debug)]
pub(super) struct Decision {
    /// The task after all events.
    pub(super) snapshot: Arc<Snapshot>,
    /// What the log holds after the stored snapshot, without these events.
    pub(super) since_snapshot: SinceSnapshot,
    /// `Some` for a new task.
    pub(super) birth: Option<Birth>,
    /// The version and the fence that the decision is based on; if the task has others by now, nothing is written.
    pub(super) expected: u64,
    pub(super) fence: u64,
    pub(super) events: Vec<StoredEvent>,
    /// The work that remains afterwards.
    pub(super) work: Work,
    pub(super) next_fence: u64,
    /// The record of the message that caused the change.
    pub(super) message: Option<MessageRecord>,
    /// The webhook that came with a new task.
    pub(super) webhook: Option<Box<NewWebhook>>,
    pub(super) settled: Vec<Settled>,
    /// The last event ends the task because its agent just returned. If a message waits by then, the task is not ended.
    pub(super) unless_message_waits: bool,
    /// The task's bell, if the caller has it.
    pub(super) bell: Option<Arc<Bell>>,
    /// The point where a fault test may kill the process: stored, and no reader woken.
    pub(super) stored: Option<Point>,
}

/// A decision in the form for the store. It is kept until it is written, so that a failed write can be repeated.
#[derive(Debug)]
pub(super) struct Prepared {
    append: Append,
    snapshot: Arc<Snapshot>,
    unless_message_waits: bool,
    /// What the log holds after the stored snapshot once this is written.
    pub(super) since_snapshot: SinceSnapshot,
    /// If a snapshot is stored with it: about how many bytes that has.
    snapshot_bytes: Option<usize>,
    bell: Option<Arc<Bell>>,
    stored: Option<Point>,
}

/// The result of a commit.
#[derive(Debug)]
pub(super) enum Committed {
    /// Stored, and readers woken. If it ends the task, messages that the agent did not take are in the log before the end.
    Written(Written),
    /// The same message was accepted before; nothing was written.
    Repeat(MessageRecord),
    /// The task has changed since the decision; nothing was written.
    Lost,
}

#[derive(Debug)]
pub(super) struct Written {
    pub(super) bell: Arc<Bell>,
    /// The task as it was stored.
    pub(super) snapshot: Arc<Snapshot>,
}

impl Inner {
    /// Writes a decision to the store and wakes the task's readers.
    pub(super) async fn commit(&self, scope: &Scope, decision: Decision) -> StoreResult<Committed> {
        self.write(scope, &mut self.prepared(decision, &self.options()), false).await
    }

    /// For callers that repeat a failed write themselves, or write more to the same task.
    pub(super) fn prepared(&self, decision: Decision, options: &Options) -> Prepared {
        let rests = decision.rests();
        let Decision { snapshot, work, mut since_snapshot, .. } = decision;
        let next = Next { events: &decision.events, task: &snapshot, rests };
        let snapshot_bytes = since_snapshot.is_due(&next, options);
        let append = Append {
            task: snapshot.task.id.clone(),
            birth: decision.birth,
            expected: decision.expected,
            fence: decision.fence,
            events: decision.events,
            head: HeadState {
                state: snapshot.state(),
                status_at: snapshot.task.status.timestamp,
                work,
                attempts: snapshot.attempts,
                // Between turns a task has no holder: the process that gets the next message may take it.
                holder: (work == Work::Running).then_some(self.processes.me()),
                fence: decision.next_fence,
            },
            snapshot: None,
            message: decision.message,
            settled: decision.settled,
            webhook: decision.webhook,
        };
        let Decision { unless_message_waits, bell, stored, .. } = decision;
        Prepared { append, snapshot, unless_message_waits, since_snapshot, snapshot_bytes, bell, stored }
    }

    /// Writes to the store and wakes the task's readers. `again`: an earlier try ended in an error.
    pub(super) async fn write(
        &self,
        scope: &Scope,
        prepared: &mut Prepared,
        again: bool,
    ) -> StoreResult<Committed> {
        let (key, kept) = loop {
            // Encoded here and not kept in `prepared`, so that the record of a large task is in memory only during the
            // write.
            let kept = match prepared.snapshot_bytes {
                Some(bytes) => Some(large::encode(&prepared.snapshot, bytes).await?),
                None => None,
            };
            let append = Append { snapshot: kept.clone(), ..prepared.append.clone() };
            match self.store.append(scope, append).await? {
                Appended::Written(key) => break (key, kept),
                Appended::Duplicate(found) => return Ok(Committed::Repeat(found)),
                Appended::Conflict => {}
            }
            // The earlier try may have been written although it returned an error; then this conflict is with ourselves.
            if again && let Some(key) = self.is_stored(scope, prepared).await? {
                break (key, kept);
            }
            // The loop ends: the number of waiting messages is limited, and each round adds at least one of them.
            match self.with_waiting_messages(scope, prepared).await? {
                Some(decided_again) => *prepared = decided_again,
                None => return Ok(Committed::Lost),
            }
        };
        let Prepared { append, snapshot, bell, stored, .. } = prepared;
        if let Some(stored) = stored {
            reached(*stored);
        }
        let bell = match bell {
            Some(bell) => Arc::clone(bell),
            None => self.hub.bell(key),
        };
        let at_turn_end = append
            .events
            .iter()
            .any(|event| matches!(event.kind, EventKind::Status(state) if is_rest(state)))
            .then(|| View::left(Arc::clone(snapshot), kept));
        bell.ring(snapshot.version, &append.events, at_turn_end);
        self.webhooks.ring(key, snapshot.version);
        Ok(Committed::Written(Written { bell, snapshot: Arc::clone(snapshot) }))
    }

    async fn is_stored(&self, scope: &Scope, prepared: &Prepared) -> StoreResult<Option<TaskKey>> {
        let Prepared { append, snapshot, .. } = prepared;
        let head = self.store.head(scope, &append.task).await?;
        let ours = |head: &Head| (head.version, head.current.fence) == (snapshot.version, append.head.fence);
        Ok(head.filter(ours).map(|head| head.key))
    }
}

impl Decision {
    /// Whether the task rests after this. Its state alone does not tell: a queued task may still have the state of its last
    /// rest.
    fn rests(&self) -> bool {
        self.work == Work::Idle && !self.events.is_empty() && is_rest(self.snapshot.state())
    }
}

fn is_rest(state: TaskState) -> bool {
    state.is_terminal() || state.is_interrupted()
}

/// Gives an event its number and time, encodes it into `events`, and folds it into the snapshot. Returns the number.
pub(super) fn write_event(
    snapshot: &mut Snapshot,
    at: Timestamp,
    body: EventBody,
    events: &mut EventBatch,
) -> Result<u64, Refused> {
    snapshot.check(&body)?;
    let number = snapshot.version + 1;
    let event = Event { number, at, body };
    events.push(&snapshot.task.id, &snapshot.task.context_id, &event);
    snapshot.apply(event)?;
    Ok(number)
}
