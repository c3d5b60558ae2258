//! Objects in the words of each generation. The agent itself speaks 1.0; what comes in is spelled up, what goes out is
//! spelled down. What cannot be read is left as it is: the rules about messages refuse it later.

mod v0_1;
mod v0_3;
mod v0_3_rest;

use baton_lab::generation::{Binding, Generation};
use baton_lab::wire::request::Operation;
use serde_json::{Map, Value, json};

use super::entry::Entry;
use super::fault::Place;

/// The params of an operation, in 1.0's words.
pub(super) fn params(place: &Place, operation: Operation, params: Value) -> Value {
    match (place.generation, place.binding) {
        (Generation::V1, _) => params,
        (Generation::V0_3, Binding::Rest | Binding::Grpc) => v0_3_rest::params(operation, params),
        (Generation::V0_3, _) => v0_3::params(operation, params),
        (Generation::V0_1, _) => v0_1::params(operation, params),
    }
}

/// The object an operation answers with.
pub(super) fn reply(place: &Place, root: Value) -> Value {
    let operation = place.operation.unwrap_or(Operation::GetTask);
    if operation == Operation::GetExtendedAgentCard {
        // In the `.proto` of 0.3 this member has the form that 1.0 has under another name.
        let mut root = root;
        if (place.generation, place.binding) == (Generation::V0_3, Binding::Grpc) {
            with(Some(&mut root), |card| rename(card, "securityRequirements", "security"));
        }
        return root;
    }
    match (place.generation, place.binding) {
        (Generation::V1, _) => root,
        (Generation::V0_3, Binding::Rest | Binding::Grpc) => v0_3_rest::reply(operation, &root),
        (Generation::V0_3, _) => v0_3::reply(operation, &root),
        (Generation::V0_1, _) => v0_1::reply(operation, &root),
    }
}

pub(super) fn event(place: &Place, event: &Value) -> Value {
    match (place.generation, place.binding) {
        (Generation::V1, _) => event.clone(),
        (Generation::V0_3, Binding::Rest | Binding::Grpc) => v0_3_rest::event(event),
        (Generation::V0_3, _) => v0_3::event(event),
        (Generation::V0_1, _) => v0_1::event(event),
    }
}

/// Content type and body of a webhook's call.
pub(super) fn webhook(generation: Generation, entry: &Entry, event: Value) -> (&'static str, Value) {
    match generation {
        Generation::V1 => ("application/a2a+json", event),
        // The text shows the whole task.
        Generation::V0_3 => ("application/json", v0_3::task(&entry.snapshot().0)),
        Generation::V0_1 => ("application/json", v0_1::webhook(&event)),
    }
}

/// The body around an error of HTTP+JSON.
pub(super) fn rest_error(place: &Place, error: Value) -> Value {
    match place.generation {
        Generation::V1 => json!({ "error": error }),
        Generation::V0_3 | Generation::V0_1 => error,
    }
}

fn rename(members: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = members.remove(from) {
        members.insert(to.to_owned(), value);
    }
}

/// Changes each element of a list, where it is one.
fn each(list: Option<&mut Value>, change: impl Fn(&mut Value)) {
    list.and_then(Value::as_array_mut).into_iter().flatten().for_each(change);
}

/// Changes the members of an object, where it is one.
fn with(object: Option<&mut Value>, change: impl FnOnce(&mut Map<String, Value>)) {
    if let Some(members) = object.and_then(Value::as_object_mut) {
        change(members);
    }
}

/// Changes a text, where it is one.
fn respell(members: &mut Map<String, Value>, name: &str, change: impl FnOnce(&str) -> String) {
    if let Some(Value::String(text)) = members.get_mut(name) {
        *text = change(text);
    }
}

/// Does the stream of an older generation end here?
fn is_last(status: &Value) -> bool {
    let state = status["state"].as_str().unwrap_or_default();
    super::entry::is_terminal(state) || super::entry::is_interrupted(state)
}

/// `TASK_STATE_INPUT_REQUIRED` to `input-required`.
fn small(state: &str) -> String {
    state.trim_start_matches("TASK_STATE_").to_ascii_lowercase().replace('_', "-")
}

/// A webhook's credentials: one scheme in 1.0, a list before.
fn authentication_up(config: &mut Map<String, Value>) {
    with(config.get_mut("authentication"), |authentication| {
        if let Some(first) = authentication.remove("schemes").and_then(|list| list.get(0).cloned()) {
            authentication.insert("scheme".to_owned(), first);
        }
    });
}

fn authentication_down(config: &mut Map<String, Value>) {
    with(config.get_mut("authentication"), |authentication| {
        if let Some(one) = authentication.remove("scheme") {
            authentication.insert("schemes".to_owned(), json!([one]));
        }
    });
}
