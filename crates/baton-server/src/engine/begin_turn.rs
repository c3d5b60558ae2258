//! How every turn begins: of a new task, after a follow-up, and after a crash.

use std::sync::Arc;

use baton_protocol::domain::{EventBody, StatusUpdate, TaskState, TraceContext};

use super::Inner;
use super::admission::Admitted;
use super::commit::{Committed, Draft};
use super::desk::Desk;
use super::runs::Registration;
use crate::points::Point;
use crate::store::{StoreError, Work};

/// A turn about to begin. The task is claimed in this process before anything is written.
#[derive(Debug)]
pub(super) struct TurnStart {
    pub(super) registration: Registration,
    pub(super) desk: Arc<Desk>,
    pub(super) place: Admitted,
    /// With the message that begins the turn, unless the log has it already.
    pub(super) draft: Draft,
    /// The trace of that message.
    pub(super) origin: Option<TraceContext>,
    /// An attempt at the same turn was cut off.
    pub(super) is_rerun: bool,
    /// More requests wait for the run.
    pub(super) has_requests: bool,
    /// Where a fault test may kill: stored, and the run not started.
    pub(super) stored: Point,
}

impl Inner {
    /// Stores the beginning of a turn and starts its run, or lets the task wait for a place.
    pub(super) async fn begin_turn(self: &Arc<Self>, start: TurnStart) -> Result<Committed, StoreError> {
        let TurnStart { registration, desk, place, mut draft, origin, is_rerun, has_requests, stored } =
            start;
        let scope = registration.scope().clone();
        let (work, fence) = match &place {
            Admitted::Run(_) => {
                let is_working = draft.snapshot.state() == TaskState::Working;
                let attempt = self.attempt(&scope, &draft.snapshot);
                for body in [Some(attempt), (!is_working).then(working)].into_iter().flatten() {
                    let written = draft.write(body);
                    written.map_err(|refused| {
                        StoreError::Damaged(format!("task {}: {refused}", registration.id()))
                    })?;
                }
                (Work::Running, draft.fence() + 1)
            }
            Admitted::Wait(_) => (Work::Queued, draft.fence()),
        };
        let decision = draft.decide(work, fence, Some(stored));
        let mut prepared = self.prepared(decision, &self.options());
        let since = prepared.since_snapshot;
        let written = match self.write(&scope, &mut prepared, false).await? {
            Committed::Written(written) => written,
            not_written => return Ok(not_written),
        };
        // The run may last; the message it began with is held once.
        drop(prepared);
        registration.stored();
        match place {
            Admitted::Run(permit) => {
                if has_requests {
                    registration.handle.ring();
                }
                let (bell, snapshot) = (Arc::clone(&written.bell), Arc::clone(&written.snapshot));
                self.launch(registration, desk, snapshot, since, fence, bell, permit, origin, is_rerun).await;
            }
            Admitted::Wait(place) => {
                self.admission.enqueue(scope, registration.id().clone());
                drop((registration, place));
            }
        }
        Ok(Committed::Written(written))
    }
}

fn working() -> EventBody {
    EventBody::Status(StatusUpdate { state: TaskState::Working, message: None, metadata: None })
}
