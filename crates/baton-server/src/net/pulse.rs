//! What is known of a connection from outside of hyper: at which point it stands, since when, and what it was told.
//!
//! The socket's wrapper and the guard write it, the connection's own task reads it to find out what it is waiting
//! for, and the registry reads it to find the connection that has been quiet longest. All of it is single numbers;
//! none needs another to be seen in the same instant.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use tokio::time::Instant;

use super::half_close::HalfClose;
use super::refusal::Refusal;

/// What the client is doing, as far as its bytes tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Phase {
    /// Not a single byte has come.
    Silent,
    /// In the middle of a request's head, or of a frame.
    Head,
    /// In the middle of a request's body. HTTP/1 only: in HTTP/2 each stream has its own clock.
    Body,
    /// Between requests.
    Between,
}

/// What a connection may be told by others. Later ones include the earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Order {
    None,
    /// Leave as soon as nothing is under way or on its way.
    LeaveWhenQuiet,
    /// Make room: leave at once, unless a request is under way.
    MakeRoom,
    /// Take nothing new, finish what is under way, leave.
    Finish,
    /// Leave now.
    Leave,
}

#[derive(Debug)]
pub(super) struct Pulse {
    /// The same for all connections of a server, so that their times can be compared.
    epoch: Instant,
    phase: AtomicU8,
    /// All times are microseconds since then, plus one: 0 is never.
    phase_since: AtomicU64,
    /// Of the body under way.
    body_bytes: AtomicU64,
    /// Since when hyper has been waiting for a byte of it.
    body_awaited_since: AtomicU64,
    /// How long it had waited before that, in all.
    body_waited: AtomicU64,
    /// Requests under way, up to the last byte of their answers given to hyper.
    busy: AtomicU32,
    quiet_since: AtomicU64,
    wrote_at: AtomicU64,
    /// Bytes that left, ever.
    taken: AtomicU64,
    blocked_since: AtomicU64,
    order: AtomicU8,
    makes_room: AtomicBool,
    /// What the client did wrong in the request under way: for the socket to act on, and for the guard to tell.
    timed_out: AtomicU8,
    fault: AtomicU8,
    pub(super) half_close: HalfClose,
    waker: AtomicWaker,
}

impl Pulse {
    pub(super) fn new(epoch: Instant) -> Self {
        let now = since(epoch);
        Pulse {
            epoch,
            phase: AtomicU8::new(Phase::Silent as u8),
            phase_since: AtomicU64::new(now),
            body_bytes: AtomicU64::new(0),
            body_awaited_since: AtomicU64::new(0),
            body_waited: AtomicU64::new(0),
            busy: AtomicU32::new(0),
            quiet_since: AtomicU64::new(now),
            wrote_at: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            blocked_since: AtomicU64::new(0),
            order: AtomicU8::new(Order::None as u8),
            makes_room: AtomicBool::new(false),
            timed_out: AtomicU8::new(0),
            fault: AtomicU8::new(0),
            half_close: HalfClose::default(),
            waker: AtomicWaker::new(),
        }
    }

    pub(super) fn now(&self) -> u64 {
        since(self.epoch)
    }

    /// The moment that a time of this pulse stands for.
    pub(super) fn moment(&self, time: u64) -> Instant {
        self.epoch + Duration::from_micros(time.saturating_sub(1))
    }

    pub(super) fn phase(&self) -> Phase {
        match self.phase.load(Relaxed) {
            0 => Phase::Silent,
            1 => Phase::Head,
            2 => Phase::Body,
            _ => Phase::Between,
        }
    }

    pub(super) fn phase_since(&self) -> u64 {
        self.phase_since.load(Relaxed)
    }

    /// The clock is asked only when something changes.
    pub(super) fn enter(&self, phase: Phase) {
        if self.phase.load(Relaxed) != phase as u8 {
            self.enter_anew(phase);
        }
    }

    /// Another head, or another body, than the one before.
    pub(super) fn enter_anew(&self, phase: Phase) {
        self.phase.store(phase as u8, Relaxed);
        self.phase_since.store(self.now(), Relaxed);
        self.body_awaited_since.store(0, Relaxed);
        self.body_waited.store(0, Relaxed);
        self.body_bytes.store(0, Relaxed);
    }

    /// The body goes on: so many bytes of it are here now.
    pub(super) fn body_came(&self, bytes: u64) {
        let since = self.body_awaited_since.swap(0, Relaxed);
        if since > 0 {
            self.body_waited.fetch_add(self.now().saturating_sub(since), Relaxed);
        }
        self.body_bytes.store(bytes, Relaxed);
    }

