//! Request parameters that are the same in 0.3 and 1.0.

use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::Deserializer;

use super::from_domain::write_time;
use super::{Spelling, States};
use crate::domain::{ContextId, ListFilter};
use crate::error::Error;
use crate::operation::{Call, HistoryLength, ListTasks};
use crate::wire::Decoded;
use crate::wire::read::{FromWire, Subject, Twin, optional, or_default, read, text};
use crate::wire::scalars::{NotBefore, maybe_id};
use crate::wire::write::{Object, list, string};

/// Absent or `null` parameters are read as an empty object, so that errors name the missing members.
pub(crate) fn present(params: Option<&str>) -> &str {
    params.map(str::trim).filter(|text| !text.is_empty() && *text != "null").unwrap_or("{}")
}

impl<G: Spelling> FromWire<G> for HistoryLength {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <u32 as FromWire<G>>::from_wire(deserializer).map(G::history_length)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "G: Spelling"))]
struct ListTasksTwin<G> {
    #[serde(default, deserialize_with = "text")]
    tenant: Option<String>,
    #[serde(default, alias = "context_id", deserialize_with = "maybe_id")]
    context_id: Option<ContextId>,
    #[serde(default, deserialize_with = "or_default::<G, _, _>")]
    status: States,
    #[serde(default, alias = "page_size", deserialize_with = "optional::<G, _, _>")]
    page_size: Option<i32>,
    #[serde(default, alias = "page_token", deserialize_with = "text")]
    page_token: Option<String>,
    #[serde(default, alias = "history_length", deserialize_with = "or_default::<G, _, _>")]
    history_length: HistoryLength,
    /// Its name before 1.0 was `lastUpdatedAfter`.
    #[serde(
        default,
        alias = "status_timestamp_after",
        alias = "lastUpdatedAfter",
        deserialize_with = "optional::<G, _, _>"
    )]
    status_timestamp_after: Option<NotBefore>,
    #[serde(default, alias = "include_artifacts", deserialize_with = "or_default::<G, _, _>")]
    include_artifacts: bool,
    #[serde(skip)]
    spelling: PhantomData<G>,
}

pub(crate) fn list_tasks<G: Spelling>(params: &str) -> Result<Decoded, Error> {
    let Twin(twin) = read::<G, Twin<ListTasksTwin<G>>>(params, Subject::PARAMS)?;
    let filter = ListFilter {
        context_id: twin.context_id,
        states: twin.status.0,
        updated_since: twin.status_timestamp_after.map(|NotBefore(since)| since),
    };
    let list = ListTasks {
        filter,
        page_size: twin.page_size,
        page_token: twin.page_token,
        history_length: twin.history_length,
        include_artifacts: twin.include_artifacts,
    };
    Ok(Decoded { tenant: twin.tenant, call: Call::ListTasks(list) })
}

pub(crate) fn write_list<G: Spelling>(object: &mut Object<'_>, call: &ListTasks) {
    let ListFilter { context_id, states, updated_since } = &call.filter;
    object.optional("contextId", context_id.as_ref().map(ContextId::as_str));
    match states.as_slice() {
        [] => {}
        [state] => object.string("status", G::state_name(*state)),
        // No generation has a filter by several states. It is better that a peer refuses the list than that it returns
        // the wrong tasks.
        several => list(object.member("status"), several, |out, state| string(out, G::state_name(*state))),
    }
    write_page_request(object, call.page_size, call.page_token.as_deref());
    write_history_length::<G>(object, call.history_length);
    if let Some(since) = updated_since {
        write_time(object.member("statusTimestampAfter"), *since);
    }
    object.flag_if_set("includeArtifacts", call.include_artifacts);
}

pub(crate) fn write_page_request(object: &mut Object<'_>, page_size: Option<i32>, page_token: Option<&str>) {
    if let Some(page_size) = page_size {
        object.number("pageSize", page_size);
    }
    object.optional("pageToken", page_token);
}

/// Left out if the reader would misunderstand it.
pub(crate) fn write_history_length<G: Spelling>(object: &mut Object<'_>, length: HistoryLength) {
    match length {
        HistoryLength::Last(most) if G::history_length(most) == length => {
            object.number("historyLength", most.min(i32::MAX as u32));
        }
        _ => {}
    }
}
