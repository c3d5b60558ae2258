//! Can this server do its work? What a load balancer or a supervisor asks.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Engine;
use crate::store::StoreError;

/// How long an answer of the store stands: whoever asks often costs no more than this.
const FRESH: Duration = Duration::from_secs(1);

/// How long the store may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether work should be sent here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Health {
    /// Send work.
    Ready,
    /// Going down: no new work.
    Stopping,
    /// Tasks can be read, and nothing can be written until there is room.
    StoreFull,
    /// The store cannot be written, or does not answer.
    StoreUnavailable,
}

impl Health {
    /// As probes and logs have it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Stopping => "stopping",
            Self::StoreFull => "store full",
            Self::StoreUnavailable => "store unavailable",
        }
    }
}

/// What the store said when it was last asked.
#[derive(Debug, Default)]
pub(super) struct LastCheck {
    answer: Mutex<Option<(Instant, Health)>>,
    /// Held while the store is asked: others wait for the same answer.
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
    /// Asks the store with a small write, at most once a second.
    pub async fn health(&self) -> Health {
        let inner = &self.inner;
        let check = async {
            let last = &inner.last_check;
            if let Some(health) = last.fresh() {
                return health;
            }
            let _asking = last.asking.lock().await;
            // Somebody else may have asked meanwhile.
            if let Some(health) = last.fresh() {
                return health;
            }
            let checked = tokio::time::timeout(PATIENCE, inner.store.check()).await;
            last.keep(match checked {
                Ok(Ok(())) => Health::Ready,
                Ok(Err(StoreError::Full(_))) => Health::StoreFull,
                Ok(Err(_)) | Err(_) => Health::StoreUnavailable,
            })
        };
        if inner.store.failure().is_some() {
            Health::StoreUnavailable
        } else if inner.stopping.is_given() {
            Health::Stopping
        } else {
            check.await
        }
    }
}
