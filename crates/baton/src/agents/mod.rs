//! The agents that come with the binary.

pub(crate) mod demo;
pub(crate) mod echo;
pub(crate) mod exec;

/// On the card of an agent whose author names no version. The server's own version would say nothing about the agent.
pub(crate) const DEFAULT_VERSION: &str = "1.0.0";
