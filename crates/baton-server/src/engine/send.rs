//! A message comes in: a new task, the next turn of one, or a repeat of what was said before.

use std::sync::Arc;

use baton_protocol::domain::{
    ContextId, EventBody, Message, MessageId, Scope, SendDetails, StatusUpdate, TaskId, TaskState, Timestamp,
    TraceContext,
};
use baton_protocol::lifecycle::Snapshot;
use baton_protocol::{Error, ErrorKind, Generation, Member, Name};
use sha2::{Digest as _, Sha256};

use super::admission::Admitted;
use super::agent::Logic;
use super::begin_turn::TurnStart;
use super::clock::{fresh_context_id, fresh_task_id};
use super::commit::{Committed, Draft};
use super::desk::Desk;
use super::detach::finish;
use super::hub::Bell;
use super::turn::agent_message;
use super::{Engine, Inner, from_store, size};
use crate::points::{Point, reached};
use crate::store::{Birth, HASH_DIGEST, MessageHash, MessageRecord, Work, record};
use crate::telemetry::trace;

/// A checked message on its way in.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// The message itself.
    pub message: Message,
    /// What the message is known by: its own id, or, in the generation whose messages have none, its task's.
    pub record_id: MessageId,
    /// Of the message and its target, as they were sent.
    pub hash: MessageHash,
    /// What the first version of hashes makes of it: the earliest Batons recorded it under this.
    pub first_hash: MessageHash,
    /// A task the client named: continued if it exists, else created under that id.
    pub client_task_id: Option<TaskId>,
    /// The generation its client speaks; a task's birth keeps it.
    pub generation: Generation,
    /// Resuming: the message must be on record; nothing is started.
    pub known_only: bool,
    /// What was sent with it, for the agent.
    pub details: SendDetails,
    /// The trace the message was sent in.
    pub trace: Option<TraceContext>,
    /// The answer comes before the turn has ended: it may show the task as the message found it.
    pub shows_start: bool,
}

impl Incoming {
    /// The message as its task's log has it. Called within the request: the place kept is the request's own span,
    /// where spans are recorded.
    pub(super) fn said(&self) -> EventBody {
        self.clone().into_said()
    }

    pub(super) fn into_said(self) -> EventBody {
        let trace = trace::here().or(self.trace);
        EventBody::UserMessage { message: self.message, trace, details: self.details }
    }
}

/// What became of it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Accepted {
    /// A turn of a task.
    Turn(TurnRef),
    /// A message skill's answer.
    Reply {
        /// The answer.
        message: Message,
        /// The id and digest it is kept under.
        answers: (MessageId, MessageHash),
        /// The same message had been answered before.
        replayed: bool,
    },
}

/// The turn a message belongs to, to wait for or to stream.
#[derive(Debug, Clone)]
pub struct TurnRef {
    pub(crate) scope: Scope,
    pub(crate) id: TaskId,
    pub(crate) bell: Arc<Bell>,
    pub(crate) message: (MessageId, MessageHash),
    /// Number of the message in the log; `None` while it waits for a busy task.
    pub(crate) event: Option<u64>,
    /// The task as of that number, when it is at hand.
    pub(crate) start: Option<Arc<Snapshot>>,
    /// The same message had been taken in before.
    pub replayed: bool,
}

impl TurnRef {
    /// About how many bytes the task has that is at hand for its beginning.
    pub(crate) fn start_bytes(&self) -> usize {
        self.start.as_ref().map_or(0, |start| size::of_task(&start.task))
    }

    /// The beginning is read again from the log, when it is needed.
    pub(crate) fn forget_start(&mut self) {
        self.start = None;
    }

    /// The task the turn belongs to.
    pub fn task_id(&self) -> &TaskId {
        &self.id
    }
}

impl Engine {
    /// Takes a message in. When this answers, the message is stored.
    pub async fn send(&self, scope: &Scope, incoming: Incoming) -> Result<Accepted, Error> {
        let (inner, scope) = (Arc::clone(&self.inner), scope.clone());
        finish(&self.inner.tracker, async move { inner.send(&scope, incoming).await }).await
    }
}

