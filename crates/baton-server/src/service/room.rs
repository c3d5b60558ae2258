//! Room for large answers: asked for before they are made, or, where they are at hand already, before they are kept.

use baton_protocol::Error;
use baton_protocol::domain::TaskId;
use baton_protocol::operation::ListTasks;
use bytes::Bytes;

use super::{CallContext, Outcome, Service};
use crate::engine::{View, no_room};
use crate::net::{SMALL, Share};

impl Service {
    /// A task that is at hand, with its room. If it has to wait for that it is let go of, and read again.
    pub(super) async fn with_room(
        &self,
        context: &CallContext,
        id: &TaskId,
        view: View,
    ) -> Result<(View, Option<Share>), Error> {
        let bytes = view.bytes();
        let Some(asker) = context.asker.as_ref().filter(|_| bytes > SMALL) else { return Ok((view, None)) };
        if let Some(share) = asker.try_enter(bytes) {
            return Ok((view, Some(share)));
        }
        drop(view);
        let share = asker.enter(bytes).await.map_err(no_room)?;
        Ok((self.engine().get(&context.scope, id).await?, Some(share)))
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
            Outcome::Stored { json, .. } if json.len() > SMALL => json.len(),
            // Of the older generations the binding sees the size.
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
            Outcome::Stored { json, sent, replayed } => {
                Outcome::Stored { json: held(json, Some(share)), sent, replayed }
            }
            Outcome::Reply { reply, replayed, .. } => Outcome::Reply { reply, replayed, share: Some(share) },
            stream @ Outcome::Stream { .. } => stream,
        }
    }
}

/// What turned out to be small needs no room.
pub(super) fn held(json: Bytes, share: Option<Share>) -> Bytes {
    match share.filter(|_| json.len() > SMALL) {
        Some(share) => share.holding(json),
        None => json,
    }
}
