//! The state of a connection, outside of hyper: what it is waiting for, since when, and which order it was given.
//!
//! The socket's wrapper and the guard write it; the connection's task reads it to apply time limits, and the registry to
//! find the connection that has been idle longest. Every field is a single number that is valid by itself, so relaxed
//! atomics are enough.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use tokio::time::Instant;

use super::half_close::HalfClose;
use super::refusal::Refusal;

/// What the client is sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Phase {
    /// No byte has come yet.
    Silent,
    /// In the middle of a request's head, or of a frame.
    Head,
    /// In the middle of a request's body. HTTP/1 only: in HTTP/2 each stream has its own timer.
    Body,
    /// Between requests.
    Between,
    /// In the middle of a TLS handshake.
    Handshake,
}

/// Orders to a connection. Later ones include the earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Order {
    None,
    /// Close as soon as no request is under way or arriving.
    LeaveWhenQuiet,
    /// Close at once for a new connection, unless a request is under way.
    MakeRoom,
    /// Take no new requests, finish those under way, close.
    Finish,
    /// Close now.
    Leave,
}

#[derive(Debug)]
pub(super) struct Pulse {
    /// The same for all connections of a server, so that their times are comparable.
    epoch: Instant,
    phase: AtomicU8,
    /// All times are microseconds since `epoch`, plus one; 0 means never.
    phase_since: AtomicU64,
    /// Bytes of the current body that have come.
    body_bytes: AtomicU64,
    /// Since when hyper has been waiting for a byte of it.
    body_awaited_since: AtomicU64,
    /// How long it had waited for this body before that, in all.
    body_waited: AtomicU64,
    /// Requests under way, until hyper has got the last byte of their answers.
    busy: AtomicU32,
    quiet_since: AtomicU64,
    wrote_at: AtomicU64,
    /// Bytes that were sent, in all.
    taken: AtomicU64,
    blocked_since: AtomicU64,
    order: AtomicU8,
    makes_room: AtomicBool,
    /// Why the current request is refused: `timed_out` for the socket to act on, `fault` for the guard to answer.
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

    /// Turns a time of this pulse into an instant.
    pub(super) fn moment(&self, time: u64) -> Instant {
        self.epoch + Duration::from_micros(time.saturating_sub(1))
    }

    pub(super) fn phase(&self) -> Phase {
        match self.phase.load(Relaxed) {
            0 => Phase::Silent,
            1 => Phase::Head,
            2 => Phase::Body,
            3 => Phase::Between,
            _ => Phase::Handshake,
        }
    }

    pub(super) fn phase_since(&self) -> u64 {
        self.phase_since.load(Relaxed)
    }

    /// Reads the clock only if the phase changes.
    pub(super) fn enter(&self, phase: Phase) {
        if self.phase.load(Relaxed) != phase as u8 {
            self.enter_anew(phase);
        }
    }

    /// Also if the phase is the same: another head or body begins.
    pub(super) fn enter_anew(&self, phase: Phase) {
        self.phase.store(phase as u8, Relaxed);
        self.phase_since.store(self.now(), Relaxed);
        self.body_awaited_since.store(0, Relaxed);
        self.body_waited.store(0, Relaxed);
        self.body_bytes.store(0, Relaxed);
    }

    /// So many bytes of the body have come by now.
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

    /// Since when hyper has been waiting for the body, how long it had waited before, and how many bytes had come; `None`
    /// while it does not wait.
    pub(super) fn body_wait(&self) -> Option<(u64, u64, u64)> {
        let since = self.body_awaited_since.load(Relaxed);
        (since > 0).then(|| (since, self.body_waited.load(Relaxed), self.body_bytes.load(Relaxed)))
    }

    /// A request was received.
    pub(super) fn begin(&self) {
        self.busy.fetch_add(1, Relaxed);
    }

    /// hyper has got the whole answer to a request, or the request was dropped.
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

    /// Idle: no request under way, nothing left to send.
    pub(super) fn is_spare(&self) -> bool {
        !self.is_busy() && self.blocked_since().is_none()
    }

    /// Idle, and no request is arriving.
    pub(super) fn is_quiet(&self) -> bool {
        self.is_spare() && matches!(self.phase(), Phase::Silent | Phase::Between | Phase::Handshake)
    }

    /// When the last answer ended or was written to.
    pub(super) fn quiet_since(&self) -> u64 {
        self.quiet_since.load(Relaxed).max(self.wrote_at.load(Relaxed))
    }

    /// Counts bytes that were sent; `wrote` or `wrote_little` is called as well.
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

    /// Bytes were sent that do not show that the client is active, such as a ping.
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

    /// Gives an order; the strictest one so far applies.
    pub(super) fn tell(&self, order: Order) {
        if order == Order::MakeRoom {
            self.makes_room.store(true, Relaxed);
        }
        self.order.fetch_max(order as u8, Relaxed);
        self.waker.wake();
    }

    /// Also if a stricter order followed.
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

    /// Wakes the connection's task, which checks everything again.
    pub(super) fn wake(&self) {
        self.waker.wake();
    }

    /// The connection's task calls this before it reads the order.
    pub(super) fn listen(&self, waker: &std::task::Waker) {
        self.waker.register(waker);
    }

    /// The socket refuses the arriving request at the next read.
    pub(super) fn time_out(&self, refusal: Refusal) {
        self.timed_out.store(refusal.to_byte(), Relaxed);
    }

    pub(super) fn timed_out(&self) -> Option<Refusal> {
        Refusal::from_byte(self.timed_out.load(Relaxed))
    }

    /// The current request's body is refused; the guard answers with this instead of the application's answer.
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
