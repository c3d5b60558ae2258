//! A task's events. While the task is open they are ready to be handed out; once it rests, a short log is
//! packed into one block, because a small task's five events cost more around than inside them.

use bytes::Bytes;

use crate::store::StoredEvent;

/// Longer logs stay as they are: copying them is dear and what is around them no longer matters.
const MOST_PACKED: usize = 16 * 1024;

pub(super) enum Log {
    Open(Vec<StoredEvent>),
    Packed(Packed),
}

/// The records one after the other, then where each ends, then how many they are.
pub(super) struct Packed(Bytes);

impl Default for Log {
    fn default() -> Self {
        Log::Open(Vec::new())
    }
}

impl Log {
    /// The events from a position on, counted from 0; the first of all has the number `first`.
    pub(super) fn from(&self, first: u64, at: usize) -> impl Iterator<Item = StoredEvent> {
        (at..).map_while(move |at| match self {
            Log::Open(events) => events.get(at).cloned(),
            Log::Packed(packed) => packed.get(first, at),
        })
    }

    pub(super) fn extend(&mut self, first: u64, mut added: Vec<StoredEvent>) {
        if added.is_empty() {
            return;
        }
        match self {
            Log::Open(events) if events.is_empty() => *events = added,
            Log::Open(events) => events.append(&mut added),
            Log::Packed(_) => *self = Log::Open(self.from(first, 0).chain(added).collect()),
        }
    }

    pub(super) fn pack(&mut self) {
        let Log::Open(events) = self else { return };
        let bytes: usize = events.iter().map(|event| event.record().len()).sum();
        if events.is_empty() || bytes > MOST_PACKED {
            events.shrink_to_fit();
        } else {
            *self = Log::Packed(Packed::new(events, bytes));
        }
    }
}

/// Bytes of a number in the block.
const WIDTH: usize = size_of::<u32>();

impl Packed {
    fn new(events: &[StoredEvent], bytes: usize) -> Self {
        let mut block = Vec::with_capacity(bytes + (events.len() + 1) * WIDTH);
        let mut ends = Vec::with_capacity(events.len());
        for event in events {
            block.extend_from_slice(event.record());
            ends.push(block.len() as u32);
        }
        ends.push(events.len() as u32);
        block.extend(ends.into_iter().flat_map(u32::to_le_bytes));
        Packed(Bytes::from(block))
    }

    fn get(&self, first: u64, at: usize) -> Option<StoredEvent> {
        let count_at = self.0.len() - WIDTH;
        let count = self.number(count_at);
        if at >= count {
            return None;
        }
        let end = |at: usize| self.number(count_at - (count - at) * WIDTH);
        let start = at.checked_sub(1).map_or(0, end);
        let event = StoredEvent::from_record(first + at as u64, self.0.slice(start..end(at)));
        Some(event.expect("it was an event when it was packed"))
    }

    fn number(&self, at: usize) -> usize {
        let bytes = self.0[at..at + WIDTH].try_into().expect("a number has its width");
        u32::from_le_bytes(bytes) as usize
    }
}
