//! SendMessage and SendStreamingMessage.

use std::time::Duration;

use baton_protocol::domain::{Role, SendDetails};
use baton_protocol::operation::SendMessage;
use baton_protocol::{Error, Generation, Member, Name};

use super::message_hash::hashes;
use super::{Answered, CallContext, Outcome, Service, ShownTask, file_urls, media, subscribe, too_much};
use crate::engine::clock::fresh_message_id;
use crate::engine::content_limits;
use crate::engine::{Accepted, EventStream, Incoming};

impl Service {
    pub(super) async fn send(&self, context: &CallContext, send: SendMessage) -> Result<Answered, Error> {
        let history_length = send.history_length;
        let max_wait = match context.generation {
            // 0.1 clients expect an answer as soon as the task is stored.
            Generation::V0_1 => self.limits().legacy_wait,
            Generation::V0_3 | Generation::V1 if send.return_immediately => Duration::ZERO,
            Generation::V0_3 | Generation::V1 => self.engine().options().send_wait,
        };
        let incoming = self.incoming(context, send, false, max_wait.is_zero())?;
        match self.accept(context, incoming).await? {
            Accepted::Reply { message, answers, replayed } => {
                let (message, share) = self.reply_with_room(context, &answers, message).await?;
                Ok(Answered { outcome: Outcome::Message(message), replayed, share })
            }
            Accepted::Turn(turn) => {
                let view = if max_wait.is_zero() {
                    self.engine().now_or_start(&turn).await?
                } else {
                    self.engine().wait(&turn, max_wait).await?
                };
                let (id, replayed) = (turn.task_id().clone(), turn.replayed);
                // The turn holds a copy of the task, which must not stay in memory while the answer waits for room.
                drop(turn);
                let (view, share) = self.with_room(context, &id, view).await?;
                let outcome = Outcome::Task(ShownTask { view, history_length, answers_send: true });
                Ok(Answered { outcome, replayed, share })
            }
        }
    }

    pub(super) async fn send_streaming(
        &self,
        context: &CallContext,
        send: SendMessage,
    ) -> Result<Answered, Error> {
        let last_seen = subscribe::last_seen(context)?;
        let history_length = send.history_length;
        let incoming = self.incoming(context, send, last_seen.is_some(), true)?;
        let slot = self.stream_slot(context)?;
        let (stream, replayed) = match self.accept(context, incoming).await? {
            Accepted::Reply { message, answers, replayed } => {
                let (message, share) = self.reply_with_room(context, &answers, message).await?;
                (EventStream::of_message(message).with_share(share), replayed)
            }
            Accepted::Turn(mut turn) => {
                let close = subscribe::turn_end(context.generation);
                let asker = context.asker.as_ref();
                let bytes = if last_seen.is_none() { turn.start_bytes() } else { 0 };
                let share = asker.and_then(|asker| asker.try_enter(bytes));
                if asker.is_some() && share.is_none() {
                    // It is read again from the log once there is room for it.
                    turn.forget_start();
                }
                let stream = self.engine().stream_turn(&turn, last_seen, close, asker).await?;
                (stream.with_share(share), turn.replayed)
            }
        };
        let stream = stream.with_history(history_length).with_slot(slot);
        Ok(Answered { outcome: Outcome::Stream(stream), replayed, share: None })
    }

    fn incoming(
        &self,
        context: &CallContext,
        send: SendMessage,
        known_only: bool,
        shows_start: bool,
    ) -> Result<Incoming, Error> {
        let SendMessage { mut message, client_task_id, accepted_output_modes, metadata, push_config, .. } =
            send;
        if message.role != Role::User {
            let user = Name::Member(Member::UserRole);
            let problem = format!("must be {user}: agents answer, they do not ask");
            return Err(Error::invalid("message.role", problem));
        }
        let options = self.engine().options();
        content_limits::check_message(&options, &message).map_err(|it| too_much("message", &it))?;
        content_limits::check_metadata(&options, metadata.as_ref()).map_err(|it| too_much("", &it))?;
        media::check(&self.declared(), &message)?;
        if !options.internal_file_urls {
            file_urls::check(&message)?;
        }
        let (hashes, record_id) = (hashes(&message), message.id.clone());
        if client_task_id.is_some() {
            // 0.1 messages have no id; the codec used the task's id for it.
            message.id = fresh_message_id();
        }
        let generation = context.generation;
        let trace = context.trace.clone();
        Ok(Incoming {
            message,
            record_id,
            hash: hashes.current,
            v1_hash: hashes.v1,
            client_task_id,
            details: SendDetails {
                accepted_output_modes,
                metadata,
                extensions: self.activated(&context.extensions),
            },
            generation,
            known_only,
            trace,
            shows_start,
            permission: context.permission.clone(),
            skill: None,
            caller: context.caller.clone(),
            webhook: self.inline_webhook(push_config)?,
        })
    }
}
