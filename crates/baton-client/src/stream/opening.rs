//! A stream over gRPC whose head has not come yet. Some servers send it with the first event, and nothing may happen to a task
//! for a long time: whoever has subscribed must not wait for that before going on.

use std::fmt;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::events::Events;
use crate::error::Error;

/// How long a head is waited for, so that what is refused at once is told at once.
const PATIENCE: Duration = Duration::from_secs(1);

type Future = Pin<Box<dyn std::future::Future<Output = Result<Events, Error>> + Send>>;

/// `None` once it has failed. The mutex is never locked: with it, the stream can be shared between threads.
pub(crate) struct Opening(Mutex<Option<Future>>);

impl Opening {
    /// Opens a stream, and does not wait long for its head.
    pub(crate) async fn begin(
        opening: impl std::future::Future<Output = Result<Events, Error>> + Send + 'static,
    ) -> Result<Events, Error> {
        let mut opening: Future = Box::pin(opening);
        match tokio::time::timeout(PATIENCE, &mut opening).await {
            Ok(opened) => opened,
            Err(_) => Ok(Events::Opening(Opening(Mutex::new(Some(opening))))),
        }
    }

    /// Waits for the head. Cancel safe. `None` if that has failed before.
    pub(super) async fn opened(&mut self) -> Result<Option<Events>, Error> {
        let place = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(opening) = place else { return Ok(None) };
        let opened = opening.await;
        *place = None;
        opened.map(Some)
    }
}

impl fmt::Debug for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opening").finish_non_exhaustive()
    }
}
