//! What a task's status says, apart from all else that was said: a listing that shows neither history nor artifacts
//! reads this and the head, and not a task of many megabytes.
//!
//! Stores keep the number of one event beside the head, by the rule of [`after`]. It is the rule of
//! `lifecycle` for a status message: the next status or user message takes its place. What a task's last
//! status says in its metadata is said, too.

use baton_protocol::domain::{EventBody, EventKind, Status, Task};
use baton_protocol::wire::v1;

use super::{Brief, StoreError, StoredEvent};

/// The number of the event with the status message or metadata a task shows once these events are in its log; 0 without any.
/// `before` is the answer for the log before them, 0 for a task without events.
pub fn after(before: u64, events: &[StoredEvent]) -> u64 {
    let decides = |event: &StoredEvent| match event.kind {
        EventKind::UserMessage => Some(0),
        EventKind::Status(_) if v1::status_says_nothing(&event.json()) => Some(0),
        EventKind::Status(_) => Some(event.number),
        EventKind::AttemptStarted | EventKind::CancelRequested | EventKind::Artifact => None,
    };
    events.iter().rev().find_map(decides).unwrap_or(before)
}

/// The task as a list without history and artifacts shows it.
pub fn task(brief: &Brief) -> Result<Task, StoreError> {
    let Brief { id, head, said } = brief;
    let (message, metadata) =
        match said.as_ref().map(StoredEvent::decode).transpose()?.map(|event| event.body) {
            None => (None, None),
            Some(EventBody::Status(update)) => {
                (update.message, update.metadata.filter(|_| update.state.is_terminal()))
            }
            Some(_) => {
                return Err(StoreError::Damaged(format!("task {id}: its status is said by no status")));
            }
        };
    Ok(Task {
        id: id.clone(),
        context_id: head.context_id.clone(),
        status: Status { state: head.current.state, message, timestamp: head.current.status_at },
        artifacts: Vec::new(),
        history: Vec::new(),
        metadata,
        transitions: Vec::new(),
    })
}
