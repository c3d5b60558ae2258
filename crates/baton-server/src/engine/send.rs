//! Accepts a message: it creates a task, begins a task's next turn, or is a repeat of an earlier message.

use std::sync::Arc;

use baton_protocol::domain::{
    ContextId, EventBody, Message, MessageId, PushConfig, Scope, SendDetails, StatusUpdate, TaskId,
    TaskState, Timestamp, TraceContext,
};
use baton_protocol::lifecycle::Snapshot;
use baton_protocol::{Error, ErrorKind, Generation, Member, Name};
use sha2::{Digest as _, Sha256};

use super::admission::Admitted;
use super::agent::Logic;
use super::begin_turn::TurnStart;
use super::caller::Caller;
use super::clock::{fresh_context_id, fresh_task_id};
use super::commit::{Committed, Draft};
use super::desk::Desk;
use super::detach::detachable;
use super::hub::Bell;
use super::turn::agent_message;
use super::{Engine, Inner, from_store, size};
use crate::auth::SkillPermission;
use crate::points::{Point, reached};
use crate::push::Push;
use crate::push::registry::Reservation;
use crate::routing::AgentLogic;
use crate::store::{
    Birth, HASH_DIGEST, MessageHash, MessageRecord, NewWebhook, OpenWebhook, StoredWebhook, WebhookCursor,
    Work, record,
};
use crate::telemetry::trace;

/// A message that the service has checked.
#[derive(Debug, Clone)]
pub(crate) struct Incoming {
    /// The message itself.
    pub message: Message,
    /// The id under which the message is recorded: its own or, in 0.1, whose messages have no ids, its task's.
    pub record_id: MessageId,
    /// Hash of the message and its target, as they were sent.
    pub hash: MessageHash,
    /// The same by version 1 of the hash, under which early versions of Baton recorded messages.
    pub v1_hash: MessageHash,
    /// A task id chosen by the client: that task is continued if it exists, and created if not.
    pub client_task_id: Option<TaskId>,
    /// The generation that the client speaks; stored with a new task.
    pub generation: Generation,
    /// The request resumes a stream: the message must be a repeat, and nothing is started.
    pub known_only: bool,
    /// What else the request said, for the agent.
    pub details: SendDetails,
    /// The trace context of the request.
    pub trace: Option<TraceContext>,
    /// The answer does not wait for the end of the turn, so it may show the task as it was when the turn began.
    pub shows_start: bool,
    /// Whether the caller may use the skill that takes the message; `None` if no skill has requirements of its own.
    pub permission: Option<SkillPermission>,
    /// The skill that was chosen for a new task, and for which the sender was checked: the turn must not choose another.
    pub skill: Option<Arc<str>>,
    /// Who is counted for the turn.
    pub caller: Caller,
    /// A webhook that came with the message; stored with the task if the message creates one.
    pub webhook: Option<Box<InlineWebhook>>,
}

/// A webhook that was checked, and who stores it.
#[derive(Debug, Clone)]
pub(crate) struct InlineWebhook {
    pub push: Push,
    pub config: PushConfig,
}

impl Incoming {
    /// Refuses a sender who may not use the skill, or accepts nothing that it makes.
    pub(super) fn check_skill(&self, agent: &AgentLogic, skill: &str) -> Result<(), Error> {
        if let Some(permission) = &self.permission {
            permission.check(skill)?;
        }
        agent.check_output(skill, &self.details)
    }

    /// The message as an event. Must be called within the request's span: if spans are exported, the event stores that span
    /// as its trace context.
    pub(super) fn event_body(&self) -> EventBody {
        self.clone().into_event_body()
    }

    pub(super) fn into_event_body(self) -> EventBody {
        let trace = trace::current_context().or(self.trace);
        EventBody::UserMessage { message: self.message, trace, details: self.details }
    }
}

/// The result of accepting a message.
#[derive(Debug)]
#[non_exhaustive]
pub(crate) enum Accepted {
    /// A turn of a task.
    Turn(TurnRef),
    /// A message skill's reply.
    Reply {
        /// The reply.
        message: Message,
        /// The id and hash of the message it replies to, under which it is stored.
        answers: (MessageId, MessageHash),
        /// The same message had been answered before.
        replayed: bool,
    },
}

