//! The signals that ask the process to stop, or to read its configuration again.

use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a hangup means.
pub(crate) enum Hangup {
    Reload,
    /// It was sent because the terminal that the process was started in has closed.
    TerminalGone,
}

/// From now on SIGTERM and Ctrl-C are ours: they stop the server in order instead of ending the process.
#[cfg(unix)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Never looked at. While it is held, a write beyond the limit on the size of files (`ulimit -f`,
    /// `LimitFSIZE=`) fails like one to a full disk, instead of ending the process.
    _file_size: Signal,
}

#[cfg(unix)]
impl Signals {
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            _file_size: signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?,
        })
    }

    /// Waits for the next one and gives its name.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

/// SIGHUP, from now on.
#[cfg(unix)]
pub(crate) struct Hangups {
    hangup: Signal,
    in_a_terminal: bool,
}

#[cfg(unix)]
impl Hangups {
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Hangups { hangup: signal(SignalKind::hangup())?, in_a_terminal: in_a_terminal() })
    }

    pub(crate) async fn next(&mut self) -> Hangup {
        if self.hangup.recv().await.is_none() {
            return std::future::pending().await;
        }
        // A closed terminal is none any more to those who hold it.
        if self.in_a_terminal && !in_a_terminal() { Hangup::TerminalGone } else { Hangup::Reload }
    }
}

#[cfg(unix)]
fn in_a_terminal() -> bool {
    use std::io::IsTerminal as _;
    io::stdin().is_terminal() || io::stderr().is_terminal()
}

/// Elsewhere there is Ctrl-C alone.
#[cfg(not(unix))]
pub(crate) struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Signals)
    }

    pub(crate) async fn next(&mut self) -> &'static str {
        match tokio::signal::ctrl_c().await {
            Ok(()) => "Ctrl-C",
            Err(_) => std::future::pending().await,
        }
    }
}

#[cfg(not(unix))]
pub(crate) struct Hangups;

#[cfg(not(unix))]
impl Hangups {
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Hangups)
    }

    pub(crate) async fn next(&mut self) -> Hangup {
        std::future::pending().await
    }
}
