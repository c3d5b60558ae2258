//! The agents that come with the binary.

pub(crate) mod demo;
pub(crate) mod echo;
pub(crate) mod exec;