/// The turn that a message belongs to, for waiting or streaming.
#[derive(Debug, Clone)]
pub(crate) struct TurnRef {
    pub(crate) scope: Scope,
    pub(crate) id: TaskId,
    pub(crate) bell: Arc<Bell>,
    pub(crate) message: (MessageId, MessageHash),
    /// The message's event number in the log; `None` while it waits for a busy task.
    pub(crate) event: Option<u64>,
    /// The task as of that number, if it is already in memory.
    pub(crate) start: Option<Arc<Snapshot>>,
    /// The same message had been accepted before.
    pub replayed: bool,
}

impl TurnRef {
    /// About how many bytes `start` has.
    pub(crate) fn start_bytes(&self) -> usize {
        self.start.as_ref().map_or(0, |start| size::of_task(&start.task))
    }

    /// Drops `start`; it is read from the log again when it is needed.
    pub(crate) fn forget_start(&mut self) {
        self.start = None;
    }

    /// The task the turn belongs to.
    pub(crate) fn task_id(&self) -> &TaskId {
        &self.id
    }
}

impl Engine {
    /// Accepts a message. When this returns, the message is stored.
    pub(crate) async fn send(&self, scope: &Scope, incoming: Incoming) -> Result<Accepted, Error> {
        let (inner, scope) = (Arc::clone(&self.inner), scope.clone());
        detachable(&self.inner.tracker, async move { inner.send(&scope, incoming).await }).await
    }
}

impl Inner {
    async fn send(self: &Arc<Self>, scope: &Scope, incoming: Incoming) -> Result<Accepted, Error> {
        if incoming.known_only {
            return match self.find_repeat(scope, &incoming).await? {
                Some(accepted) => Ok(accepted),
                None => Err(Error::new(
                    ErrorKind::TaskNotFound,
                    "Last-Event-ID was sent with a message this server has not seen; send the message without it to \
                     start a task",
                )),
            };
        }
        if let Some(id) = incoming.client_task_id.clone() {
            // Boxed: only clients of 0.1 name new tasks, and the others need no memory for it.
            return Box::pin(self.send_named(scope, id, incoming)).await;
        }
        match incoming.message.task_id.clone() {
            Some(id) => self.send_to_task(scope, id, incoming).await,
            None => self.send_new(scope, incoming).await?.ok_or_else(id_taken),
        }
    }

    /// A message with a task id chosen by the client (0.1): it continues the task if that exists, and else creates it.
    async fn send_named(
        self: &Arc<Self>,
        scope: &Scope,
        id: TaskId,
        mut incoming: Incoming,
    ) -> Result<Accepted, Error> {
        loop {
            let head = self.store.head(scope, &id).await.map_err(from_store)?;
            let asking = head.as_ref().filter(|head| head.current.state.is_interrupted());
            if let Some(accepted) = self.find_repeat(scope, &incoming).await? {
                let Some(asking) = asking else { return Ok(accepted) };
                // Without message ids, a message with the same content as an earlier one counts as a repeat. But if the
                // agent waits for an answer, it is that answer; the question's version then becomes part of its hash.
                incoming.hash = answer_hash(&incoming.hash, asking.version);
                incoming.v1_hash = v1_answer_hash(&incoming.v1_hash, asking.version);
            }
            if head.is_some() {
                incoming.message.task_id = Some(id.clone());
                // A session id that differs from the task's own is ignored.
                incoming.message.context_id = None;
                return self.send_to_task(scope, id, incoming).await;
            }
            if let Some(accepted) = self.send_new(scope, incoming.clone()).await? {
                return Ok(accepted);
            }
            // Another send with this id came first and may not have stored its task yet. In each round one of them is
            // answered, so the loop ends.
            if let Some(other) = self.runs.handle_of(scope, &id) {
                other.stored_or_dropped().await;
            }
        }
    }

    /// The turn or reply of the same message, if it was accepted before.
    pub(super) async fn find_repeat(
        &self,
        scope: &Scope,
        incoming: &Incoming,
    ) -> Result<Option<Accepted>, Error> {
        match self.find_record(scope, &incoming.record_id, &incoming.hash).await? {
            None => self.find_v1_repeat(scope, incoming).await,
            known => Ok(known),
        }
    }

