//! A task's events, its snapshot and what waits for its holder. While the task is open they are ready to be handed out;
//! once it rests nothing waits, and what is short is packed into one block, because around a small task's five events
//! and in their ids there are more bytes than in what they say.

use baton_protocol::domain::{ContextId, TaskId};
use bytes::Bytes;
use memchr::{memchr, memchr2, memchr2_iter};

use super::entry::Pending;
use super::phrases;
use crate::store::{RequestId, StoredEvent, StoredSnapshot};

/// Longer ones stay as they are: copying them is dear and what is around them no longer matters…
const MOST_PACKED: usize = 16 * 1024;

/// …but for those of many small records, such as streamed text: up to here half of their bytes are around and in ids.
const MOST_PACKED_SMALL: usize = 512 * 1024;
const SMALL: usize = 512;

pub(super) enum Log {
    /// Boxed: most tasks rest.
    Open(Box<Open>),
    Packed(Packed),
}

#[derive(Default)]
pub(super) struct Open {
    events: Vec<StoredEvent>,
    snapshot: Option<StoredSnapshot>,
    /// By rising request id.
    pending: Vec<Pending>,
}

/// The ids that nearly every record of a task repeats.
#[derive(Clone, Copy)]
pub(super) struct Ids<'a> {
    pub(super) task: &'a TaskId,
    pub(super) context: &'a ContextId,
}

impl Default for Log {
    fn default() -> Self {
        Log::Open(Box::default())
    }
}

impl Log {
    /// The events from a position on, counted from 0; the first of all has the number `first`.
    pub(super) fn from(&self, ids: Ids<'_>, first: u64, at: usize) -> impl Iterator<Item = StoredEvent> {
        (at..).map_while(move |at| match self {
            Log::Open(open) => open.events.get(at).cloned(),
            Log::Packed(packed) => packed.event(ids, first, at),
        })
    }

    pub(super) fn snapshot(&self, ids: Ids<'_>) -> Option<StoredSnapshot> {
        match self {
            Log::Open(open) => open.snapshot.clone(),
            Log::Packed(packed) => packed.snapshot(ids),
        }
    }

    /// Adds events and replaces the snapshot, if there are any.
    pub(super) fn extend(
        &mut self,
        ids: Ids<'_>,
        first: u64,
        mut added: Vec<StoredEvent>,
        snapshot: Option<StoredSnapshot>,
    ) {
        if added.is_empty() && snapshot.is_none() {
            return;
        }
        let open = self.open(ids, first);
        if open.events.is_empty() {
            open.events = added;
        } else {
            open.events.append(&mut added);
        }
        open.snapshot = snapshot.or(open.snapshot.take());
    }

    fn open(&mut self, ids: Ids<'_>, first: u64) -> &mut Open {
        if let Log::Packed(_) = self {
            let (events, snapshot) = (self.from(ids, first, 0).collect(), self.snapshot(ids));
            *self = Log::Open(Box::new(Open { events, snapshot, pending: Vec::new() }));
        }
        match self {
            Log::Open(open) => open,
            Log::Packed(_) => unreachable!("it was opened above"),
        }
    }

    pub(super) fn pending(&self) -> &[Pending] {
        match self {
            Log::Open(open) => &open.pending,
            Log::Packed(_) => &[],
        }
    }

    pub(super) fn note(&mut self, ids: Ids<'_>, first: u64, pending: Pending) {
        self.open(ids, first).pending.push(pending);
    }

    /// Takes out a request that waits.
    pub(super) fn settle(&mut self, request: RequestId) -> Option<Pending> {
        let Log::Open(open) = self else { return None };
        let at = open.pending.iter().position(|pending| pending.request == request)?;
        Some(open.pending.remove(at))
    }

    /// Takes the oldest events out; the snapshot stays.
    pub(super) fn take_events(&mut self, ids: Ids<'_>, first: u64, count: usize) -> Vec<StoredEvent> {
        let open = self.open(ids, first);
        let later = open.events.split_off(count.min(open.events.len()));
        let events = std::mem::replace(&mut open.events, later);
        self.pack(ids);
        events
    }

