//! The lab against an agent that does what a test says, over a socket; reports against golden files.

#![allow(clippy::unwrap_used, reason = "the lint knows test functions only, not what they call")]

/// An agent made for these tests: every answer is written down in one place.
mod agent;
/// Runs a document against an agent.
mod bench;
/// What can be wrong with the agent that can be wrong, as tables.
mod defects;
/// A run with one outcome of every kind, always the same.
mod fixed;
/// An agent that is right, until it is told to be wrong in one way.
mod mutant;
/// Runs the suites against that agent.
mod trial;

/// Documents that cannot be run say so, with the line.
mod bad_files;
/// Failures that are expected, and those that are not.
mod baseline;
/// The fault proxy over real sockets: what each fault does to both ends, and that a plan replays.
mod fault_proxy;
/// Every feature of the document format, met and not met.
mod grammar;
/// Clients are judged by scripted agents: a right one keeps every rule, and each rule has one that breaks it.
mod judged;
/// Every case can fail: the right agent passes, and each of its defects is caught.
mod mutants;
/// Official ids whose checks are prose: native checks stand for them, and can fail.
mod official;
/// What is sent where, who is asked with which credentials, what is kept of it.
mod probes;
/// Every form of report against its golden file.
mod reports;
/// Agents at https:// addresses: trusted and untrusted certificates, client certificates, faults under TLS.
mod tls;
/// The suites under faults: a right agent is judged the same, and one that is hurt by its network is found out.
mod under_faults;
