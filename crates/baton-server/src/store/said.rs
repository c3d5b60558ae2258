//! Finds the event with a task's current status message or metadata. A listing without history and artifacts reads this
//! event and the head, and not a task of many megabytes.
//!
//! Stores keep the event's number with the head; [`after`] computes it. `lifecycle` has the same rule: a status message is
//! current until the next status or user message.

use baton_protocol::domain::{EventBody, EventKind, Status, Task};
use baton_protocol::wire::stored;

use super::{Brief, StoreError, StoredEvent};

/// The number of the event with the task's status message or metadata after `events` were appended; 0 if there is none.
/// `before` is the number before them, 0 for a new task.
pub fn after(before: u64, events: &[StoredEvent]) -> u64 {
    let number_after = |event: &StoredEvent| match event.kind {
        EventKind::UserMessage => Some(0),
        EventKind::Status(_) if stored::status_says_nothing(&event.json()) => Some(0),
        EventKind::Status(_) => Some(event.number),
        EventKind::AttemptStarted | EventKind::CancelRequested | EventKind::Artifact => None,
    };
    events.iter().rev().find_map(number_after).unwrap_or(before)
}

/// The task as a list without history and artifacts shows it.
pub(crate) fn task(brief: &Brief) -> Result<Task, StoreError> {
    let Brief { id, head, said } = brief;
    let (message, metadata) =
        match said.as_ref().map(StoredEvent::decode).transpose()?.map(|event| event.body) {
            None => (None, None),
            Some(EventBody::Status(update)) => {
                (update.message, update.metadata.filter(|_| update.state.is_terminal()))
            }
            Some(_) => {
                return Err(StoreError::damaged(format!(
                    "task {id}: the event with its status is not a status"
                )));
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
