//! The exact answers that other conformance kits look for. They send free text and put the behaviour into the
//! messageId: `tck-<name>-<8 hex>`.

use std::time::Duration;

use baton_protocol::domain::{JsonText, Message, Part};
use baton_server::{AgentError, Turn};

use super::behaviour::{artifact, is_first, pause};
use super::choice::{self, first_text, same_words};

const GREETING: &str = "Hello from TCK";
pub(super) const ANSWER: &str = "Direct message response";

/// Pause between the updates of slow work, and their number: 8 s in all.
const UPDATE: Duration = Duration::from_millis(500);
const UPDATES: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phrase {
    Complete,
    /// Asks for input until a message says `done`.
    Hold,
    Message,
    Text(&'static str),
    File,
    FileUrl,
    Data,
    Stream(&'static str),
    StreamFile,
    StreamChunks,
    Reject,
    /// Takes 8 s, with a progress update every half second.
    Slow,
}

const TABLE: &[(&str, Phrase)] = &[
    ("tck-complete-task", Phrase::Complete),
    ("tck-input-required", Phrase::Hold),
    ("tck-message-response", Phrase::Message),
    ("tck-artifact-text", Phrase::Text("Generated text content")),
    ("tck-artifact-file", Phrase::File),
    ("tck-artifact-file-url", Phrase::FileUrl),
    ("tck-artifact-data", Phrase::Data),
    ("tck-stream-001", Phrase::Stream("Stream hello from TCK")),
    ("tck-stream-002", Phrase::Complete),
    ("tck-stream-003", Phrase::Stream("Stream task lifecycle")),
    ("tck-stream-ordering-001", Phrase::Stream("Ordered output")),
    ("tck-stream-artifact-text", Phrase::Stream("Streamed text content")),
    ("tck-stream-artifact-file", Phrase::StreamFile),
    ("tck-stream-artifact-chunked", Phrase::StreamChunks),
    ("tck-reject-task", Phrase::Reject),
    ("test-resubscribe-message-id", Phrase::Slow),
];

/// The longest prefix wins.
pub(super) fn of(message: &Message) -> Option<(usize, Phrase)> {
    let fitting = TABLE.iter().filter(|(prefix, _)| message.id.as_str().starts_with(prefix));
    fitting.max_by_key(|(prefix, _)| prefix.len()).map(|(prefix, phrase)| (prefix.len(), *phrase))
}

/// True if a message to a task that waits for input ends the task.
pub(super) fn is_enough(message: &Message) -> bool {
    first_text(message).is_some_and(|text| same_words(text, "done"))
        || (!choice::by_text(message) && of(message).is_some_and(|(_, phrase)| phrase == Phrase::Complete))
}

pub(super) async fn act(phrase: Phrase, turn: &Turn) -> Result<(), AgentError> {
    match phrase {
        // The router sends these to the other skill.
        Phrase::Complete | Phrase::Message => greet(turn).await,
        Phrase::Hold if !is_first(turn) && is_enough(turn.message()) => greet(turn).await,
        Phrase::Hold => {
            let _ends_the_turn = turn.ask("Go on; say `done` when it is enough.");
            Ok(())
        }
        Phrase::Text(text) => give(turn, Part::text(text)).await,
        Phrase::File => give(turn, file()).await,
        Phrase::FileUrl => {
            give(turn, Part::url("https://example.com/output.txt", "text/plain", "output.txt")).await
        }
        Phrase::Data => give(turn, Part::data(JsonText::parse(r#"{"key":"value","count":42}"#)?)).await,
        Phrase::Stream(text) => stream(turn, Part::text(text)).await,
        Phrase::StreamFile => stream(turn, file()).await,
        Phrase::StreamChunks => {
            turn.progress("Working on it.").await?;
            turn.artifact_update(artifact("result", vec![Part::text("chunk-1 ")])?, false, false).await?;
            turn.artifact_update(artifact("result", vec![Part::text("chunk-2")])?, true, true).await?;
            Ok(turn.complete().await?)
        }
        Phrase::Reject => Ok(turn.reject("The demo agent refuses this task, as it was told to.").await?),
        Phrase::Slow => {
            for update in 1..=UPDATES {
                turn.progress(format!("{update} of {UPDATES}")).await?;
                pause(turn, UPDATE).await?;
            }
            Ok(turn.complete().await?)
        }
    }
}

/// Completes with the text that the kits look for; some kits also expect an artifact of a completed task.
pub(super) async fn greet(turn: &Turn) -> Result<(), AgentError> {
    turn.artifact(artifact("reply", vec![Part::text(GREETING)])?).await?;
    turn.complete_with(GREETING).await
}

fn file() -> Part {
    Part::raw(b"Generated file content\n".to_vec(), "text/plain", "output.txt")
}

async fn give(turn: &Turn, part: Part) -> Result<(), AgentError> {
    turn.artifact(artifact("result", vec![part])?).await?;
    turn.complete().await
}

async fn stream(turn: &Turn, part: Part) -> Result<(), AgentError> {
    turn.progress("Working on it.").await?;
    give(turn, part).await
}
