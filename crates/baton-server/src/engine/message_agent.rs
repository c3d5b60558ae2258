//! Message skills reply to a message with a message, without a task. The reply is stored in the message's idempotency
//! record.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use baton_protocol::domain::{Message, MessageId, Role, Scope};
use baton_protocol::{Error, ErrorKind};
use futures_util::FutureExt as _;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::agent::{Agent, AgentError, Asked, MessageAgent};
use super::clock::{fresh_context_id, fresh_message_id};
use super::content::Content;
use super::content_limits::{self, TooMuch};
use super::options::Options;
use super::send::{message_record, stopping};
use super::turn::Turn;
use super::{Accepted, Engine, Incoming, Inner, from_store, size};
use crate::points::{Point, reached};
use crate::store::{MessageHash, MessageRecord, StoreError, record};
use crate::telemetry::trace;

/// Pause before a reply that could not be stored is tried again.
const STORE_RETRY: Duration = Duration::from_secs(1);

type Key = (Scope, MessageId, MessageHash);
/// The reply, and whether it had been stored before. `None` while the agent works on it.
type Outcome = Option<Result<(Message, bool), Error>>;

/// Replies that agents are working on, so that a repeat waits for the same reply instead of calling the agent again.
#[derive(Debug, Default)]
pub(crate) struct InFlight(Mutex<HashMap<Key, watch::Receiver<Outcome>>>);

impl InFlight {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, watch::Receiver<Outcome>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A message skill as an [`Agent`], for clients that only know tasks: its reply completes the task.
pub(super) struct MessageAgentForTasks(pub(super) Arc<dyn MessageAgent>);

#[async_trait]
impl Agent for MessageAgentForTasks {
    async fn run(&self, turn: Turn) -> Result<(), AgentError> {
        let asked = Asked::new(
            turn.scope(),
            turn.message().clone(),
            turn.details().clone(),
            turn.context_id().clone(),
            turn.trace().cloned(),
        );
        let content = self.0.reply(asked).await?;
        if content.parts.is_empty() {
            return Err(AgentError::new("The agent answered with an empty message"));
        }
        turn.complete_with(content).await?;
        Ok(())
    }
}

impl Inner {
    pub(super) async fn ask(
        self: &Arc<Self>,
        scope: &Scope,
        agent: Arc<dyn MessageAgent>,
        incoming: Incoming,
    ) -> Result<Accepted, Error> {
        let key = (scope.clone(), incoming.record_id.clone(), incoming.hash);
        if let Some(known) = self.find_repeat(scope, &incoming).await? {
            return Ok(known);
        }
        let in_flight = self.in_flight.lock().contains_key(&key);
        if !in_flight && let Err(refused) = self.check_owner_bytes(scope).await {
            // The first copy may have been answered since the look-up above.
            return self.find_repeat(scope, &incoming).await?.ok_or(refused);
        }
        let answers = (incoming.record_id.clone(), incoming.hash);
        let (mut outcome, first) = {
            let mut in_flight = self.in_flight.lock();
            match in_flight.get(&key) {
                Some(outcome) => (outcome.clone(), false),
                None => {
                    if self.stopping.is_cancelled() {
                        return Err(stopping());
                    }
                    let permit = self
                        .admission
                        .run_now(&scope.agent, &incoming.caller)
                        .map_err(|full| self.full(full))?;
                    let (sender, outcome) = watch::channel(None);
                    in_flight.insert(key.clone(), outcome.clone());
                    let inner = Arc::clone(self);
                    // Spawned, so that a client that disconnects does not interrupt the agent.
                    let span = tracing::debug_span!("reply");
                    let replying = async move {
                        let result = inner.reply(&key.0, &*agent, incoming, &sender).await;
                        let _ = sender.send(Some(result));
                        inner.in_flight.lock().remove(&key);
                        drop(permit);
                        inner.admit_waiting();
                    };
                    self.tracker.spawn(replying.instrument(span));
                    (outcome, true)
                }
            }
        };
        let max_wait = self.options().send_wait;
        let waited = tokio::time::timeout(max_wait, outcome.wait_for(Option::is_some)).await;
        match waited {
            Ok(Ok(done)) => {
                let (message, earlier) = done.clone().expect("waited for it")?;
                Ok(Accepted::Reply { message, answers, replayed: earlier || !first })
            }
            Ok(Err(_)) => Err(Error::of(ErrorKind::Internal).with_log("a message turn vanished")),
            Err(_) => {
                Err(Error::new(ErrorKind::Unavailable, "The agent did not answer in time")
                    .with_retry_after(1))
            }
        }
    }

