//! A message to an existing task: it begins the next turn, or is stored as a request for the running turn.

use std::sync::Arc;

use baton_protocol::domain::{Event, EventKind, Message, Scope, TaskId};
use baton_protocol::lifecycle::Snapshot;
use baton_protocol::{Error, ErrorKind, Member, Name};
use tracing::Span;

use super::begin_turn::TurnStart;
use super::commit::Draft;
use super::desk::Desk;
use super::send::{Accepted, Incoming, NewTurn, TurnRef, message_record, stopping};
use super::{Inner, from_store, large, not_found};
use crate::points::{Point, reached};
use crate::store::{Head, NewRequest, Requested, StoredEvent, Work};
use crate::telemetry::trace;

/// How often a decision is repeated after a lost race.
const TRIES: usize = 16;

impl Inner {
    pub(super) async fn send_to_task(
        self: &Arc<Self>,
        scope: &Scope,
        id: TaskId,
        incoming: Incoming,
    ) -> Result<Accepted, Error> {
        // Before any check of the task's state: the first copy of this message may have changed it.
        if let Some(accepted) = self.find_repeat(scope, &incoming).await? {
            return Ok(accepted);
        }
        let followed = self.follow_up(scope, id, incoming.clone()).await;
        // The slot may be free again, and others may be waiting for one.
        self.admit_waiting();
        match followed {
            // The first copy may have been stored since the check above.
            Err(refused) => self.find_repeat(scope, &incoming).await?.ok_or(refused),
            accepted => accepted,
        }
    }

    async fn follow_up(
        self: &Arc<Self>,
        scope: &Scope,
        id: TaskId,
        mut incoming: Incoming,
    ) -> Result<Accepted, Error> {
        for _ in 0..TRIES {
            let head =
                self.store.head(scope, &id).await.map_err(from_store)?.ok_or_else(|| not_found(&id))?;
            check_target(&head, &id, &incoming.message)?;
            incoming.message.context_id = Some(head.context_id.clone());
            if self.stopping.is_cancelled() {
                return Err(stopping());
            }
            self.check_owner_bytes(scope).await?;
            let busy = head.current.work != Work::Idle || self.runs.is_live(scope, &id);
            let done = if busy {
                self.check_room(scope, &id, &head).await?;
                self.check_skill(scope, &id, &incoming).await?;
                self.note(scope, &id, &incoming).await?
            } else {
                self.next_turn(scope, &id, &incoming).await?
            };
            if let Some(accepted) = done {
                return Ok(accepted);
            }
        }
        Err(Error::of(ErrorKind::Unavailable)
            .with_retry_after(1)
            .with_log("lost too many races for one task"))
    }

    /// Refuses a message that would exceed the busy task's `max_history`. Checked before it is stored, since an acknowledged
    /// message is always taken.
    async fn check_room(&self, scope: &Scope, id: &TaskId, head: &Head) -> Result<(), Error> {
        let options = self.options();
        let most = options.max_history;
        // An event holds at most one message, so for most tasks the version shows that there is space.
        if head.version.saturating_add(options.max_pending_messages.into()) < most as u64 {
            return Ok(());
        }
        // Requests are read before the task: a message that is taken in between is counted twice rather than not at all.
        let pending = self.store.requests(scope, id).await.map_err(from_store)?;
        let waiting = pending.iter().filter(|request| request.event.kind == EventKind::UserMessage).count();
        if self.load(scope, id).await?.messages() + waiting >= most {
            return Err(self.history_full(id));
        }
        Ok(())
    }

    /// Refuses a message to a busy task if its sender may not use the task's skill, or accepts none of its output modes. The
    /// task has to be read to find its skill, so that is done only if some skill does not fit.
    async fn check_skill(&self, scope: &Scope, id: &TaskId, incoming: &Incoming) -> Result<(), Error> {
        let Some(agent) = self.agents.get(&scope.agent) else { return Ok(()) };
        let mut skills = agent.skills().iter();
        if incoming.permission.is_none()
            && skills.all(|skill| agent.check_output(&skill.card.id, &incoming.details).is_ok())
        {
            return Ok(());
        }
        match self.skill_of(scope, &*self.load(scope, id).await?) {
            Some(skill) => incoming.check_skill(agent, &skill.card.id),
            None => Ok(()),
        }
    }

    fn history_full(&self, id: &TaskId) -> Error {
        let most = self.options().max_history;
        let reason = format!("The task holds {most} messages, as many as it may; start a new one");
        Error::new(ErrorKind::QuotaExceeded, reason).with_info("taskId", id.as_str())
    }

