//! A call of the webhook on stdout, as text or as a line of JSON.

use std::io::{self, Write as _};

use baton_client::Notification;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::client::agent::event_json;
use crate::output::text::Section;
use crate::output::{self, event, json, view};

#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    Text { verbose: bool },
    Json,
}

/// What is shown of a call.
pub(super) struct Shown<'a> {
    /// Of the calls that were counted.
    pub(super) number: u64,
    /// The sender's name for the event.
    pub(super) id: Option<&'a str>,
    pub(super) is_verified: bool,
    /// The status that it is answered with.
    pub(super) answer: u16,
    pub(super) notification: &'a Notification,
}

#[derive(Serialize)]
struct Line<'a> {
    call: u64,
    id: Option<&'a str>,
    version: &'a str,
    verified: bool,
    answer: u16,
    event: &'a RawValue,
}

impl Form {
    /// False if nobody reads any more.
    pub(super) fn print(self, shown: &Shown<'_>) -> bool {
        let text = match self {
            Form::Text { verbose } => text(shown, verbose),
            Form::Json => line(shown),
        };
        let mut stdout = io::stdout().lock();
        match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => false,
            Err(error) => {
                output::warn(&format!("cannot write: {error}"));
                false
            }
        }
    }
}

fn text(shown: &Shown<'_>, verbose: bool) -> String {
    let mut section = Section::default();
    section.field("Call", shown.number.to_string());
    section.optional("Id", shown.id);
    section.field("Version", shown.notification.generation.version());
    section.field("Verified", if shown.is_verified { "yes" } else { "no" });
    section.field("Answer", shown.answer.to_string());
    // The event of a notification can always be read: it was just written.
    let event = view::read(&json_of(shown.notification)).map(|event| event::event_of_any(&event, verbose));
    let mut text = section.end() + &event.unwrap_or_default();
    // A block ends with an empty line anyway.
    if !text.ends_with("\n\n") {
        text.push('\n');
    }
    text
}

fn line(shown: &Shown<'_>) -> String {
    let event = json_of(shown.notification);
    let event = serde_json::from_str::<&RawValue>(&event).unwrap_or(RawValue::NULL);
    let line = Line {
        call: shown.number,
        id: shown.id,
        version: shown.notification.generation.version(),
        verified: shown.is_verified,
        answer: shown.answer,
        event,
    };
    // Texts and numbers can always be written.
    json::compact(&serde_json::to_string(&line).unwrap_or_default()) + "\n"
}

/// The event as 1.0 spells it, as everywhere in the client's output.
fn json_of(notification: &Notification) -> String {
    let Notification { generation, event, unknown_state, .. } = notification;
    event_json(*generation, event, unknown_state.as_deref())
}
