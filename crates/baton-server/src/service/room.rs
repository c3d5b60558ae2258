//! Reserves room (memory) for answers that have already been read: if they have to wait for room, they are dropped and read
//! again afterwards.

use baton_protocol::Error;
use baton_protocol::domain::{Message, MessageId, TaskId};
use baton_protocol::operation::ListTasks;
use bytes::Bytes;

use super::{CallContext, Page, Service};
use crate::engine::{View, from_store, large, no_room, size};
use crate::net::Share;
use crate::store::MessageHash;

impl Service {
    /// A task that has been read, with its share of the room for answers.
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

    /// The reply of a message skill, with its share of the room for answers.
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

    /// An encoded page, with its share of the room for answers. Its size is known only once it is encoded. If it then has to
    /// wait for room, it is dropped, and read and encoded again afterwards.
    pub(crate) async fn page_with_room<E>(
        &self,
        context: &CallContext,
        page: Page,
        encode: E,
    ) -> Result<(Bytes, Option<Share>), Error>
    where
        E: Fn(&Page) -> Result<Vec<u8>, Error> + Copy + Send + 'static,
    {
        let (encoded, call) = encoded(page, encode).await?;
        let Some(asker) = &context.asker else { return Ok((encoded, None)) };
        let bytes = encoded.len();
        if let Some(share) = asker.try_enter(bytes) {
            return Ok((encoded, Some(share)));
        }
        drop(encoded);
        let share = asker.enter(bytes).await.map_err(no_room)?;
        // Boxed: this is rare, and would double the size of every request's future.
        let page = Box::pin(self.list(context, call)).await?;
        let (encoded, _) = self::encoded(page, encode).await?;
        Ok((encoded, Some(share)))
    }
}

/// An encoded page, and the call that it answers. A large page is encoded off the worker threads.
async fn encoded<E>(page: Page, encode: E) -> Result<(Bytes, ListTasks), Error>
where
    E: Fn(&Page) -> Result<Vec<u8>, Error> + Send + 'static,
{
    let bytes = page.bytes();
    let work = move || encode(&page).map(|bytes| (bytes.into(), page.call));
    large::work(bytes, work).await.map_err(from_store)?
}
