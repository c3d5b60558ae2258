//! Baton's server library: the engine that runs tasks, the stores that keep them, the bindings that speak A2A.

pub mod engine;
pub mod store;
