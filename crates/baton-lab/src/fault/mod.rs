//! A TCP proxy that does what networks do: splits, delays, stalls, cuts, half closes.
//!
//! It forwards bytes and knows nothing of HTTP, so it fits before any server and any client. What happens to a connection
//! is a function of the seed and the connection's number, nothing else: the same run can be had again.
//!
//! | module | holds |
//! |---|---|
//! | [`kind`](mod@kind) | what can be done to a connection, and how it is written |
//! | [`plan`](mod@plan) | which connection gets what |
//! | [`proxy`] | the listener, its bounds, its end |
//! | `carry` | one direction of one connection |
//! | [`trial`] | the lab's cases through it: are the verdicts the same? |

mod carry;
pub mod draw;
pub mod kind;
pub mod plan;
pub mod proxy;
pub mod trial;

pub use kind::{Action, Fault, Recipe, Side};
pub use plan::{Injected, Plan};
pub use proxy::{Happened, Proxy, Tally};
