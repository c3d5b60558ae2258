//! Baton's lab: tests any A2A agent or client, and reports what is wrong.
//!
//! A run has four steps. It reads the agent's card; plans which cases run and why others are skipped; runs each case with raw
//! requests of its own, keeping the bytes that were exchanged; and writes reports.
//!
//! Most cases are data: ACTS documents (a YAML format), our own in `suites/`, others from files that are named on the command
//! line. Cases that the format cannot express are written in Rust, in [`native`]. Nothing here uses the codecs of Baton's
//! server or client, so that a mistake in those cannot hide itself.
//!
//! | module | holds |
//! |---|---|
//! | [`acts`] | documents, assertions, variables, corrections |
//! | [`wire`] | raw requests and what came back, as evidence |
//! | [`discover`](mod@discover) | reading the card, and why an agent cannot be tested at all |
//! | [`target`] | the agent under test, as its card and the command line describe it |
//! | [`case`](mod@case) | what can be run: a case with its requirement, and its verdict |
//! | [`plan`], [`run`] | which cases run where, and running them |
//! | [`judge`] | tests of clients, by scripted agents that they call |
//! | [`report`] | results as text, JSON, Markdown, JUnit and others |
//! | [`fault`] | a TCP proxy that makes a bad network, and the cases run through it |
//! | [`baseline`] | failures that are known and expected |

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
