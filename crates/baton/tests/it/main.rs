//! The binary as a user meets it: started as a process, asked over a socket.

#![allow(clippy::unwrap_used, reason = "the lint knows test functions only, not what they call")]

/// `baton config`, and what a file says is served.
mod config;
/// What the demo agent does with each kind of message: states, artifacts, turns.
mod demo_behaviours;
/// What the demo agent's streams show, in which order.
mod demo_streams;
/// `kill -9` under load: nothing acknowledged is lost, nothing runs twice.
mod kills;
/// SIGHUP: cards and limits change under load, a mistake changes nothing.
mod reload;
/// `baton serve`: welcome, mistakes, stores, signals.
mod serve;
/// A served process and the calls a test makes to it.
mod served;
