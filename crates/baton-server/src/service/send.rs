//! SendMessage and SendStreamingMessage.

use std::sync::Arc;

use baton_protocol::Error;
use baton_protocol::domain::{Message, Role};
use baton_protocol::operation::{Reply, SendMessage};
use baton_protocol::wire::v1;
use sha2::{Digest, Sha256};

use super::{CallContext, Outcome, Service, media, subscribe};
use crate::engine::{Accepted, EventStream, Incoming};

impl Service {
    pub(super) async fn send(&self, context: &CallContext, send: SendMessage) -> Result<Outcome, Error> {
        let (history_length, at_once) = (send.history_length, send.return_immediately);
        let incoming = self.incoming(context, send.message, false)?;
        match self.engine().send(&context.scope, incoming).await? {
            Accepted::Reply { message, replayed } => {
                Ok(Outcome::Reply { reply: Reply::SentMessage(message), replayed })
            }
            Accepted::Turn(turn) => {
                let snapshot = if at_once {
                    self.engine().now_or_start(&turn).await?
                } else {
                    self.engine().wait(&turn).await?
                };
                let mut task = Arc::unwrap_or_clone(snapshot).task;
                history_length.trim(&mut task.history);
                Ok(Outcome::Reply { reply: Reply::SentTask(task), replayed: turn.replayed })
            }
        }
    }

    pub(super) async fn send_streaming(
        &self,
        context: &CallContext,
        send: SendMessage,
    ) -> Result<Outcome, Error> {
        let last_seen = subscribe::last_seen(context)?;
        let incoming = self.incoming(context, send.message, last_seen.is_some())?;
        let (stream, replayed) = match self.engine().send(&context.scope, incoming).await? {
            Accepted::Reply { message, replayed } => (EventStream::of_message(message), replayed),
            Accepted::Turn(turn) => (self.engine().stream_turn(&turn, last_seen).await?, turn.replayed),
        };
        Ok(Outcome::Stream { stream: stream.with_history(send.history_length), replayed })
    }

    fn incoming(&self, context: &CallContext, message: Message, known_only: bool) -> Result<Incoming, Error> {
        if message.role != Role::User {
            return Err(Error::invalid("message.role", "must be ROLE_USER: agents answer, they do not ask"));
        }
        let most = self.engine().options().max_parts;
        if message.parts.len() > most {
            return Err(Error::invalid("message.parts", format!("holds more than {most} parts")));
        }
        media::check(self.declared(), &message)?;
        Ok(Incoming { hash: hash(&message), message, generation: context.generation, known_only })
    }
}

/// Of the message as it was sent, its target included.
fn hash(message: &Message) -> [u8; 32] {
    let mut json = Vec::with_capacity(512);
    v1::write_message(&mut json, message);
    Sha256::digest(&json).into()
}
