//! What attempts at a turn made of the task's artifacts before a crash cut them off. An agent that begins anew undoes it
//! ([`Turn::start_over`](super::turn::Turn::start_over)).

use std::sync::Arc;

use baton_protocol::domain::{Artifact, EventKind, Role, Scope};
use baton_protocol::lifecycle::Snapshot;

use super::Inner;
use crate::store::{Head, StoreError, StoreResult};

const PAGE: u32 = 256;

/// An artifact that is no longer what it was when the user last spoke.
#[derive(Debug)]
pub(crate) struct Changed {
    /// Its place in the task.
    pub(crate) at: usize,
    /// `None` when it was not there yet.
    pub(crate) was: Option<Was>,
}

#[derive(Debug, Clone)]
pub(crate) struct Was {
    pub(crate) artifact: Arc<Artifact>,
    /// It had its last chunk.
    pub(crate) sealed: bool,
}

impl Inner {
    /// What changed since the user last spoke. Most tasks have no artifacts or one message: their log is not read.
    pub(super) async fn changed_since_message(
        &self,
        scope: &Scope,
        head: &Head,
        now: &Snapshot,
    ) -> StoreResult<Vec<Changed>> {
        let task = &now.task;
        if task.artifacts.is_empty() {
            return Ok(Vec::new());
        }
        let said = task.history.iter().filter(|message| message.role == Role::User).count();
        let before = if said > 1 { self.at_last_message(scope, head, now).await? } else { Vec::new() };
        // No artifact ever leaves the list, so a place in it stands for the artifact.
        let differs = |at: usize| before.get(at).is_none_or(|was| was.artifact != task.artifacts[at]);
        let changed = (0..task.artifacts.len()).filter(|at| differs(*at));
        Ok(changed.map(|at| Changed { at, was: before.get(at).cloned() }).collect())
    }

    /// The artifacts as they were when the user last spoke. The log of a task that has not ended is whole.
    async fn at_last_message(&self, scope: &Scope, head: &Head, now: &Snapshot) -> StoreResult<Vec<Was>> {
        let id = &now.task.id;
        let mut snapshot = Snapshot::begin(id.clone(), head.context_id.clone(), head.created_at);
        let mut before = Vec::new();
        while snapshot.version < now.version {
            let page = self.store.events(scope, id, snapshot.version, PAGE).await?;
            if page.is_empty() {
                let ends = snapshot.version;
                return Err(StoreError::Damaged(format!("task {id}: the log ends at {ends}")));
            }
            for stored in page {
                let refused = |refused| StoreError::Damaged(format!("task {id}: {refused}"));
                snapshot.apply(stored.decode()?).map_err(refused)?;
                if stored.kind == EventKind::UserMessage {
                    before = artifacts(&snapshot);
                }
            }
        }
        Ok(before)
    }
}

fn artifacts(snapshot: &Snapshot) -> Vec<Was> {
    let was = |artifact: &Arc<Artifact>| Was { artifact: Arc::clone(artifact), sealed: false };
    let mut artifacts: Vec<Was> = snapshot.task.artifacts.iter().map(was).collect();
    for id in snapshot.sealed() {
        artifacts[snapshot.ordinal(id) as usize].sealed = true;
    }
    artifacts
}
