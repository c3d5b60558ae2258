//! Integration tests of the client, in one binary: against a real Baton server on a real socket, and against scripted
//! servers for what Baton does not do.

// The lint knows test functions, not the functions they share.
#![allow(clippy::unwrap_used)]

/// A server, a proxy that cuts connections, and servers that do as they are told.
mod harness;
/// An agent that answers as a test wants, and remembers what it was asked.
mod scripted;
/// The same over gRPC.
mod scripted_grpc;

/// Credentials, and where they go.
mod credentials;
/// Finding cards: addresses, files, caches, redirects, what is no card.
mod discover;
/// Extensions that the client supports.
mod extensions;
/// What is sent again and what is not; answers that are too large, too slow or wrong.
mod failures;
/// gRPC: addresses, metadata, answers of every kind, streams that end badly.
mod grpc;
/// Tokens of authorization servers.
mod oauth;
/// Every operation in every binding and generation.
mod operations;
/// Streams that are lost, silent, refused or odd, and their endings.
mod recovery;
/// Signed cards.
mod signatures;
/// The signed cards of a Baton server.
mod signed_server;
/// States that are none of the eight.
mod states;
/// Streams: cut, resumed, polled; every event once.
mod streams;
/// TLS: whom the client trusts, and who it is.
mod tls;
/// Calls of webhooks that the agent has signed with a key of its own.
mod webhook_keys;
/// Webhooks, in every dialect.
mod webhooks;
