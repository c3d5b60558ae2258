//! Tokens that several clients or processes share.

use std::any::Any;
use std::time::Duration;

use secrecy::ExposeSecret as _;
use tokio::time::{Instant, sleep};

use super::{Token, TokenSource};

/// Keeps the token of a login where other clients and processes find it, such as a file. Calls should not take long: they are
/// made from async code.
pub trait TokenStore: Send + Sync {
    /// Keeps others from renewing the token until what is returned is dropped. `None` if another one is just renewing it: it
    /// is asked again after a moment. A store that cannot lock returns something that does nothing.
    fn try_lock(&self) -> Option<Box<dyn Any + Send>>;

    /// The token as it is kept now.
    fn load(&self) -> Option<Token>;

    /// Keeps a new token.
    fn save(&self, token: &Token);
}

/// Between two tries to lock a store.
const PAUSE: Duration = Duration::from_millis(50);

impl TokenSource {
    /// Waits until nobody else renews the token. Whoever takes longer than `patience` is not waited for: a call that might fail
    /// is better than one that hangs.
    pub(super) async fn lock_store(&self, patience: Duration) -> Option<Box<dyn Any + Send>> {
        let store = self.client.store.as_ref()?;
        let begun = Instant::now();
        loop {
            match store.try_lock() {
                None if begun.elapsed() < patience => sleep(PAUSE).await,
                lock => return lock,
            }
        }
    }

    /// Takes the token of the store if it is another one: somebody else has renewed it.
    pub(super) fn read_store(&self) {
        let Some(kept) = self.client.store.as_ref().and_then(|store| store.load()) else { return };
        let mut token = self.token.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        let is_same = |known: &Token| known.access.expose_secret() == kept.access.expose_secret();
        if !token.as_ref().is_some_and(is_same) {
            *token = Some(kept);
        }
    }
}