impl Inner {
    async fn send(self: &Arc<Self>, scope: &Scope, incoming: Incoming) -> Result<Accepted, Error> {
        if incoming.known_only {
            return match self.on_record(scope, &incoming).await? {
                Some(accepted) => Ok(accepted),
                None => Err(Error::new(
                    ErrorKind::TaskNotFound,
                    "Last-Event-ID was sent with a message this server has not seen; send the message without it to \
                     start a task",
                )),
            };
        }
        if let Some(id) = incoming.client_task_id.clone() {
            return self.send_named(scope, id, incoming).await;
        }
        match incoming.message.task_id.clone() {
            Some(id) => self.send_to_task(scope, id, incoming).await,
            None => self.send_new(scope, incoming).await?.ok_or_else(taken),
        }
    }

    /// The client makes the ids: whether the task exists decides what the message means.
    async fn send_named(
        self: &Arc<Self>,
        scope: &Scope,
        id: TaskId,
        mut incoming: Incoming,
    ) -> Result<Accepted, Error> {
        loop {
            let head = self.store.head(scope, &id).await.map_err(from_store)?;
            let asking = head.as_ref().filter(|head| head.current.state.is_interrupted());
            if let Some(accepted) = self.on_record(scope, &incoming).await? {
                let Some(asking) = asking else { return Ok(accepted) };
                // Without message ids the words of an earlier message are a repeat of it, unless the agent waits for
                // an answer: then they are one, and known by the question they answer.
                incoming.hash = answer_hash(&incoming.hash, asking.version);
                incoming.first_hash = first_answer_hash(&incoming.first_hash, asking.version);
            }
            if head.is_some() {
                incoming.message.task_id = Some(id.clone());
                // The task decides: a session that differs from its own is ignored.
                incoming.message.context_id = None;
                return self.send_to_task(scope, id, incoming).await;
            }
            if let Some(accepted) = self.send_new(scope, incoming.clone()).await? {
                return Ok(accepted);
            }
            // Another send of this id came first and may not have stored its task yet. Each time round one of them
            // is answered, so this ends.
            if let Some(other) = self.runs.claim(scope, &id) {
                other.settled().await;
            }
        }
    }

    /// The same message came before: answer with the same turn or reply.
    pub(super) async fn on_record(
        &self,
        scope: &Scope,
        incoming: &Incoming,
    ) -> Result<Option<Accepted>, Error> {
        match self.known_as(scope, &incoming.record_id, &incoming.hash).await? {
            None => self.on_older_record(scope, incoming).await,
            known => Ok(known),
        }
    }

    /// The same for a record that an earlier Baton made. A second look into the store, but only for messages with free
    /// JSON that is not canonical (and for answers in 0.1): any other has the same digest in every version.
    async fn on_older_record(&self, scope: &Scope, incoming: &Incoming) -> Result<Option<Accepted>, Error> {
        let first = &incoming.first_hash;
        match first[..HASH_DIGEST] == incoming.hash[..HASH_DIGEST] {
            true => Ok(None),
            false => self.known_as(scope, &incoming.record_id, first).await,
        }
    }

