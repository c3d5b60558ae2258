//! The functions of the four dialects behind one interface, and the properties that all must have.

use std::fmt::Debug;

use super::written;
use crate::Error;
use crate::domain::{AgentCard, JsonText, Message, Task};
use crate::operation::{Call, Operation, Reply};
use crate::wire::dialect::{AnswerFacts, Dialect};
use crate::wire::{StreamItem, v0_1, v0_3, v1};

pub(super) const DIALECTS: [Dialect; 4] = [Dialect::V1, Dialect::V0_3, Dialect::V0_3Rest, Dialect::V0_1];

/// A value that was read is written and read again, twice. Logs are stored as 1.0, so there nothing may change at all.
pub(super) fn survives<T: Debug + PartialEq>(
    dialect: Dialect,
    first: &T,
    write: impl Fn(&T) -> String,
    read: impl Fn(&str) -> Result<T, Error>,
) {
    if dialect == Dialect::V1 {
        let text = write(first);
        match read(&text) {
            Ok(second) => assert_eq!(second, *first, "{text}"),
            Err(error) => panic!("what 1.0 wrote is not read: {error}: {text}"),
        }
    }
    settles(dialect, first, write, read);
}

/// Readers accept more than writers can write (`docs/generations.md`). Something may be lost the first time, but
/// nothing after that.
pub(super) fn settles<T: Debug + PartialEq>(
    dialect: Dialect,
    first: &T,
    write: impl Fn(&T) -> String,
    read: impl Fn(&str) -> Result<T, Error>,
) {
    let again = |value: &T| {
        let text = write(value);
        match read(&text) {
            Ok(value) => Some((text, value)),
            Err(_) if nearly_too_deep(dialect, &text) => None,
            Err(error) => panic!("{dialect:?} wrote what it does not read: {error}: {text}"),
        }
    };
    let Some((_, second)) = again(first) else { return };
    if let Some((text, third)) = again(&second) {
        assert_eq!(third, second, "{dialect:?} {text}");
    }
}

/// Data at the nesting limit exceeds it inside the wrappers of the older generations, and is refused, as documented.
pub(super) fn nearly_too_deep(dialect: Dialect, text: &str) -> bool {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    dialect != Dialect::V1 && deepest >= JsonText::MAX_DEPTH
}

pub(super) fn write_call(dialect: Dialect, tenant: Option<&str>, call: &Call) -> String {
    written(|out| match dialect {
        Dialect::V1 => v1::write_call(out, tenant, call),
        Dialect::V0_3 => v0_3::write_call(out, tenant, call),
        Dialect::V0_3Rest => v0_3::proto_json::write_call(out, tenant, call),
        Dialect::V0_1 => v0_1::write_call(out, call),
    })
}

pub(super) fn read_reply(dialect: Dialect, operation: Operation, text: &str) -> Result<Reply, Error> {
    match dialect {
        Dialect::V1 => v1::read_reply(operation, text),
        Dialect::V0_3 => v0_3::read_reply(operation, text),
        Dialect::V0_3Rest => v0_3::proto_json::read_reply(operation, text),
        Dialect::V0_1 => v0_1::read_reply(operation, text),
    }
}

/// As the server writes it.
pub(super) fn write_reply(dialect: Dialect, reply: &Reply, facts: &AnswerFacts) -> String {
    written(|out| dialect.write_reply(out, reply, facts))
}

pub(super) fn read_item(dialect: Dialect, text: &str) -> Result<StreamItem, Error> {
    match dialect {
        Dialect::V1 => v1::read_stream_item(text),
        Dialect::V0_3 => v0_3::read_stream_item(text),
        Dialect::V0_3Rest => v0_3::proto_json::read_stream_item(text),
        Dialect::V0_1 => v0_1::read_stream_item(text),
    }
}

pub(super) fn write_item(dialect: Dialect, item: &StreamItem) -> String {
    written(|out| dialect.write_stream_update(out, item))
}

pub(super) fn read_task(dialect: Dialect, text: &str) -> Result<Task, Error> {
    match dialect {
        Dialect::V1 => v1::read_task(text),
        Dialect::V0_3 => v0_3::read_task(text),
        Dialect::V0_3Rest => v0_3::proto_json::read_task(text),
        Dialect::V0_1 => v0_1::read_task(text),
    }
}

/// 0.1 has no message on its own.
pub(super) fn read_message(dialect: Dialect, text: &str) -> Option<Result<Message, Error>> {
    match dialect {
        Dialect::V1 => Some(v1::read_message(text)),
        Dialect::V0_3 => Some(v0_3::read_message(text)),
        Dialect::V0_3Rest => Some(v0_3::proto_json::read_message(text)),
        Dialect::V0_1 => None,
    }
}

pub(super) fn write_message(dialect: Dialect, message: &Message) -> String {
    written(|out| match dialect {
        Dialect::V1 | Dialect::V0_1 => v1::write_message(out, message),
        Dialect::V0_3 => v0_3::write_message(out, message),
        Dialect::V0_3Rest => v0_3::proto_json::write_message(out, message),
    })
}

pub(super) fn read_card(dialect: Dialect, text: &str) -> Result<AgentCard, Error> {
    match dialect {
        Dialect::V1 => v1::read_card(text),
        Dialect::V0_3 => v0_3::read_card(text),
        Dialect::V0_3Rest => v0_3::proto_json::read_card(text),
        Dialect::V0_1 => v0_1::read_card(text),
    }
}

pub(super) fn write_card(dialect: Dialect, card: &AgentCard) -> String {
    written(|out| match dialect {
        Dialect::V1 => v1::write_card(out, card),
        Dialect::V0_3 => v0_3::write_card(out, card),
        Dialect::V0_3Rest => v0_3::proto_json::write_card(out, card),
        Dialect::V0_1 => v0_1::write_card(out, card, &v0_1::LegacyCardFacts::default()),
    })
}
