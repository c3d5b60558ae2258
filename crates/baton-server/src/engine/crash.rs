//! Advances tasks that have work left and no run: after a crash, when a queued task gets a slot, and when a request was
//! stored for a task without a run.
//!
//! A task whose holder is another process that is alive is left to that process ([`super::holder`]).
//!
//! The crash rule: a queued task without an attempt is started; a task with an open attempt gets the next attempt if its
//! agent may be re-run, and fails with the reason if not. So no task stays working for ever, and an agent that is not
//! re-runnable never gets a second attempt at a turn.

use std::sync::Arc;

use baton_protocol::domain::{EventBody, EventKind, Scope, StatusUpdate, TaskId, TaskState, TraceContext};
use baton_protocol::lifecycle::Snapshot;

use tokio::runtime::Handle;

use super::Inner;
use super::admission::{Admitted, Permit};
use super::begin_turn::TurnStart;
use super::caller::Caller;
use super::commit::{Committed, Decision, Draft};
use super::desk::Desk;
use super::holder::Holder;
use super::large;
use super::runs::Registration;
use super::turn::agent_message;
use crate::points::{Point, reached};
use crate::store::{Head, PendingRequest, Settled, StoreError, StoredEvent, TaskKey, Work};

const PAGE: u32 = 256;
const LOST: &str = "The server stopped while the agent was working on this task, and the agent does not allow a turn \
                    to be run again";

/// What to do for a task, decided from its head and its pending requests.
enum Plan {
    Nothing,
    /// The task has ended: remaining requests are settled without an event. That can only be a cancel, or a message that an
    /// older version of Baton lost.
    Settle,
    Cancel,
    /// Fail it for that reason.
    Fail(String),
    /// Begin a turn, with the message of this request if the message is not in the log yet.
    Turn(Option<PendingRequest>),
}

impl Inner {
    /// A request was stored: wakes the task's run, or advances the task if it has none.
    pub(super) fn wake_or_advance(self: &Arc<Self>, scope: &Scope, id: &TaskId) {
        if self.runs.wake(scope, id) {
            return;
        }
        if Handle::try_current().is_err() {
            // The process is ending; the next start finds the request.
            return;
        }
        let (inner, scope, id) = (Arc::clone(self), scope.clone(), id.clone());
        self.tracker.spawn(async move { inner.advance(&scope, &id, None).await.ok() });
    }

    /// Starts queued tasks while there are free slots.
    pub(super) fn admit_waiting(self: &Arc<Self>) {
        while self.admission.has_queued() && !self.stopping.is_cancelled() {
            let Some((permit, scope, id)) = self.admission.next() else { return };
            let inner = Arc::clone(self);
            self.tracker.spawn(async move {
                // If the store takes no writes, the rest of the queue would fail as well; the sweeper will find it.
                if inner.advance(&scope, &id, Some(permit)).await.is_ok() {
                    inner.admit_waiting();
                }
            });
        }
    }

    /// Advances every task that has work left and no run in this process, as long as the store takes writes. Returns how many
    /// there were.
    pub(super) async fn advance_open_tasks(self: &Arc<Self>) -> Result<usize, StoreError> {
        let (mut after, mut found) = (TaskKey(0), 0);
        loop {
            let page = self.store.open_tasks(after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(found) };
            after = last.key;
            for open in page {
                if !self.runs.is_live(&open.scope, &open.id) {
                    found += 1;
                    if self.advance(&open.scope, &open.id, None).await.is_err() {
                        return Ok(found);
                    }
                }
            }
        }
    }

