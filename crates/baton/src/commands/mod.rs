//! One file per command.

pub(crate) mod config;
pub(crate) mod fault_proxy;
pub(crate) mod serve;
pub(crate) mod test;
