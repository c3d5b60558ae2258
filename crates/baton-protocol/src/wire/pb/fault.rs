//! What is the same in both packages when messages are read: scalars, ids, enums, times, and faults that name the member
//! by its JSON name, as the other bindings do.
//!
//! Most fields have no presence: an empty string is the same as an absent one.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;

use super::json::read_object;
use crate::domain::ids::BadId;
use crate::domain::{JsonObject, JsonText, PartContent, Role, TaskState, Timestamp};
use crate::error::Error;
use crate::wire::objects::AnyState;
use crate::wire::objects::types::NO_PART;
use crate::wire::read::Subject;
use crate::wire::v1::{ROLES, STATE_UNSPECIFIED, STATES};

pub(super) type Read<T> = Result<T, Fault>;

/// What is wrong with which member.
#[derive(Debug)]
pub(super) struct Fault {
    /// Empty for the whole message.
    path: String,
    description: Cow<'static, str>,
}

impl Fault {
    pub(super) fn new(description: impl Into<Cow<'static, str>>) -> Self {
        Fault { path: String::new(), description: description.into() }
    }

    pub(super) fn told(self, subject: Subject) -> Error {
        let field = if self.path.is_empty() { subject.root.to_owned() } else { self.path };
        subject.refuse(field, self.description)
    }
}

/// Says in which member, or in which item of a list, a fault is.
pub(super) trait Within {
    fn within(self, member: &str) -> Self;
    fn within_item(self, index: usize) -> Self;
}

impl Within for Fault {
    fn within(self, member: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        Fault { path: format!("{member}{dot}{}", self.path), ..self }
    }

    fn within_item(self, index: usize) -> Self {
        self.within(&format!("[{index}]"))
    }
}

impl<T> Within for Read<T> {
    fn within(self, member: &str) -> Self {
        self.map_err(|fault| fault.within(member))
    }

    fn within_item(self, index: usize) -> Self {
        self.map_err(|fault| fault.within_item(index))
    }
}

/// What kind of message is read, and what was found in it.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// An agent's answer; otherwise a request. Answers are read with more patience.
    pub(super) is_answer: bool,
    /// See [`FromPeer`](crate::wire::peer_state::FromPeer).
    pub(super) unknown_states: Vec<Option<String>>,
}

impl Reader {
    /// The state of a task. One that nobody knows counts as working.
    pub(super) fn state(&mut self, number: i32) -> TaskState {
        let state = state(number).ok().flatten();
        let unknown = state.is_none().then(|| match number {
            0 => STATE_UNSPECIFIED.to_owned(),
            number => number.to_string(),
        });
        self.unknown_states.push(unknown);
        state.unwrap_or(TaskState::Working)
    }

    /// A required string that is not an id. In an answer it may be empty.
    pub(super) fn required(&self, text: String) -> Read<String> {
        if text.is_empty() && !self.is_answer { Err(missing()) } else { Ok(text) }
    }

    /// The content of a part that has none. In an answer it may be of a kind that a later version has.
    pub(super) fn no_content(&self, members: &str) -> Read<PartContent> {
        match self.is_answer {
            true => Ok(PartContent::Data(JsonText::from(JsonObject::empty()))),
            false => Err(Fault::new(format!("must hold exactly one of {members}"))),
        }
    }
}

pub(super) fn missing() -> Fault {
    Fault::new("is required")
}

/// A required message.
pub(super) fn present<T>(message: Option<T>) -> Read<T> {
    message.ok_or_else(missing)
}

/// A required id.
pub(super) fn id<T>(text: &str, parse: fn(&str) -> Result<T, BadId>) -> Read<T> {
    maybe_id(text, parse)?.ok_or_else(missing)
}

pub(super) fn maybe_id<T>(text: &str, parse: fn(&str) -> Result<T, BadId>) -> Read<Option<T>> {
    let id = (!text.is_empty()).then(|| parse(text)).transpose();
    id.map_err(|bad| Fault::new(bad.to_string()))
}

/// Ids in a list.
pub(super) fn ids<T>(texts: &[String], parse: fn(&str) -> Result<T, BadId>) -> Read<Vec<T>> {
    list(texts.iter().collect(), |text: &String| parse(text).map_err(|bad| Fault::new(bad.to_string())))
}

pub(super) fn text(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

/// A number for which 0 is the same as absent.
pub(super) fn number(number: i32) -> Option<i32> {
    Some(number).filter(|number| *number != 0)
}

pub(super) fn count<T: TryFrom<i32>>(count: i32) -> Read<T> {
    T::try_from(count).map_err(|_| Fault::new("must not be negative"))
}

pub(super) fn list<A, B>(items: Vec<A>, mut read: impl FnMut(A) -> Read<B>) -> Read<Vec<B>> {
    items.into_iter().enumerate().map(|(n, item)| read(item).within_item(n)).collect()
}

/// The parts of a message, which must not be empty.
pub(super) fn at_least_one<A, B>(parts: Vec<A>, read: impl FnMut(A) -> Read<B>) -> Read<Vec<B>> {
    match parts.is_empty() {
        true => Err(Fault::new(NO_PART)),
        false => list(parts, read),
    }
}

pub(super) fn named<A, B>(
    pairs: BTreeMap<String, A>,
    mut read: impl FnMut(A) -> Read<B>,
) -> Read<Vec<(String, B)>> {
    let read = |(name, value): (String, A)| Ok((name.clone(), read(value).within(&name)?));
    pairs.into_iter().map(read).collect()
}

pub(super) fn maybe_object(encoded: Option<Bytes>) -> Read<Option<JsonObject>> {
    encoded.map(read_object).transpose()
}

pub(super) fn role(number: i32) -> Read<Role> {
    match number {
        1 => Ok(Role::User),
        2 => Ok(Role::Agent),
        _ => Err(Fault::new(format!("must be {ROLES}"))),
    }
}

/// A state, or none if it is unspecified.
pub(super) fn state(number: i32) -> Read<Option<TaskState>> {
    let state = u64::try_from(number).ok().and_then(AnyState::from_number);
    state.map(|AnyState(state)| state).ok_or_else(|| Fault::new(format!("must be {STATES}")))
}

/// Fractions of a millisecond are cut off.
pub(super) fn time(at: prost_types::Timestamp) -> Read<Timestamp> {
    let nanos = u32::try_from(at.nanos).ok().filter(|nanos| *nanos < 1_000_000_000);
    let millis =
        nanos.and_then(|nanos| at.seconds.checked_mul(1000)?.checked_add(i64::from(nanos / 1_000_000)));
    let read = millis.map(Timestamp::from_millis).filter(|read| Some(read.as_millis()) == millis);
    read.ok_or_else(|| Fault::new("must be a time in the years 1 to 9999"))
}

/// Rounded up, for the lower bound of a filter.
pub(super) fn not_before(at: prost_types::Timestamp) -> Read<Timestamp> {
    time(at).map(|read| if at.nanos % 1_000_000 == 0 { read } else { read.plus_millis(1) })
}
