//! `expect_stream`: checks number, content and order of events.

use serde_json::{Map, Value, json};

use super::assertion::{self, Checked, Mismatch, check, show};
use super::document::ExpectStream;

/// Members of a 1.0 stream response, in both spellings that the files use.
const WRAPPERS: &[(&str, &str)] = &[
    ("status_update", "statusUpdate"),
    ("artifact_update", "artifactUpdate"),
    ("task", "task"),
    ("message", "message"),
];

/// Checks the events of a stream that has closed.
pub fn check_events(expected: &ExpectStream, events: &[Value]) -> Checked {
    let count = events.len();
    let wrong_count = |wanted: String| {
        Err(Mismatch { path: String::new(), expected: wanted, actual: format!("{count} events") })
    };
    if let Some(least) = expected.min_count.filter(|least| count < *least) {
        return wrong_count(format!("at least {least} events"));
    }
    if let Some(most) = expected.max_count.filter(|most| count > *most) {
        return wrong_count(format!("at most {most} events"));
    }
    match expected.ordering.as_deref() {
        None => {}
        Some("monotonic_state") => check_states(events)?,
        Some(other) => {
            let expected = "an ordering this runner knows (monotonic_state)".to_owned();
            return Err(Mismatch { path: String::new(), expected, actual: other.to_owned() });
        }
    }
    for (position, wanted) in expected.events.iter().enumerate() {
        check_listed(position, wanted, events)?;
    }
    if let Some(wanted) = &expected.final_event {
        let last = events.last();
        check_one(wanted, last).map_err(|found| at(&format!("events[{}]", count.max(1) - 1), found))?;
    }
    if let Some(wanted) = &expected.each_event {
        for (index, event) in events.iter().enumerate() {
            check_one(wanted, Some(event)).map_err(|found| at(&format!("events[{index}]"), found))?;
        }
    }
    Ok(())
}

fn check_listed(position: usize, wanted: &Map<String, Value>, events: &[Value]) -> Checked {
    let mut wanted = wanted.clone();
    wanted.remove("description");
    let place = wanted.remove("match").and_then(|place| place.as_str().map(str::to_owned));
    let index = wanted.remove("index").and_then(|index| index.as_u64());
    let wanted = Value::Object(wanted);
    if place.as_deref() == Some("any_position") {
        if events.iter().any(|event| check_one(&wanted, Some(event)).is_ok()) {
            return Ok(());
        }
        let kinds: Vec<Value> = events.iter().map(|event| json!(kind_of(event))).collect();
        return Err(Mismatch {
            path: "events".to_owned(),
            expected: format!("an event like {}", show(&wanted)),
            actual: show(&Value::Array(kinds)),
        });
    }
    let index = index.and_then(|index| usize::try_from(index).ok()).unwrap_or(position);
    check_one(&wanted, events.get(index)).map_err(|found| at(&format!("events[{index}]"), found))
}

/// An assertion that names a wrapper applies to the whole event, any other to the wrapped object.
fn check_one(wanted: &Value, event: Option<&Value>) -> Checked {
    let wanted = camel(wanted);
    if names_wrappers(&wanted) {
        return check(&wanted, event);
    }
    check(&wanted, event.map(inner))
}

fn names_wrappers(wanted: &Value) -> bool {
    let Some(map) = wanted.as_object() else { return false };
    let alternatives = |name: &str| map.get(name).and_then(Value::as_array);
    if let Some(options) =
        alternatives("one_of").or_else(|| alternatives("any_of")).filter(|_| map.len() == 1)
    {
        return !options.is_empty() && options.iter().all(names_wrappers);
    }
    !map.is_empty() && map.keys().all(|key| WRAPPERS.iter().any(|(_, member)| key == member))
}

