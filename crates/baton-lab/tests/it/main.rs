//! The lab against agents that listen on loopback.

#![allow(clippy::unwrap_used, reason = "the lint knows test functions only, not what they call")]

/// What can be wrong with the agent, as tables.
mod defects;
/// An agent that is right, until it is told to be wrong in one way.
mod mutant;
/// Runs the lab against the agent.
mod trial;

/// Every case can fail: the right agent passes, and each of its defects is caught.
mod mutants;