    /// The same for a record that an early version of Baton made. This reads the store a second time, but only for messages
    /// with free JSON that is not canonical (and for answers in 0.1): all others have the same digest in both versions.
    async fn find_v1_repeat(&self, scope: &Scope, incoming: &Incoming) -> Result<Option<Accepted>, Error> {
        let first = &incoming.v1_hash;
        match first[..HASH_DIGEST] == incoming.hash[..HASH_DIGEST] {
            true => Ok(None),
            false => self.find_record(scope, &incoming.record_id, first).await,
        }
    }

    async fn find_record(
        &self,
        scope: &Scope,
        record_id: &MessageId,
        hash: &MessageHash,
    ) -> Result<Option<Accepted>, Error> {
        match self.store.message(scope, record_id, hash).await.map_err(from_store)? {
            Some(record) => Ok(Some(self.replay(scope, record).await?)),
            None => Ok(None),
        }
    }

    pub(super) async fn replay(self: &Inner, scope: &Scope, found: MessageRecord) -> Result<Accepted, Error> {
        // Logged for developers who change an agent, try it with the same messageId and wonder why it does not run.
        match &found.task {
            Some(task) => {
                tracing::info!(task.id = %task, "the same message was sent again: answered with its task, nothing runs")
            }
            None => tracing::info!("the same message was sent again: answered with its reply, nothing runs"),
        }
        if let Some(reply) = &found.reply {
            let message = record::read_reply(reply).map_err(from_store)?;
            let answers = (found.message_id, found.hash);
            return Ok(Accepted::Reply { message, answers, replayed: true });
        }
        let Some(id) = found.task else {
            return Err(
                Error::of(ErrorKind::Internal).with_log("a message record with neither task nor reply")
            );
        };
        let Some(head) = self.store.head(scope, &id).await.map_err(from_store)? else {
            // The record is kept longer than its task. Doing the work a second time would be worse than this error.
            return Err(Error::new(
                ErrorKind::TaskNotFound,
                format!(
                    "This message's task has been removed; send a new {}",
                    Name::Member(Member::MessageId)
                ),
            )
            .with_info("taskId", id.as_str()));
        };
        Ok(Accepted::Turn(TurnRef {
            scope: scope.clone(),
            id,
            bell: self.hub.bell(head.key),
            message: (found.message_id, found.hash),
            event: found.event,
            start: None,
            replayed: true,
        }))
    }

    /// A message that starts a task or gets a reply. `None`: a task with the client's id exists by now.
    async fn send_new(
        self: &Arc<Self>,
        scope: &Scope,
        mut incoming: Incoming,
    ) -> Result<Option<Accepted>, Error> {
        if let Some(known) = self.find_v1_repeat(scope, &incoming).await? {
            return Ok(Some(known));
        }
        let Some(agent) = self.agents.get(&scope.agent) else {
            return Err(Error::of(ErrorKind::Internal).with_log(format_args!("no agent {}", scope.agent)));
        };
        let skill = agent.skill_for(&incoming.message);
        if let Some(skill) = skill
            && let Err(refused) = incoming.check_skill(agent, &skill.card.id)
        {
            // A repeat is answered like the first, even with other output modes or scopes.
            return self.find_repeat(scope, &incoming).await?.map(Some).ok_or(refused);
        }
        incoming.skill = skill.map(|skill| Arc::from(skill.card.id.as_str()));
        match skill.map(|skill| &skill.logic) {
            // A client that chose the task's id expects a task, so the reply completes a task.
            Some(Logic::Message(_)) if incoming.client_task_id.is_some() => {
                self.create(scope, incoming).await
            }
            Some(Logic::Message(logic)) => self.ask(scope, Arc::clone(logic), incoming).await.map(Some),
            Some(Logic::Task(_)) => self.create(scope, incoming).await,
            None => {
                let reason = agent.nothing_fits(&incoming.message);
                self.create_failed(scope, incoming, reason).await
            }
        }
    }

