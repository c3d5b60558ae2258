//! Integration tests of the protocol crate, in one binary.

// The lint knows test functions, not the functions they share.
#![allow(clippy::unwrap_used)]

/// Every dialect as a row of functions.
mod codecs;
/// A task folded from its stream equals the task folded from its log.
mod fold;
/// Golden files: each reads into the domain and writes back byte for byte.
mod golden;
/// The JSON-RPC envelope, request by request.
mod jsonrpc;
/// What each dialect cannot hold.
mod losses;
/// Domain to wire to domain gives the same value, minus a written list of losses.
mod roundtrip;
/// Random domain values, awkward strings included.
mod strategies;
/// What only 0.3 has: method names, `final`, dialects told apart.
mod v0_3;
