//! The artifacts that a program writes in lines of JSON: which artifact a piece belongs to, and whether its text
//! continues the last text part.

use std::collections::HashMap;
use std::sync::Arc;

use baton_protocol::domain::{Artifact, ArtifactId, Part, PartContent};
use baton_server::Turn;

use super::says::Piece;
use super::turn::Break;

pub(super) struct Artifacts {
    /// Existing artifacts, and whether each ends in plain text: then appended plain text continues the same part.
    known: HashMap<ArtifactId, bool>,
    latest: Option<ArtifactId>,
    /// The number of the turn, counted by the user's messages.
    turn: usize,
    unnamed: usize,
}

impl Artifacts {
    pub(super) fn new(earlier: &[Arc<Artifact>], turn: usize) -> Self {
        let known = earlier.iter().map(|artifact| (artifact.id.clone(), end_in_plain_text(&artifact.parts)));
        Artifacts { known: known.collect(), latest: None, turn, unnamed: 0 }
    }

    pub(super) fn next_turn(&mut self) {
        (self.latest, self.unnamed) = (None, 0);
        self.turn += 1;
    }

    pub(super) async fn lay(&mut self, turn: &Turn, piece: Piece) -> Result<(), Break> {
        let id = self.id_of(&piece)?;
        let before = self.known.insert(id.clone(), end_in_plain_text(&piece.parts));
        self.latest = Some(id.clone());
        let (append, last) = (piece.append && before.is_some(), piece.last);
        let mut stream = match text_alone(&piece) {
            Some(_) if append && before == Some(true) => turn.more_text(id, piece.name.as_deref()),
            Some(_) if !append && !last => turn.stream_text_as(id, piece.name.as_deref()),
            _ => return Ok(turn.artifact_update(piece.artifact(id), append, last).await?),
        };
        stream.write(text_alone(&piece).unwrap_or_default()).await?;
        if last {
            stream.finish().await?;
        }
        Ok(())
    }

    /// The piece's id; else its name; else, if it is appended, the latest artifact; else a new id. Never random, so
    /// that a program that is run again after a crash replaces its earlier artifacts.
    fn id_of(&mut self, piece: &Piece) -> Result<ArtifactId, Break> {
        if let Some(id) = &piece.id {
            return Ok(id.clone());
        }
        if let Some(name) = &piece.name {
            let id = ArtifactId::parse(name);
            return id.map_err(|bad| {
                Break::invalid(&format_args!(
                    "`artifact.name` {bad}, so that it cannot be its id; give it an `id`"
                ))
            });
        }
        if let Some(latest) = self.latest.clone().filter(|_| piece.append) {
            return Ok(latest);
        }
        self.unnamed += 1;
        let prefix = if self.turn > 1 { format!("turn-{}-", self.turn) } else { String::new() };
        let id = ArtifactId::parse(&format!("{prefix}artifact-{}", self.unnamed));
        id.map_err(|bad| Break::invalid(&bad))
    }
}

fn end_in_plain_text(parts: &[Part]) -> bool {
    parts.last().is_some_and(|part| plain_text(part).is_some())
}

fn plain_text(part: &Part) -> Option<&str> {
    match part {
        Part { content: PartContent::Text(text), filename: None, media_type: None, metadata: None } => {
            Some(text)
        }
        _ => None,
    }
}

/// The text of a piece that has only plain text.
fn text_alone(piece: &Piece) -> Option<&str> {
    match piece.parts.as_slice() {
        [part] if piece.description.is_none() && piece.metadata.is_none() => plain_text(part),
        _ => None,
    }
}
