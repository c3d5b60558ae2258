//! Objects in the words of each generation. The agent itself speaks 1.0.

use baton_lab::generation::Generation;
use baton_lab::wire::request::Operation;
use serde_json::{Value, json};

use super::entry::Entry;
use super::fault::Place;

/// The params of an operation, in 1.0's words.
pub(super) fn params(place: &Place, _operation: Operation, params: Value) -> Value {
    match place.generation {
        Generation::V1 => params,
        Generation::V0_3 | Generation::V0_1 => params,
    }
}

/// The object an operation answers with.
pub(super) fn reply(place: &Place, root: Value) -> Value {
    match place.generation {
        Generation::V1 => root,
        Generation::V0_3 | Generation::V0_1 => root,
    }
}

pub(super) fn event(place: &Place, event: &Value) -> Value {
    match place.generation {
        Generation::V1 => event.clone(),
        Generation::V0_3 | Generation::V0_1 => event.clone(),
    }
}

/// Content type and body of a webhook's call.
pub(super) fn webhook(generation: Generation, _entry: &Entry, event: Value) -> (&'static str, Value) {
    match generation {
        Generation::V1 => ("application/a2a+json", event),
        Generation::V0_3 | Generation::V0_1 => ("application/json", event),
    }
}

/// The body around an error of HTTP+JSON.
pub(super) fn rest_error(_place: &Place, error: Value) -> Value {
    json!({ "error": error })
}
