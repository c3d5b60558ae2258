//! The requests of an HTTP/1 connection, counted on both sides of hyper.
//!
//! The filter below hyper decides where a request ends; then hyper decides again. Should the two ever disagree, bytes of
//! a body would be served as a request that nobody has checked. So the filter passes on one request at a time and notes
//! the length of its body, and the guard compares what hyper announces: a request too many, or a body of another length,
//! is the end of the connection.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use super::head::BodyShape;

/// Stands for the length of a chunked body.
const CHUNKED: u64 = u64::MAX;

/// Written and read by one task only; atomic because that task may move from thread to thread.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// Heads that the filter has passed on.
    passed_on: AtomicU64,
    /// The length of the body behind the last of them.
    length: AtomicU64,
    /// Requests that hyper has announced.
    announced: AtomicU64,
    /// hyper has been given nothing but whole requests.
    whole: AtomicBool,
}

impl Requests {
    /// What hyper has been given so far; `whole`: it has not been given a part of a request.
    pub(super) fn passed_on(&self, (heads, shape): (u64, BodyShape), whole: bool) {
        self.passed_on.store(heads, Relaxed);
        self.whole.store(whole, Relaxed);
        let length = match shape {
            BodyShape::Length(length) => length,
            BodyShape::Chunked => CHUNKED,
        };
        self.length.store(length, Relaxed);
    }

    /// hyper has read a head, behind which it expects a body of that length, or in chunks. Is it the head that the
    /// filter has passed on?
    pub(super) fn announce(&self, length: Option<u64>) -> bool {
        let announced = self.announced.fetch_add(1, Relaxed) + 1;
        announced == self.passed_on.load(Relaxed) && length.unwrap_or(CHUNKED) == self.length.load(Relaxed)
    }

    /// Has hyper announced all it was given? Then it may have the next one.
    pub(super) fn all_announced(&self) -> bool {
        self.passed_on.load(Relaxed) == self.announced.load(Relaxed)
    }

    /// Has hyper nothing left of what it was given but the request it announced last?
    pub(super) fn none_buffered(&self) -> bool {
        self.whole.load(Relaxed) && self.all_announced()
    }

    /// In place of a hyper that announces whatever it gets.
    #[cfg(any(test, fuzzing))]
    pub(super) fn announce_all(&self) {
        self.announced.store(self.passed_on.load(Relaxed), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_passed_on_may_be_announced() {
        let requests = Requests::default();
        assert!(!requests.announce(Some(0)), "nothing was passed on");

        let requests = Requests::default();
        requests.passed_on((1, BodyShape::Length(5)), true);
        assert!(!requests.none_buffered());
        assert!(requests.announce(Some(5)) && requests.all_announced() && requests.none_buffered());
        assert!(!requests.announce(Some(5)), "a second one, made of the first one's body");

        for (shape, length) in [
            (BodyShape::Length(5), Some(0)),
            (BodyShape::Length(5), None),
            (BodyShape::Chunked, Some(0)),
            (BodyShape::Length(0), Some(5)),
        ] {
            let requests = Requests::default();
            requests.passed_on((1, shape), true);
            assert!(!requests.announce(length), "{shape:?} {length:?}");
        }
        let requests = Requests::default();
        requests.passed_on((1, BodyShape::Chunked), false);
        assert!(requests.announce(None) && !requests.none_buffered(), "its body is with hyper in part");
    }
}
