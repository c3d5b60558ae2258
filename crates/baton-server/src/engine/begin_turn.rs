//! Begins a turn: of a new task, after a follow-up message, or after a crash.

use std::sync::Arc;

use baton_protocol::domain::{EventBody, StatusUpdate, TaskState, TraceContext};

use super::Inner;
use super::admission::Admitted;
use super::commit::{Committed, Draft};
use super::desk::Desk;
use super::run::Launch;
use super::runs::Registration;
use crate::points::Point;
use crate::store::{StoreError, Work};

/// A turn that is about to begin. The task is registered in this process before anything is written.
#[derive(Debug)]
pub(super) struct TurnStart {
    pub(super) registration: Registration,
    pub(super) desk: Arc<Desk>,
    pub(super) admitted: Admitted,
    /// Holds the message that begins the turn, unless it is already in the log.
    pub(super) draft: Draft,
    /// The trace context of that message.
    pub(super) origin: Option<TraceContext>,
    /// A crash interrupted an earlier attempt at the same turn.
    pub(super) is_rerun: bool,
    /// More requests wait for the run.
    pub(super) has_requests: bool,
    /// The point where a fault test may kill the process: stored, and the run not started.
    pub(super) stored: Point,
}

impl Inner {
    /// Stores the beginning of a turn and starts its run, or puts the task into the queue.
    pub(super) async fn begin_turn(self: &Arc<Self>, start: TurnStart) -> Result<Committed, StoreError> {
        let TurnStart { registration, desk, admitted, mut draft, origin, is_rerun, has_requests, stored } =
            start;
        let scope = registration.scope().clone();
        let (work, fence) = match &admitted {
            Admitted::Run(_) => {
                let is_working = draft.snapshot.state() == TaskState::Working;
                let attempt = self.attempt(&scope, &draft.snapshot);
                for body in [Some(attempt), (!is_working).then(working)].into_iter().flatten() {
                    let written = draft.write(body);
                    written.map_err(|refused| {
                        StoreError::damaged(format!("task {}: {refused}", registration.id()))
                    })?;
                }
                (Work::Running, draft.fence() + 1)
            }
            Admitted::Wait(_) => (Work::Queued, draft.fence()),
        };
        let decision = draft.decide(work, fence, Some(stored));
        let mut prepared = self.prepared(decision, &self.options());
        let since_snapshot = prepared.since_snapshot;
        let written = match self.write(&scope, &mut prepared, false).await? {
            Committed::Written(written) => written,
            not_written => return Ok(not_written),
        };
        // The run may take long; do not keep a second copy of the message meanwhile.
        drop(prepared);
        registration.stored();
        match admitted {
            Admitted::Run(permit) => {
                if has_requests {
                    registration.handle.wake();
                }
                let (bell, snapshot) = (Arc::clone(&written.bell), Arc::clone(&written.snapshot));
                self.launch(Launch {
                    registration,
                    desk,
                    snapshot,
                    since_snapshot,
                    fence,
                    bell,
                    permit,
                    origin,
                    is_rerun,
                })
                .await;
            }
            Admitted::Wait(slot) => {
                self.admission.enqueue(scope, registration.id().clone(), slot.caller());
                drop((registration, slot));
            }
        }
        Ok(Committed::Written(written))
    }
}

fn working() -> EventBody {
    EventBody::Status(StatusUpdate { state: TaskState::Working, message: None, metadata: None })
}