    pub(super) fn pack(&mut self, ids: Ids<'_>) {
        let Log::Open(open) = self else { return };
        if !open.pending.is_empty() {
            return;
        }
        match Packed::new(ids, open) {
            Some(packed) => *self = Log::Packed(packed),
            None => {
                open.events.shrink_to_fit();
                open.pending.shrink_to_fit();
            }
        }
    }
}

/// The events' records one after the other, then the snapshot's, then where each event ends, then how many they are.
/// Records hold no control characters but newlines, so two of those stand for the ids, and others for phrases where the
/// snapshot is all that is left.
pub(super) struct Packed(Box<[u8]>);

const TASK: u8 = 1;
const CONTEXT: u8 = 2;

/// Bytes of a number in the block.
const WIDTH: usize = size_of::<u32>();

impl Packed {
    /// `None`: not worth it.
    fn new(ids: Ids<'_>, open: &Open) -> Option<Self> {
        let records = open.events.iter().map(StoredEvent::record);
        let records = records.chain(open.snapshot.as_ref().map(StoredSnapshot::record));
        let bytes: usize = records.clone().map(Bytes::len).sum();
        let count = open.events.len();
        let most = if bytes / (count + 1) <= SMALL { MOST_PACKED_SMALL } else { MOST_PACKED };
        if bytes == 0 || bytes > most {
            return None;
        }
        let mut block = Vec::with_capacity(bytes + (count + 1) * WIDTH);
        let mut ends = Vec::with_capacity(count + 1);
        let ids = Sought::both(ids);
        for record in records {
            if memchr2(TASK, CONTEXT, record).is_some() {
                return None;
            }
            shorten(&mut block, record, &ids);
            ends.push(block.len() as u32);
        }
        if count == 0 {
            block = phrases::shorten(&block)?;
        }
        ends.truncate(count);
        ends.push(count as u32);
        block.extend(ends.into_iter().flat_map(u32::to_le_bytes));
        // Copied once more, since an allocator gives nothing back when a block shrinks a little.
        Some(Packed(Box::from(block.as_slice())))
    }

    fn event(&self, ids: Ids<'_>, first: u64, at: usize) -> Option<StoredEvent> {
        if at >= self.count() {
            return None;
        }
        let start = at.checked_sub(1).map_or(0, |before| self.end(before));
        let record = whole(ids, &self.0[start..self.end(at)]);
        let event = StoredEvent::from_record(first + at as u64, record);
        Some(event.expect("it was an event when it was packed"))
    }

    fn snapshot(&self, ids: Ids<'_>) -> Option<StoredSnapshot> {
        let count = self.count();
        let start = count.checked_sub(1).map_or(0, |last| self.end(last));
        let end = self.0.len() - (count + 1) * WIDTH;
        let short = self.0.get(start..end).filter(|short| !short.is_empty())?;
        let record = if count == 0 { whole(ids, &phrases::whole(short)) } else { whole(ids, short) };
        Some(StoredSnapshot::from_record(record).expect("it was a snapshot when it was packed"))
    }

    fn count(&self) -> usize {
        self.number(self.0.len() - WIDTH)
    }

    fn end(&self, at: usize) -> usize {
        self.number(self.0.len() - (self.count() + 1 - at) * WIDTH)
    }

    fn number(&self, at: usize) -> usize {
        let bytes = self.0[at..at + WIDTH].try_into().expect("a number has its width");
        u32::from_le_bytes(bytes) as usize
    }
}

/// An id as it is looked for: by one of its bytes that is rare in records. Looking for the whole, or behind every
/// quotation mark, takes several times as long.
struct Sought<'a> {
    id: &'a [u8],
    rare: u8,
    rare_at: usize,
    mark: u8,
}

