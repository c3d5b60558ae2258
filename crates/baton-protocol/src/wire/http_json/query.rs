//! Query parameters as the members of a request.

use std::borrow::Cow;

use super::percent::decode_form;
use crate::error::{Error, ErrorKind};
use crate::generation::VERSION_HEADER;
use crate::operation::Operation;
use crate::wire::write::Object;

/// How a parameter's text is written as JSON.
#[derive(Clone, Copy)]
enum Kind {
    /// A string; also for numbers, since readers accept numbers as strings.
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

/// The parameters of each operation. Others are ignored, as unknown members are elsewhere.
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

/// Adds the parameters to a request's members. An empty value counts as absent. A parameter that is given twice is
/// written twice, so that the reader refuses it; only `status` may be repeated, or have several states separated by
/// commas.
pub(super) fn write_members(object: &mut Object<'_>, operation: Operation, query: &str) -> Result<(), Error> {
    let mut states = Vec::new();
    for pair in pairs(query) {
        let (name, value) = pair?;
        let known = members(operation).iter().find(|(camel, proto, _)| name == *camel || name == *proto);
        match known {
            Some((_, _, _)) if value.is_empty() => {}
            Some((camel, _, Kind::Text)) => object.string(camel, &value),
            Some((camel, _, Kind::Flag)) => match &*value {
                "true" => object.flag(camel, true),
                "false" => object.flag(camel, false),
                other => object.string(camel, other),
            },
            Some((_, _, Kind::States)) => states.extend(value.split(',').map(str::to_owned)),
            None => {}
        }
    }
    // A single state may be `TASK_STATE_UNSPECIFIED`; a list must not contain it.
    match states.as_slice() {
        [state] => object.string("status", state),
        states => object.strings_unless_empty("status", states),
    }
    Ok(())
}

/// The version in a query, used if there is no header.
pub fn version_in(query: &str) -> Option<String> {
    let named = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = named.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(VERSION_HEADER))?;
    // A version that cannot be decoded is unknown, not missing.
    Some(decode_form(value).map_or_else(|| value.to_owned(), Cow::into_owned))
}

fn pairs(query: &str) -> impl Iterator<Item = Result<(Cow<'_, str>, Cow<'_, str>), Error>> {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match (decode_form(name), decode_form(value)) {
            (Some(name), Some(value)) => Ok((name, value)),
            _ => {
                Err(Error::new(ErrorKind::InvalidParams, "Invalid parameters: the query is not URL-encoded")
                    .with_violation("query", "must be URL-encoded UTF-8"))
            }
        }
    })
}
