//! One file per command.

pub(crate) mod auth;
pub(crate) mod bench;
pub(crate) mod card;
pub(crate) mod chat;
pub(crate) mod completion;
pub(crate) mod config;
pub(crate) mod conformance;
pub(crate) mod demo_server;
pub(crate) mod fault_proxy;
pub(crate) mod hash_password;
pub(crate) mod key;
pub(crate) mod listen;
pub(crate) mod man;
pub(crate) mod push;
pub(crate) mod send;
pub(crate) mod serve;
pub(crate) mod task;
pub(crate) mod test;

use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{self, Write as _};
use std::net::SocketAddr;

use tokio::net::{TcpListener, lookup_host};

use crate::exit::Failure;

/// Listens at the address of `--listen`. One that other machines can reach has to be allowed; `danger` says what that means.
pub(crate) async fn bind(listen: &str, allow_public: bool, danger: &str) -> Result<TcpListener, Failure> {
    let found = lookup_host(listen).await.map(Iterator::collect::<Vec<SocketAddr>>);
    let addresses = found.map_err(|error| Failure::usage(format!("--listen {listen}: {error}")))?;
    if let Some(open) = addresses.iter().find(|address| !address.ip().is_loopback() && !allow_public) {
        return Err(Failure::usage(format!(
            "--listen {listen}: other machines can reach {open}{danger}; add --allow-public to allow that"
        )));
    }
    let bound = TcpListener::bind(addresses.as_slice()).await;
    bound.map_err(|error| Failure::failed(format!("--listen {listen}: {error}")))
}

/// A seed for a run that was given none; short enough to type.
pub(crate) fn any_seed() -> u64 {
    std::hash::RandomState::new().build_hasher().finish() % 1_000_000
}

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
