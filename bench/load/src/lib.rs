//! The load generator: one thread, one epoll, non-blocking sockets, requests that are prepared as bytes, and answers
//! that are checked with as little work as possible: it must cost less than what it measures.
//!
//! A [`Fleet`] is a number of kept-alive connections. [`Fleet::closed`] keeps each busy (closed loop), [`Fleet::open`]
//! sends at a fixed rate and measures time from when a request *should* have been sent, so that stalls of the server
//! are visible (open loop), [`Fleet::begin`] and [`Fleet::finish`] hold event streams. [`grpc::Channels`] are connections for
//! calls of gRPC. A [`Sink`] is called by servers.

mod answer;
mod fleet;
pub mod grpc;
mod latencies;
mod link;
mod open;
mod refusing;
mod request;
mod sink;
mod streams;

pub use answer::{Answer, Broken};
pub use fleet::{Expect, Fleet, Outcome, Stop};
pub use latencies::Latencies;
pub use link::{Link, Target};
pub use refusing::Refusing;
pub use request::{Calls, MARK, Stamped, post};
pub use sink::{Arrived, Manner, Sink};
