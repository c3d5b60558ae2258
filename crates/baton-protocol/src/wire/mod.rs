//! How things are spelled: envelopes, frames, and one codec per generation.

pub mod sse;
