//! Checks of 0.1, one file per area. Each is named in a document of `suites/v0_1`.
//!
//! The documents of 0.1 differ: the guide on which these checks are based, the text of v0.1.0 and its schema. Where
//! they do, each is accepted, and a note says which one the agent follows.

pub(super) mod auth;
pub(super) mod card;
pub(super) mod generations;
pub(super) mod push;
mod shapes;
pub(super) mod streams;
pub(super) mod tasks;
