//! A message to a task that exists: its next turn, or a word to the turn that is running.

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

/// How often a lost race is decided anew before giving up.
const TRIES: usize = 16;

impl Inner {
    pub(super) async fn send_to_task(
        self: &Arc<Self>,
        scope: &Scope,
        id: TaskId,
        incoming: Incoming,
    ) -> Result<Accepted, Error> {
        // Before any rule about the task's state: the first copy may have changed it.
        if let Some(accepted) = self.on_record(scope, &incoming).await? {
            return Ok(accepted);
        }
        let followed = self.follow_up(scope, id, incoming.clone()).await;
        // The place may have come back unused, and others wait for one.
        self.admit_waiting();
        match followed {
            // It may have changed the state only now, between the two looks.
            Err(refused) => self.on_record(scope, &incoming).await?.ok_or(refused),
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
            if self.stopping.is_given() {
                return Err(stopping());
            }
            let busy = head.current.work != Work::Idle || self.runs.is_live(scope, &id);
            let done = if busy {
                self.check_room(scope, &id, &head).await?;
                self.check_output(scope, &id, &incoming).await?;
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

    /// Refuses a message that a busy task's history would have no room for; once noted it is refused no more.
    async fn check_room(&self, scope: &Scope, id: &TaskId, head: &Head) -> Result<(), Error> {
        let options = self.options();
        let most = options.max_history;
        // An event brings one message at most, so that the log of most tasks need not be read.
        if head.version.saturating_add(options.max_pending_messages.into()) < most as u64 {
            return Ok(());
        }
        // Before the task: what is taken in between is then counted twice rather than not at all.
        let pending = self.store.requests(scope, id).await.map_err(from_store)?;
        let waiting = pending.iter().filter(|request| request.event.kind == EventKind::UserMessage).count();
        if self.load(scope, id).await?.messages() + waiting >= most {
            return Err(self.history_full(id));
        }
        Ok(())
    }

    /// Refuses a message to a busy task whose sender takes nothing of what the task's skill makes. Which skill that is only
    /// the task knows, which is read where it matters: where not all skills would do.
    async fn check_output(&self, scope: &Scope, id: &TaskId, incoming: &Incoming) -> Result<(), Error> {
        let Some(agent) = self.agents.get(&scope.agent) else { return Ok(()) };
        let mut skills = agent.skills().iter();
        if skills.all(|skill| agent.check_output(&skill.card.id, &incoming.details).is_ok()) {
            return Ok(());
        }
        match self.skill_of(scope, &*self.load(scope, id).await?) {
            Some(skill) => agent.check_output(&skill.card.id, &incoming.details),
            None => Ok(()),
        }
    }

    fn history_full(&self, id: &TaskId) -> Error {
        let most = self.options().max_history;
        let reason = format!("The task holds {most} messages, as many as it may; start a new one");
        Error::new(ErrorKind::QuotaExceeded, reason).with_info("taskId", id.as_str())
    }

    /// Notes a message for a busy task. `None`: things have changed, look again.
    async fn note(
        self: &Arc<Self>,
        scope: &Scope,
        id: &TaskId,
        incoming: &Incoming,
    ) -> Result<Option<Accepted>, Error> {
        self.join_trace(scope, id, incoming).await?;
        let at = self.clock.now();
        let context = incoming.message.context_id.as_ref().expect("set from the head");
        let body = incoming.said();
        let event = StoredEvent::encode(id, context, &Event { number: 0, at, body });
        let request = NewRequest {
            event,
            message: Some(message_record(incoming, Some(id.clone()), None, at)),
            most_pending: self.options().max_pending_messages,
        };
        match self.store.request(scope, id, request).await.map_err(from_store)? {
            Requested::Noted { head, .. } => {
                reached(Point::FollowUpNoted);
                trace::about(id, incoming.message.context_id.as_ref());
                let turn = TurnRef {
                    scope: scope.clone(),
                    id: id.clone(),
                    bell: self.hub.bell(head.key),
                    message: (incoming.record_id.clone(), incoming.hash),
                    event: None,
                    start: None,
                    replayed: false,
                };
                self.attend(scope, id);
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

    /// A request that brings no trace of its own belongs to its task's.
    async fn join_trace(&self, scope: &Scope, id: &TaskId, incoming: &Incoming) -> Result<(), Error> {
        // Read for this alone, so only where somebody will see it.
        if incoming.trace.is_none() && trace::records() {
            put_request_below(&*self.load(scope, id).await?, incoming);
        }
        Ok(())
    }

    /// Starts the next turn of a task that waits for input. `None`: somebody else was faster, look again.
    async fn next_turn(
        self: &Arc<Self>,
        scope: &Scope,
        id: &TaskId,
        incoming: &Incoming,
    ) -> Result<Option<Accepted>, Error> {
        let place = self.admission.reserve(&scope.agent)?;
        let desk = Arc::new(Desk::new(self.options().max_event_bytes));
        let Some(registration) = self.runs.register(scope, id, Arc::clone(&desk)) else { return Ok(None) };
        let loaded = self.store.load(scope, id).await.map_err(from_store)?.ok_or_else(|| not_found(id))?;
        check_target(&loaded.head, id, &incoming.message)?;
        let (loaded, snapshot) = large::fold(loaded).await.map_err(from_store)?;
        if snapshot.messages() >= self.options().max_history {
            return Err(self.history_full(id));
        }
        if let (Some(skill), Some(agent)) = (&snapshot.skill, self.agents.get(&scope.agent)) {
            agent.check_output(skill, &incoming.details)?;
        }
        put_request_below(&snapshot, incoming);
        let at = self.time_for(&snapshot);
        let mut draft = Draft::of(&loaded, snapshot, at);
        let event = draft.write(incoming.said()).map_err(|refused| ended(id).with_log(refused))?;
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
            place,
            draft,
            origin: trace::here(),
            is_rerun: false,
            has_requests: false,
            stored: Point::SendStored,
        };
        let committed = self.begin_turn(start).await.map_err(from_store)?;
        self.accepted(scope, committed, turn).await
    }
}

fn put_request_below(task: &Snapshot, incoming: &Incoming) {
    if let (None, Some(kept)) = (&incoming.trace, &task.trace)
        && trace::wanted()
    {
        trace::put_below(&Span::current(), kept);
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
