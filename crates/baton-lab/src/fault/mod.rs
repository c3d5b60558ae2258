//! A TCP proxy that simulates a bad network: splits, delays, stalls, cuts, half-closes.
//!
//! It forwards bytes without parsing HTTP, so it works with any server and any client. What happens to a connection
//! depends only on the seed and the connection's number, so a run can be repeated.
//!
//! | module | holds |
//! |---|---|
//! | [`kind`](mod@kind) | the faults, and their text form |
//! | [`plan`](mod@plan) | which connection gets which faults |
//! | [`proxy`] | the listener, its limits, its shutdown |
//! | `carry` | one direction of one connection |
//! | [`trial`] | runs the lab's cases through it and compares the verdicts |

mod carry;
pub mod draw;
pub mod kind;
pub mod plan;
pub mod proxy;
pub mod trial;
mod tunnel;

pub use kind::{Action, Fault, Recipe, Side};
pub use plan::{Injected, Plan};
pub use proxy::{Happened, Proxy, Tally};
