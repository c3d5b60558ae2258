//! A task's artifacts while they come into being: where each one is, which are finished, how much they hold.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::domain::{Artifact, ArtifactId, ArtifactUpdate, Part, PartContent};

/// Beside the list of artifacts. No artifact ever leaves the list, so a place in it stands for the artifact.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    /// Empty while there are few: comparing some ids is cheaper than hashing one. Past that every look-up would walk
    /// the whole list, and a task with many artifacts would take time by the square of their number.
    by_id: HashMap<ArtifactId, usize>,
    sealed: BTreeSet<usize>,
    bytes: u64,
}

/// Up to so many artifacts are searched one by one.
const FEW: usize = 16;

/// Two equal lists have equal places, whether or not they were looked up.
impl PartialEq for Index {
    fn eq(&self, other: &Self) -> bool {
        self.sealed == other.sealed
    }
}

impl Eq for Index {}

impl Index {
    pub(super) fn of(artifacts: &[Arc<Artifact>], sealed: &[ArtifactId]) -> Self {
        let bytes = artifacts.iter().map(|artifact| content_bytes(&artifact.parts)).sum();
        let mut index = Index { bytes, ..Index::default() };
        index.grown(artifacts);
        index.sealed = sealed.iter().filter_map(|id| index.position(artifacts, id)).collect();
        index
    }

    pub(super) fn position(&self, artifacts: &[Arc<Artifact>], id: &ArtifactId) -> Option<usize> {
        if artifacts.len() > FEW {
            return self.by_id.get(id).copied();
        }
        // Appends nearly always go to the newest artifact.
        artifacts.iter().rposition(|artifact| artifact.id == *id)
    }

    pub(super) fn is_sealed(&self, at: usize) -> bool {
        self.sealed.contains(&at)
    }

    pub(super) fn sealed(&self) -> impl Iterator<Item = usize> {
        self.sealed.iter().copied()
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
                self.sealed.remove(&at);
                at
            }
        };
        if last_chunk {
            self.sealed.insert(at);
        }
    }

    /// Takes new artifacts into the map, if there must be one.
    fn grown(&mut self, artifacts: &[Arc<Artifact>]) {
        if artifacts.len() <= FEW {
            return;
        }
        let known = self.by_id.len();
        let new = artifacts.iter().enumerate().skip(known).map(|(at, artifact)| (artifact.id.clone(), at));
        self.by_id.extend(new);
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

/// Adds a text to the one before it; answers what could not be added.
fn join(last: Option<&mut Part>, part: Part) -> Option<Part> {
    match (last.map(|last| &mut last.content), &part.content) {
        // The end of streamed text is told by an empty one, which nobody wants to see.
        (_, PartContent::Text(text)) if text.is_empty() => None,
        (Some(PartContent::Text(before)), PartContent::Text(text)) => {
            before.push_str(text);
            None
        }
        _ => Some(part),
    }
}

fn content_bytes(parts: &[Part]) -> u64 {
    let bytes = |part: &Part| match &part.content {
        PartContent::Text(text) | PartContent::Url(text) => text.len() as u64,
        PartContent::Raw(bytes) => bytes.len() as u64,
        PartContent::Data(json) => json.as_str().len() as u64,
    };
    parts.iter().map(bytes).sum()
}
