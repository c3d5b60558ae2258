//! A signal that is given once: asked by every message, waited for by few.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

/// Asking takes no lock, as asking a [`CancellationToken`] does.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    given: AtomicBool,
    token: CancellationToken,
}

impl Signal {
    pub(crate) fn give(&self) {
        self.given.store(true, Ordering::SeqCst);
        self.token.cancel();
    }

    pub(crate) fn is_given(&self) -> bool {
        self.given.load(Ordering::SeqCst)
    }

    /// To wait for it.
    pub(crate) fn token(&self) -> &CancellationToken {
        &self.token
    }
}
