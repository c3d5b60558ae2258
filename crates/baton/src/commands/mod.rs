//! One file per command.

pub(crate) mod config;
pub(crate) mod fault_proxy;
pub(crate) mod hash_password;
pub(crate) mod key;
pub(crate) mod serve;
pub(crate) mod test;
