//! Query parameters as the members of a request.

use super::percent::decode;
use crate::domain::TaskState;
use crate::error::{Error, ErrorKind};
use crate::generation::{Generation, VERSION_HEADER};
use crate::operation::Operation;
use crate::wire::write::{Object, string};
use crate::wire::{v0_1, v1};

/// How a parameter's text becomes JSON.
#[derive(Clone, Copy)]
enum Kind {
    /// Numbers, too: readers take them as strings.
    Text,
    Flag,
    States,
}

/// Camel case, proto name, kind.
type Member = (&'static str, &'static str, Kind);

const TENANT: Member = ("tenant", "tenant", Kind::Text);
const HISTORY_LENGTH: Member = ("historyLength", "history_length", Kind::Text);
const PAGE_SIZE: Member = ("pageSize", "page_size", Kind::Text);
const PAGE_TOKEN: Member = ("pageToken", "page_token", Kind::Text);

/// What each operation takes from the query. What is not here is ignored, as unknown members are elsewhere.
fn members(operation: Operation) -> &'static [Member] {
    match operation {
        Operation::GetTask => &[TENANT, HISTORY_LENGTH],
        Operation::ListTasks => &[
            TENANT,
            ("contextId", "context_id", Kind::Text),
            ("status", "status", Kind::States),
            PAGE_SIZE,
            PAGE_TOKEN,
            HISTORY_LENGTH,
            ("statusTimestampAfter", "status_timestamp_after", Kind::Text),
            ("includeArtifacts", "include_artifacts", Kind::Flag),
        ],
        Operation::ListPushConfigs => &[TENANT, PAGE_SIZE, PAGE_TOKEN],
        Operation::SendMessage
        | Operation::SendStreamingMessage
        | Operation::CancelTask
        | Operation::SubscribeToTask
        | Operation::CreatePushConfig
        | Operation::GetPushConfig
        | Operation::DeletePushConfig
        | Operation::GetExtendedCard => &[TENANT],
    }
}

/// Adds the parameters to a request's members. An empty value is an absent one. A parameter given twice is written
/// twice, for the reader to refuse; only `status` may be repeated, or hold several states between commas.
pub(super) fn write_members(
    object: &mut Object<'_>,
    generation: Generation,
    operation: Operation,
    query: &str,
) -> Result<(), Error> {
    let mut states = Vec::new();
    for pair in pairs(query) {
        let (name, value) = pair?;
        let known = members(operation).iter().find(|(camel, proto, _)| name == *camel || name == *proto);
        match known {
            Some((_, _, _)) if value.is_empty() => {}
            Some((camel, _, Kind::Text)) => object.string(camel, &value),
            Some((camel, _, Kind::Flag)) => match value.as_str() {
                "true" => object.flag(camel, true),
                "false" => object.flag(camel, false),
                other => object.string(camel, other),
            },
            Some((_, _, Kind::States)) => states.extend(value.split(',').map(str::to_owned)),
            None => {}
        }
    }
    object.list_unless_empty("status", &states, |out, name| match state(generation, name) {
        Some(state) => string(out, v1::state_name(state)),
        None => string(out, name),
    });
    Ok(())
}

/// 0.3 has no word for states in a query: all its spellings are taken.
fn state(generation: Generation, name: &str) -> Option<TaskState> {
    match generation {
        Generation::V1 => v1::parse_state(name),
        Generation::V0_3 | Generation::V0_1 => match name {
            "TASK_STATE_CANCELLED" => Some(TaskState::Canceled),
            name => v1::parse_state(name).or_else(|| v0_1::parse_state(name)),
        },
    }
}

/// The version a query names, when there is no header.
pub fn version_in(query: &str) -> Option<String> {
    pairs(query).flatten().find(|(name, _)| name.eq_ignore_ascii_case(VERSION_HEADER)).map(|(_, value)| value)
}

fn pairs(query: &str) -> impl Iterator<Item = Result<(String, String), Error>> {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match (form(name), form(value)) {
            (Some(name), Some(value)) => Ok((name, value)),
            _ => {
                Err(Error::new(ErrorKind::InvalidParams, "Invalid parameters: the query is not URL-encoded")
                    .with_violation("query", "must be URL-encoded UTF-8"))
            }
        }
    })
}

/// In a query, unlike in a path, a plus is a space.
fn form(text: &str) -> Option<String> {
    decode(&text.replace('+', " "))
}
