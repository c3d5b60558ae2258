//! Checks of 0.3, one file per area. Each is named in a document of `suites/v0_3`.
//!
//! They get answers over HTTP+JSON converted to 0.3 JSON (see `wire/proto_json.rs`); checks of the wire form itself are
//! in [`rest`], which reads the bytes.

pub(super) mod auth;
pub(super) mod card;
pub(super) mod equivalence;
pub(super) mod generations;
pub(super) mod objects;
mod proto_shapes;
pub(super) mod push;
pub(super) mod rest;
pub(super) mod shapes;
pub(super) mod streams;
