//! The task as it was before attempts at a turn that a crash interrupted. An agent that starts over restores its artifacts
//! from it ([`Turn::start_over`](super::turn::Turn::start_over)). The log is read only for such agents.

use baton_protocol::domain::{EventKind, Role, Scope};
use baton_protocol::lifecycle::Snapshot;

use super::Inner;
use super::large::{self, LARGE};
use crate::store::{StoreError, StoreResult, StoredEvent};

const PAGE: u32 = 256;

impl Inner {
    /// The task as of the user's last message. The log of a task that has not ended is always complete.
    pub(super) async fn at_last_message(&self, scope: &Scope, now: &Snapshot) -> StoreResult<Snapshot> {
        let task = &now.task;
        let mut snapshot = Snapshot::begin(task.id.clone(), task.context_id.clone(), task.status.timestamp);
        let mut to_come = task.history.iter().filter(|message| message.role == Role::User).count();
        if to_come < 2 {
            // Nothing comes before a task's first message.
            return Ok(snapshot);
        }
        let (mut events, mut bytes, mut last) = (Vec::new(), 0, 0);
        while to_come > 0 {
            let page = self.store.events(scope, &task.id, last, PAGE).await?;
            if page.is_empty() {
                return Err(StoreError::damaged(format!("task {}: the log ends at {last}", task.id)));
            }
            for event in page {
                if to_come == 0 {
                    break;
                }
                to_come -= usize::from(event.kind == EventKind::UserMessage);
                last = event.number;
                bytes += event.record().len();
                events.push(event);
            }
            // Folds in portions: large enough for a blocking thread, and without holding the whole log in memory.
            if bytes >= LARGE || to_come == 0 {
                let events = std::mem::take(&mut events);
                snapshot = large::work(bytes, move || fold(snapshot, &events)).await??;
                bytes = 0;
            }
        }
        Ok(snapshot)
    }
}

fn fold(mut snapshot: Snapshot, events: &[StoredEvent]) -> StoreResult<Snapshot> {
    for event in events {
        let folded = snapshot.apply(event.decode()?);
        folded.map_err(|refused| StoreError::damaged(format!("task {}: {refused}", snapshot.task.id)))?;
    }
    Ok(snapshot)
}