    /// Stores a message as a request for a busy task. `None`: the task has changed; decide again.
    async fn note(
        self: &Arc<Self>,
        scope: &Scope,
        id: &TaskId,
        incoming: &Incoming,
    ) -> Result<Option<Accepted>, Error> {
        self.join_trace(scope, id, incoming).await?;
        let at = self.clock.now();
        let context = incoming.message.context_id.as_ref().expect("set from the head");
        let body = incoming.event_body();
        let event = StoredEvent::encode(id, context, &Event { number: 0, at, body });
        let request = NewRequest {
            event,
            message: Some(message_record(incoming, Some(id.clone()), None, at)),
            most_pending: self.options().max_pending_messages,
        };
        match self.store.request(scope, id, request).await.map_err(from_store)? {
            Requested::Noted { head, .. } => {
                reached(Point::FollowUpNoted);
                trace::record_task(id, incoming.message.context_id.as_ref());
                let turn = TurnRef {
                    scope: scope.clone(),
                    id: id.clone(),
                    bell: self.hub.bell(head.key),
                    message: (incoming.record_id.clone(), incoming.hash),
                    event: None,
                    start: None,
                    replayed: false,
                };
                self.wake_or_advance(scope, id);
                Ok(Some(Accepted::Turn(turn)))
            }
            Requested::Duplicate(found) => Ok(Some(self.replay(scope, found).await?)),
            Requested::Full => {
                let most = self.options().max_pending_messages;
                Err(Error::new(
                    ErrorKind::QuotaExceeded,
                    format!("{most} messages wait for this task already; send again when it has taken some"),
                )
                .with_retry_after(1)
                .with_info("taskId", id.as_str()))
            }
            Requested::Ended(_) => Err(ended(id)),
            Requested::NotFound => Err(not_found(id)),
        }
    }

    /// A request without a trace context becomes part of its task's trace.
    async fn join_trace(&self, scope: &Scope, id: &TaskId, incoming: &Incoming) -> Result<(), Error> {
        // The task is read only for this, so only if spans are exported.
        if incoming.trace.is_none() && trace::exported() {
            set_request_parent(&*self.load(scope, id).await?, incoming);
        }
        Ok(())
    }

    /// Begins the next turn of a task that waits for input. `None`: another request was faster; decide again.
    async fn next_turn(
        self: &Arc<Self>,
        scope: &Scope,
        id: &TaskId,
        incoming: &Incoming,
    ) -> Result<Option<Accepted>, Error> {
        let admitted =
            self.admission.reserve(&scope.agent, &incoming.caller).map_err(|full| self.full(full))?;
        let desk = Arc::new(Desk::new(self.options().max_event_bytes));
        let Some(registration) = self.runs.register(scope, id, Arc::clone(&desk)) else { return Ok(None) };
        let loaded = self.store.load(scope, id).await.map_err(from_store)?.ok_or_else(|| not_found(id))?;
        check_target(&loaded.head, id, &incoming.message)?;
        let (loaded, snapshot) = large::fold(loaded).await.map_err(from_store)?;
        if snapshot.messages() >= self.options().max_history {
            return Err(self.history_full(id));
        }
        if let (Some(skill), Some(agent)) = (self.skill_of(scope, &snapshot), self.agents.get(&scope.agent)) {
            incoming.check_skill(agent, &skill.card.id)?;
        }
        set_request_parent(&snapshot, incoming);
        let at = self.time_for(&snapshot);
        let mut draft = Draft::of(&loaded, snapshot, at);
        let event = draft.write(incoming.event_body()).map_err(|refused| ended(id).with_log(refused))?;
        draft.record(message_record(incoming, Some(id.clone()), Some(event), at));
        let turn = NewTurn {
            id: id.clone(),
            context_id: loaded.head.context_id,
            message: (incoming.record_id.clone(), incoming.hash),
            event,
            start: incoming.shows_start.then(|| Arc::new(draft.snapshot.clone())),
        };
        let start = TurnStart {
            registration,
            desk,
            admitted,
            draft,
            origin: trace::current_context(),
            is_rerun: false,
            has_requests: false,
            stored: Point::SendStored,
        };
        let committed = self.begin_turn(start).await.map_err(from_store)?;
        self.accepted(scope, committed, turn).await
    }
}

fn set_request_parent(task: &Snapshot, incoming: &Incoming) {
    if let (None, Some(kept)) = (&incoming.trace, &task.trace)
        && trace::enabled()
    {
        trace::set_parent(&Span::current(), kept);
    }
}

fn check_target(head: &Head, id: &TaskId, message: &Message) -> Result<(), Error> {
    if let Some(context) = &message.context_id
        && *context != head.context_id
    {
        return Err(Error::invalid(
            Name::Member(Member::ContextId),
            format!("is not the context of the task named by {}", Name::Member(Member::TaskId)),
        ));
    }
    if head.current.state.is_terminal() {
        return Err(ended(id));
    }
    Ok(())
}

fn ended(id: &TaskId) -> Error {
    Error::of(ErrorKind::TaskEnded).with_info("taskId", id.as_str())
}
