//! Checks of 1.0, one file per area. Each is named in a document of `suites/v1`.
//!
//! They talk to the agent through [`super::talk`]; the judgements are pure functions with tests of their own.

pub(super) mod auth;
pub(super) mod caching;
pub(super) mod cancel;
pub(super) mod card;
mod card_addresses;
mod card_secrets;
pub(super) mod card_security;
pub(super) mod contexts;
pub(super) mod disconnect;
pub(super) mod endpoints;
pub(super) mod equivalence;
pub(super) mod errors;
pub(super) mod extensions;
pub(super) mod fold;
pub(super) mod history;
pub(super) mod hostile;
pub(super) mod interrupted;
pub(super) mod lifecycle;
pub(super) mod lists;
pub(super) mod many;
pub(super) mod names;
pub(super) mod objects;
pub(super) mod push;
mod raw_socket;
pub(super) mod rpc;
mod same;
pub(super) mod send;
pub(super) mod shapes;
pub(super) mod streams;
pub(super) mod tls;
pub(super) mod versions;
pub(super) mod watchers;

// Shared by all generations, so that the areas can use `super::talk`.
use super::{receiver, shape, talk};