    async fn create(self: &Arc<Self>, scope: &Scope, incoming: Incoming) -> Result<Option<Accepted>, Error> {
        if self.stopping.is_cancelled() {
            return Err(stopping());
        }
        let counted = self.one_more_task(scope).await;
        let slot = || self.admission.reserve(&scope.agent, &incoming.caller).map_err(|full| self.full(full));
        let (counted, admitted) = match counted.and_then(|counted| Ok((counted, slot()?))) {
            Ok(admitted) => admitted,
            // A repeat is answered even when the queue is full.
            Err(refused) => return self.find_repeat(scope, &incoming).await?.map(Some).ok_or(refused),
        };
        let (record_id, hash) = (incoming.record_id.clone(), incoming.hash);
        let created = self.create_at(scope, incoming, admitted).await;
        if matches!(&created, Ok(Some(Accepted::Turn(turn))) if !turn.replayed) {
            counted.keep();
        }
        // The slot may be free again, and others may be waiting for one.
        self.admit_waiting();
        match created {
            // A repeat is also answered when the store is full.
            Err(refused) => self.find_record(scope, &record_id, &hash).await?.ok_or(refused).map(Some),
            created => created,
        }
    }

    async fn create_at(
        self: &Arc<Self>,
        scope: &Scope,
        incoming: Incoming,
        admitted: Admitted,
    ) -> Result<Option<Accepted>, Error> {
        let skill = incoming.skill.clone();
        let (webhook, generation) = (incoming.webhook.clone(), incoming.generation);
        let mut new = NewTask::begin(incoming, self.clock.now());
        let webhook = new.add_webhook(scope, webhook, generation)?;
        match admitted {
            // It becomes part of the first attempt's event.
            Admitted::Run(_) => new.draft.snapshot.skill = skill,
            // When the task gets its slot, the card may be another, and would choose a skill that was never checked.
            Admitted::Wait(_) if self.has_several_skills(scope) => {
                let chosen = EventBody::AttemptStarted { attempt: 0, skill };
                new.draft.write(chosen).expect("a new task takes the choice of its skill");
            }
            Admitted::Wait(_) => {}
        }
        let desk = Arc::new(Desk::new(self.options().max_event_bytes));
        let Some(registration) = self.runs.register(scope, &new.turn.id, Arc::clone(&desk)) else {
            return Ok(None);
        };
        let start = TurnStart {
            registration,
            desk,
            admitted,
            draft: new.draft,
            origin: trace::current_context(),
            is_rerun: false,
            has_requests: false,
            stored: Point::SendStored,
        };
        let committed = self.begin_turn(start).await.map_err(from_store)?;
        if let Some(webhook) = webhook {
            webhook.born(scope, &committed).await;
        }
        self.accepted(scope, committed, new.turn).await
    }

    /// The answer for the sender of a message that began a turn. `None`: the commit lost a race; decide again.
    pub(super) async fn accepted(
        &self,
        scope: &Scope,
        committed: Committed,
        turn: NewTurn,
    ) -> Result<Option<Accepted>, Error> {
        let bell = match committed {
            Committed::Written(written) => written.bell,
            Committed::Repeat(found) => return self.replay(scope, found).await.map(Some),
            Committed::Lost => return Ok(None),
        };
        reached(Point::SendLaunched);
        let NewTurn { id, context_id, message, event, start } = turn;
        trace::record_task(&id, Some(&context_id));
        Ok(Some(Accepted::Turn(TurnRef {
            scope: scope.clone(),
            id,
            bell,
            message,
            event: Some(event),
            start,
            replayed: false,
        })))
    }

    /// No skill fits: creates a failed task with that reason.
    async fn create_failed(
        self: &Arc<Self>,
        scope: &Scope,
        incoming: Incoming,
        reason: String,
    ) -> Result<Option<Accepted>, Error> {
        let counted = match self.one_more_task(scope).await {
            Ok(counted) => counted,
            Err(refused) => return self.find_repeat(scope, &incoming).await?.map(Some).ok_or(refused),
        };
        let (webhook, generation) = (incoming.webhook.clone(), incoming.generation);
        let mut new = NewTask::begin(incoming, self.clock.now());
        let webhook = new.add_webhook(scope, webhook, generation)?;
        let NewTask { mut draft, turn } = new;
        let message = Some(agent_message(&turn.id, &turn.context_id, reason));
        let failed = StatusUpdate { state: TaskState::Failed, message, metadata: None };
        draft.write(EventBody::Status(failed)).expect("a submitted task may fail");
        let decision = draft.decide(Work::Idle, 0, Some(Point::SendStored));
        let committed = self.commit(scope, decision).await.map_err(from_store)?;
        if let Committed::Written(_) = committed {
            counted.keep();
        }
        if let Some(webhook) = webhook {
            webhook.born(scope, &committed).await;
        }
        self.accepted(scope, committed, turn).await
    }
}

