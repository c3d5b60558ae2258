//! Integration tests of the protocol crate, in one binary.

// The lint knows test functions, not the functions they share.
#![allow(clippy::unwrap_used)]

/// Cards that several generations read, and cards of an unknown one.
mod cards;
/// Every dialect as a row of functions.
mod codecs;
/// A task folded from its stream equals the task folded from its log.
mod fold;
/// Golden files: each reads into the domain and writes back byte for byte.
mod golden;
/// Where golden files are, and how each is held against its codec.
mod golden_files;
/// Golden files of the legacy generation, and what is only ever written.
mod golden_v0_1;
/// The messages of gRPC.
#[cfg(feature = "grpc")]
mod grpc;
/// HTTP+JSON calls: path, query and body together, both ways; error bodies.
mod http_calls;
/// HTTP+JSON routes, row by row, and what is no route.
mod http_routes;
/// The JSON-RPC envelope, request by request.
mod jsonrpc;
/// What each dialect cannot hold.
mod losses;
/// Errors as clients read them.
mod peer_errors;
/// Domain to wire to domain gives the same value, minus a written list of losses.
mod roundtrip;
/// The same for the legacy generation, whose losses are many.
mod roundtrip_v0_1;
/// Random domain values, awkward strings included.
mod strategies;
/// What only 0.3 has: method names, `final`, dialects told apart.
mod v0_3;
