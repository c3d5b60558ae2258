//! How things are spelled: envelopes, frames, and one codec per generation.

pub mod http_json;
pub mod jsonrpc;
pub mod sse;
pub mod v0_1;
pub mod v1;

mod read;
mod scalars;
mod time;
mod write;
