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
use super::admission::{Permit, Place};
use super::desk::Desk;
use super::send::working;
use super::turn::agent_message;
use super::write_down;
use crate::points::{Point, reached};
use crate::store::{
    Append, Appended, EventBatch, Head, PendingRequest, Settled, StoreError, StoredEvent, StoredSnapshot,
    TaskKey, Work, record,
};

const PAGE: u32 = 256;
const LOST: &str = "The server stopped while the agent was working on this task, and the agent does not allow a turn \
                    to be run again";

/// What to do for a task, decided from its head and its pending requests.
enum Plan {
    Nothing,
    /// Ended: what still waits is settled into nothing.
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
        let mut snapshot = record::fold(&loaded)?;
        let head = loaded.head;
        let plan = self.plan(scope, &head, &snapshot, &pending);
        let expected = snapshot.version;
        let everything =
            || pending.iter().map(|request| Settled { request: request.request, event: None }).collect();
        let (bodies, settled): (Vec<EventBody>, Vec<Settled>) = match &plan {
            Plan::Nothing => return Ok(!registration.leave()),
            Plan::Settle => (Vec::new(), everything()),
            Plan::Cancel => (cancel_events(), everything()),
            Plan::Fail(reason) => (vec![failed(&snapshot, reason)], everything()),
            Plan::Turn(request) => {
                if permit.is_none() {
                    match self.admission.reserve(&scope.agent) {
                        Ok(Place::Run(place)) if !self.stopping.is_given() => *permit = Some(place),
                        _ => {
                            drop(registration);
                            self.admission.enqueue(scope.clone(), id.clone());
                            // A place may have come free since.
                            self.admit_waiting();
                            return Ok(true);
                        }
                    }
                }
                let mut bodies = Vec::new();
                let mut settled = Vec::new();
                if let Some(request) = request {
                    bodies.push(request.event.decode()?.body);
                    settled.push(Settled { request: request.request, event: Some(expected + 1) });
                }
                bodies.push(self.attempt(scope, &snapshot));
                if snapshot.state() != TaskState::Working {
                    bodies.push(working());
                }
                (bodies, settled)
            }
        };
        let at = self.time_for(&snapshot);
        let mut events = EventBatch::with_room_for(bodies.len());
        for body in bodies {
            let written = write_down(&mut snapshot, at, body, &mut events);
            written.map_err(|refused| StoreError::Damaged(format!("task {id}: {refused}")))?;
        }
        let events = events.finish();
        let starts = matches!(plan, Plan::Turn(_));
        let work = if starts { Work::Running } else { Work::Idle };
        let fence = head.current.fence + 1;
        let append = Append {
            task: id.clone(),
            birth: None,
            expected,
            fence: head.current.fence,
            events: events.clone(),
            head: self.head_state(&snapshot, work, fence),
            snapshot: (!starts && !events.is_empty()).then(|| StoredSnapshot::encode(&snapshot)),
            message: None,
            settled,
        };
        reached(Point::TendPlanned);
        if !matches!(self.store.append(scope, append).await?, Appended::Written(_)) {
            return Ok(false);
        }
        reached(Point::TendStored);
        let bell = self.hub.bell(head.key);
        let snapshot = Arc::new(snapshot);
        bell.ring(snapshot.version, &events, (!starts).then(|| Arc::clone(&snapshot).into()));
        if let (true, Some(permit)) = (starts, permit.take()) {
            if pending.len() > 1 || (pending.len() == 1 && matches!(plan, Plan::Turn(None))) {
                registration.handle.ring();
            }
            let origin = origin(&plan, &loaded.tail);
            self.launch(registration, desk, snapshot, fence, bell, permit, origin).await;
        } else if registration.leave() {
            return Ok(false);
        }
        Ok(true)
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

fn cancel_events() -> Vec<EventBody> {
    vec![EventBody::Status(StatusUpdate { state: TaskState::Canceled, message: None, metadata: None })]
}