    async fn known_as(
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
        // Whoever changed an agent and tries it with the same messageId would look for the change in vain.
        match &found.task {
            Some(task) => {
                tracing::info!(task.id = %task, "the same message came again: answered with its task, nothing runs")
            }
            None => tracing::info!("the same message came again: answered with its reply, nothing runs"),
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
            // The record outlives its task: starting the work once more would be worse than saying so.
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

    /// `None`: the id the client named is taken by now.
    async fn send_new(
        self: &Arc<Self>,
        scope: &Scope,
        incoming: Incoming,
    ) -> Result<Option<Accepted>, Error> {
        if let Some(known) = self.on_older_record(scope, &incoming).await? {
            return Ok(Some(known));
        }
        let Some(agent) = self.agents.get(&scope.agent) else {
            return Err(Error::of(ErrorKind::Internal).with_log(format_args!("no agent {}", scope.agent)));
        };
        let skill = agent.skill_for(&incoming.message);
        if let Some(skill) = skill
            && let Err(refused) = agent.check_output(&skill.card.id, &incoming.details)
        {
            // A repeat is answered as the first was, whatever it takes.
            return self.on_record(scope, &incoming).await?.map(Some).ok_or(refused);
        }
        match skill.map(|skill| &skill.logic) {
            // A client that named its task will ask for it again: there the answer is a task's.
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
        if self.stopping.is_given() {
            return Err(stopping());
        }
        let place = match self.admission.reserve(&scope.agent) {
            Ok(place) => place,
            // A repeat is answered even when there is no room for anything new.
            Err(full) => {
                return self.on_record(scope, &incoming).await?.map(Some).ok_or_else(|| full.into());
            }
        };
        let (record_id, hash) = (incoming.record_id.clone(), incoming.hash);
        let created = self.create_at(scope, incoming, place).await;
        // The place may have come back unused, and others wait for one.
        self.admit_waiting();
        match created {
            // Nor does a repeat need the store to have room.
            Err(refused) => self.known_as(scope, &record_id, &hash).await?.ok_or(refused).map(Some),
            created => created,
        }
    }

    async fn create_at(
        self: &Arc<Self>,
        scope: &Scope,
        incoming: Incoming,
        place: Admitted,
    ) -> Result<Option<Accepted>, Error> {
        let new = NewTask::begin(incoming, self.clock.now());
        let desk = Arc::new(Desk::new(self.options().max_event_bytes));
        let Some(registration) = self.runs.register(scope, &new.turn.id, Arc::clone(&desk)) else {
            return Ok(None);
        };
        let start = TurnStart {
            registration,
            desk,
            place,
            draft: new.draft,
            origin: trace::here(),
            is_rerun: false,
            has_requests: false,
            stored: Point::SendStored,
        };
        let committed = self.begin_turn(start).await.map_err(from_store)?;
        self.accepted(scope, committed, new.turn).await
    }

    /// What a message's sender is told of the turn it began. `None`: nothing was begun, look again.
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
        trace::about(&id, Some(&context_id));
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

    /// No skill fits: the task exists and says so.
    async fn create_failed(
        self: &Arc<Self>,
        scope: &Scope,
        incoming: Incoming,
        reason: String,
    ) -> Result<Option<Accepted>, Error> {
        let NewTask { mut draft, turn } = NewTask::begin(incoming, self.clock.now());
        let message = Some(agent_message(&turn.id, &turn.context_id, reason));
        let failed = StatusUpdate { state: TaskState::Failed, message, metadata: None };
        draft.write(EventBody::Status(failed)).expect("a submitted task may fail");
        let decision = draft.decide(Work::Idle, 0, Some(Point::SendStored));
        let committed = self.commit(scope, decision).await.map_err(from_store)?;
        self.accepted(scope, committed, turn).await
    }
}

/// A turn in the making, as its message's sender will know it.
pub(super) struct NewTurn {
    pub(super) id: TaskId,
    pub(super) context_id: ContextId,
    pub(super) message: (MessageId, MessageHash),
    pub(super) event: u64,
    /// The task as of the message, where somebody may want to see it.
    pub(super) start: Option<Arc<Snapshot>>,
}

/// A task in the making, with its first message.
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
        let event = draft.write(incoming.into_said()).expect("a new task takes its first message");
        let start = shows_start.then(|| Arc::new(draft.snapshot.clone()));
        NewTask { draft, turn: NewTurn { id, context_id, message, event, start } }
    }
}

fn first_answer_hash(hash: &MessageHash, question: u64) -> MessageHash {
    Sha256::new().chain_update(hash).chain_update(question.to_be_bytes()).finalize().into()
}

/// Of an answer in the words of an earlier message. Keeps the version; what it is made of does not depend on it, since
/// the next version may make the same digest.
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

fn taken() -> Error {
    Error::of(ErrorKind::Internal).with_log("a fresh task id was taken")
}
