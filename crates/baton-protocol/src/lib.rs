//! baton-protocol

pub mod domain;
