//! Waiting for a task to come to rest: until a status that says so, or a deadline.

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

/// How waiting for a status ended.
enum Reached {
    /// With the event of that number.
    At(u64),
    /// Its event is no longer in the log, but the task as it is shows it.
    Shown(View),
    Not,
}

impl Engine {
    /// The task when the turn has ended or waits for input; after `patience`, the task as it is.
    pub async fn wait(&self, turn: &TurnRef, patience: Duration) -> Result<View, Error> {
        let until = Instant::now() + patience;
        // The log of an ended task may be folded: there would be nothing to wait for.
        if turn.replayed && self.inner.head(&turn.scope, &turn.id).await?.current.state.is_terminal() {
            return self.inner.view(&turn.scope, &turn.id).await;
        }
        let Ok(event) = tokio::time::timeout(patience, self.inner.event_of(turn)).await else {
            return self.inner.view(&turn.scope, &turn.id).await;
        };
        let Some(event) = event? else {
            return self.inner.view(&turn.scope, &turn.id).await;
        };
        let rests = |state: TaskState| state.is_terminal() || state.is_interrupted();
        let left = until.saturating_duration_since(Instant::now());
        self.inner.wait_for(&turn.scope, &turn.id, Arc::clone(&turn.bell), event, left, rests).await
    }

    /// The task as it is right after the message was taken in. A task that was asking goes on working: shown as
    /// it was a moment before, it would seem to ask again.
    pub async fn now_or_start(&self, turn: &TurnRef) -> Result<View, Error> {
        match &turn.start {
            Some(start) if !start.state().is_interrupted() => Ok(View::from(Arc::clone(start))),
            _ => self.inner.view(&turn.scope, &turn.id).await,
        }
    }
}

impl Inner {
    /// Waits for the first status after `after` that `rests`, at most `patience`.
    pub(super) async fn wait_for(
        &self,
        scope: &Scope,
        id: &TaskId,
        bell: Arc<Bell>,
        after: u64,
        patience: Duration,
        rests: impl Fn(TaskState) -> bool,
    ) -> Result<View, Error> {
        let mut reader =
            LogReader::new(self.store.clone(), Arc::clone(&bell), scope.clone(), id.clone(), after);
        let reached = async {
            loop {
                // In this order: who closes gives the signal, then rings all bells.
                let (rings, closing) = (bell.rings(), self.closing.is_given());
                let read = if closing {
                    reader.at_hand().map_or(Read::Nothing, Read::Event)
                } else {
                    reader.next_or_ring(rings).await.map_err(from_store)?
                };
                match read {
                    Read::Event(StoredEvent { number, kind: EventKind::Status(state), .. })
                        if rests(state) =>
                    {
                        return Ok::<_, Error>(Reached::At(number));
                    }
                    Read::Event(_) => {}
                    // The caller gets the task as it is instead of a broken connection.
                    Read::Nothing if closing => return Ok(Reached::Not),
                    Read::Nothing => {}
                    Read::Gone => {
                        let view = reader.skip_to_now().await?;
                        let snapshot = view.clone().snapshot()?;
                        if rests(snapshot.state()) {
                            return Ok(Reached::Shown(view));
                        }
                    }
                }
            }
        };
        let reached = tokio::select! {
            biased;
            reached = reached => reached?,
            () = tokio::time::sleep(patience) => Reached::Not,
        };
        let known = match reached {
            Reached::Shown(view) => Some(view),
            // The run left the task it folded at the bell: no need to read and fold it again.
            Reached::At(number) => bell.settled(number),
            Reached::Not => None,
        };
        match known {
            Some(view) => Ok(view),
            None => self.view(scope, id).await,
        }
    }

    /// The number of the turn's message in the log; waits while the message does. `None`: the task ended
    /// without taking it.
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
                () = self.closing.token().cancelled() => {
                    return Err(Error::of(ErrorKind::Unavailable).with_retry_after(1));
                }
            }
        }
    }
}
