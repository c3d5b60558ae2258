//! The agents that come with the binary.

pub(crate) mod demo;
pub(crate) mod echo;
pub(crate) mod exec;

/// The version on an agent's card if none is configured. The server's own version would say nothing about the agent.
pub(crate) const DEFAULT_VERSION: &str = "1.0.0";
