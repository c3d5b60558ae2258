//! Baton's lab: tests any A2A agent, and says plainly what is wrong.
//!
//! A run: a raw probe of the card → a plan (run, or skip because…) → each case on its own, with its own raw requests
//! → expected and actual with the bytes exchanged → reports.
//!
//! Cases are data: ACTS documents, ours in `suites/` and anybody's by file. What the format cannot say is Rust, in
//! [`native`], behind the same case ids. Nothing here uses the server's or the client's codec: a mistake there must
//! not be able to hide itself.
//!
//! | module | holds |
//! |---|---|
//! | [`acts`] | documents, assertions, variables, corrections |
//! | [`wire`] | raw requests and what came back, as evidence |
//! | [`discover`](mod@discover) | the first look, and why nothing can be tested |
//! | [`target`] | the agent under test, as its card and the command line describe it |
//! | [`case`](mod@case) | what can be run: a case with its requirement, and its verdict |
//! | [`plan`], [`run`] | which cases run where, and running them |
//! | [`judge`] | the other way round: scripted agents that judge clients |
//! | [`report`] | what people read |
//! | [`fault`] | a TCP proxy with faults, and the cases through it |
//! | [`baseline`] | the failures that are expected |

pub mod acts;
pub mod baseline;
pub mod case;
pub mod discover;
pub mod fault;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;
pub mod generation;
pub mod judge;
pub mod native;
pub mod plan;
pub mod report;
pub mod run;
pub mod speak;
pub mod suites;
pub mod target;
pub mod wire;