/// The draft writes wrapper keys in snake case.
fn camel(wanted: &Value) -> Value {
    match wanted {
        Value::Object(map) => {
            let rename = |key: &String| {
                let known = WRAPPERS.iter().find(|(draft, _)| key == draft);
                known.map_or_else(|| key.clone(), |(_, member)| (*member).to_owned())
            };
            Value::Object(map.iter().map(|(key, value)| (rename(key), camel(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(camel).collect()),
        other => other.clone(),
    }
}

/// The wrapped object; events without a wrapper (0.3, 0.1) are returned unchanged.
pub fn inner(event: &Value) -> &Value {
    let members = event.as_object().filter(|members| members.len() == 1);
    let wrapped = members.and_then(|members| {
        let (name, value) = members.iter().next()?;
        WRAPPERS.iter().any(|(_, member)| member == name).then_some(value)
    });
    wrapped.unwrap_or(event)
}

/// The kind of an event, as its generation names it.
pub fn kind_of(event: &Value) -> String {
    if let Some(kind) = event.get("kind").and_then(Value::as_str) {
        return kind.to_owned();
    }
    let known = WRAPPERS.iter().find(|(_, member)| event.get(member).is_some());
    known.map_or_else(|| assertion::type_of(event).to_owned(), |(_, member)| (*member).to_owned())
}

/// The state in an event, without the 1.0 prefix, in capitals.
pub fn state_of(event: &Value) -> Option<String> {
    let state = inner(event).get("status")?.get("state")?.as_str()?;
    Some(state.trim_start_matches("TASK_STATE_").replace('-', "_").to_ascii_uppercase())
}

pub fn is_terminal(state: &str) -> bool {
    matches!(state, "COMPLETED" | "FAILED" | "CANCELED" | "CANCELLED" | "REJECTED")
}

/// Two transitions are refused: back to submitted, and out of a terminal state.
fn check_states(events: &[Value]) -> Checked {
    let mut last: Option<String> = None;
    for (index, event) in events.iter().enumerate() {
        let Some(state) = state_of(event) else { continue };
        if let Some(last) = &last
            && *last != state
            && (state == "SUBMITTED" || is_terminal(last))
        {
            return Err(Mismatch {
                path: format!("events[{index}]"),
                expected: format!("a state that may follow {last}"),
                actual: state,
            });
        }
        last = Some(state);
    }
    Ok(())
}

fn at(prefix: &str, mut found: Mismatch) -> Mismatch {
    found.path = if found.path.is_empty() { prefix.to_owned() } else { format!("{prefix}.{}", found.path) };
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expectation(json: Value) -> ExpectStream {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn streams_are_judged_by_count_order_and_content() {
        let status =
            |state: &str| json!({"statusUpdate": {"status": {"state": format!("TASK_STATE_{state}")}}});
        let good = [
            json!({"task": {"status": {"state": "TASK_STATE_SUBMITTED"}}}),
            status("WORKING"),
            json!({"artifactUpdate": {"artifact": {"artifactId": "a"}}}),
            status("COMPLETED"),
        ];
        let back = [status("WORKING"), status("SUBMITTED")];
        let after = [status("COMPLETED"), status("WORKING")];
        for (wanted, events, met) in [
            (json!({"min_count": 4, "max_count": 4}), &good[..], true),
            (json!({"min_count": 5}), &good[..], false),
            (json!({"max_count": 3}), &good[..], false),
            (json!({"ordering": "monotonic_state"}), &good[..], true),
            (json!({"ordering": "monotonic_state"}), &back[..], false),
            (json!({"ordering": "monotonic_state"}), &after[..], false),
            (json!({"ordering": "sideways"}), &good[..], false),
            (json!({"events": [{"task": {"exists": true}}]}), &good[..], true),
            (json!({"events": [{"artifact_update": {"exists": true}}]}), &good[..], false),
            (
                json!({"events": [{"match": "any_position", "artifact_update": {"exists": true}}]}),
                &good[..],
                true,
            ),
            (json!({"events": [{"match": "any_position", "artifact": {"exists": true}}]}), &good[..], true),
            (json!({"events": [{"index": 2, "artifact": {"artifactId": "a"}}]}), &good[..], true),
            (json!({"events": [{"index": 9, "artifact": {"artifactId": "a"}}]}), &good[..], false),
            (json!({"final_event": {"status": {"state": "TASK_STATE_COMPLETED"}}}), &good[..], true),
            (
                json!({"final_event": {"status_update": {"status": {"state": "TASK_STATE_COMPLETED"}}}}),
                &good[..],
                true,
            ),
            (json!({"final_event": {"status": {"state": "TASK_STATE_COMPLETED"}}}), &[][..], false),
            (
                json!({"each_event": {"one_of": [{"task": {}}, {"statusUpdate": {}}, {"artifactUpdate": {}}]}}),
                &good[..],
                true,
            ),
            (json!({"each_event": {"status": {"exists": true}}}), &good[..], false),
        ] {
            assert_eq!(check_events(&expectation(wanted.clone()), events).is_ok(), met, "{wanted}");
        }
    }
}
