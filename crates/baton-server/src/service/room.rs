//! Room for answers: asked for before they are made, or, where they are at hand already, before they are kept.

use baton_protocol::Error;
use baton_protocol::domain::{Message, MessageId, TaskId};
use baton_protocol::operation::{ListTasks, Reply};

use super::{CallContext, Outcome, Service};
use crate::engine::{View, no_room, size};
use crate::net::Share;
use crate::store::MessageHash;

impl Service {
    /// A task that is at hand, with its room. If it has to wait for that it is let go of, and read again.
    pub(super) async fn with_room(
        &self,
        context: &CallContext,
        id: &TaskId,
        view: View,
    ) -> Result<(View, Option<Share>), Error> {
        let Some(asker) = &context.asker else { return Ok((view, None)) };
        let bytes = view.bytes();
        if let Some(share) = asker.try_enter(bytes) {
            return Ok((view, Some(share)));
        }
        drop(view);
        let share = asker.enter(bytes).await.map_err(no_room)?;
        Ok((self.engine().get(&context.scope, id).await?, Some(share)))
    }

    /// The same for the reply of a message skill.
    pub(super) async fn reply_with_room(
        &self,
        context: &CallContext,
        answers: &(MessageId, MessageHash),
        message: Message,
    ) -> Result<(Message, Option<Share>), Error> {
        let Some(asker) = &context.asker else { return Ok((message, None)) };
        let bytes = size::of_message(&message);
        if let Some(share) = asker.try_enter(bytes) {
            return Ok((message, Some(share)));
        }
        drop(message);
        let share = asker.enter(bytes).await.map_err(no_room)?;
        Ok((self.engine().reply_again(&context.scope, answers).await?, Some(share)))
    }

    /// A page of tasks. How large it is shows when it is made.
    pub(super) async fn list_with_room(
        &self,
        context: &CallContext,
        list: ListTasks,
    ) -> Result<Outcome, Error> {
        let Some(asker) = &context.asker else { return self.list(context, list).await };
        let outcome = self.list(context, list.clone()).await?;
        let bytes = match &outcome {
            Outcome::Stored { json, .. } => json.len(),
            Outcome::Reply { reply: Reply::Tasks(page), .. } => page.tasks.iter().map(size::of_task).sum(),
            _ => return Ok(outcome),
        };
        if let Some(share) = asker.try_enter(bytes) {
            return Ok(outcome.holding(share));
        }
        drop(outcome);
        let share = asker.enter(bytes).await.map_err(no_room)?;
        Ok(self.list(context, list).await?.holding(share))
    }
}

impl Outcome {
    fn holding(self, share: Share) -> Self {
        match self {
            Outcome::Stored { json, sent, replayed, .. } => {
                Outcome::Stored { json, share: Some(share), sent, replayed }
            }
            Outcome::Reply { reply, replayed, .. } => Outcome::Reply { reply, replayed, share: Some(share) },
            stream @ Outcome::Stream { .. } => stream,
        }
    }
}
