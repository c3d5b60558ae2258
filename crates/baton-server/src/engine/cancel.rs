//! Cancel: the token fires, and the task is CANCELED after a grace time even if the agent ignores it.
//! Whoever writes first wins a race with the agent's own end.

use std::sync::Arc;
use std::time::Duration;

use baton_protocol::domain::{Event, EventBody, JsonObject, Scope, StatusUpdate, TaskId, TaskState};
use baton_protocol::lifecycle::Snapshot;
use baton_protocol::{Error, ErrorKind};

use super::commit::{Committed, Draft};
use super::desk::Desk;
use super::detach::finish;
use super::hub::Bell;
use super::runs::RunHandle;
use super::{Engine, Inner, from_store, large, not_found};
use crate::points::{Point, reached};
use crate::store::{Head, NewRequest, Requested, StoredEvent, Work};

const TRIES: usize = 16;

/// What became of a cancel.
#[derive(Debug)]
#[non_exhaustive]
pub enum Canceled {
    /// By this call.
    Now(Arc<Snapshot>),
    /// It had been canceled before; generations differ in what they say to that.
    Before(Arc<Snapshot>),
}

/// Where a cancel stands once it has been stored.
enum Stored {
    Done(Canceled),
    /// The run was told; its task ends after this number.
    Told {
        bell: Arc<Bell>,
        after: u64,
    },
}

impl Engine {
    /// Asks for a task to be canceled, and waits until it is or its agent's grace time is over.
    pub async fn cancel(
        &self,
        scope: &Scope,
        id: &TaskId,
        metadata: Option<JsonObject>,
    ) -> Result<Canceled, Error> {
        let stored = {
            let (inner, scope, id) = (Arc::clone(&self.inner), scope.clone(), id.clone());
            finish(&self.inner.tracker, async move { inner.cancel(&scope, &id, metadata).await }).await?
        };
        match stored {
            Stored::Done(canceled) => Ok(canceled),
            // Ends with the request: callers that come and go must not leave waiters behind.
            Stored::Told { bell, after } => self.inner.wait_for_cancel(scope, id, bell, after).await,
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
                Some((run, true)) => self.note_cancel(scope, id, &run, &head, &metadata).await?,
                // One is noted already: there is nothing to add to it.
                Some((_, false)) => Some(Stored::Told { bell: self.hub.bell(head.key), after: head.version }),
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

    /// Asks the run to stop. `None`: look again.
    async fn note_cancel(
        self: &Arc<Self>,
        scope: &Scope,
        id: &TaskId,
        run: &RunHandle,
        head: &Head,
        metadata: &Option<JsonObject>,
    ) -> Result<Option<Stored>, Error> {
        let body = EventBody::CancelRequested { metadata: metadata.clone() };
        let event = Event { number: 0, at: self.clock.now(), body };
        let event = StoredEvent::encode(id, &head.context_id, &event);
        // A cancel is never refused for the messages that wait.
        let request = NewRequest { event, message: None, most_pending: u32::MAX };
        let requested = self.store.request(scope, id, request).await;
        if !matches!(requested, Ok(Requested::Noted { .. })) {
            run.not_canceled();
        }
        let head = match requested.map_err(from_store)? {
            Requested::Noted { head, .. } => head,
            Requested::NotFound => return Err(not_found(id)),
            Requested::Ended(_) | Requested::Duplicate(_) | Requested::Full => return Ok(None),
        };
        reached(Point::CancelNoted);
        let bell = self.hub.bell(head.key);
        self.attend(scope, id);
        Ok(Some(Stored::Told { bell, after: head.version }))
    }

    async fn wait_for_cancel(
        &self,
        scope: &Scope,
        id: &TaskId,
        bell: Arc<Bell>,
        after: u64,
    ) -> Result<Canceled, Error> {
        let patience = self.options().cancel_grace + Duration::from_secs(10);
        let ended =
            self.wait_for(scope, id, bell, after, patience, TaskState::is_terminal).await?.snapshot()?;
        match ended.state() {
            TaskState::Canceled => Ok(Canceled::Now(ended)),
            state if state.is_terminal() => Err(not_cancelable(id)),
            // Still not ended: success is not guaranteed, the task says how far it is.
            _ => Ok(Canceled::Now(ended)),
        }
    }

    /// Nobody works on the task: write CANCELED here. `None`: look again.
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
        if snapshot.state().is_terminal() {
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
                    self.attend(scope, id);
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
