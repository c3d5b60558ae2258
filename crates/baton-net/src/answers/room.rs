//! A limit in bytes that customers share: who has reserved how many of them, who waits, and who is cut off.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::Reader;
use crate::customer::Customer;

/// If no reader has been stuck for long enough, how soon to look again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
const AT_LEAST: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Room {
    /// The limit for all customers together; `None` if each has its own only.
    max: Option<usize>,
    /// The limit for each customer. A single answer may be larger.
    max_each: usize,
    crowded_stall: Duration,
    state: Mutex<State>,
    /// Of each customer one request waits for room; its others wait here, so that a customer with many requests does not
    /// delay the others.
    queues: Mutex<HashMap<Customer, Weak<Queue>>>,
}

/// tokio's mutex is fair: it is given in the order in which it is asked for.
type Queue = tokio::sync::Mutex<()>;

#[derive(Debug, Default)]
struct State {
    taken: usize,
    /// How much of it each customer has.
    taken_by: HashMap<Customer, usize>,
    next: u64,
    holders: HashMap<u64, Holder>,
    /// The first request of each customer that waits, in the order of arrival.
    waiting: BTreeMap<u64, Waiter>,
}

#[derive(Debug)]
struct Holder {
    customer: Customer,
    reader: Reader,
    bytes: usize,
    /// Since when its reader has read less than it must, and how much it had read by then. Kept while others wait.
    slow: Option<(Instant, u64)>,
    /// It was told to close; its bytes will be free in a moment.
    cut: bool,
}

#[derive(Debug)]
struct Waiter {
    customer: Customer,
    bytes: usize,
    /// It may be its turn.
    look: Arc<Notify>,
}

/// Bytes reserved in a [`Room`], until it is dropped.
#[derive(Debug)]
pub(super) struct Taken {
    room: Arc<Room>,
    id: u64,
}

/// A request that waits, until it is dropped.
#[derive(Debug)]
struct Waiting<'a> {
    room: &'a Room,
    id: u64,
    look: Arc<Notify>,
}

/// What a request that waits can do for itself.
#[derive(Debug, PartialEq, Eq)]
enum Turn {
    /// Its customer holds as much as it may: only its own readers can make room.
    OwnLimit,
    /// It is the next to be served.
    First,
    /// Others are served before.
    Later,
}

impl Room {
    pub(super) fn new(max: Option<usize>, max_each: usize, crowded_stall: Duration) -> Arc<Self> {
        let (state, queues) = Default::default();
        Arc::new(Room { max, max_each, crowded_stall, state, queues })
    }

    pub(super) fn taken(&self) -> usize {
        self.state().taken
    }

    /// An answer larger than a customer's limit reserves all of that, and leaves the rest of the room to others.
    fn counted(&self, bytes: usize) -> usize {
        bytes.min(self.max_each)
    }

    /// Reserves so many bytes, if they are free and nobody waits for them.
    pub(super) fn try_enter(
        self: &Arc<Self>,
        bytes: usize,
        reader: &Reader,
        customer: &Customer,
    ) -> Option<Taken> {
        self.take(bytes, reader, customer, None)
    }

    /// The same, but waits for it.
    pub(super) async fn enter(self: &Arc<Self>, bytes: usize, reader: &Reader, customer: &Customer) -> Taken {
        let queue = self.queue_of(customer);
        let _first_of_its_customer = queue.lock().await;
        let waiting = self.wait(bytes, customer);
        loop {
            if let Some(taken) = self.take(bytes, reader, customer, Some(waiting.id)) {
                return taken;
            }
            let look_again = self.cut_the_stuck(waiting.id);
            let timer = async {
                match look_again {
                    Some(at) => sleep_until(at).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                () = waiting.look.notified() => {}
                () = timer => {}
            }
        }
    }

    fn take(
        self: &Arc<Self>,
        bytes: usize,
        reader: &Reader,
        customer: &Customer,
        waiter: Option<u64>,
    ) -> Option<Taken> {
        let (bytes, mut state) = (self.counted(bytes), self.state());
        let overtakes = state.first(self).is_some_and(|first| Some(first) != waiter);
        if overtakes || state.exceeds_own(self, bytes, customer) || self.exceeds(state.taken + bytes) {
            return None;
        }
        let id = state.number();
        state.taken += bytes;
        *state.taken_by.entry(customer.clone()).or_default() += bytes;
        let (customer, reader) = (customer.clone(), reader.clone());
        state.holders.insert(id, Holder { customer, reader, bytes, slow: None, cut: false });
        Some(Taken { room: Arc::clone(self), id })
    }

    fn wait(&self, bytes: usize, customer: &Customer) -> Waiting<'_> {
        let (mut state, look) = (self.state(), Arc::new(Notify::new()));
        let (id, bytes) = (state.number(), self.counted(bytes));
        state.waiting.insert(id, Waiter { customer: customer.clone(), bytes, look: Arc::clone(&look) });
        Waiting { room: self, id, look }
    }

