//! The end of a task with messages that its agent did not take.
//!
//! A message to a busy task is acknowledged as soon as it is stored as a request. If the task ends before its agent takes
//! the message, the message is written to the log right before the end, with a mark. Reading the requests before the append
//! would not be enough, since another one may be stored in between. So the store refuses an end that leaves a message out,
//! and this module then makes the end again with it.

use std::sync::Arc;

use baton_protocol::domain::{
    EventBody, EventKind, JsonObject, JsonText, Message, Role, Scope, StatusUpdate, Task,
};
use baton_protocol::lifecycle::Refused;

use super::{Prepared, write_event};
use crate::engine::{Inner, large};
use crate::store::{Append, EventBatch, HeadState, PendingRequest, Settled, StoreError, StoreResult};

/// The member of a message's metadata that is `true` if the task ended before its agent took the message. In the metadata
/// of the status that ended the task, and so in the task's own, it lists all such messages, for clients that read the task
/// without its history.
pub const NOT_TAKEN: &str = "urn:baton:not-taken:v1";

impl Inner {
    /// The same end with the messages that it left out. `None` if the write was refused for another reason.
    pub(super) async fn with_waiting_messages(
        &self,
        scope: &Scope,
        refused: &Prepared,
    ) -> StoreResult<Option<Prepared>> {
        let append = &refused.append;
        let Some((end, before)) = append.events.split_last().filter(|_| append.ends_task()) else {
            return Ok(None);
        };
        let pending = self.store.requests(scope, &append.task).await?;
        if !pending.iter().any(|request| is_left_out(append, request)) {
            return Ok(None);
        }
        let Some(loaded) = self.store.load(scope, &append.task).await? else { return Ok(None) };
        if (loaded.head.version, loaded.head.current.fence) != (append.expected, append.fence) {
            return Ok(None);
        }
        let damaged = |refused: Refused| StoreError::damaged(format!("task {}: {refused}", append.task));
        let (_, mut snapshot) = large::fold(loaded).await?;
        for event in before {
            snapshot.apply(event.decode()?).map_err(damaged)?;
        }
        let mut append = Append { events: before.to_vec(), ..append.clone() };
        // If the agent did not end the task explicitly, it is not ended: the messages begin the next turn.
        if !refused.unless_message_waits {
            let mut batch = EventBatch::with_room_for(pending.len() + 1);
            let mut end_body = end.decode()?.body;
            for request in &pending {
                let mut event = None;
                if is_left_out(&append, request) {
                    let EventBody::UserMessage { message, trace, details } = request.event.decode()?.body
                    else {
                        continue;
                    };
                    let body = EventBody::UserMessage { message: not_taken(message), trace, details };
                    event = Some(write_event(&mut snapshot, end.at, body, &mut batch).map_err(damaged)?);
                    if let EventBody::Status(update) = &mut end_body {
                        list_last_message(update, &snapshot.task);
                    }
                } else if append.settled.iter().any(|settled| settled.request == request.request) {
                    continue;
                }
                append.settled.push(Settled { request: request.request, event });
            }
            write_event(&mut snapshot, end.at, end_body, &mut batch).map_err(damaged)?;
            append.events.extend(batch.finish());
        }
        let status_at = snapshot.task.status.timestamp;
        append.head = HeadState { state: snapshot.state(), status_at, ..append.head };
        Ok(Some(Prepared {
            append,
            snapshot: Arc::new(snapshot),
            unless_message_waits: false,
            since_snapshot: refused.since_snapshot,
            snapshot_bytes: refused.snapshot_bytes.filter(|_| !refused.unless_message_waits),
            bell: refused.bell.clone(),
            stored: refused.stored,
        }))
    }
}

fn is_left_out(append: &Append, request: &PendingRequest) -> bool {
    request.event.kind == EventKind::UserMessage && !append.writes(request.request)
}

/// Adds the mark to the message's metadata.
fn not_taken(mut message: Message) -> Message {
    let mut text = format!("{{\"{NOT_TAKEN}\":true");
    for (key, value) in message.metadata.iter().flat_map(JsonObject::members) {
        if key != NOT_TAKEN {
            text.push(',');
            text.push_str(JsonText::from_string_value(&key).as_str());
            text.push(':');
            text.push_str(value);
        }
    }
    text.push('}');
    message.metadata = Some(JsonObject::parse(&text).expect("members of an object make an object"));
    message
}

/// Adds the last message of the task's history to the list of messages that were not taken. Senders of 0.1 messages do not
/// know their ids, so the list also has `number`, which counts the user's messages in this task.
fn list_last_message(end: &mut StatusUpdate, task: &Task) {
    let Some(message) = task.history.last() else { return };
    let id = JsonText::from_string_value(message.id.as_str());
    let number = task.history.iter().filter(|message| message.role == Role::User).count();
    let listed = end.metadata.as_ref().and_then(|metadata| metadata.get(NOT_TAKEN));
    let listed = listed.map_or("[".to_owned(), |listed| format!("{},", listed.trim_end_matches(']')));
    let text = format!("{{\"{NOT_TAKEN}\":{listed}{{\"messageId\":{},\"number\":{number}}}]}}", id.as_str());
    end.metadata = Some(JsonObject::parse(&text).expect("an object made of strings and numbers"));
}
