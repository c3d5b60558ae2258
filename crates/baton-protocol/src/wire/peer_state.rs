//! States in a peer's answers that are none of the eight: `TASK_STATE_UNSPECIFIED`, `unknown` in 0.3, or a name that a later
//! version may have. For a client they are neither an end nor a question, so the task counts as working, and the name is
//! kept beside it. What the server stores is not read in this way. Parts of unknown kinds are in `peer_parts`.

use std::ops::Range;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::dialect::Dialect;
use super::objects::AnyState;
use super::peer_parts::{as_data, place_of, spliced};
use super::{v0_3, v1};
use crate::domain::TaskState;
use crate::error::Error;

/// What a peer sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FromPeer<T> {
    pub value: T,
    /// For each task or status in it, the name of a state that is none of the eight. Empty if there are none.
    pub unknown_states: Vec<Option<String>>,
}

impl<T> FromPeer<T> {
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> FromPeer<U> {
        FromPeer { value: change(self.value), unknown_states: self.unknown_states }
    }

    /// The unknown state of an answer with one task or status.
    pub fn unknown_state(&self) -> Option<&str> {
        self.unknown_states.first()?.as_deref()
    }
}

/// Reads as usual; if that fails, with unknown states replaced, and parts of unknown kinds as data.
pub(super) fn read<T>(
    dialect: Dialect,
    text: &str,
    read: impl Fn(&str) -> Result<T, Error>,
) -> Result<FromPeer<T>, Error> {
    match read(text) {
        Ok(value) => Ok(FromPeer { value, unknown_states: Vec::new() }),
        Err(error) => {
            let with_data = as_data(text);
            let text = with_data.as_deref().unwrap_or(text);
            let Some((text, unknown_states)) = with_known_states(dialect, text) else { return Err(error) };
            Ok(FromPeer { value: read(&text)?, unknown_states })
        }
    }
}

/// Writes states into JSON of any generation: the first name at the first task or status, and so on. For showing a task as
/// it was received.
pub fn put_back(json: &str, unknown_states: &[Option<String>]) -> String {
    let places = places(json).unwrap_or_default();
    let edits =
        places.iter().zip(unknown_states).filter_map(|(place, name)| Some(place.with(name.as_ref()?)));
    spliced(json, edits)
}

/// The text with states that the dialect can read, and the names of those that nobody knows. `None` if that is no help.
fn with_known_states(dialect: Dialect, text: &str) -> Option<(String, Vec<Option<String>>)> {
    let (mut edits, mut unknown) = (Vec::new(), Vec::new());
    for place in &places(text)? {
        let said = place.said(dialect)?;
        let state = v0_3::parse_any_state(said.as_deref().map_err(|number| *number));
        // A name of another generation is still known.
        let (state, name) = match state {
            Some(AnyState(Some(state))) => (state, None),
            Some(AnyState(None)) | None => {
                (TaskState::Working, Some(said.unwrap_or_else(|number| number.to_string())))
            }
        };
        edits.push(place.with(state_name(dialect, state)));
        unknown.push(name);
    }
    if unknown.iter().all(Option::is_none) {
        unknown.clear();
    }
    Some((spliced(text, edits), unknown))
}

fn state_name(dialect: Dialect, state: TaskState) -> &'static str {
    match dialect {
        Dialect::V1 | Dialect::V0_3Rest => v1::state_name(state),
        Dialect::V0_3 | Dialect::V0_1 => v0_3::state_name(state),
    }
}

/// Where a state is in a text.
#[derive(Debug)]
struct Place<'a> {
    start: usize,
    /// `None` if the status has no state, as ProtoJSON writes "unspecified".
    state: Option<&'a str>,
    /// Other members follow.
    has_more: bool,
}

impl Place<'_> {
    fn said(&self, dialect: Dialect) -> Option<Result<String, u64>> {
        let unspecified = match dialect {
            Dialect::V1 | Dialect::V0_3Rest => "TASK_STATE_UNSPECIFIED",
            Dialect::V0_3 | Dialect::V0_1 => "unknown",
        };
        match self.state {
            None | Some("null") => Some(Ok(unspecified.to_owned())),
            Some(name) if name.starts_with('"') => serde_json::from_str(name).ok().map(Ok),
            Some(number) => number.parse().ok().map(Err),
        }
    }

    /// Another state, and the place in the text that it takes.
    fn with(&self, name: &str) -> (Range<usize>, String) {
        let name = serde_json::Value::from(name).to_string();
        match self.state {
            Some(state) => (self.start..self.start + state.len(), name),
            None => {
                let comma = if self.has_more { "," } else { "" };
                (self.start..self.start, format!("\"state\":{name}{comma}"))
            }
        }
    }
}

/// The places of all states, in order.
fn places(text: &str) -> Option<Vec<Place<'_>>> {
    let Answer { status, task, update, tasks } = serde_json::from_str(text).ok()?;
    let all = [Some(About { status }), task, update].into_iter().flatten().chain(tasks.into_iter().flatten());
    let mut places = Vec::new();
    for status in all.filter_map(|about| about.status) {
        let text_of_status = status.get();
        let inner: StatusMembers<'_> = serde_json::from_str(text_of_status).ok()?;
        let at = |piece: &str| place_of(text, piece).map(|place| place.start);
        places.push(match inner.state {
            Some(state) => Place { start: at(state.get())?, state: Some(state.get()), has_more: false },
            None => {
                let members = text_of_status.strip_prefix('{')?;
                Place { start: at(members)?, state: None, has_more: members.trim() != "}" }
            }
        });
    }
    places.sort_by_key(|place| place.start);
    Some(places)
}

/// A task, a status update, one of them in a member of its name, or a list of tasks.
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow, default)]
    status: Option<&'a RawValue>,
    #[serde(borrow, default)]
    task: Option<About<'a>>,
    #[serde(borrow, default, rename = "statusUpdate", alias = "status_update")]
    update: Option<About<'a>>,
    #[serde(borrow, default)]
    tasks: Option<Vec<About<'a>>>,
}

#[derive(Deserialize)]
struct About<'a> {
    #[serde(borrow, default)]
    status: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct StatusMembers<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    state: Option<&'a RawValue>,
}

/// `null` is there, too, and has a place in the text.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::{Operation, Reply};

    #[test]
    fn a_state_that_is_null_or_missing_is_unspecified() {
        for status in
            [r#"{"state":null}"#, r#"{ }"#, r#"{"state" : null ,"timestamp":"2026-01-01T00:00:00Z"}"#]
        {
            let text = format!(r#"{{"id":"t","contextId":"c","status":{status}}}"#);
            let read = Dialect::V1.read_reply(Operation::GetTask, &text).unwrap();
            assert_eq!(read.unknown_state(), Some("TASK_STATE_UNSPECIFIED"), "{status}");
            assert!(matches!(read.value, Reply::Task(task) if task.status.state == TaskState::Working));
        }
    }
}