    fn exceeds(&self, bytes: usize) -> bool {
        self.max.is_some_and(|max| bytes > max)
    }

    /// Cuts off readers that have been stuck for too long, until there would be room for that request: those of the customer
    /// that holds most first, and of these the one that has been stuck longest. Returns when to look again; `None` if that
    /// is up to others.
    fn cut_the_stuck(&self, waiter: u64) -> Option<Instant> {
        let (now, mut state) = (Instant::now(), self.state());
        let own_limit = match state.turn(self, waiter) {
            Turn::OwnLimit => true,
            Turn::First => false,
            Turn::Later => return None,
        };
        let State { waiting, holders, taken_by, .. } = &mut *state;
        let Waiter { customer, bytes, .. } = waiting.get(&waiter)?;
        let in_the_way = |holder: &Holder| !holder.cut && (!own_limit || holder.customer == *customer);
        let staying: usize =
            holders.values().filter(|holder| in_the_way(holder)).map(|holder| holder.bytes).sum();
        let max = if own_limit { self.max_each } else { self.max.unwrap_or(usize::MAX) };
        let mut lacking = (staying + bytes).saturating_sub(max);
        let mut look_again = now + LOOK_AGAIN;
        while lacking > 0 {
            let mut chosen: Option<((usize, Reverse<Instant>), &mut Holder)> = None;
            for holder in holders.values_mut().filter(|holder| in_the_way(holder)) {
                let Some(since) = holder.stuck_since() else { continue };
                let due = since + self.crowded_stall;
                if due > now {
                    look_again = look_again.min(due.max(now + AT_LEAST));
                    continue;
                }
                let claim = (taken_by.get(&holder.customer).copied().unwrap_or_default(), Reverse(since));
                if chosen.as_ref().is_none_or(|(best, _)| claim > *best) {
                    chosen = Some((claim, holder));
                }
            }
            let Some((_, holder)) = chosen else { break };
            tracing::debug!(
                bytes = holder.bytes,
                "a client that hardly reads its answer is cut off, to make room for other answers"
            );
            holder.cut = true;
            holder.reader.cut();
            lacking = lacking.saturating_sub(holder.bytes);
        }
        Some(look_again)
    }

    fn queue_of(&self, customer: &Customer) -> Arc<Queue> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = queues.get(customer).and_then(Weak::upgrade) {
            return queue;
        }
        queues.retain(|_, queue| queue.strong_count() > 0);
        let queue = Arc::new(Queue::default());
        queues.insert(customer.clone(), Arc::downgrade(&queue));
        queue
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Counts are whole at every moment the lock is free.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn of(&self, customer: &Customer) -> usize {
        self.taken_by.get(customer).copied().unwrap_or_default()
    }

    /// Never for a customer that holds nothing: its answer is counted as at most what it may have.
    fn exceeds_own(&self, room: &Room, bytes: usize, customer: &Customer) -> bool {
        self.of(customer) + bytes > room.max_each
    }

    /// The request that is served next: of the customer that holds least, and among equals the one that came first. Those
    /// that wait for their own customer's readers keep nobody waiting.
    fn first(&self, room: &Room) -> Option<u64> {
        let mut ready =
            self.waiting.iter().filter(|(_, waiter)| !self.exceeds_own(room, waiter.bytes, &waiter.customer));
        // Usually nobody waits, or one.
        let one = ready.next()?;
        let first = ready.fold((self.of(&one.1.customer), *one.0), |first, (id, waiter)| {
            first.min((self.of(&waiter.customer), *id))
        });
        Some(first.1)
    }

    fn turn(&self, room: &Room, waiter: u64) -> Turn {
        match self.waiting.get(&waiter) {
            Some(own) if self.exceeds_own(room, own.bytes, &own.customer) => Turn::OwnLimit,
            _ if self.first(room) == Some(waiter) => Turn::First,
            _ => Turn::Later,
        }
    }

    fn wake_first(&self, room: &Room) {
        if let Some(first) = self.first(room).and_then(|id| self.waiting.get(&id)) {
            first.look.notify_one();
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut state = self.room.state();
        if let Some(holder) = state.holders.remove(&self.id) {
            state.taken -= holder.bytes;
            if let Some(own) = state.taken_by.get_mut(&holder.customer) {
                *own -= holder.bytes;
                if *own == 0 {
                    state.taken_by.remove(&holder.customer);
                }
            }
        }
        state.wake_first(&self.room);
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.room.state();
        state.waiting.remove(&self.id);
        state.wake_first(self.room);
    }
}

impl Holder {
    /// Since when its reader has read less than it must; `None` if there is nothing for it to read now. Reading a byte now
    /// and then does not count.
    fn stuck_since(&mut self) -> Option<Instant> {
        let (blocked, taken) = (self.reader.blocked_since()?, self.reader.taken());
        let (since, before) = self.slow.get_or_insert((blocked, taken));
        if taken - *before >= self.reader.has_to_take() {
            (*since, *before) = (blocked, taken);
        }
        Some(*since)
    }
}
