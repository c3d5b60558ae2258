//! The A2A protocol: domain types, lifecycle, operations, errors, and the codecs of each generation.
//!
//! No sockets, no clock, no randomness, no async. Only `wire` knows how a field is spelled.

pub mod domain;
pub mod error;
pub mod generation;
pub mod lifecycle;
pub mod operation;
pub mod signature;
pub mod wire;

#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;

pub use error::{Error, ErrorKind, Name};
pub use generation::Generation;
pub use wire::spelling::Member;
