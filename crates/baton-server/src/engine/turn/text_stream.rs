//! Text that grows as it is written.

use baton_protocol::domain::ArtifactId;

use super::super::desk::{Said, TextChunk};
use super::super::size;
use super::{AgentError, Turn};

/// Text written bit by bit into one artifact. Bits that come faster than they can be stored are merged. See
/// [`Turn::stream_text`].
#[derive(Debug)]
pub struct TextStream {
    pub(super) turn: Turn,
    pub(super) artifact: ArtifactId,
    pub(super) name: Option<String>,
    pub(super) begun: bool,
    /// Goes on with text that another stream wrote.
    pub(super) joins: bool,
}

impl TextStream {
    /// Adds text; it may be a token or a chapter.
    pub async fn write(&mut self, text: &str) -> Result<(), AgentError> {
        // A token longer than one event may hold goes down in pieces.
        for piece in size::pieces(text, self.turn.inner.max_event_bytes / 2) {
            self.lay(piece, false).await?;
        }
        Ok(())
    }

    /// Marks the artifact as whole.
    pub async fn finish(mut self) -> Result<(), AgentError> {
        self.lay("", true).await
    }

    async fn lay(&mut self, text: &str, last: bool) -> Result<(), AgentError> {
        let append = std::mem::replace(&mut self.begun, true);
        let (artifact, name) = (self.artifact.clone(), self.name.take());
        let chunk = TextChunk { artifact, name, text: text.to_owned(), append, joins: self.joins, last };
        self.turn.lay(Said::Text(chunk), size::of_text(text)).await
    }
}
