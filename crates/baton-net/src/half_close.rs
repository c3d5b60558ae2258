//! Clients that close their side of a connection when they have sent their request, as `printf … | nc -N` does.
//!
//! Whether a client has closed its sending side or is gone looks the same. hyper takes it for gone, and drops the request.
//! Here the end is hidden from hyper while an answer that is no event stream is owed: the client may be reading, and such
//! answers end within minutes. For an event stream the end means that the reader has left: otherwise the stream would stay
//! open until its next event, which may be hours away.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};

use super::pulse::Pulse;

/// What a connection owes, and whether its client has closed its side. One thread ends an answer while another sees the
/// client's end; each writes its own flag and then reads the other's. With `SeqCst` at least one of them sees both, and
/// wakes hyper.
#[derive(Debug, Default)]
pub(super) struct HalfClose {
    /// Answers that are no event streams and that hyper has not got completely.
    owed: AtomicU32,
    /// HTTP/1 only: hyper may have something that is not sent.
    unsent: AtomicBool,
    /// Nothing more comes from the client.
    ended: AtomicBool,
    /// The end was hidden from hyper.
    held_back: AtomicBool,
}

impl HalfClose {
    /// The client's side is closed. True if hyper must not know yet.
    pub(super) fn ended(&self) -> bool {
        self.ended.store(true, SeqCst);
        let hold_back = self.owed.load(SeqCst) > 0 || self.unsent.load(SeqCst);
        self.held_back.fetch_or(hold_back, SeqCst);
        hold_back
    }

    /// Whether the client has closed its side and hyper has all answers.
    fn is_over(&self) -> bool {
        self.ended.load(SeqCst) && self.owed.load(SeqCst) == 0
    }

    /// The same, and the end was hidden from hyper.
    pub(super) fn is_over_late(&self) -> bool {
        self.held_back.load(SeqCst) && self.owed.load(SeqCst) == 0
    }

    /// All that hyper had has been sent. True if hyper should read again, to see the end that was hidden.
    pub(super) fn flushed(&self) -> bool {
        self.owed.load(SeqCst) == 0 && self.unsent.swap(false, SeqCst) && self.ended.load(SeqCst)
    }
}

/// An answer that is owed; dropped when hyper has all of it.
#[derive(Debug)]
pub(super) struct Owed(Arc<Pulse>);

impl Owed {
    pub(super) fn new(pulse: &Arc<Pulse>, is_http1: bool) -> Self {
        pulse.half_close.owed.fetch_add(1, SeqCst);
        pulse.half_close.unsent.store(is_http1, SeqCst);
        Owed(Arc::clone(pulse))
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        self.0.half_close.owed.fetch_sub(1, SeqCst);
        if self.0.half_close.is_over() {
            self.0.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[test]
    fn the_end_is_held_back_until_the_last_answer_is_sent() {
        let pulse = Arc::new(Pulse::new(Instant::now()));
        let half_close = &pulse.half_close;
        assert!(!half_close.ended(), "nothing is owed");
        let (first, second) = (Owed::new(&pulse, true), Owed::new(&pulse, true));
        assert!(half_close.ended() && !half_close.is_over());
        drop(first);
        assert!(!half_close.flushed() && half_close.ended() && !half_close.is_over());
        drop(second);
        assert!(half_close.is_over_late() && half_close.ended(), "it may not be sent");
        assert!(half_close.flushed() && !half_close.ended());
        assert!(!half_close.flushed(), "hyper looks once");
    }

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl std::task::Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, SeqCst);
        }
    }

    /// The last answer is done on one thread while another sees the client's end.
    #[test]
    fn an_end_that_is_held_back_is_looked_at_again() {
        const ROUNDS: usize = 20_000;
        let pulses: Vec<_> = (0..ROUNDS).map(|_| Arc::new(Pulse::new(Instant::now()))).collect();
        let owed: Vec<_> = pulses.iter().map(|pulse| Owed::new(pulse, false)).collect();
        let (begun, done) = (AtomicU32::new(0), AtomicU32::new(0));
        let wait = |count: &AtomicU32, least: usize| {
            let mut spins = 0;
            while (count.load(SeqCst) as usize) < least {
                spins += 1;
                // On a busy machine the other one may need this core.
                if spins % 1000 == 0 { std::thread::yield_now() } else { std::hint::spin_loop() }
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for (round, owed) in owed.into_iter().enumerate() {
                    wait(&begun, round + 1);
                    drop(owed);
                    done.store(round as u32 + 1, SeqCst);
                }
            });
            for (round, pulse) in pulses.iter().enumerate() {
                let woken = Arc::new(Woken::default());
                pulse.listen(&std::task::Waker::from(Arc::clone(&woken)));
                begun.store(round as u32 + 1, SeqCst);
                let held_back = pulse.half_close.ended();
                wait(&done, round + 1);
                assert!(!held_back || woken.0.load(SeqCst), "nobody looks again");
            }
        });
    }
}
