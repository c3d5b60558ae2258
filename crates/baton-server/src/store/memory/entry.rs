//! One task: its head, what is left of its log, its snapshot, what waits for its holder.

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
    /// Numbers `head.folded_through + 1 ..= head.version`, without a gap; the snapshot; what waits.
    pub(super) log: Log,
    /// Version of the snapshot; 0 without one.
    pub(super) told: u64,
    pub(super) said: Said,
    /// Records that must be let go of when this task is purged.
    pub(super) messages: Vec<RecordKey>,
}

/// The event with what the task's status says.
pub(super) enum Said {
    /// By its number in the log; 0 without one.
    At(u64),
    /// The log is folded.
    Kept(Box<StoredEvent>),
}

impl Said {
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

/// What decides where a task stands in the sorted indexes; they are touched only when this changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) state: TaskState,
    pub(super) status_at: Timestamp,
    pub(super) open: bool,
    pub(super) foldable: bool,
}

impl Entry {
    pub(super) fn standing(&self) -> Standing {
        let Head { folded_through, current, .. } = &self.head;
        Standing {
            state: current.state,
            status_at: current.status_at,
            open: current.work != Work::Idle || !self.log.pending().is_empty(),
            foldable: current.state.is_terminal() && self.told > *folded_through,
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
            tail: self.above(self.told).collect(),
        }
    }

    pub(super) fn list(&self, detail: Detail) -> Listed {
        match detail {
            Detail::Whole => Listed::Whole(self.load()),
            Detail::Status => {
                let said = match &self.said {
                    Said::At(0) => None,
                    Said::At(number) => self.above(number - 1).next(),
                    Said::Kept(event) => Some(StoredEvent::clone(event)),
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

    /// Gives back what growing reserved: most tasks rest far longer than they run.
    pub(super) fn rest(&mut self) {
        self.log.pack(Ids { task: &self.id, context: &self.head.context_id });
        self.messages.shrink_to_fit();
    }

    pub(super) fn write(&mut self, events: Vec<StoredEvent>, snapshot: Option<StoredSnapshot>) {
        self.told = snapshot.as_ref().map_or(self.told, StoredSnapshot::version);
        let said = said::after(self.said.number(), &events);
        if said != self.said.number() {
            self.said = Said::At(said);
        }
        let ids = Ids { task: &self.id, context: &self.head.context_id };
        self.log.extend(ids, self.head.folded_through + 1, events, snapshot);
    }

    pub(super) fn note(&mut self, pending: Pending) {
        let ids = Ids { task: &self.id, context: &self.head.context_id };
        self.log.note(ids, self.head.folded_through + 1, pending);
    }

    /// Drops the events that the snapshot tells; answers them.
    pub(super) fn fold(&mut self) -> Vec<StoredEvent> {
        if let Said::At(number @ 1..) = self.said
            && number <= self.told
        {
            let event = self.above(number - 1).next();
            // By itself: events of one append share a buffer.
            let kept = event.map(|event| Said::Kept(Box::new(event.by_itself())));
            self.said = kept.unwrap_or(Said::At(0));
        }
        let ids = Ids { task: &self.id, context: &self.head.context_id };
        let folded = self.head.folded_through;
        let events = self.log.take_events(ids, folded + 1, (self.told - folded) as usize);
        self.head.folded_through = self.told;
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
