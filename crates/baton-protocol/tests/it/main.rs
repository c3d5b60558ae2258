//! Integration tests of the protocol crate, in one binary.

// The lint knows test functions, not the functions they share.
#![allow(clippy::unwrap_used)]

/// A task folded from its stream equals the task folded from its log.
mod fold;
/// Golden files: each reads into the domain and writes back byte for byte.
mod golden;
/// Golden files of the legacy generation, and what is only ever written.
mod golden_v0_1;
/// The JSON-RPC envelope, request by request.
mod jsonrpc;
/// Domain to wire to domain gives the same value, minus a written list of losses.
mod roundtrip;
/// Random domain values, awkward strings included.
mod strategies;