    /// Advances one task. An error means that the store takes no writes now, so that other tasks cannot be advanced either; the
    /// sweeper tries again soon. Problems of this task alone are logged and are not errors.
    async fn advance(
        self: &Arc<Self>,
        scope: &Scope,
        id: &TaskId,
        mut permit: Option<Permit>,
    ) -> Result<(), StoreError> {
        // A lost race means that another writer has the task; a few tries are enough.
        for _ in 0..8 {
            match self.try_advance(scope, id, &mut permit).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error @ (StoreError::Full(_) | StoreError::Unavailable(_))) => {
                    tracing::debug!(task.id = %id, %error, "a task could not be advanced yet; it is tried again");
                    self.advance_failed.notify_one();
                    return Err(error);
                }
                Err(error) => {
                    tracing::warn!(task.id = %id, %error, "a task could not be advanced");
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// `false`: a race was lost; try again.
    async fn try_advance(
        self: &Arc<Self>,
        scope: &Scope,
        id: &TaskId,
        permit: &mut Option<Permit>,
    ) -> Result<bool, StoreError> {
        let desk = Arc::new(Desk::new(self.options().max_event_bytes));
        let Some(registration) = self.runs.register(scope, id, Arc::clone(&desk)) else {
            // The task has a run. If that leaves without having read the request, it calls `wake_or_advance` again.
            return Ok(self.runs.wake(scope, id));
        };
        let Some(loaded) = self.store.load(scope, id).await? else { return Ok(true) };
        if self.holder(&loaded.head.current).await? == Holder::Alive {
            return Ok(!registration.leave());
        }
        let pending = self.store.requests(scope, id).await?;
        let (loaded, snapshot) = large::fold(loaded).await?;
        let plan = self.plan(scope, &loaded.head, &snapshot, &pending);
        if matches!(plan, Plan::Nothing) {
            return Ok(!registration.leave());
        }
        let at = self.time_for(&snapshot);
        let draft = Draft::of(&loaded, snapshot, at);
        let committed = match plan {
            Plan::Turn(message) => {
                let Some(permit) = permit.take().or_else(|| self.slot_now(scope)) else {
                    drop(registration);
                    self.admission.enqueue(scope.clone(), id.clone(), &Caller::of_scope(scope));
                    // A slot may have become free since.
                    self.admit_waiting();
                    return Ok(true);
                };
                let task =
                    TaskWithoutRun { registration, desk, head: &loaded.head, tail: &loaded.tail, draft };
                return self.start_turn(task, permit, message, pending.len()).await;
            }
            plan => self.commit(scope, without_turn(id, &plan, draft, &pending)?).await?,
        };
        Ok(matches!(committed, Committed::Written(_)) && !registration.leave())
    }

    /// Begins a turn of a task without a run: with the message of a request, or with the last message in the log. `false`: a
    /// race was lost.
    async fn start_turn(
        self: &Arc<Self>,
        task: TaskWithoutRun<'_>,
        permit: Permit,
        message: Option<PendingRequest>,
        pending: usize,
    ) -> Result<bool, StoreError> {
        let TaskWithoutRun { registration, desk, head, tail, mut draft } = task;
        if let Some(request) = &message {
            let event = write(&mut draft, registration.id(), request.event.decode()?.body)?;
            draft.settled.push(Settled { request: request.request, event: Some(event) });
        }
        reached(Point::TendPlanned);
        let start = TurnStart {
            registration,
            desk,
            admitted: Admitted::Run(permit),
            draft,
            origin: origin(message.as_ref(), tail),
            is_rerun: message.is_none() && head.current.work == Work::Running,
            has_requests: pending > usize::from(message.is_some()),
            stored: Point::TendStored,
        };
        let committed = self.begin_turn(start).await?;
        Ok(matches!(committed, Committed::Written(_)))
    }

    /// A slot for a turn, if one is free and the server is not stopping.
    fn slot_now(&self, scope: &Scope) -> Option<Permit> {
        match self.admission.reserve(&scope.agent, &Caller::of_scope(scope)) {
            Ok(Admitted::Run(permit)) if !self.stopping.is_cancelled() => Some(permit),
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

/// A task without a run, as it was read.
struct TaskWithoutRun<'a> {
    registration: Registration,
    desk: Arc<Desk>,
    head: &'a Head,
    tail: &'a [StoredEvent],
    draft: Draft,
}

/// The decision for a task that needs no turn: it ends, or requests that came too late are settled.
fn without_turn(
    id: &TaskId,
    plan: &Plan,
    mut draft: Draft,
    pending: &[PendingRequest],
) -> Result<Decision, StoreError> {
    let end = match plan {
        Plan::Nothing | Plan::Settle | Plan::Turn(_) => None,
        Plan::Cancel => Some(canceled()),
        Plan::Fail(reason) => Some(failed(&draft.snapshot, reason)),
    };
    if let Some(end) = end {
        write(&mut draft, id, end)?;
    }
    // Messages are settled here only if the task had ended before. Otherwise the commit that ends it now writes them to the
    // log (`commit/ending.rs`).
    let is_answered = |request: &&PendingRequest| {
        matches!(plan, Plan::Settle) || request.event.kind != EventKind::UserMessage
    };
    let answered = pending.iter().filter(is_answered);
    draft.settled.extend(answered.map(|request| Settled { request: request.request, event: None }));
    reached(Point::TendPlanned);
    let next_fence = draft.fence() + 1;
    Ok(draft.decide(Work::Idle, next_fence, Some(Point::TendStored)))
}

/// The trace context of the message that begins the turn: from its request, or else from the last message in the log.
fn origin(message: Option<&PendingRequest>, tail: &[StoredEvent]) -> Option<TraceContext> {
    let noted = match message {
        Some(request) => Some(&request.event),
        None => tail.iter().rev().find(|event| event.kind == EventKind::UserMessage),
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
    draft.write(body).map_err(|refused| StoreError::damaged(format!("task {id}: {refused}")))
}
