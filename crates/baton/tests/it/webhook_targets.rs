//! Webhooks with hostile targets, against the real binary (S1 to S4): callers must not make the server call its own network.
//!
//! Each test runs in a network namespace of its own in which every address of the world is local: whatever the server
//! connects to, private, reserved or public, reaches our listener, which notes the address. Only two addresses count as
//! the internet; a receiver with a certificate is there. The name server is ours, too; names that it does not know lead to
//! an internal address.
//!
//! `docs/results/webhook-targets.md` has the figures.

/// The ways in which a caller gives the server a URL: three generations, two bindings, with a message and later.
mod faces;
/// The addresses that webhooks must not reach, and the two that they may.
mod internal;
/// Every spelling of internal targets, through every face.
mod matrix;
/// A name server.
mod names;
/// A network namespace, and the test again inside it.
mod namespace;
/// Closed, open and filtered ports look the same to whoever owns the webhook.
mod ports;
/// Names that change their addresses from one question to the next.
mod rebinding;
/// Receivers that redirect to internal addresses.
mod redirects;
/// The receiver on the internet, and the listener on everything else.
mod sink;
/// The URLs of the matrix.
mod spellings;
/// A server between the name server and the sink.
mod stage;
