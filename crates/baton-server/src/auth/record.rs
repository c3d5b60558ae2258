//! Tells whoever works for a caller that the caller's credential was revoked or changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// The record of a credential. What was verified with it ([`Identity::while_exists`](super::Identity::while_exists)) is valid
/// until the last clone of the record is dropped, or [`end`](Self::end) is called. Streams and calls of its callers that are
/// open then are ended at once.
#[derive(Debug, Clone, Default)]
pub struct CredentialRecord(Arc<EndsWhenDropped>);

#[derive(Debug, Default)]
struct EndsWhenDropped(Arc<State>);

#[derive(Debug, Default)]
struct State {
    ended: AtomicBool,
    /// Wakes whoever waits in the name of a caller.
    waiting: Notify,
}

impl CredentialRecord {
    /// A record of a credential that is valid.
    pub fn new() -> Self {
        Self::default()
    }

    /// The credential is revoked or changed. Used where something that is still under way may hold the record a while longer.
    pub fn end(&self) {
        self.0.0.end();
    }

    pub(super) fn watch(&self) -> Watched {
        Watched(Arc::clone(&self.0.0))
    }

    pub(super) fn is_same(&self, other: &CredentialRecord) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Drop for EndsWhenDropped {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl State {
    fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.waiting.notify_waiters();
    }
}

/// A record as those see it who rely on it. It does not keep the record.
#[derive(Debug, Clone)]
pub(super) struct Watched(Arc<State>);

impl Watched {
    pub(super) fn has_ended(&self) -> bool {
        self.0.ended.load(Ordering::Acquire)
    }

    pub(super) async fn ended(&self) {
        // Made before the check: it is woken by an end after this, also before it is first polled.
        let woken = self.0.waiting.notified();
        if !self.has_ended() {
            woken.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_clone_ends_it_and_so_does_a_call() {
        let (record, called) = (CredentialRecord::new(), CredentialRecord::new());
        let clone = record.clone();
        let watched = [record.watch(), called.watch()];
        let waiting = watched.clone().map(|watched| tokio::spawn(async move { watched.ended().await }));
        tokio::task::yield_now().await;
        drop(record);
        assert!(watched.iter().all(|watched| !watched.has_ended()), "the clone is there");
        drop(clone);
        called.end();
        for waiting in waiting {
            waiting.await.unwrap();
        }
        for watched in watched {
            assert!(watched.has_ended());
            watched.ended().await;
        }
    }
}