    async fn reply(
        &self,
        scope: &Scope,
        agent: &dyn MessageAgent,
        incoming: Incoming,
        sender: &watch::Sender<Outcome>,
    ) -> Result<(Message, bool), Error> {
        let (id, hash) = (&incoming.record_id, &incoming.hash);
        // Looked up again: the first call may have stored its reply since the caller's look-up.
        let known = self.store.message(scope, id, hash).await.map_err(from_store)?;
        if let Some(reply) = known.and_then(|record| record.reply) {
            return Ok((record::read_reply(&reply).map_err(from_store)?, true));
        }
        let context_id = incoming.message.context_id.clone().unwrap_or_else(fresh_context_id);
        let trace = trace::current_context().or_else(|| incoming.trace.clone());
        let (message, details) = (incoming.message.clone(), incoming.details.clone());
        let asked = Asked::new(scope, message, details, context_id.clone(), trace);
        let answered = AssertUnwindSafe(agent.reply(asked)).catch_unwind();
        let deadline = self.options().turn_deadline;
        let content = match tokio::time::timeout(deadline, answered).await {
            Ok(Ok(Ok(content))) => content,
            Ok(Ok(Err(error))) => return Err(failed(&error)),
            Ok(Err(_panic)) => return Err(failed(&AgentError::new("it panicked"))),
            Err(_) => return Err(failed(&AgentError::new("it took too long"))),
        };
        if content.parts.is_empty() {
            return Err(Error::new(
                ErrorKind::InvalidAgentResponse,
                "The agent answered with an empty message",
            ));
        }
        let Content { parts, metadata, extensions } = content;
        let message = Message {
            context_id: Some(context_id),
            metadata,
            extensions,
            ..Message::new(fresh_message_id(), Role::Agent, parts)
        };
        check_size(&self.options(), &message)?;
        let record = MessageRecord {
            reply: Some(record::write_reply(&message)),
            ..message_record(&incoming, None, None, self.clock.now())
        };
        // Not stored and not told yet, so a reply that is far too much can still be refused.
        self.check_reply_bytes(scope, record.counted_bytes()).await?;
        match self.store_reply(scope, record, sender).await? {
            None => Ok((message, false)),
            // Another replica stored a reply first; a message has only one reply.
            Some(MessageRecord { reply: Some(reply), .. }) => {
                Ok((record::read_reply(&reply).map_err(from_store)?, true))
            }
            Some(_) => {
                Err(Error::of(ErrorKind::InvalidAgentResponse)
                    .with_log("a message turned from task to reply"))
            }
        }
    }
}

impl Engine {
    /// Reads a stored reply again.
    pub(crate) async fn reply_again(
        &self,
        scope: &Scope,
        (id, hash): &(MessageId, MessageHash),
    ) -> Result<Message, Error> {
        let record = self.inner.store.message(scope, id, hash).await.map_err(from_store)?;
        let reply = record.and_then(|record| record.reply).ok_or_else(|| {
            Error::of(ErrorKind::Internal).with_log("a reply was removed while it waited for room")
        })?;
        record::read_reply(&reply).map_err(from_store)
    }
}

/// A reply may be as large as a task's artifacts.
fn check_size(options: &Options, message: &Message) -> Result<(), Error> {
    let (bytes, most) = (size::of_message(message) as u64, options.max_artifact_bytes);
    let fault = match content_limits::check_message(options, message) {
        Err(TooMuch { member, fault }) => {
            format!("a message whose {} {fault}", member.trim_start_matches('.'))
        }
        Ok(()) if bytes > most => format!("a message of {bytes} bytes; {most} are allowed"),
        Ok(()) => return Ok(()),
    };
    Err(Error::new(ErrorKind::InvalidAgentResponse, format!("The agent answered with {fault}")))
}

impl Inner {
    /// Stores a reply. If the store fails, it is tried again for a long time, so that the agent's work is not lost. Waiting
    /// callers get the store's error immediately, and find the reply when they repeat their message later.
    async fn store_reply(
        &self,
        scope: &Scope,
        record: MessageRecord,
        sender: &watch::Sender<Outcome>,
    ) -> Result<Option<MessageRecord>, Error> {
        let give_up = Instant::now() + self.options().turn_deadline.max(self.options().store_patience);
        loop {
            match self.store.put_reply(scope, record.clone()).await {
                Err(error @ (StoreError::Full(_) | StoreError::Unavailable(_)))
                    if Instant::now() < give_up && !self.stopping.is_cancelled() =>
                {
                    let _ = sender.send(Some(Err(from_store(error))));
                    self.stopping.run_until_cancelled(tokio::time::sleep(STORE_RETRY)).await;
                }
                kept => {
                    reached(Point::ReplyKept);
                    return kept.map_err(from_store);
                }
            }
        }
    }
}

fn failed(error: &AgentError) -> Error {
    Error::new(ErrorKind::Internal, format!("The agent failed: {}", error.message()))
}
