//! Canonical forms of JSON, for hashing and signing, and the signatures of cards and webhooks.

pub mod card;
pub mod jcs;
pub mod jws;
pub mod message_form;
pub mod pem;
mod uncovered;
pub mod webhook;
