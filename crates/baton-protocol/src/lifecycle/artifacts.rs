//! An index of a task's artifacts: their positions, which are complete, and their total size.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::domain::{Artifact, ArtifactId, ArtifactUpdate, Part, PartContent};

/// Kept beside the list of artifacts. No artifact is ever removed from the list, so a position identifies it.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    /// Only from the ninth artifact on: comparing some ids is cheaper than making a map, and nearly every task has one
    /// artifact. Past that every look-up would walk the whole list, and a task with many artifacts would take time by
    /// the square of their number.
    by_id: Option<HashMap<ArtifactId, usize>>,
    /// Places of those whose last chunk has not come. Most artifacts come whole, so that nothing is kept for them.
    open: BTreeSet<usize>,
    bytes: u64,
}

/// Up to this many artifacts are searched linearly.
const FEW: usize = 8;

/// `by_id` is a cache: it does not matter for equality.
impl PartialEq for Index {
    fn eq(&self, other: &Self) -> bool {
        self.open == other.open
    }
}

impl Eq for Index {}

impl Index {
    pub(super) fn of(artifacts: &[Arc<Artifact>], sealed: &[ArtifactId]) -> Self {
        let bytes = artifacts.iter().map(|artifact| content_bytes(&artifact.parts)).sum();
        let mut index = Index { bytes, ..Index::default() };
        index.grown(artifacts);
        let sealed: BTreeSet<usize> = sealed.iter().filter_map(|id| index.position(artifacts, id)).collect();
        index.open = (0..artifacts.len()).filter(|at| !sealed.contains(at)).collect();
        index
    }

    pub(super) fn position(&self, artifacts: &[Arc<Artifact>], id: &ArtifactId) -> Option<usize> {
        match &self.by_id {
            Some(by_id) => by_id.get(id).copied(),
            // Appends nearly always go to the newest artifact.
            None => artifacts.iter().rposition(|artifact| artifact.id == *id),
        }
    }

    /// True if the last chunk of the artifact at that position was received.
    pub(super) fn is_sealed(&self, at: usize) -> bool {
        !self.open.contains(&at)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Creates, replaces or adds to an artifact. The update has been checked.
    pub(super) fn take(&mut self, artifacts: &mut Vec<Arc<Artifact>>, update: ArtifactUpdate) {
        let ArtifactUpdate { artifact, append, joins, last_chunk, .. } = update;
        self.bytes += content_bytes(&artifact.parts);
        let at = match self.position(artifacts, &artifact.id) {
            None => {
                artifacts.push(Arc::new(artifact));
                self.grown(artifacts);
                artifacts.len() - 1
            }
            Some(at) if append => {
                add(Arc::make_mut(&mut artifacts[at]), artifact, joins);
                at
            }
            Some(at) => {
                self.bytes -= content_bytes(&artifacts[at].parts);
                artifacts[at] = Arc::new(artifact);
                at
            }
        };
        if last_chunk {
            self.open.remove(&at);
        } else {
            self.open.insert(at);
        }
    }

    /// Adds new artifacts to the map, if it is needed.
    fn grown(&mut self, artifacts: &[Arc<Artifact>]) {
        if artifacts.len() <= FEW {
            return;
        }
        let by_id = self.by_id.get_or_insert_default();
        let new =
            artifacts.iter().enumerate().skip(by_id.len()).map(|(at, artifact)| (artifact.id.clone(), at));
        by_id.extend(new);
    }
}

/// Adds parts; the other members are replaced when the chunk states them.
fn add(artifact: &mut Artifact, chunk: Artifact, joins: bool) {
    let mut parts = chunk.parts.into_iter();
    if joins {
        let left = parts.next().and_then(|first| join(artifact.parts.last_mut(), first));
        artifact.parts.extend(left);
    }
    artifact.parts.extend(parts);
    artifact.name = chunk.name.or(artifact.name.take());
    artifact.description = chunk.description.or(artifact.description.take());
    artifact.metadata = chunk.metadata.or(artifact.metadata.take());
    if !chunk.extensions.is_empty() {
        artifact.extensions = chunk.extensions;
    }
}

/// Appends a text to the last part; returns the part if it could not be appended.
fn join(last: Option<&mut Part>, part: Part) -> Option<Part> {
    match (last.map(|last| &mut last.content), &part.content) {
        // An empty text marks the end of streamed text; it must not become a part.
        (_, PartContent::Text(text)) if text.is_empty() => None,
        (Some(PartContent::Text(before)), PartContent::Text(text)) => {
            before.push_str(text);
            None
        }
        _ => Some(part),
    }
}

/// The parts with texts that follow each other as one.
pub(super) fn joined(parts: &[Part]) -> Vec<Part> {
    let mut all: Vec<Part> = Vec::with_capacity(parts.len());
    for part in parts {
        if let Some(part) = join(all.last_mut(), part.clone()) {
            all.push(part);
        }
    }
    all
}

fn content_bytes(parts: &[Part]) -> u64 {
    let bytes = |part: &Part| match &part.content {
        PartContent::Text(text) | PartContent::Url(text) => text.len() as u64,
        PartContent::Raw(bytes) => bytes.len() as u64,
        PartContent::Data(json) => json.as_str().len() as u64,
    };
    parts.iter().map(bytes).sum()
}
