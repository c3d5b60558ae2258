//! Checks of 0.1, one file per area. Each is named in a document of `suites/v0_1`.
//!
//! The texts of the time differ: the guide these checks come from, the prose of v0.1.0 and its schema. Where they do, any
//! of them is right, and a note says which was met.

pub(super) mod auth;
pub(super) mod card;
pub(super) mod generations;
pub(super) mod push;
mod shapes;
pub(super) mod streams;
pub(super) mod tasks;
