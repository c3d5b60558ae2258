//! Integration tests of the protocol crate, in one binary.

// The lint knows test functions, not the functions they share.
#![allow(clippy::unwrap_used)]

/// Cards that several generations read, and cards of an unknown one.
mod cards;
/// A task folded from its stream equals the task folded from its log.
mod fold;
/// Golden files: each reads into the domain and writes back byte for byte.
mod golden;
/// Golden files of the legacy generation, and what is only ever written.
mod golden_v0_1;
/// HTTP+JSON calls: path, query and body together, both ways; error bodies.
mod http_calls;
/// HTTP+JSON routes, row by row, and what is no route.
mod http_routes;
/// The JSON-RPC envelope, request by request.
mod jsonrpc;
/// Domain to wire to domain gives the same value, minus a written list of losses.
mod roundtrip;
/// The same for the legacy generation, whose losses are many.
mod roundtrip_v0_1;
/// Random domain values, awkward strings included.
mod strategies;
