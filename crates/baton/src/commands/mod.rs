//! One file per command.

pub(crate) mod auth;
pub(crate) mod card;
pub(crate) mod chat;
pub(crate) mod completion;
pub(crate) mod config;
pub(crate) mod conformance;
pub(crate) mod demo_server;
pub(crate) mod fault_proxy;
pub(crate) mod hash_password;
pub(crate) mod key;
pub(crate) mod man;
pub(crate) mod send;
pub(crate) mod serve;
pub(crate) mod task;
pub(crate) mod test;

use std::io::{self, Write as _};

use crate::exit::Failure;

/// A closed pipe is not an error: the reader has read enough.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write: {error}")))
        }
        _ => Ok(()),
    }
}