    pub(super) fn body_awaited(&self) {
        if self.body_awaited_since.load(Relaxed) == 0 {
            self.body_awaited_since.store(self.now(), Relaxed);
        }
    }

    /// Since when the body has been awaited, how long before that, and what had come; `None` while it is not.
    pub(super) fn body_wait(&self) -> Option<(u64, u64, u64)> {
        let since = self.body_awaited_since.load(Relaxed);
        (since > 0).then(|| (since, self.body_waited.load(Relaxed), self.body_bytes.load(Relaxed)))
    }

    /// A request has come in.
    pub(super) fn begin(&self) {
        self.busy.fetch_add(1, Relaxed);
    }

    /// The answer to a request has been handed over, or will never be.
    pub(super) fn end(&self) {
        if self.busy.fetch_sub(1, Relaxed) == 1 {
            self.quiet_since.store(self.now(), Relaxed);
            if self.order() > Order::None {
                self.waker.wake();
            }
        }
    }

    pub(super) fn is_busy(&self) -> bool {
        self.busy.load(Relaxed) > 0
    }

    /// Nobody would miss it: no request under way, nothing left to send.
    pub(super) fn is_spare(&self) -> bool {
        !self.is_busy() && self.blocked_since().is_none()
    }

    /// No request under way, none on its way, nothing left to send.
    pub(super) fn is_quiet(&self) -> bool {
        self.is_spare() && matches!(self.phase(), Phase::Silent | Phase::Between)
    }

    /// When something worth waiting for happened last.
    pub(super) fn quiet_since(&self) -> u64 {
        self.quiet_since.load(Relaxed).max(self.wrote_at.load(Relaxed))
    }

    /// So many bytes left, with either of the next two.
    pub(super) fn count_taken(&self, bytes: usize) {
        self.taken.fetch_add(bytes as u64, Relaxed);
    }

    pub(super) fn taken(&self) -> u64 {
        self.taken.load(Relaxed)
    }

    pub(super) fn wrote(&self) {
        self.blocked_since.store(0, Relaxed);
        self.wrote_at.store(self.now(), Relaxed);
    }

    /// Bytes left that say nothing about the client's interest, such as those of a ping.
    pub(super) fn wrote_little(&self) {
        self.blocked_since.store(0, Relaxed);
    }

    pub(super) fn write_blocked(&self) {
        if self.blocked_since.load(Relaxed) == 0 {
            self.blocked_since.store(self.now(), Relaxed);
        }
    }

    pub(super) fn blocked_since(&self) -> Option<u64> {
        Some(self.blocked_since.load(Relaxed)).filter(|since| *since > 0)
    }

    /// The stricter of this order and those before it counts.
    pub(super) fn tell(&self, order: Order) {
        if order == Order::MakeRoom {
            self.makes_room.store(true, Relaxed);
        }
        self.order.fetch_max(order as u8, Relaxed);
        self.waker.wake();
    }

    /// Whatever it was told since.
    pub(super) fn was_told_to_make_room(&self) -> bool {
        self.makes_room.load(Relaxed)
    }

    pub(super) fn order(&self) -> Order {
        match self.order.load(Relaxed) {
            0 => Order::None,
            1 => Order::LeaveWhenQuiet,
            2 => Order::MakeRoom,
            3 => Order::Finish,
            _ => Order::Leave,
        }
    }

    /// The connection's task is to look again at everything.
    pub(super) fn wake(&self) {
        self.waker.wake();
    }

    /// The connection's task calls this before it looks for orders.
    pub(super) fn listen(&self, waker: &std::task::Waker) {
        self.waker.register(waker);
    }

    /// The socket will refuse the request that is coming in, the next time it is read.
    pub(super) fn time_out(&self, refusal: Refusal) {
        self.timed_out.store(refusal.to_byte(), Relaxed);
    }

    pub(super) fn timed_out(&self) -> Option<Refusal> {
        Refusal::from_byte(self.timed_out.load(Relaxed))
    }

    /// The body of the request under way is not what it should be: whatever the application answers, this is why.
    pub(super) fn fault(&self, refusal: Refusal) {
        self.fault.store(refusal.to_byte(), Relaxed);
    }

    pub(super) fn found_fault(&self) -> Option<Refusal> {
        Refusal::from_byte(self.fault.load(Relaxed))
    }
}

fn since(epoch: Instant) -> u64 {
    epoch.elapsed().as_micros() as u64 + 1
}
