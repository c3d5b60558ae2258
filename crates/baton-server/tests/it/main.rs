//! Socket tests of the server library: a real listener, real requests, one file per rule.

mod harness;
/// Blocking and immediate sends: when they answer, and with what.
mod send;
