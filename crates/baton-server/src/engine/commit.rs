//! The one way into a task's log.
//!
//! Whoever decides what a task becomes (send, cancel, crash, run) hands over a [`Decision`]. Here its head is made and,
//! where one is due, its snapshot; it is appended, and readers are told. `WatchedStore::append` is visible in this
//! module only, so nothing else can write to a task.

mod ending;
mod snapshot_policy;
mod watched_store;

use std::sync::Arc;

use baton_protocol::domain::{Event, EventBody, EventKind, Scope, TaskState, Timestamp};
use baton_protocol::lifecycle::{Refused, Snapshot};

pub use ending::NOT_TAKEN;
use snapshot_policy::Next;
pub(super) use snapshot_policy::SinceSnapshot;
pub use watched_store::WatchedStore;

use super::Inner;
use super::hub::Bell;
use super::large;
use super::options::Options;
use super::view::View;
use crate::points::{Point, reached};
use crate::store::{
    Append, Appended, Birth, EventBatch, Head, HeadState, Loaded, MessageRecord, Settled, StoreResult,
    StoredEvent, TaskKey, Work,
};

/// A change to one task, in the making: events are encoded and folded in one by one.
#[derive(Debug)]
pub(super) struct Draft {
    /// The task with every event of the draft.
    pub(super) snapshot: Snapshot,
    /// Requests that the change answers.
    pub(super) settled: Vec<Settled>,
    since_snapshot: SinceSnapshot,
    birth: Option<Birth>,
    expected: u64,
    fence: u64,
    events: EventBatch,
    /// The time of all its events.
    at: Timestamp,
    message: Option<MessageRecord>,
}

impl Draft {
    /// For a task that is to come to life.
    pub(super) fn of_new(snapshot: Snapshot, birth: Birth) -> Self {
        let at = birth.created_at;
        Draft { birth: Some(birth), ..Draft::begin(snapshot, SinceSnapshot::default(), 0, at) }
    }

    /// For a task as it was read and folded.
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
        }
    }

    /// Adds an event; answers its number.
    pub(super) fn write(&mut self, body: EventBody) -> Result<u64, Refused> {
        write_down(&mut self.snapshot, self.at, body, &mut self.events)
    }

    /// Has the message recorded with the change: a repeat of it will write nothing.
    pub(super) fn record(&mut self, message: MessageRecord) {
        self.message = Some(message);
    }

    /// The fence the task was read with.
    pub(super) fn fence(&self) -> u64 {
        self.fence
    }

    /// Done: the task's work and fence from now on.
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
            settled: self.settled,
            may_go_on: false,
            bell: None,
            stored,
        }
    }
}

/// What a task becomes, in one atomic write.
#[derive(Debug)]
pub(super) struct Decision {
    /// The task after all events.
    pub(super) snapshot: Arc<Snapshot>,
    /// What its log holds beyond the kept snapshot, before these events.
    pub(super) since_snapshot: SinceSnapshot,
    /// `Some` for a task that comes to life.
    pub(super) birth: Option<Birth>,
    /// The version and the fence it was decided on; a task that has others by now is left alone.
    pub(super) expected: u64,
    pub(super) fence: u64,
    pub(super) events: Vec<StoredEvent>,
    /// What is left to do afterwards.
    pub(super) work: Work,
    pub(super) next_fence: u64,
    /// The message that caused it, to be recorded with it.
    pub(super) message: Option<MessageRecord>,
    pub(super) settled: Vec<Settled>,
    /// It ends the task because there is nothing more to do: not if a message waits by then.
    pub(super) may_go_on: bool,
    /// The task's bell, if it is at hand.
    pub(super) bell: Option<Arc<Bell>>,
    /// Where a fault test may kill: stored, and nobody told.
    pub(super) stored: Option<Point>,
}

/// A decision as it goes to the store. Kept until it is written, so that it can be tried again.
#[derive(Debug)]
pub(super) struct Prepared {
    append: Append,
    snapshot: Arc<Snapshot>,
    may_go_on: bool,
    /// What the log holds beyond the kept snapshot once this is written.
    pub(super) since_snapshot: SinceSnapshot,
    /// About how many bytes the snapshot has that goes with it, if one does.
    snapshot_bytes: Option<usize>,
    bell: Option<Arc<Bell>>,
    stored: Option<Point>,
}

/// What became of a decision.
#[derive(Debug)]
pub(super) enum Committed {
    /// Stored, and its readers told. Where it ends the task, messages that nobody took stand before the end.
    Written(Written),
    /// The same message came before; nothing was written.
    Repeat(MessageRecord),
    /// The task is not what it was when this was decided; nothing was written.
    Lost,
}

#[derive(Debug)]
pub(super) struct Written {
    pub(super) bell: Arc<Bell>,
    /// The task as it was stored.
    pub(super) snapshot: Arc<Snapshot>,
}

impl Inner {
    /// Writes a decision to the store, and tells whoever reads the task.
    pub(super) async fn commit(&self, scope: &Scope, decision: Decision) -> StoreResult<Committed> {
        self.write(scope, &mut self.prepared(decision, &self.options()), false).await
    }

    /// For whoever may have to try several times, or writes more to the same task.
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
                // Between turns nobody holds a task: whoever gets the next message may take it.
                holder: (work == Work::Running).then_some(self.me),
                fence: decision.next_fence,
            },
            snapshot: None,
            message: decision.message,
            settled: decision.settled,
        };
        let Decision { may_go_on, bell, stored, .. } = decision;
        Prepared { append, snapshot, may_go_on, since_snapshot, snapshot_bytes, bell, stored }
    }

    /// `again`: an earlier try ended in an error.
    pub(super) async fn write(
        &self,
        scope: &Scope,
        prepared: &mut Prepared,
        again: bool,
    ) -> StoreResult<Committed> {
        let (key, kept) = loop {
            // Made here and not kept: of a large task nobody holds the record longer than it takes to write it.
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
            // The try before may have been written and only its answer lost: then the conflict is with ourselves.
            if again && let Some(key) = self.is_stored(scope, prepared).await? {
                break (key, kept);
            }
            // Ends after a few rounds: only so many messages may wait, and each round takes one more of them.
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
        let settled = append
            .events
            .iter()
            .any(|event| matches!(event.kind, EventKind::Status(state) if is_rest(state)))
            .then(|| View::left(Arc::clone(snapshot), kept));
        bell.ring(snapshot.version, &append.events, settled);
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
    /// Is it the task's turn to wait, for ever or for its client? One that waits for a place may still look so.
    fn rests(&self) -> bool {
        self.work == Work::Idle && !self.events.is_empty() && is_rest(self.snapshot.state())
    }
}

fn is_rest(state: TaskState) -> bool {
    state.is_terminal() || state.is_interrupted()
}

/// Gives a body its number and time, encodes it for the store, and folds it in. Answers the number.
pub(super) fn write_down(
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
