//! Socket tests of the server library: a real listener, real requests, one file per rule.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, which is all it can do")]

/// How many turns run, how many wait, and what the next one is told.
mod admission;
/// Cancel: the token, the grace time, and the race with the agent's own end.
mod cancel;
/// The crash rule: what a process that was killed or stopped leaves to the next.
mod crash;
/// Work outlives sockets: a client that hangs up in the middle of a call strands nothing.
mod disconnect;
/// A store that fails, or dawdles, where a test wants it to.
mod faults;
mod harness;
/// The same message again: one task, one call, the same answer.
mod idempotency;
/// Conversations: questions and answers, messages to a busy task, whose turn it is.
mod multi_turn;
/// `Last-Event-ID`: a stream goes on where its reader left off.
mod resume;
/// How long tasks, their logs and their records are kept.
mod retention;
/// Blocking and immediate sends: when they answer, and with what.
mod send;
/// What test servers stand on: stores to open again, a clock set by hand, gates for agents.
mod stage;
/// Event streams: what comes, in which order, and when they close.
mod stream;
/// Streams under load: many events, slow readers, large events, awkward characters.
mod stream_volume;
/// Nothing hangs: stores that fail, agents that are silent, late or wrong.
mod waits;
