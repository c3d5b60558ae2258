//! Canonical forms of JSON, for hashing and (later) signing.

pub mod jcs;
pub mod message_form;
