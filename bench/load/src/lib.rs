//! The load generator. One thread, one epoll, non-blocking sockets, requests that are bytes already, and answers that
//! are looked at no more than needed to know that they are right: it must cost less than what it measures.
//!
//! A [`Fleet`] is a number of kept-alive connections. [`Fleet::closed`] keeps each busy (closed loop),
//! [`Fleet::open`] sends at a fixed rate and counts time from when a request *should* have left, so that a server that
//! stalls cannot hide it (open loop), [`Fleet::begin`] and [`Fleet::finish`] hold event streams.

mod answer;
mod fleet;
mod latencies;
mod open;
mod request;
mod streams;

pub use answer::{Answer, Broken};
pub use fleet::{Expect, Fleet, Outcome, Stop};
pub use latencies::Latencies;
pub use request::{Calls, MARK, Stamped, post};
