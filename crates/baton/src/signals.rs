//! The signals that ask the process to stop, or to read its configuration again.

use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a SIGHUP means.
pub(crate) enum Hangup {
    Reload,
    /// The terminal in which the process was started has closed.
    TerminalGone,
}

/// From now on SIGTERM and Ctrl-C no longer end the process; the server stops gracefully.
#[cfg(unix)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Never read. While it exists, a write beyond the limit on file size (`ulimit -f`, `LimitFSIZE=`) fails like one
    /// to a full disk, instead of ending the process.
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

    /// Waits for the next signal and returns its name.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

/// Receives SIGHUP from now on.
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
        // A terminal that has closed is no longer reported as a terminal.
        if self.in_a_terminal && !in_a_terminal() { Hangup::TerminalGone } else { Hangup::Reload }
    }
}

#[cfg(unix)]
fn in_a_terminal() -> bool {
    use std::io::IsTerminal as _;
    io::stdin().is_terminal() || io::stderr().is_terminal()
}

/// Other systems have only Ctrl-C.
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
