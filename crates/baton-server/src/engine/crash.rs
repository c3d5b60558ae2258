//! Looking after tasks that no run holds: what a crash left behind, what waited for a place, what was
//! requested while nobody was there.
//!
//! The crash rule: queued and no attempt → started; an attempt open and the agent may be re-run → the next
//! attempt; an attempt open otherwise → failed, with the reason. So nothing stays working for ever, and an
//! agent that is not re-runnable never has a second attempt at a turn.

use std::sync::Arc;

use baton_protocol::domain::{EventBody, EventKind, Scope, StatusUpdate, TaskId, TaskState, TraceContext};
use baton_protocol::lifecycle::Snapshot;

use tokio::runtime::Handle;

use super::Inner;
use super::admission::{Admitted, Permit};
use super::begin_turn::TurnStart;
use super::commit::{Committed, Draft};
use super::desk::Desk;
use super::large;
use super::turn::agent_message;
use crate::points::{Point, reached};
use crate::store::{Head, PendingRequest, Settled, StoreError, StoredEvent, TaskKey, Work};

const PAGE: u32 = 256;
const LOST: &str = "The server stopped while the agent was working on this task, and the agent does not allow a turn \
                    to be run again";

/// What to do for a task, decided from its head and its pending requests.
enum Plan {
    Nothing,
    /// Ended: what still waits is settled into nothing. Only a cancel can, or a message that an older version lost.
    Settle,
    Cancel,
    /// For that reason.
    Fail(String),
    /// Start a turn; the request whose message begins it, if it is not in the log yet.
    Turn(Option<PendingRequest>),
}

impl Inner {
    /// A request was noted: ring the task's run, or look after the task here.
    pub(super) fn attend(self: &Arc<Self>, scope: &Scope, id: &TaskId) {
        if self.runs.ring(scope, id) {
            return;
        }
        if Handle::try_current().is_err() {
            // The process is ending; the next start looks.
            return;
        }
        let (inner, scope, id) = (Arc::clone(self), scope.clone(), id.clone());
        self.tracker.spawn(async move { inner.tend(&scope, &id, None).await.ok() });
    }

    /// Starts waiting tasks while there are places.
    pub(super) fn admit_waiting(self: &Arc<Self>) {
        while self.admission.somebody_waits() && !self.stopping.is_given() {
            let Some((permit, scope, id)) = self.admission.next() else { return };
            let inner = Arc::clone(self);
            self.tracker.spawn(async move {
                // On a store that takes nothing the rest of the queue would fail alike; the sweeper finds it.
                if inner.tend(&scope, &id, Some(permit)).await.is_ok() {
                    inner.admit_waiting();
                }
            });
        }
    }

    /// Looks after every task with work left and no run here, as long as the store takes writes. Answers how many
    /// there were.
    pub(super) async fn tend_open_tasks(self: &Arc<Self>) -> Result<usize, StoreError> {
        let (mut after, mut found) = (TaskKey(0), 0);
        loop {
            let page = self.store.open_tasks(after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(found) };
            after = last.key;
            for open in page {
                if !self.runs.is_live(&open.scope, &open.id) {
                    found += 1;
                    if self.tend(&open.scope, &open.id, None).await.is_err() {
                        return Ok(found);
                    }
                }
            }
        }
    }

