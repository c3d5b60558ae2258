//! Plain text on stdout becomes one artifact that grows while the program prints.
//!
//! Text is held for a moment before it is written to the task. So a program that prints a few lines and exits makes one
//! event with all of its text, instead of a second, empty event that only marks the end.

use std::time::Duration;

use baton_protocol::domain::{Artifact, ArtifactId, Part};
use baton_server::{AgentError, TextStream, Turn};
use tokio::time::Instant;

use super::text::{Decoder, Pieces};
use super::{Chunk, ExecOptions};

/// Too short for a reader of a stream to notice.
const HOLD: Duration = Duration::from_millis(25);
/// Larger text is written at once.
const MOST_HELD: usize = 64 * 1024;

const NAME: &str = "output";

pub(super) struct TextArtifact {
    turn: Turn,
    id: ArtifactId,
    decoder: Decoder,
    pieces: Pieces,
    held: Option<String>,
    /// When the held text has to be written.
    due: Option<Instant>,
    begun: bool,
    /// `None` once it is finished.
    stream: Option<TextStream>,
}

impl TextArtifact {
    /// `number` is the turn's number: a second turn gets a new artifact, a re-run replaces the earlier one.
    pub(super) fn new(options: &ExecOptions, turn: &Turn, number: usize) -> Result<Self, AgentError> {
        let id = if number > 1 { format!("{NAME}-{number}") } else { NAME.to_owned() };
        let id = ArtifactId::parse(&id)?;
        let delimiter = match &options.chunk {
            Chunk::Any => None,
            Chunk::Delimiter(delimiter) => Some(delimiter.clone()),
        };
        Ok(TextArtifact {
            turn: turn.clone(),
            stream: Some(turn.stream_text_as(id.clone(), Some(NAME))),
            id,
            decoder: Decoder::default(),
            pieces: Pieces::new(delimiter, options.max_line_bytes),
            held: None,
            due: None,
            begun: false,
        })
    }

    pub(super) async fn take(&mut self, bytes: &[u8]) -> Result<(), AgentError> {
        let text = self.decoder.decode(bytes);
        self.hold(&text).await
    }

    async fn hold(&mut self, text: &str) -> Result<(), AgentError> {
        for piece in self.pieces.cut(text) {
            self.hold_piece(piece).await?;
        }
        Ok(())
    }

    async fn hold_piece(&mut self, piece: String) -> Result<(), AgentError> {
        if self.pieces.are_cut() {
            self.flush().await?;
            self.held = Some(piece);
        } else {
            self.held.get_or_insert_default().push_str(&piece);
        }
        if self.held.as_ref().is_some_and(|held| held.len() > MOST_HELD) {
            return self.flush().await;
        }
        self.due.get_or_insert_with(|| Instant::now() + HOLD);
        Ok(())
    }

    pub(super) fn flush_at(&self) -> Option<Instant> {
        self.due
    }

    pub(super) async fn flush(&mut self) -> Result<(), AgentError> {
        self.due = None;
        match self.held.take() {
            Some(text) => self.lay(text, false).await,
            None => Ok(()),
        }
    }

    /// The end of the output. `whole` is false if the program failed: then the artifact is not marked as complete.
    pub(super) async fn finish(&mut self, whole: bool) -> Result<(), AgentError> {
        let rest = std::mem::take(&mut self.decoder).finish();
        self.hold(rest).await?;
        if let Some(piece) = self.pieces.finish() {
            self.hold_piece(piece).await?;
        }
        match self.held.take() {
            Some(text) => self.lay(text, whole).await,
            None if self.begun && whole => self.lay(String::new(), true).await,
            None => Ok(()),
        }
    }

    async fn lay(&mut self, text: String, last: bool) -> Result<(), AgentError> {
        let append = std::mem::replace(&mut self.begun, true);
        if self.pieces.are_cut() {
            // A separate chunk, which is not merged with others.
            let mut artifact = Artifact::new(self.id.clone(), vec![Part::text(text)]);
            artifact.name = (!append).then(|| NAME.to_owned());
            return self.turn.artifact_update(artifact, append, last).await;
        }
        if let Some(stream) = &mut self.stream
            && !text.is_empty()
        {
            stream.write(&text).await?;
        }
        match self.stream.take_if(|_| last) {
            Some(stream) => stream.finish().await,
            None => Ok(()),
        }
    }
}
