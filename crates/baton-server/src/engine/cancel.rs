//! Cancels a task: the turn's cancellation token fires, and after a grace time the task is CANCELED even if the agent
//! ignores it. If the agent ends the task at the same time, the first write wins.

use std::sync::Arc;
use std::time::Duration;

use baton_protocol::domain::{
    Event, EventBody, EventKind, JsonObject, Scope, StatusUpdate, TaskId, TaskState,
};
use baton_protocol::lifecycle::Snapshot;
use baton_protocol::{Error, ErrorKind};

use super::commit::{Committed, Draft};
use super::desk::Desk;
use super::detach::detachable;
use super::holder::Holder;
use super::hub::Bell;
use super::runs::RunHandle;
use super::{Engine, Inner, from_store, large, not_found};
use crate::points::{Point, reached};
use crate::store::{Head, NewRequest, Requested, StoredEvent, Work};

const TRIES: usize = 16;

/// The result of a cancel.
#[derive(Debug)]
#[non_exhaustive]
pub(crate) enum Canceled {
    /// Canceled by this call.
    Now(Arc<Snapshot>),
    /// It had been canceled before; generations answer that differently.
    Before(Arc<Snapshot>),
}

/// How far a cancel is once it has been stored.
enum Stored {
    Done(Canceled),
    /// It was requested from the run; the task's end will be an event after this number.
    Requested {
        bell: Arc<Bell>,
        after: u64,
    },
}

impl Engine {
    /// Asks for a task to be canceled, and waits until it is or its agent's grace time is over.
    pub(crate) async fn cancel(
        &self,
        scope: &Scope,
        id: &TaskId,
        metadata: Option<JsonObject>,
    ) -> Result<Canceled, Error> {
        let stored = {
            let (inner, scope, id) = (Arc::clone(&self.inner), scope.clone(), id.clone());
            detachable(&self.inner.tracker, async move { inner.cancel(&scope, &id, metadata).await }).await?
        };
        match stored {
            Stored::Done(canceled) => Ok(canceled),
            // Waits within the request, so that nothing keeps waiting when the client disconnects.
            Stored::Requested { bell, after } => self.inner.wait_for_cancel(scope, id, bell, after).await,
        }
    }
}

impl Inner {
    async fn cancel(
        self: &Arc<Self>,
        scope: &Scope,
        id: &TaskId,
        metadata: Option<JsonObject>,
    ) -> Result<Stored, Error> {
        for _ in 0..TRIES {
            let head = self.store.head(scope, id).await.map_err(from_store)?.ok_or_else(|| not_found(id))?;
            if head.current.state == TaskState::Canceled {
                return Ok(Stored::Done(Canceled::Before(self.load(scope, id).await?)));
            }
            if head.current.state.is_terminal() {
                return Err(not_cancelable(id));
            }
            let stored = match self.runs.cancel(scope, id) {
                Some((run, true)) => self.note_cancel(scope, id, Some(&run), &head, &metadata).await?,
                // Another cancel has been stored; only wait for it.
                Some((_, false)) => {
                    Some(Stored::Requested { bell: self.hub.bell(head.key), after: head.version })
                }
                None if self.holder(&head.current).await.map_err(from_store)? == Holder::Alive => {
                    self.note_cancel_elsewhere(scope, id, &head, &metadata).await?
                }
                None => {
                    let canceled = self.cancel_resting(scope, id, &metadata).await?;
                    canceled.map(|snapshot| Stored::Done(Canceled::Now(snapshot)))
                }
            };
            if let Some(stored) = stored {
                return Ok(stored);
            }
        }
        Err(Error::of(ErrorKind::Unavailable)
            .with_retry_after(1)
            .with_log("lost too many races for one task"))
    }

