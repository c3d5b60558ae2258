//! Waits until a task rests, or until a deadline.

use std::sync::Arc;
use std::time::Duration;

use baton_protocol::domain::{EventKind, Scope, TaskId, TaskState};
use baton_protocol::{Error, ErrorKind};
use tokio::time::Instant;

use super::hub::Bell;
use super::reader::{LogReader, Read};
use super::send::TurnRef;
use super::view::View;
use super::{Engine, Inner, from_store};
use crate::store::StoredEvent;

/// The result of waiting for a status.
enum Reached {
    /// The event of that number has it.
    At(u64),
    /// The event is no longer in the log, but the task itself has that status.
    Shown(View),
    /// It was not reached in time.
    Not,
}

impl Engine {
    /// The task once the turn has ended or waits for input; after `max_wait`, the task as it is.
    pub(crate) async fn wait(&self, turn: &TurnRef, max_wait: Duration) -> Result<View, Error> {
        let until = Instant::now() + max_wait;
        // The log of an ended task may have been folded; then the event would never be found.
        if turn.replayed && self.inner.head(&turn.scope, &turn.id).await?.current.state.is_terminal() {
            return self.inner.view(&turn.scope, &turn.id).await;
        }
        let Ok(event) = tokio::time::timeout(max_wait, self.inner.event_of(turn)).await else {
            return self.inner.view(&turn.scope, &turn.id).await;
        };
        let Some(event) = event? else {
            return self.inner.view(&turn.scope, &turn.id).await;
        };
        let rests = |state: TaskState| state.is_terminal() || state.is_interrupted();
        let left = until.saturating_duration_since(Instant::now());
        self.inner.wait_for(&turn.scope, &turn.id, Arc::clone(&turn.bell), event, left, rests).await
    }

    /// The task right after the message was accepted. If it was waiting for input, its start is not shown: it would look as
    /// if it still waited.
    pub(crate) async fn now_or_start(&self, turn: &TurnRef) -> Result<View, Error> {
        match &turn.start {
            Some(start) if !start.state().is_interrupted() => Ok(View::from(Arc::clone(start))),
            _ => self.inner.view(&turn.scope, &turn.id).await,
        }
    }
}

impl Inner {
    /// Waits for the first status after `after` that `rests`, at most `max_wait`.
    pub(super) async fn wait_for(
        &self,
        scope: &Scope,
        id: &TaskId,
        bell: Arc<Bell>,
        after: u64,
        max_wait: Duration,
        rests: impl Fn(TaskState) -> bool,
    ) -> Result<View, Error> {
        let mut reader =
            LogReader::new(self.store.clone(), Arc::clone(&bell), scope.clone(), id.clone(), after);
        let reached = tokio::select! {
            biased;
            reached = self.reached(&mut reader, &bell, rests) => reached?,
            () = tokio::time::sleep(max_wait) => Reached::Not,
        };
        let known = match reached {
            Reached::Shown(view) => Some(view),
            // The bell usually has the task as the run folded it, so that it need not be read again.
            Reached::At(number) => bell.at_turn_end(number),
            Reached::Not => None,
        };
        match known {
            Some(view) => Ok(view),
            None => self.view(scope, id).await,
        }
    }

    /// Reads until the task rests, or the server stops.
    async fn reached(
        &self,
        reader: &mut LogReader,
        bell: &Bell,
        rests: impl Fn(TaskState) -> bool,
    ) -> Result<Reached, Error> {
        loop {
            // In this order, because `close` first cancels the token and then rings all bells.
            let (rings, closing) = (bell.rings(), self.closing.is_cancelled());
            let read = if closing {
                reader.next_ready().map_or(Read::Nothing, Read::Event)
            } else {
                reader.next_or_ring(rings).await.map_err(from_store)?
            };
            match read {
                Read::Event(StoredEvent { number, kind: EventKind::Status(state), .. }) if rests(state) => {
                    return Ok(Reached::At(number));
                }
                Read::Event(_) => {}
                // The server is stopping: the client gets the task as it is instead of a broken connection.
                Read::Nothing if closing => return Ok(Reached::Not),
                Read::Nothing => {}
                Read::Gone => {
                    let view = reader.skip_to_now().await?;
                    if rests(view.clone().snapshot()?.state()) {
                        return Ok(Reached::Shown(view));
                    }
                }
            }
        }
    }

    /// The event number of the turn's message; waits until the message is in the log. `None`: the task has ended without it.
    pub(super) async fn event_of(&self, turn: &TurnRef) -> Result<Option<u64>, Error> {
        if let Some(event) = turn.event {
            return Ok(Some(event));
        }
        loop {
            let rings = turn.bell.rings();
            let (id, hash) = &turn.message;
            let found = self.store.message(&turn.scope, id, hash).await.map_err(from_store)?;
            if let Some(event) = found.and_then(|record| record.event) {
                return Ok(Some(event));
            }
            let head = self.store.head(&turn.scope, &turn.id).await.map_err(from_store)?;
            if head.is_none_or(|head| head.current.state.is_terminal()) {
                return Ok(None);
            }
            tokio::select! {
                () = turn.bell.rung_since(rings) => {}
                () = self.closing.cancelled() => {
                    return Err(Error::of(ErrorKind::Unavailable).with_retry_after(1));
                }
            }
        }
    }
}
