//! baton-protocol

pub mod domain;
pub mod wire;
