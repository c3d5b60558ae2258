//! A text artifact that is written piece by piece.

use baton_protocol::domain::ArtifactId;

use super::super::desk::{Output, TextChunk};
use super::super::size;
use super::{AgentError, Turn};

/// Writes text into one artifact piece by piece. Pieces that come faster than they can be stored are merged. See
/// [`Turn::stream_text`].
#[derive(Debug)]
pub struct TextStream {
    pub(super) turn: Turn,
    pub(super) artifact: ArtifactId,
    pub(super) name: Option<String>,
    pub(super) begun: bool,
    /// Continues text that another stream wrote.
    pub(super) joins: bool,
}

impl TextStream {
    /// Adds text of any length.
    pub async fn write(&mut self, text: &str) -> Result<(), AgentError> {
        // Text that is too long for one event is split.
        for piece in size::pieces(text, self.turn.inner.max_event_bytes / 2) {
            self.put(piece, false).await?;
        }
        Ok(())
    }

    /// Marks the artifact as complete.
    pub async fn finish(mut self) -> Result<(), AgentError> {
        self.put("", true).await
    }

    async fn put(&mut self, text: &str, last: bool) -> Result<(), AgentError> {
        let append = std::mem::replace(&mut self.begun, true);
        let (artifact, name) = (self.artifact.clone(), self.name.take());
        let chunk = TextChunk { artifact, name, text: text.to_owned(), append, joins: self.joins, last };
        self.turn.put(Output::Text(chunk), size::of_text(text)).await
    }
}
