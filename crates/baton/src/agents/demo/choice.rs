//! Which message selects which behaviour: one table, and the function that reads it.

use baton_protocol::domain::{Message, PartContent};

use super::phrases::{self, Phrase};

/// What the demo agent can do. The module `behaviour` implements it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Behaviour {
    Echo,
    Complete,
    Message,
    ArtifactText,
    ArtifactFile,
    ArtifactFileUrl,
    ArtifactData,
    StreamBasic,
    StreamChunked,
    LongRunning,
    InputRequired,
    MultiTurn,
    AuthRequired,
    WaitForCancel,
    Reject,
    Fail,
}

/// What a task's first message asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chosen {
    Behaviour(Behaviour),
    /// Selected by the messageId, as other conformance kits do it.
    Phrase(Phrase),
}

struct Row {
    /// How a conformance test selects it: at the start of the text or of the messageId.
    prefix: &'static str,
    /// How a person selects it: the whole text, ignoring case and final punctuation.
    words: &'static str,
    behaviour: Behaviour,
}

pub(super) const MESSAGE_WORDS: &str = "just answer";

/// In the order of the card's examples: tasks that complete by themselves come first.
const TABLE: &[Row] = &[
    row("tck-complete-task", "complete", Behaviour::Complete),
    row("tck-artifact-text", "write a note", Behaviour::ArtifactText),
    row("tck-artifact-file", "make a file", Behaviour::ArtifactFile),
    row("tck-artifact-file-url", "link to a file", Behaviour::ArtifactFileUrl),
    row("tck-artifact-data", "give me data", Behaviour::ArtifactData),
    row("tck-stream-basic", "work step by step", Behaviour::StreamBasic),
    row("tck-stream-chunked", "tell me a story", Behaviour::StreamChunked),
    row("tck-long-running", "take your time", Behaviour::LongRunning),
    row("tck-input-required", "ask me something", Behaviour::InputRequired),
    row("tck-multi-turn", "talk until I say done", Behaviour::MultiTurn),
    row("tck-auth-required", "ask me to sign in", Behaviour::AuthRequired),
    row("tck-cancel", "wait until I cancel", Behaviour::WaitForCancel),
    row("tck-reject-task", "refuse", Behaviour::Reject),
    row("tck-task-failure", "fail", Behaviour::Fail),
    row("tck-message-response", MESSAGE_WORDS, Behaviour::Message),
];

const fn row(prefix: &'static str, words: &'static str, behaviour: Behaviour) -> Row {
    Row { prefix, words, behaviour }
}

/// The phrases for people, for the card's examples.
pub(super) fn words() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|row| row.words)
}

/// What a task's first message selects: by its text, else by its messageId; anything else is echoed.
pub(super) fn of(message: &Message) -> Chosen {
    if let Some(behaviour) = named_in_text(message) {
        return Chosen::Behaviour(behaviour);
    }
    match (by_prefix(message.id.as_str()), phrases::of(message)) {
        // The longer prefix wins; if both have the same length, the kit's exact answer is expected.
        (Some((length, behaviour)), Some((exact, _))) if length > exact => Chosen::Behaviour(behaviour),
        (_, Some((_, phrase))) => Chosen::Phrase(phrase),
        (Some((_, behaviour)), None) => Chosen::Behaviour(behaviour),
        (None, None) => Chosen::Behaviour(Behaviour::Echo),
    }
}

/// True if the text selects a behaviour.
pub(super) fn by_text(message: &Message) -> bool {
    named_in_text(message).is_some()
}

fn named_in_text(message: &Message) -> Option<Behaviour> {
    let text = first_text(message)?;
    by_prefix(text).map(|(_, behaviour)| behaviour).or_else(|| by_words(text))
}

pub(super) fn first_text(message: &Message) -> Option<&str> {
    message.parts.iter().find_map(|part| match &part.content {
        PartContent::Text(text) => Some(text.as_str()),
        PartContent::Raw(_) | PartContent::Url(_) | PartContent::Data(_) => None,
    })
}

/// The longest prefix wins: `tck-artifact-file-url` also starts with `tck-artifact-file`.
fn by_prefix(text: &str) -> Option<(usize, Behaviour)> {
    let fitting = TABLE.iter().filter(|row| text.starts_with(row.prefix));
    fitting.max_by_key(|row| row.prefix.len()).map(|row| (row.prefix.len(), row.behaviour))
}

fn by_words(text: &str) -> Option<Behaviour> {
    TABLE.iter().find(|row| same_words(text, row.words)).map(|row| row.behaviour)
}

/// True if the text is `words`, ignoring case and final punctuation.
pub(super) fn same_words(text: &str, words: &str) -> bool {
    text.trim().trim_end_matches(['.', '!']).eq_ignore_ascii_case(words)
}

#[cfg(test)]
mod tests {
    use baton_protocol::domain::{JsonText, MessageId, Part, Role};

    use super::*;

    fn check(id: &str, parts: Vec<Part>, expected: Behaviour) {
        let message = Message::new(MessageId::parse(id).unwrap(), Role::User, parts);
        assert_eq!(of(&message), Chosen::Behaviour(expected), "{id} {:?}", message.parts);
    }

    #[test]
    fn every_row_is_reached_by_its_words_and_both_prefixes() {
        for row in TABLE {
            check("m-1", vec![Part::text(row.words)], row.behaviour);
            check("m-1", vec![Part::text(format!("{} and more", row.prefix))], row.behaviour);
            let id = MessageId::parse(&format!("{}-1b4c", row.prefix)).unwrap();
            let by_id = of(&Message::new(id, Role::User, vec![Part::text("hi")]));
            assert!(by_id == Chosen::Behaviour(row.behaviour) || matches!(by_id, Chosen::Phrase(_)));
            assert_ne!(by_id, Chosen::Behaviour(Behaviour::Echo), "{}", row.prefix);
        }
    }

    #[test]
    fn text_goes_before_the_message_id() {
        check("tck-cancel-1", vec![Part::text("tck-stream-basic")], Behaviour::StreamBasic);
        check("tck-cancel-1", vec![Part::text("Tell me a story!")], Behaviour::StreamChunked);
        check("tck-cancel-1", vec![Part::data(JsonText::null())], Behaviour::WaitForCancel);
    }

    #[test]
    fn the_first_text_part_counts() {
        let data = Part::data(JsonText::null());
        check(
            "m-1",
            vec![data.clone(), Part::text("tck-cancel"), Part::text("fail")],
            Behaviour::WaitForCancel,
        );
        check("m-1", vec![Part::text("hello"), Part::text("tck-cancel")], Behaviour::Echo);
        check("m-1", vec![data], Behaviour::Echo);
    }

    #[test]
    fn words_are_the_whole_text_and_prefixes_its_start() {
        for text in ["failing is fine", "please fail", "a tck-cancel", "TCK-CANCEL", "tck-", ""] {
            check("m-1", vec![Part::text(text)], Behaviour::Echo);
        }
    }
}
