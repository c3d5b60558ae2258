//! One task: its head, its log after folding, its snapshot, its pending requests.

use baton_protocol::domain::{MessageId, TaskId, TaskState, Timestamp};

use super::lists::Row;
use super::log::{Ids, Log};
use super::records::RecordKey;
use super::scopes::ScopeId;
use crate::store::{
    Brief, Detail, EVENTS_BYTES, Head, Listed, Loaded, PendingRequest, RequestId, StoredEvent,
    StoredSnapshot, Work, said,
};

pub(super) struct Entry {
    pub(super) scope: ScopeId,
    pub(super) id: TaskId,
    pub(super) head: Head,
    /// The events `head.folded_through + 1 ..= head.version`, without a gap; the snapshot; the pending requests.
    pub(super) log: Log,
    /// Version of the snapshot; 0 without one.
    pub(super) snapshot_version: u64,
    pub(super) status_event: StatusEvent,
    /// Message records of this task; they become orphans when it is purged.
    pub(super) messages: Vec<RecordKey>,
    /// What the task counts for its owner, without its message records.
    pub(super) bytes: u64,
}

/// The event with the task's status message: see [`said::after`].
pub(super) enum StatusEvent {
    /// Its number in the log; 0 if there is none.
    At(u64),
    /// The event itself, kept when it was folded.
    Kept(Box<StoredEvent>),
}

impl StatusEvent {
    fn number(&self) -> u64 {
        match self {
            Self::At(number) => *number,
            Self::Kept(event) => event.number,
        }
    }
}

pub(super) struct Pending {
    pub(super) request: RequestId,
    pub(super) event: StoredEvent,
    pub(super) message: Option<(MessageId, crate::store::MessageHash)>,
}

/// The values that the sorted indexes use; these are updated only when this changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IndexedBy {
    pub(super) state: TaskState,
    pub(super) status_at: Timestamp,
    pub(super) open: bool,
    pub(super) foldable: bool,
}

impl Entry {
    pub(super) fn indexed_by(&self) -> IndexedBy {
        let Head { folded_through, current, .. } = &self.head;
        IndexedBy {
            state: current.state,
            status_at: current.status_at,
            open: current.work != Work::Idle || !self.log.pending().is_empty(),
            foldable: current.state.is_terminal() && self.snapshot_version > *folded_through,
        }
    }

    pub(super) fn requests(&self) -> Vec<PendingRequest> {
        let request =
            |pending: &Pending| PendingRequest { request: pending.request, event: pending.event.clone() };
        self.log.pending().iter().map(request).collect()
    }

    pub(super) fn load(&self) -> Loaded {
        Loaded {
            id: self.id.clone(),
            head: self.head.clone(),
            snapshot: self.log.snapshot(self.ids()),
            tail: self.above(self.snapshot_version).collect(),
        }
    }

    pub(super) fn list(&self, detail: Detail) -> Listed {
        match detail {
            Detail::Whole => Listed::Whole(self.load()),
            Detail::Status => {
                let said = match &self.status_event {
                    StatusEvent::At(0) => None,
                    StatusEvent::At(number) => self.above(number - 1).next(),
                    StatusEvent::Kept(event) => Some(StoredEvent::clone(event)),
                };
                Listed::Status(Brief { id: self.id.clone(), head: self.head.clone(), said })
            }
        }
    }

    pub(super) fn events_after(&self, after: u64, limit: u32) -> Vec<StoredEvent> {
        let mut bytes = 0;
        let fits = |event: &StoredEvent| {
            let first = bytes == 0;
            bytes += event.record().len();
            first || bytes <= EVENTS_BYTES
        };
        self.above(after).take(limit as usize).take_while(fits).collect()
    }

    /// Frees unused memory: most tasks are idle far longer than they run.
    pub(super) fn compact(&mut self) {
        self.log.pack(Ids { task: &self.id, context: &self.head.context_id });
        self.messages.shrink_to_fit();
    }

    pub(super) fn write(&mut self, events: Vec<StoredEvent>, snapshot: Option<StoredSnapshot>) {
        self.snapshot_version = snapshot.as_ref().map_or(self.snapshot_version, StoredSnapshot::version);
        let said = said::after(self.status_event.number(), &events);
        if said != self.status_event.number() {
            self.status_event = StatusEvent::At(said);
        }
        let added: usize = events.iter().map(|event| event.record().len()).sum();
        let kept = snapshot.as_ref().map_or(0, |snapshot| snapshot.record().len());
        let ids = Ids { task: &self.id, context: &self.head.context_id };
        let replaced = self.log.extend(ids, self.head.folded_through + 1, events, snapshot);
        self.bytes += (added + kept) as u64;
        self.bytes -= replaced as u64;
    }

    /// Removes a pending request.
    pub(super) fn settle(&mut self, request: RequestId) -> Option<Pending> {
        let settled = self.log.settle(request)?;
        self.bytes -= settled.event.record().len() as u64;
        Some(settled)
    }

    pub(super) fn note(&mut self, pending: Pending) {
        self.bytes += pending.event.record().len() as u64;
        let ids = Ids { task: &self.id, context: &self.head.context_id };
        self.log.note(ids, self.head.folded_through + 1, pending);
    }

    /// Removes the events that the snapshot covers, and answers them.
    pub(super) fn fold(&mut self) -> Vec<StoredEvent> {
        if let StatusEvent::At(number @ 1..) = self.status_event
            && number <= self.snapshot_version
        {
            let event = self.above(number - 1).next();
            // Copied, since the events of one append share a buffer.
            let kept = event.map(|event| StatusEvent::Kept(Box::new(event.by_itself())));
            self.status_event = kept.unwrap_or(StatusEvent::At(0));
        }
        let ids = Ids { task: &self.id, context: &self.head.context_id };
        let folded = self.head.folded_through;
        let events = self.log.take_events(ids, folded + 1, (self.snapshot_version - folded) as usize);
        self.head.folded_through = self.snapshot_version;
        self.bytes -= events.iter().map(|event| event.record().len() as u64).sum::<u64>();
        events
    }

    /// Its row in lists.
    pub(super) fn row(&self) -> Row {
        Row::new(self.head.current.state, self.head.current.status_at, Some(self.id.clone()))
    }

    fn ids(&self) -> Ids<'_> {
        Ids { task: &self.id, context: &self.head.context_id }
    }

    fn above(&self, number: u64) -> impl Iterator<Item = StoredEvent> {
        let folded = self.head.folded_through;
        self.log.from(self.ids(), folded + 1, number.saturating_sub(folded) as usize)
    }
}
