//! The readiness check, for load balancers and supervisors.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Engine;
use crate::store::StoreError;

/// How long a result of the store's check is reused, so that frequent probes cost little.
const FRESH: Duration = Duration::from_secs(1);

/// How long the store may take to answer.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// Whether work should be sent here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Health {
    /// Yes.
    Ready,
    /// No: the server is shutting down.
    Stopping,
    /// No: the store is full. Tasks can be read, but nothing can be written.
    StoreFull,
    /// No: the store cannot be written, or does not answer.
    StoreUnavailable,
}

impl Health {
    /// The text in probes and logs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Stopping => "stopping",
            Self::StoreFull => "store full",
            Self::StoreUnavailable => "store unavailable",
        }
    }
}

/// The result of the store's last check.
#[derive(Debug, Default)]
pub(super) struct LastCheck {
    answer: Mutex<Option<(Instant, Health)>>,
    /// Held during a check: others wait for the same result.
    asking: tokio::sync::Mutex<()>,
}

impl LastCheck {
    fn fresh(&self) -> Option<Health> {
        let answer = *self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        answer.filter(|(at, _)| at.elapsed() < FRESH).map(|(_, health)| health)
    }

    fn keep(&self, health: Health) -> Health {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), health));
        health
    }
}

impl Engine {
    /// Checks the store with a small write, at most once a second.
    pub(crate) async fn health(&self) -> Health {
        let inner = &self.inner;
        let check = async {
            let last = &inner.last_check;
            if let Some(health) = last.fresh() {
                return health;
            }
            let _asking = last.asking.lock().await;
            // Another caller may have finished a check meanwhile.
            if let Some(health) = last.fresh() {
                return health;
            }
            let checked = tokio::time::timeout(CHECK_TIMEOUT, inner.store.check()).await;
            last.keep(match checked {
                Ok(Ok(())) => Health::Ready,
                Ok(Err(StoreError::Full(_))) => Health::StoreFull,
                Ok(Err(_)) | Err(_) => Health::StoreUnavailable,
            })
        };
        if inner.store.failure().is_some() {
            Health::StoreUnavailable
        } else if inner.stopping.is_cancelled() {
            Health::Stopping
        } else {
            check.await
        }
    }
}