/// What becomes a [`TurnRef`] once the turn is stored.
pub(super) struct NewTurn {
    pub(super) id: TaskId,
    pub(super) context_id: ContextId,
    pub(super) message: (MessageId, MessageHash),
    pub(super) event: u64,
    /// The task as of the message, if the answer may show it.
    pub(super) start: Option<Arc<Snapshot>>,
}

/// A new task with its first message, not yet stored.
struct NewTask {
    draft: Draft,
    turn: NewTurn,
}

impl NewTask {
    fn begin(mut incoming: Incoming, at: Timestamp) -> Self {
        let id = incoming.client_task_id.clone().unwrap_or_else(fresh_task_id);
        let context_id: ContextId = incoming.message.context_id.clone().unwrap_or_else(fresh_context_id);
        incoming.message.task_id = Some(id.clone());
        incoming.message.context_id = Some(context_id.clone());
        let record = message_record(&incoming, Some(id.clone()), Some(1), at);
        let message = (record.message_id.clone(), record.hash);
        let (generation, shows_start) = (incoming.generation, incoming.shows_start);
        let birth = Birth { context_id: context_id.clone(), generation, created_at: at };
        let mut draft = Draft::of_new(Snapshot::begin(id.clone(), context_id.clone(), at), birth);
        draft.record(record);
        let event = draft.write(incoming.into_event_body()).expect("a new task takes its first message");
        let start = shows_start.then(|| Arc::new(draft.snapshot.clone()));
        NewTask { draft, turn: NewTurn { id, context_id, message, event, start } }
    }

    /// A webhook that came with the message is stored with the task.
    fn add_webhook(
        &mut self,
        scope: &Scope,
        inline: Option<Box<InlineWebhook>>,
        generation: Generation,
    ) -> Result<Option<UnbornWebhook>, Error> {
        let Some(inline) = inline else { return Ok(None) };
        let reservation = inline.push.reserve(&scope.owner)?;
        let trace = self.draft.snapshot.trace.clone();
        let new = inline.push.prepare(&self.turn.id, generation, &inline.config, trace)?;
        let (push, task) = (inline.push, self.turn.id.clone());
        let unborn = UnbornWebhook { push, task, new: new.clone(), _reservation: reservation };
        self.draft.add_webhook(new);
        Ok(Some(unborn))
    }
}

/// A webhook that is being stored with its task.
struct UnbornWebhook {
    push: Push,
    task: TaskId,
    new: NewWebhook,
    /// Until it is in the registry, or was not stored.
    _reservation: Reservation,
}

impl UnbornWebhook {
    /// It is called from now on, if it was stored.
    async fn born(self, scope: &Scope, committed: &Committed) {
        let Committed::Written(written) = committed else { return };
        let NewWebhook { id, record, .. } = self.new;
        let webhook = StoredWebhook { id, record, cursor: WebhookCursor::after(0) };
        let (scope, task, version) = (scope.clone(), self.task, written.snapshot.version);
        self.push.born(OpenWebhook { key: written.bell.key(), scope, task, version, webhook }).await;
    }
}

fn v1_answer_hash(hash: &MessageHash, question: u64) -> MessageHash {
    Sha256::new().chain_update(hash).chain_update(question.to_be_bytes()).finalize().into()
}

/// The hash of an answer whose content is the same as that of an earlier message: its digest and the question's event
/// number. The version byte is kept and is not hashed, because a later version may have the same digest.
fn answer_hash(hash: &MessageHash, question: u64) -> MessageHash {
    let digest = Sha256::new().chain_update(&hash[..HASH_DIGEST]).chain_update(question.to_be_bytes());
    let mut answer: MessageHash = digest.finalize().into();
    answer[HASH_DIGEST] = hash[HASH_DIGEST];
    answer
}

pub(super) fn message_record(
    incoming: &Incoming,
    task: Option<TaskId>,
    event: Option<u64>,
    at: Timestamp,
) -> MessageRecord {
    MessageRecord {
        message_id: incoming.record_id.clone(),
        hash: incoming.hash,
        task,
        event,
        reply: None,
        at,
    }
}

pub(super) fn stopping() -> Error {
    Error::new(ErrorKind::Unavailable, "The server is shutting down; send again shortly").with_retry_after(1)
}

fn id_taken() -> Error {
    Error::of(ErrorKind::Internal).with_log("a fresh task id was taken")
}