    /// An error says that the store takes no writes now: nobody else's task can be looked after either, and the
    /// sweeper comes round soon. What is wrong with this task alone is none.
    async fn tend(
        self: &Arc<Self>,
        scope: &Scope,
        id: &TaskId,
        mut permit: Option<Permit>,
    ) -> Result<(), StoreError> {
        // A lost race means somebody else took the task on; a few rounds are plenty.
        for _ in 0..8 {
            match self.tend_once(scope, id, &mut permit).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error @ (StoreError::Full(_) | StoreError::Unavailable(_))) => {
                    tracing::debug!(task.id = %id, %error, "a task could not be looked after yet");
                    self.untended.notify_one();
                    return Err(error);
                }
                Err(error) => {
                    tracing::warn!(task.id = %id, %error, "a task could not be looked after");
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// `false`: a race was lost, look again.
    async fn tend_once(
        self: &Arc<Self>,
        scope: &Scope,
        id: &TaskId,
        permit: &mut Option<Permit>,
    ) -> Result<bool, StoreError> {
        let desk = Arc::new(Desk::new(self.options().max_event_bytes));
        let Some(registration) = self.runs.register(scope, id, Arc::clone(&desk)) else {
            // A run is there; if it leaves without having looked, it comes back here.
            return Ok(self.runs.ring(scope, id));
        };
        let Some(loaded) = self.store.load(scope, id).await? else { return Ok(true) };
        let pending = self.store.requests(scope, id).await?;
        let (loaded, snapshot) = large::fold(loaded).await?;
        let plan = self.plan(scope, &loaded.head, &snapshot, &pending);
        if matches!(plan, Plan::Nothing) {
            return Ok(!registration.leave());
        }
        let at = self.time_for(&snapshot);
        let mut draft = Draft::of(&loaded, snapshot, at);
        let end = match &plan {
            Plan::Nothing | Plan::Settle => None,
            Plan::Cancel => Some(canceled()),
            Plan::Fail(reason) => Some(failed(&draft.snapshot, reason)),
            Plan::Turn(request) => {
                let Some(permit) = permit.take().or_else(|| self.place_now(scope)) else {
                    drop(registration);
                    self.admission.enqueue(scope.clone(), id.clone());
                    // A place may have come free since.
                    self.admit_waiting();
                    return Ok(true);
                };
                if let Some(request) = request {
                    let event = write(&mut draft, id, request.event.decode()?.body)?;
                    draft.settled.push(Settled { request: request.request, event: Some(event) });
                }
                reached(Point::TendPlanned);
                let start = TurnStart {
                    registration,
                    desk,
                    place: Admitted::Run(permit),
                    draft,
                    origin: origin(&plan, &loaded.tail),
                    is_rerun: request.is_none() && loaded.head.current.work == Work::Running,
                    has_requests: pending.len() > usize::from(request.is_some()),
                    stored: Point::TendStored,
                };
                let committed = self.begin_turn(start).await?;
                return Ok(matches!(committed, Committed::Written(_)));
            }
        };
        if let Some(end) = end {
            write(&mut draft, id, end)?;
        }
        // A message is no part of this unless the task has ended before: the commit that ends it writes it down.
        let is_answered = |request: &&PendingRequest| {
            matches!(plan, Plan::Settle) || request.event.kind != EventKind::UserMessage
        };
        let answered = pending.iter().filter(is_answered);
        draft.settled.extend(answered.map(|request| Settled { request: request.request, event: None }));
        reached(Point::TendPlanned);
        let next_fence = draft.fence() + 1;
        let decision = draft.decide(Work::Idle, next_fence, Some(Point::TendStored));
        let committed = self.commit(scope, decision).await?;
        Ok(matches!(committed, Committed::Written(_)) && !registration.leave())
    }

    /// A place for a turn, if one is free and turns are still begun.
    fn place_now(&self, scope: &Scope) -> Option<Permit> {
        match self.admission.reserve(&scope.agent) {
            Ok(Admitted::Run(permit)) if !self.stopping.is_given() => Some(permit),
            _ => None,
        }
    }

    fn plan(&self, scope: &Scope, head: &Head, snapshot: &Snapshot, pending: &[PendingRequest]) -> Plan {
        use EventKind::{CancelRequested, UserMessage};
        if snapshot.state().is_terminal() {
            return if pending.is_empty() { Plan::Nothing } else { Plan::Settle };
        }
        if pending.iter().any(|request| request.event.kind == CancelRequested) {
            return Plan::Cancel;
        }
        match head.current.work {
            Work::Queued => Plan::Turn(None),
            Work::Running => match self.agent_of(scope, snapshot) {
                Ok(agent) if agent.rerunnable() => Plan::Turn(None),
                Ok(_) => Plan::Fail(LOST.to_owned()),
                Err(reason) => Plan::Fail(reason),
            },
            Work::Idle => match pending.iter().find(|request| request.event.kind == UserMessage) {
                Some(request) => Plan::Turn(Some(request.clone())),
                None => Plan::Nothing,
            },
        }
    }
}

/// The trace of the message that begins the turn: of the request it comes from, else of the last one in the log.
fn origin(plan: &Plan, tail: &[StoredEvent]) -> Option<TraceContext> {
    let noted = match plan {
        Plan::Turn(Some(request)) => Some(&request.event),
        _ => tail.iter().rev().find(|event| event.kind == EventKind::UserMessage),
    };
    match noted?.decode().ok()?.body {
        EventBody::UserMessage { trace, .. } => trace,
        _ => None,
    }
}

fn failed(snapshot: &Snapshot, reason: &str) -> EventBody {
    let message = agent_message(&snapshot.task.id, &snapshot.task.context_id, reason);
    EventBody::Status(StatusUpdate { state: TaskState::Failed, message: Some(message), metadata: None })
}

fn canceled() -> EventBody {
    EventBody::Status(StatusUpdate { state: TaskState::Canceled, message: None, metadata: None })
}

fn write(draft: &mut Draft, id: &TaskId, body: EventBody) -> Result<u64, StoreError> {
    draft.write(body).map_err(|refused| StoreError::Damaged(format!("task {id}: {refused}")))
}