impl<'a> Sought<'a> {
    fn new(id: &'a str, mark: u8) -> Self {
        let id = id.as_bytes();
        let rare_at = memchr(b'-', id).unwrap_or(id.len() - 1);
        Sought { id, rare: id[rare_at], rare_at, mark }
    }

    fn both(ids: Ids<'a>) -> [Self; 2] {
        [Self::new(ids.task.as_str(), TASK), Self::new(ids.context.as_str(), CONTEXT)]
    }
}

/// Copies a record with single bytes in the place of ids.
fn shorten(out: &mut Vec<u8>, record: &[u8], ids: &[Sought<'_>; 2]) {
    let (mut copied, mut from) = (0, 0);
    while let Some(found) = memchr2(ids[0].rare, ids[1].rare, &record[from..]) {
        let found = from + found;
        from = found + 1;
        for sought in ids {
            let start = found.checked_sub(sought.rare_at).filter(|start| *start >= copied);
            if let Some(start) = start
                && record[start..].starts_with(sought.id)
            {
                out.extend_from_slice(&record[copied..start]);
                out.push(sought.mark);
                copied = start + sought.id.len();
                from = copied;
                break;
            }
        }
    }
    out.extend_from_slice(&record[copied..]);
}

/// The record that [`shorten`] copied.
fn whole(ids: Ids<'_>, short: &[u8]) -> Bytes {
    let (task, context) = (ids.task.as_str().as_bytes(), ids.context.as_str().as_bytes());
    let mut record = Vec::with_capacity(short.len() + 4 * (task.len() + context.len()));
    let mut at = 0;
    for found in memchr2_iter(TASK, CONTEXT, short) {
        record.extend_from_slice(&short[at..found]);
        record.extend_from_slice(if short[found] == TASK { task } else { context });
        at = found + 1;
    }
    record.extend_from_slice(&short[at..]);
    Bytes::from(record)
}

#[cfg(test)]
mod tests {
    use baton_protocol::domain::{Event, EventBody, StatusUpdate, TaskState, Timestamp};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_long_log_of_small_events_is_packed_and_comes_back() {
        let (task, context) = (TaskId::parse("task-1").unwrap(), ContextId::parse("context-1").unwrap());
        let ids = Ids { task: &task, context: &context };
        let event = |number| {
            let update = StatusUpdate { state: TaskState::Working, message: None, metadata: None };
            let event = Event { number, at: Timestamp::from_millis(0), body: EventBody::Status(update) };
            StoredEvent::encode(&task, &context, &event)
        };
        let events: Vec<_> = (1..=1000).map(event).collect();
        let mut log = Log::default();
        log.extend(ids, 1, events.clone(), None);
        log.pack(ids);
        assert!(matches!(log, Log::Packed(_)));
        assert!(log.from(ids, 1, 0).eq(events.iter().cloned()));
        assert!(log.from(ids, 1, 997).eq(events[997..].iter().cloned()));
        log.extend(ids, 1, vec![event(1001)], None);
        assert_eq!(log.from(ids, 1, 0).count(), 1001);
    }

    proptest! {
        /// Whatever the ids are: parts of each other, of the text around them, single letters, long.
        #[test]
        fn what_is_shortened_comes_back(
            task in "[ab-]{1,5}", context in "[ab-]{1,5}", parts in prop::collection::vec("[ab-]{0,5}|[tc]", 0..12)
        ) {
            let (task, context) = (TaskId::parse(&task).unwrap(), ContextId::parse(&context).unwrap());
            let ids = Ids { task: &task, context: &context };
            let id_or_text = |part: &str| match part {
                "t" => task.as_str().to_owned(),
                "c" => context.as_str().to_owned(),
                text => text.to_owned(),
            };
            let record: String = parts.iter().map(|part| id_or_text(part)).collect();
            let mut short = Vec::new();
            shorten(&mut short, record.as_bytes(), &Sought::both(ids));
            prop_assert!(short.len() <= record.len());
            prop_assert_eq!(whole(ids, &short), record.as_bytes());
        }
    }
}
