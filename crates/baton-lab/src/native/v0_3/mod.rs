//! Checks of 0.3, one file per area. Each is named in a document of `suites/v0_3`.
//!
//! Answers over HTTP+JSON reach them in the generation's own JSON (see `wire/proto_json.rs`); what is about the spelling
//! itself is in [`rest`], which reads the bytes.

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