    /// Stores the cancel as a request for the run, here or in another process. `None`: the task has changed; decide again.
    async fn note_cancel(
        self: &Arc<Self>,
        scope: &Scope,
        id: &TaskId,
        run: Option<&RunHandle>,
        head: &Head,
        metadata: &Option<JsonObject>,
    ) -> Result<Option<Stored>, Error> {
        let body = EventBody::CancelRequested { metadata: metadata.clone() };
        let event = Event { number: 0, at: self.clock.now(), body };
        let event = StoredEvent::encode(id, &head.context_id, &event);
        // The limit on waiting messages does not apply to a cancel.
        let request = NewRequest { event, message: None, most_pending: u32::MAX };
        let requested = self.store.request(scope, id, request).await;
        if let (Some(run), false) = (run, matches!(requested, Ok(Requested::Noted { .. }))) {
            run.not_canceled();
        }
        let head = match requested.map_err(from_store)? {
            Requested::Noted { head, .. } => head,
            Requested::NotFound => return Err(not_found(id)),
            Requested::Ended(_) | Requested::Duplicate(_) | Requested::Full => return Ok(None),
        };
        reached(Point::CancelNoted);
        let bell = self.hub.bell(head.key);
        self.wake_or_advance(scope, id);
        Ok(Some(Stored::Requested { bell, after: head.version }))
    }

    /// Asks the run of another process to stop, unless that was asked already. `None`: look again.
    async fn note_cancel_elsewhere(
        self: &Arc<Self>,
        scope: &Scope,
        id: &TaskId,
        head: &Head,
        metadata: &Option<JsonObject>,
    ) -> Result<Option<Stored>, Error> {
        let pending = self.store.requests(scope, id).await.map_err(from_store)?;
        if pending.iter().any(|request| request.event.kind == EventKind::CancelRequested) {
            return Ok(Some(Stored::Requested { bell: self.hub.bell(head.key), after: head.version }));
        }
        self.note_cancel(scope, id, None, head, metadata).await
    }

    async fn wait_for_cancel(
        &self,
        scope: &Scope,
        id: &TaskId,
        bell: Arc<Bell>,
        after: u64,
    ) -> Result<Canceled, Error> {
        let max_wait = self.options().cancel_grace + Duration::from_secs(10);
        let ended =
            self.wait_for(scope, id, bell, after, max_wait, TaskState::is_terminal).await?.snapshot()?;
        match ended.state() {
            TaskState::Canceled => Ok(Canceled::Now(ended)),
            state if state.is_terminal() => Err(not_cancelable(id)),
            // Not ended in time: the specification does not guarantee success; the client sees the task's state.
            _ => Ok(Canceled::Now(ended)),
        }
    }

    /// No run works on the task: writes CANCELED directly. `None`: the task has changed; decide again.
    async fn cancel_resting(
        self: &Arc<Self>,
        scope: &Scope,
        id: &TaskId,
        metadata: &Option<JsonObject>,
    ) -> Result<Option<Arc<Snapshot>>, Error> {
        let desk = Arc::new(Desk::new(self.options().max_event_bytes));
        let Some(registration) = self.runs.register(scope, id, desk) else { return Ok(None) };
        let loaded = self.store.load(scope, id).await.map_err(from_store)?.ok_or_else(|| not_found(id))?;
        let (loaded, snapshot) = large::fold(loaded).await.map_err(from_store)?;
        let holder = self.holder(&loaded.head.current).await.map_err(from_store)?;
        if snapshot.state().is_terminal() || holder == Holder::Alive {
            return Ok(None);
        }
        let at = self.time_for(&snapshot);
        let mut draft = Draft::of(&loaded, snapshot, at);
        let canceled = StatusUpdate { state: TaskState::Canceled, message: None, metadata: None };
        for body in [EventBody::CancelRequested { metadata: metadata.clone() }, EventBody::Status(canceled)] {
            draft.write(body).map_err(|refused| not_cancelable(id).with_log(refused))?;
        }
        let next_fence = draft.fence() + 1;
        let decision = draft.decide(Work::Idle, next_fence, None);
        match self.commit(scope, decision).await.map_err(from_store)? {
            Committed::Written(written) => {
                if registration.leave() {
                    self.wake_or_advance(scope, id);
                }
                Ok(Some(written.snapshot))
            }
            Committed::Lost | Committed::Repeat(_) => Ok(None),
        }
    }
}

fn not_cancelable(id: &TaskId) -> Error {
    Error::new(ErrorKind::TaskNotCancelable, "The task has ended and cannot be canceled")
        .with_info("taskId", id.as_str())
}
