//! Counts the requests of an HTTP/1 connection before and after hyper.
//!
//! The filter decides where a request ends; then hyper decides again. If the two disagreed, bytes of a body would be served
//! as a request that was never checked. So the filter passes on one request at a time and records the length of its body,
//! and the guard compares this with what hyper announces. If there is a request too many, or a body of another length, the
//! connection is closed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use super::head::BodyShape;

/// Stands for the length of a chunked body.
const CHUNKED: u64 = u64::MAX;

/// Used by one task only; atomic because that task may move between threads.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// Heads that the filter has passed on.
    passed_on: AtomicU64,
    /// The length of the body after the last of them.
    length: AtomicU64,
    /// Requests that hyper has announced.
    announced: AtomicU64,
    /// hyper has got complete requests only.
    whole: AtomicBool,
}

impl Requests {
    /// Records what hyper has got so far; `whole` if that does not end within a request.
    pub(super) fn passed_on(&self, (heads, shape): (u64, BodyShape), whole: bool) {
        self.passed_on.store(heads, Relaxed);
        self.whole.store(whole, Relaxed);
        let length = match shape {
            BodyShape::Length(length) => length,
            BodyShape::Chunked => CHUNKED,
        };
        self.length.store(length, Relaxed);
    }

    /// hyper has read a head and expects a body of this length; `None` for chunks. True if that is the head that the filter
    /// has passed on last.
    pub(super) fn announce(&self, length: Option<u64>) -> bool {
        let announced = self.announced.fetch_add(1, Relaxed) + 1;
        announced == self.passed_on.load(Relaxed) && length.unwrap_or(CHUNKED) == self.length.load(Relaxed)
    }

    /// True if hyper has announced all requests that it got; then it may get the next one.
    pub(super) fn all_announced(&self) -> bool {
        self.passed_on.load(Relaxed) == self.announced.load(Relaxed)
    }

    /// True if hyper's buffer holds nothing beyond the request that it announced last.
    pub(super) fn none_buffered(&self) -> bool {
        self.whole.load(Relaxed) && self.all_announced()
    }

    /// For tests without hyper: announces everything.
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
