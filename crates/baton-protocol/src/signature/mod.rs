//! Canonical forms of JSON, for hashing and signing, and the signatures of cards.

pub mod jcs;
pub mod jws;
pub mod message_form;
